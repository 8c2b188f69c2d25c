// The extension's own tests (test/host/) in a real extension host, with the real `vscode` and the real server.
//
// Environment: that of editor.mjs; GRIDFUSE_TEST_EXTENSION the extension's directory, built; GRIDFUSE_TEST_HOST the bundled tests;
// GRIDFUSE_TEST_SERVER the gridfuse program; GRIDFUSE_TEST_FAKE_CUDA a directory with an nvcc that is faked. In the workspace are bfs.cu and
// program.cu.
//
// What a window shows can't be asked for through `vscode`: the tests ask this process, which looks at the page.

import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { directory, messageOf, need, panel, PATIENCE, picture, question, withEditor } from "./editor.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
let page;

const rows = () => page.locator(".quick-input-widget:visible .quick-input-list .monaco-list-row");

const questions = {
  /** The status bar's item. */
  async status() {
    // By its name: work in progress has an item of its own, whose text begins with "gridfuse" as well.
    const item = page.locator('.statusbar-item[id="gridfuse.gridfuse.gridfuse.status"]');
    if ((await item.count()) === 0) {
      return null;
    }
    const label = (await item.locator("a").first().getAttribute("aria-label")) ?? "";
    return { text: await item.innerText(), label, warning: /warning-kind/.test((await item.getAttribute("class")) ?? "") };
  },
  /** What a message says, with its buttons, if it is shown soon. */
  async message(text) {
    try {
      return await messageOf(page, text).innerText({ timeout: 5000 });
    } catch {
      return null;
    }
  },
  /** What the messages say that are shown now. */
  messages() {
    return page.locator(".notification-list-item").allInnerTexts();
  },
  /** Presses a button of a message, if it is shown soon. */
  async pressInMessage(text, button) {
    try {
      await messageOf(page, text).locator(".monaco-button", { hasText: button }).click({ timeout: 5000 });
      return true;
    } catch {
      return false;
    }
  },
  /** Chooses a row of a list. */
  async choose(text) {
    await rows().filter({ hasText: text }).first().click();
  },
  /** Accepts what stands in the input box that asks for `text`. */
  async enter(text) {
    await question(page, text).press("Enter");
  },
  /** A text is to be seen in an editor, or in the page of one. */
  async shows(text) {
    for (const frame of page.frames()) {
      const place = frame === page.mainFrame() ? frame.locator(".editor-container") : frame.locator("body");
      if (await place.getByText(text).first().isVisible().catch(() => false)) {
        return true;
      }
    }
    return false;
  },
  async key(key) {
    await page.keyboard.press(key);
  },
  /** A panel as a screen reader sees it. */
  async panel(title) {
    return (await panel(page, title)).locator("main").ariaSnapshot();
  },
  async press(title, role, name) {
    await (await panel(page, title)).getByRole(role, { name, exact: true }).click();
  },
  /** Opens what a panel keeps closed. */
  async expand(title, summary) {
    await (await panel(page, title)).locator("summary", { hasText: summary }).click();
  },
  /** Goes through a panel with the keyboard: what has the focus after each key. */
  async focusAfter(title, keys) {
    const frame = await panel(page, title);
    // The window gives the focus to a panel when its page is there.
    await frame.waitForFunction(() => document.hasFocus(), undefined, { timeout: PATIENCE });
    const places = [];
    for (const key of keys) {
      await page.keyboard.press(key);
      places.push(
        await frame.evaluate(() => {
          const { activeElement } = document;
          const { outlineStyle, outlineWidth, stroke } = getComputedStyle(activeElement);
          const name = activeElement.getAttribute("aria-label") ?? activeElement.textContent.trim().slice(0, 40);
          return { tag: activeElement.localName, name, seen: (outlineStyle !== "none" && outlineWidth !== "0px") || activeElement.matches("[data-node]:focus-visible") && stroke !== "none" };
        }),
      );
    }
    return places;
  },
  /** Parts of a panel whose text is hard to read: contrast of less than 4.5 to what is behind it. */
  async faint(title) {
    return (await panel(page, title)).evaluate(() => {
      const channel = (c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
      const parse = (color) => {
        const inSrgb = /color\(srgb ([\d.]+) ([\d.]+) ([\d.]+)(?: \/ ([\d.]+))?\)/.exec(color);
        if (inSrgb !== null) {
          return [Number(inSrgb[1]), Number(inSrgb[2]), Number(inSrgb[3]), Number(inSrgb[4] ?? 1)];
        }
        const numbers = color.match(/[\d.]+/g)?.map(Number) ?? [0, 0, 0, 0];
        return [numbers[0] / 255, numbers[1] / 255, numbers[2] / 255, numbers[3] ?? 1];
      };
      const over = (front, back) => [0, 1, 2].map((i) => front[i] * front[3] + back[i] * (1 - front[3]));
      const luminance = (rgb) => 0.2126 * channel(rgb[0]) + 0.7152 * channel(rgb[1]) + 0.0722 * channel(rgb[2]);
      const backdrop = (element) => {
        const layers = [];
        for (let at = element; at !== null; at = at.parentElement) {
          layers.push(parse(getComputedStyle(at).backgroundColor));
        }
        return layers.reverse().reduce((back, layer) => over(layer, back), [1, 1, 1]);
      };
      const found = [];
      const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
        const element = node.parentElement;
        if (node.data.trim() === "" || element.closest("script, style, svg") !== null) {
          continue;
        }
        const back = backdrop(element);
        const front = over(parse(getComputedStyle(element).color), back);
        const [dark, light] = [luminance(front), luminance(back)].sort((a, b) => a - b);
        const ratio = (light + 0.05) / (dark + 0.05);
        if (ratio < 4.5) {
          found.push(`${ratio.toFixed(2)}: ${element.localName}.${element.className}: ${node.data.trim().slice(0, 40)}`);
        }
      }
      return found;
    });
  },
  async picture() {
    await picture(page);
  },
};

const answering = createServer((request, response) => {
  let body = "";
  request.on("data", (chunk) => (body += chunk));
  request.on("end", async () => {
    const { question, values } = JSON.parse(body);
    try {
      response.end(JSON.stringify({ answer: (await questions[question](...values)) ?? null }));
    } catch (error) {
      response.end(JSON.stringify({ error: `${question} ${JSON.stringify(values)}: ${error.message}` }));
    }
  });
});
await new Promise((resolve) => answering.listen(0, "127.0.0.1", resolve));

const environment = {
  GRIDFUSE_TEST_RECORDING: path.join(here, "recording.json"),
  GRIDFUSE_TEST_RECORDING_SERVER: path.join(here, "recording-server.mjs"),
  GRIDFUSE_TEST_WINDOW: String(answering.address().port),
  // What is measured is remembered there.
  XDG_STATE_HOME: path.join(directory, "state"),
};
// Takes the place of Microsoft's C/C++ extension, which isn't free.
const cpptools = path.join(directory, "extensions/ms-vscode.cpptools-1.0.0");
mkdirSync(cpptools, { recursive: true });
writeFileSync(
  path.join(cpptools, "package.json"),
  JSON.stringify({
    name: "cpptools",
    publisher: "ms-vscode",
    version: "1.0.0",
    engines: { vscode: "^1.91.0" },
    contributes: {
      configuration: { properties: { "C_Cpp.intelliSenseEngine": { type: "string", default: "default" } } },
    },
  }),
);
try {
  // A high-contrast theme: what is wrong with colours and focus shows there.
  const settings = { "workbench.colorTheme": "Default High Contrast" };
  await withEditor({ settings, environment, options: ["--enable-smoke-test-driver"] }, async (opened, open) => {
    page = opened;
    const lines = [];
    await page.exposeFunction("codeAutomationLog", (_, args) => {
      const text = args.map((one) => (typeof one === "string" ? one : JSON.stringify(one))).join(" ");
      if (text.startsWith("gridfuse test: ")) {
        lines.push(text);
        console.log(text.slice("gridfuse test: ".length));
      }
    });
    const exit = new Promise((resolve) => page.exposeFunction("codeAutomationExit", resolve));
    await open((remote) => [
      ["extensionDevelopmentPath", remote(need("GRIDFUSE_TEST_EXTENSION"))],
      ["extensionTestsPath", remote(need("GRIDFUSE_TEST_HOST"))],
      ["skipWelcome", "true"],
    ]);
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error("the tests come to no end")), 10 * PATIENCE);
    });
    const code = await Promise.race([exit, late]).finally(() => clearTimeout(timer));
    assert.ok(lines.length > 0, "no test ran");
    assert.equal(code, 0, "tests failed");
  });
} finally {
  answering.close();
}
