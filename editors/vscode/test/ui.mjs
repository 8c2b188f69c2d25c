// The packaged extension in a real VS Code server, in a real browser: what a user does in the first minutes.
//
// Environment: that of editor.mjs, with bfs.cu in the workspace; GRIDFUSE_TEST_VSIX the package with recording-server.mjs as its program,
// GRIDFUSE_TEST_SERVER the gridfuse program that this one starts; GRIDFUSE_TEST_SCREENSHOTS a directory for pictures, if they are wanted;
// GRIDFUSE_TEST_THEME light (default) or dark.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { messageOf, need, panel as panelOf, PATIENCE, question, step, withEditor, workspace } from "./editor.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const pictures = process.env.GRIDFUSE_TEST_SCREENSHOTS || undefined;
const theme = process.env.GRIDFUSE_TEST_THEME || "light";
const source = path.join(workspace, "bfs.cu");

const settings = {
  "workbench.colorTheme": theme === "dark" ? "Default Dark Modern" : "Default Light Modern",
  "gridfuse.trace.server": process.env.GRIDFUSE_TEST_TRACE ?? "off",
};
let page;
const environment = { GRIDFUSE_TEST_RECORDING: path.join(here, "recording.json") };
// A login shell may set another PATH than that of the test.
const options = ["--force-disable-user-env"];
await withEditor({ settings, environment, options, install: need("GRIDFUSE_TEST_VSIX") }, async (opened, open) => {
  page = opened;
  await open((remote) => [["openFile", remote(source)]]);
  await scenario();
});

async function picture(name) {
  if (pictures !== undefined) {
    mkdirSync(pictures, { recursive: true });
    await page.waitForTimeout(500);
    await page.screenshot({ path: path.join(pictures, `${name}-${theme}.png`) });
  }
}

/** Opens the box that `key` opens, types into it, and takes the row that says `row`. Keys get lost while the editor is busy with itself. */
async function type(key, text, row) {
  const input = page.locator(".quick-input-widget input.input");
  const wanted = page.locator(".quick-input-list .monaco-list-row", { hasText: row }).first();
  for (const deadline = Date.now() + PATIENCE; ; ) {
    try {
      await page.keyboard.press(key);
      await input.fill(text, { timeout: 5000 });
      return await wanted.click({ timeout: 5000 });
    } catch (error) {
      if (Date.now() > deadline) {
        throw error;
      }
      await page.keyboard.press("Escape");
    }
  }
}

async function command(title) {
  await type("F1", `>${title}`, title);
}

async function pick(text) {
  const row = page.locator(".quick-input-list .monaco-list-row", { hasText: text }).first();
  await row.waitFor();
  await row.click();
}

/** Puts the cursor on the launch. */
async function goToLaunch(line) {
  await type("Control+g", `:${line}:12`, `line ${line} `);
  await page.locator(".quick-input-widget").waitFor({ state: "hidden" });
  await page.locator(".statusbar-item", { hasText: `Ln ${line}, Col 12` }).waitFor();
}

/** Rests the pointer on a part of the visible line that contains `lineText`. */
async function pointAt(lineText, part) {
  const line = page.locator(".view-line", { hasText: lineText }).first();
  const place = await line.evaluate((node, wanted) => {
    const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
    for (let text = walker.nextNode(); text !== null; text = walker.nextNode()) {
      const at = text.data.indexOf(wanted);
      if (at >= 0) {
        const range = document.createRange();
        range.setStart(text, at);
        range.setEnd(text, at + wanted.length);
        const { x, y, width, height } = range.getBoundingClientRect();
        return { x: x + width / 2, y: y + height / 2 };
      }
    }
    return null;
  }, part);
  assert.ok(place, `${part} is not in sight`);
  await page.mouse.move(place.x - 3, place.y);
  await page.mouse.move(place.x, place.y, { steps: 3 });
}

/** Rests the pointer there until the hover says what is `wanted`: what comes into the text meanwhile moves the lines. */
async function hoverOn(lineText, part, wanted) {
  const told = page.locator(".monaco-hover", { hasText: wanted }).first();
  for (const deadline = Date.now() + PATIENCE; ; ) {
    try {
      await pointAt(lineText, part);
      return await told.waitFor({ timeout: 5000 });
    } catch (error) {
      if (Date.now() > deadline) {
        throw error;
      }
      await page.mouse.move(5, 5);
    }
  }
}

/** Draws the hover's upper border to the top of the text, so that the picture shows more of it. */
async function enlargeHover() {
  if (pictures === undefined) {
    return;
  }
  const hover = await page.locator(".monaco-resizable-hover:visible").first().boundingBox();
  const text = await page.locator(".monaco-editor").first().boundingBox();
  assert.ok(hover && text);
  await page.mouse.move(hover.x + hover.width / 2, hover.y + 1);
  await page.mouse.down();
  await page.mouse.move(hover.x + hover.width / 2, text.y + 4, { steps: 10 });
  await page.mouse.up();
  // The border is marked while the pointer is on it.
  await page.mouse.move(hover.x + hover.width / 2, hover.y + hover.height / 2, { steps: 3 });
}

/** A message, once it is shown. Messages leave the window after a while, but not the list of all. */
async function messageShown(text) {
  for (const deadline = Date.now() + PATIENCE; ; ) {
    try {
      await messageOf(page, text).waitFor({ timeout: 5000 });
      return messageOf(page, text);
    } catch (error) {
      if (Date.now() > deadline) {
        throw error;
      }
      await command("Notifications: Show Notifications");
    }
  }
}

function panel(title) {
  return panelOf(page, title);
}

async function scenario() {
  await page.locator(".monaco-editor .view-lines").first().waitFor();
  step("the file is open");
  // The text gets the room of the list of files.
  await command("View: Toggle Primary Side Bar Visibility");
  const text = readFileSync(source, "utf8");
  const line = text.split("\n").findIndex((one) => one.includes("expand<<<")) + 1;
  await goToLaunch(line);
  await page.locator(".monaco-editor .squiggly-warning").first().waitFor();
  step("the launch is underlined");
  // By its id: while the server reads, its progress stands beside it.
  await page.locator('.statusbar-item[id="gridfuse.gridfuse.gridfuse.status"]').waitFor();
  // Lines move down when the lens comes.
  await page.locator(".codelens-decoration", { hasText: "rewrites" }).waitFor();
  if (pictures !== undefined) {
    // Room above the launch, for a larger hover.
    for (let i = 0; i < 9; i += 1) {
      await page.keyboard.press("Control+ArrowUp");
    }
  }
  await hoverOn("expand<<<", "pand", "uniformity");
  const told = await page.locator(".monaco-hover", { has: page.locator("table") }).first().innerText();
  assert.match(told, /varying/);
  step("the hover has its tables");
  await enlargeHover();
  await picture("hover");
  await page.mouse.move(5, 5);
  await page.keyboard.press("Escape");
  assert.equal(await page.locator(".codelens-decoration", { hasText: "rewrites" }).count(), 1, "one lens for one kernel");

  await goToLaunch(line);
  const best = await menuAt(/^Best: /);
  step("the menu begins with the best rewrite");
  await picture("menu");
  await page.keyboard.press("Escape");

  await page.locator(".codelens-decoration a", { hasText: "rewrites" }).click();
  const listed = page.locator(".quick-input-list .monaco-list-row");
  await listed.first().waitFor();
  const [heading] = best.split(" — ");
  assert.ok((await listed.first().innerText()).startsWith(heading), `the list begins with "${heading}"`);
  step("the lens opens the same list");
  await picture("rewrites");
  await page.keyboard.press("Escape");

  await goToLaunch(line);
  await command("gridfuse: Apply Best Rewrite");
  const dialog = page.locator(".monaco-dialog-box");
  await dialog.waitFor();
  const asked = await dialog.innerText();
  assert.ok(asked.includes(heading), asked);
  assert.match(asked, /It is right if this holds/);
  step("applying the best rewrite says first what it will do");
  await picture("best");
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  assert.equal(readFileSync(source, "utf8"), text, "nothing is applied unasked");

  await goToLaunch(line);
  await command("gridfuse: Explain Launch");
  await explanation("launch of expand");
  step("the explanation is a page");
  // The pointer is where the command was chosen, and a button there would say its name.
  await page.mouse.move(5, 5);
  await picture("explain");
  await closeTab("Explanation");

  await goToLaunch(line);
  await command("gridfuse: Show Launch Graph");
  const graph = await panel("Launch graph");
  await graph.locator('[aria-label="Go to expand"]').click();
  const expand = text.split("\n").findIndex((one) => /void expand\(/.test(one)) + 1;
  await page.locator(".statusbar-item", { hasText: `Ln ${expand}, Col` }).waitFor();
  step("a click in the launch graph leads to the kernel");
  await picture("graph");
  await closeTab("launch graph");

  await goToLaunch(line);
  await command("gridfuse: Run on GPU");
  await question(page, "Arguments of the program").press("Enter");
  const measured = await panel("bfs.cu");
  await measured.locator("tr.fastest", { hasText: "optimize" }).waitFor();
  const recorded = JSON.parse(readFileSync(environment.GRIDFUSE_TEST_RECORDING, "utf8"));
  const tried = recorded.variants.filter((variant) => variant.outcome.outcome !== "refused");
  assert.equal(await measured.locator("tbody tr").count(), 1 + tried.length, "the original and the rewrites that fit");
  await measured.locator("li", { hasText: "can't be applied" }).first().waitFor();
  assert.match(await measured.locator(".summary").innerText(), /optimize, 0\.\d+ ms, \d+× as fast/);
  assert.ok((await measured.locator(".bar").first().evaluate((bar) => bar.getBoundingClientRect().width)) > 50, "bars have a width");
  // Everything can be done with the keyboard.
  const first = measured.locator("button[data-kind=apply]").first();
  await first.focus();
  await page.keyboard.press("ArrowDown");
  const focused = await measured.evaluate(() => document.activeElement?.getAttribute("aria-label"));
  assert.match(focused ?? "", /^Apply /);
  step("the measurement shows");
  await command("View: Toggle Maximize Editor Group");
  await page.mouse.move(700, 700);
  await measured.evaluate(() => {
    document.querySelector(".scroll").scrollLeft = 0;
    window.scrollTo(0, 0);
  });
  await picture("measurement");
  await command("View: Toggle Maximize Editor Group");
  await closeTab("measurement");

  await goToLaunch(line);
  await command("gridfuse: Preview Rewrite");
  await pick("Collect launches per block");
  await page.locator(".monaco-diff-editor .line-insert, .monaco-diff-editor .char-insert").first().waitFor();
  assert.equal(readFileSync(source, "utf8"), text, "a preview changes nothing");
  await messageShown("independent");
  step("the preview shows the difference and what it assumes");
  await picture("preview");
  await (await messageShown("independent")).locator(".monaco-button", { hasText: "Apply" }).click();
  await page.locator(".monaco-editor .view-line", { hasText: "gridfuse::Aggregator" }).first().waitFor();
  await command("File: Save All");
  const deadline = Date.now() + PATIENCE;
  while (!readFileSync(source, "utf8").includes("gridfuse::Aggregator")) {
    assert.ok(Date.now() < deadline, "the rewritten file was not saved");
    await page.waitForTimeout(100);
  }
  readFileSync(path.join(workspace, "gridfuse.cuh"));
  step("aggregate-block is applied and saved");

  // The tool knows what it has written: the collected launch is one for the hover too.
  const collected = readFileSync(source, "utf8").split("\n").findIndex((one) => one.includes("expands.launch(")) + 1;
  await goToLaunch(collected);
  await hoverOn("expands.launch(", "launch", "rewrites fit");
  await enlargeHover();
  await picture("rewritten");
}

/** Waits for the page of Explain Launch. */
async function explanation(text) {
  const frame = await panel("Explanation");
  await frame.getByText(text).first().waitFor();
  await frame.locator("table").first().waitFor();
}

/** Opens the menu of code actions at the cursor; its first row, the head of a group left out, is the one that is `wanted`. Returns what it says. */
async function menuAt(wanted) {
  const rows = page.locator(".action-widget .monaco-list-row.action");
  for (const deadline = Date.now() + PATIENCE; ; ) {
    try {
      await page.keyboard.press("Control+.");
      await rows.first().waitFor({ timeout: 5000 });
      const first = (await rows.first().innerText()).trim();
      assert.match(first, wanted);
      return first;
    } catch (error) {
      if (Date.now() > deadline) {
        throw error;
      }
      await page.keyboard.press("Escape");
    }
  }
}

async function closeTab(title) {
  const tab = page.locator(".tab", { hasText: title });
  await tab.click();
  await tab.locator(".codicon-close").click();
  await tab.waitFor({ state: "detached" });
  await page.locator(".tab", { hasText: "bfs.cu" }).first().click();
}
