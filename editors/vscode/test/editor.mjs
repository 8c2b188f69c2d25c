// A real VS Code server, and a browser that shows it.
//
// Environment: GRIDFUSE_TEST_CODE_SERVER the directory of code-server, GRIDFUSE_TEST_CHROMIUM the browser, GRIDFUSE_TEST_DIRECTORY a
// directory of its own with a directory `workspace` in it.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import path from "node:path";
import { chromium } from "playwright-core";

/** How long anything may take, in ms: tests/src/patience.rs says it. On a busy machine it is much longer than usual. */
export const PATIENCE = Number(need("GRIDFUSE_TEST_PATIENCE"));

/** What the extension itself complains about comes from its directory. */
const OURS = /gridfuse\.gridfuse-|editors\/vscode\/dist/;

const started = Date.now();

export function step(text) {
  console.log(`${((Date.now() - started) / 1000).toFixed(1)} s: ${text}`);
}

export function need(name) {
  const value = process.env[name];
  assert.ok(value, `${name} is not set`);
  return value;
}

export const directory = need("GRIDFUSE_TEST_DIRECTORY");
export const workspace = path.join(directory, "workspace");

function freePort() {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

/**
 * Runs `scenario` with a page that shows nothing yet, and fails when the extension has complained in the browser's console.
 * `settings` are the user's, `install` is a package to install first, `environment` is that of the server.
 */
export async function withEditor({ settings, install, environment, options = [], context = {} }, scenario) {
  const serverData = path.join(directory, "server-data");
  const user = path.join(serverData, "data", "User");
  mkdirSync(user, { recursive: true });
  writeFileSync(path.join(user, "settings.json"), JSON.stringify({ ...COMMON_SETTINGS, ...settings }));
  // Of code-server only the editor's own server: what is around it is for passwords and updates.
  const entry = path.join(need("GRIDFUSE_TEST_CODE_SERVER"), "lib/vscode/out/server-main.js");
  const common = [entry, "--server-data-dir", serverData, "--extensions-dir", path.join(directory, "extensions")];
  common.push("--accept-server-license-terms", "--telemetry-level", "off");
  const env = { ...process.env, ...environment };
  if (install !== undefined) {
    const done = spawnSync(process.execPath, [...common, "--install-extension", install], { env, encoding: "utf8" });
    assert.equal(done.status, 0, `${done.stdout}\n${done.stderr}`);
    step("the package is installed");
  }
  const port = await freePort();
  const listen = ["--host", "127.0.0.1", "--port", String(port), "--without-connection-token", "--disable-workspace-trust"];
  const server = spawn(process.execPath, [...common, ...listen, ...options], { env, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  const listening = new Promise((resolve, reject) => {
    const read = (chunk) => {
      output += chunk;
      if (output.includes("Extension host agent listening")) {
        resolve();
      }
    };
    server.stdout.on("data", read);
    server.stderr.on("data", read);
    server.on("exit", () => reject(new Error(`the server ended\n${output}`)));
  });
  const complaints = [];
  let browser;
  let page;
  try {
    await listening;
    browser = await chromium.launch({
      executablePath: need("GRIDFUSE_TEST_CHROMIUM"),
      headless: true,
      timeout: PATIENCE,
      args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
    });
    page = await browser.newPage({ viewport: { width: 1280, height: 760 }, ...context });
    page.setDefaultTimeout(PATIENCE);
    page.on("console", (message) => {
      if (message.type() === "error" && OURS.test(`${message.text()} ${message.location().url}`)) {
        complaints.push(`${message.text()} (${message.location().url})`);
      }
    });
    page.on("pageerror", (error) => {
      if (OURS.test(`${error.message} ${error.stack}`)) {
        complaints.push(`${error.message}\n${error.stack}`);
      }
    });
    const remote = (file) => `vscode-remote://127.0.0.1:${port}${file}`;
    /** Shows the workspace. */
    const open = (payload) => {
      const text = encodeURIComponent(JSON.stringify(payload(remote)));
      return page.goto(`http://127.0.0.1:${port}/?folder=${encodeURIComponent(workspace)}&payload=${text}`);
    };
    await scenario(page, open);
    assert.deepEqual(complaints, [], "errors in the browser's console");
    step("done");
  } catch (error) {
    await picture(page);
    console.error(output.slice(-4000));
    throw error;
  } finally {
    await browser?.close();
    server.kill("SIGTERM");
  }
}

/** How the window looks when something fails for the first time. */
export async function picture(page) {
  const file = path.join(directory, "failure.png");
  if (page !== undefined && !existsSync(file)) {
    await page.screenshot({ path: file }).catch(() => undefined);
  }
}

const COMMON_SETTINGS = {
  "window.autoDetectColorScheme": false,
  "workbench.startupEditor": "none",
  "workbench.tips.enabled": false,
  // What the editor does meanwhile may take the focus from a list.
  "workbench.quickOpen.closeOnFocusLost": false,
  "workbench.layoutControl.enabled": false,
  "chat.commandCenter.enabled": false,
  "editor.minimap.enabled": false,
  "editor.stickyScroll.enabled": false,
  "diffEditor.renderSideBySide": true,
  "diffEditor.renderSideBySideInlineBreakpoint": 400,
  "telemetry.telemetryLevel": "off",
  "security.workspace.trust.enabled": false,
  "extensions.autoCheckUpdates": false,
  "extensions.ignoreRecommendations": true,
};

/** A message, by what it says. */
export function messageOf(page, text) {
  return page.locator(".notification-list-item", { hasText: text }).first();
}

/** The box that asks for something. */
export function question(page, text) {
  return page.locator(".quick-input-widget:visible", { hasText: text }).locator("input.input");
}

/** The page of one of the extension's panels, by what its heading says. */
export async function panel(page, title) {
  const deadline = Date.now() + PATIENCE;
  while (Date.now() < deadline) {
    for (const frame of page.frames()) {
      const heading = frame.locator("h1");
      if ((await heading.count().catch(() => 0)) > 0 && (await heading.first().textContent())?.includes(title)) {
        return frame;
      }
    }
    await page.waitForTimeout(100);
  }
  throw new Error(`no panel shows ${title}`);
}
