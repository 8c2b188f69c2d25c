// Uses the playground as a person does, and prints as JSON what it showed.
//
// Environment: GRIDFUSE_TEST_CHROMIUM the browser, GRIDFUSE_TEST_PLAYGROUND the directory of the page, GRIDFUSE_TEST_DIRECTORY a directory
// of its own, GRIDFUSE_TEST_SCREENSHOTS, if it is set, a directory for pictures.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { Page, serve } from "./browser.mjs";

/** How long anything may take, in ms: a busy machine takes long. */
const PATIENCE = 120_000;

/** What nobody would call a program. */
const GARBAGE = [
  "",
  "\u0000\u0001<<<>>>",
  "__global__ void a() { a<<<",
  "\ud800 __global__ void a() { a<<<1, 1>>>(); } 🙂",
  `__global__ void a() { ${"(".repeat(20_000)}`,
  `__global__ void a() { ${"{".repeat(20_000)}`,
  `__global__ void a() { ${"if (x) ".repeat(2_000)} a<<<1, 1>>>(); }`,
  `#define A A A\n${"#if A\n".repeat(500)}`,
  "<<<".repeat(5_000),
];

const server = await serve(process.env.GRIDFUSE_TEST_PLAYGROUND);
const page = await Page.open(process.env.GRIDFUSE_TEST_CHROMIUM, path.join(process.env.GRIDFUSE_TEST_DIRECTORY, "profile"));
try {
  console.log(JSON.stringify(await scenario()));
} finally {
  page.close();
  server.close();
}

/** Waits until gridfuse has looked at the program that is there now; returns how long it took, in ms. */
async function looked(after) {
  await page.until(`Number(document.getElementById("status").dataset.checks) > ${after}`, PATIENCE);
  assert.equal(await page.value(`document.getElementById("failure").innerText`), "");
  return Number(await page.value(`document.getElementById("status").dataset.milliseconds`));
}

function checks() {
  return page.value(`Number(document.getElementById("status").dataset.checks ?? 0)`);
}

/** Writes a program into the text area. */
async function write(program) {
  const before = await checks();
  await page.value(`(() => {
    const text = document.getElementById("text");
    text.value = ${JSON.stringify(program)};
    text.dispatchEvent(new InputEvent("input"));
  })()`);
  return looked(before);
}

async function choose(name) {
  const before = await checks();
  await page.value(`(() => {
    const example = document.getElementById("example");
    example.value = ${JSON.stringify(name)};
    example.dispatchEvent(new Event("change"));
  })()`);
  return looked(before);
}

function findings() {
  return page.value(`[...document.querySelectorAll("#findings button")].map((button) => button.dataset.id)`);
}

function program() {
  return page.value(`document.getElementById("text").value`);
}

async function picture(name, theme) {
  if (process.env.GRIDFUSE_TEST_SCREENSHOTS) {
    writeFileSync(path.join(process.env.GRIDFUSE_TEST_SCREENSHOTS, `${name}-${theme}.png`), await page.screenshot(theme));
  }
}

async function scenario() {
  await page.goTo(server.url);
  await page.until(`document.getElementById("failure")?.innerText || Number(document.getElementById("status")?.dataset.checks) > 0`, PATIENCE);
  const first = await looked(0);
  const told = { version: await page.value(`document.getElementById("version").innerText`), findings: await findings(), first };
  const original = await program();

  // With the keyboard: a finding leads to its launch.
  await page.value(`document.querySelector("#findings [data-id=serialized-launches]").focus()`);
  await page.enter();
  told.menu = await page.until(
    `(() => {
      const menu = [...document.querySelectorAll("#menu button")].map((button) => button.dataset.rewrite);
      return menu.length > 0 && menu;
    })()`,
    PATIENCE,
  );
  told.launch = await page.value(`document.getElementById("launch").innerText`);

  // With the mouse: a rewrite is shown, taken over, and taken back.
  await page.click(`#menu [data-rewrite="aggregate-block"]`);
  await page.until(`document.getElementById("change").dataset.rewrite === "aggregate-block" && !document.getElementById("change").hidden`, PATIENCE);
  told.difference = await page.value(`document.querySelector("#change > .difference").textContent`);
  told.header = await page.value(`document.querySelector("#change details .difference").textContent`);
  await picture("playground", "light");
  await picture("playground", "dark");
  let before = await checks();
  await page.click("#take");
  await looked(before);
  told.rewritten = await program();
  before = await checks();
  await page.click("#undo");
  await looked(before);
  assert.equal(await program(), original);

  // A click on the launch shows it.
  assert.equal(await page.value(`document.getElementById("launch").hidden`), true);
  await page.click("#marks .launch");
  await page.until(`!document.getElementById("launch").hidden`, PATIENCE);

  for (const garbage of GARBAGE) {
    await write(garbage);
  }

  // A panic is a sentence, and what comes next is answered.
  told.panic = (await page.value(`import("./playground.js").then(({ ask }) => ask({ ask: "panic" }))`)).answer;
  await choose("sssp.cu");
  told.again = await choose("bfs.cu");
  told.findingsAgain = await findings();
  assert.deepEqual(page.complaints, []);
  return told;
}
