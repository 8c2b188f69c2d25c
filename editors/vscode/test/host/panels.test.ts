// The panels: what they show, what their buttons do, and whether they can be used without a mouse and without seeing them. The window has
// a high-contrast theme.

import assert from "node:assert/strict";
import * as vscode from "vscode";
import {
  answering,
  ask,
  bfs,
  diagnostics,
  difference,
  message,
  pressInMessage,
  putCursor,
  serve,
  type Test,
  until,
} from "./harness";

interface Focus {
  tag: string;
  name: string;
  seen: boolean;
}

/** The launch graph of bfs.cu, under another name. */
async function graph(name: string): Promise<vscode.TextEditor> {
  const editor = await bfs(name);
  await diagnostics(editor.document);
  putCursor(editor, "expand<<<");
  await vscode.commands.executeCommand("gridfuse.showLaunchGraph");
  return editor;
}

/** A measurement of bfs.cu that somebody made before. */
async function measurement(name: string): Promise<vscode.TextEditor> {
  await serve(process.env.GRIDFUSE_TEST_RECORDING_SERVER);
  const editor = await bfs(name);
  await diagnostics(editor.document);
  putCursor(editor, "expand<<<");
  const done = vscode.commands.executeCommand("gridfuse.runOnGpu");
  await ask("enter", "Arguments of the program");
  await done;
  return editor;
}

export const tests: Test[] = [
  {
    name: "the launch graph names every function and leads to its source",
    async run() {
      const { document } = await graph("graph.cu");
      const tree = await ask<string>("panel", "Launch graph");
      for (const part of [/heading "Launch graph" \[level=1\]/, /link "Go to expand"/, /link "Go to bfs_level, \d+ warnings?/]) {
        assert.match(tree, part);
      }
      await ask("expand", "Launch graph", "The launches in words");
      const words = await ask<string>("panel", "Launch graph");
      assert.match(words, /bfs_level launches expand, up to blockDim\.x \* gridDim\.x per grid/);
      assert.match(words, /search launches bfs_level$/m);
      await ask("press", "Launch graph", "link", "Go to expand");
      await until("the kernel", () => {
        const active = vscode.window.activeTextEditor;
        return active?.document === document && document.lineAt(active.selection.active.line).text.includes("void expand(");
      });
    },
  },
  {
    name: "the launch graph with the keyboard alone",
    async run() {
      const { document } = await graph("graph_keys.cu");
      await ask("panel", "Launch graph");
      const places = await ask<Focus[]>("focusAfter", "Launch graph", ["Tab", "Tab", "Tab"]);
      const links = places.filter((one) => one.name.startsWith("Go to "));
      assert.ok(links.length >= 2, JSON.stringify(places));
      assert.ok(links.every((one) => one.seen), `where the focus is must be seen: ${JSON.stringify(links)}`);
      await ask("key", "Enter");
      await until("the source", () => vscode.window.activeTextEditor?.document === document);
      assert.deepEqual(await ask("faint", "Launch graph"), []);
    },
  },
  {
    name: "an explanation is a panel whose links lead to places and rewrites",
    async run() {
      const editor = await bfs("explained_links.cu");
      const { document } = editor;
      await diagnostics(document);
      putCursor(editor, "expand<<<");
      await vscode.commands.executeCommand("gridfuse.explainLaunch");
      const tree = await ask<string>("panel", "Explanation");
      for (const part of [/heading "Explanation" \[level=1\]/, /explained_links\.cu, line \d+/, /link "Collect launches per block"/]) {
        assert.match(tree, part);
      }
      assert.deepEqual(await ask("faint", "Explanation"), []);
      // A place that is named once.
      const lines = [...tree.matchAll(/link "line (\d+)"/g)].map(([, line]) => line);
      const line = lines.find((one) => lines.filter((other) => other === one).length === 1);
      assert.ok(line !== undefined, tree);
      await ask("press", "Explanation", "link", `line ${line}`);
      await until("the place", () => {
        const active = vscode.window.activeTextEditor;
        return active?.document === document && active.selection.active.line + 1 === Number(line);
      });
      await ask("press", "Explanation", "link", "Collect launches per block");
      await message("Assumes:");
      await until("the difference", difference);
      await vscode.commands.executeCommand("gridfuse.discardPreview");
      assert.doesNotMatch(document.getText(), /gridfuse::/);
    },
  },
  {
    name: "without a GPU the message says what to do, and its buttons do it",
    async run() {
      await serve(process.env.GRIDFUSE_TEST_SERVER);
      const editor = await bfs("no_gpu.cu");
      await diagnostics(editor.document);
      // Where there is one, it is measured: nothing to see here.
      const uri = editor.document.uri.toString();
      const able = await vscode.commands.executeCommand("gridfuse.measure", { uri, check: true }).then(
        () => true,
        () => false,
      );
      if (able) {
        return;
      }
      await vscode.commands.executeCommand("gridfuse.runOnGpu");
      const said = await message("gridfuse.toml");
      assert.match(said, /There is no (nvcc|NVIDIA GPU) on this machine/);
      assert.doesNotMatch(said, / --/);
      await pressInMessage("gridfuse.toml", "Open gridfuse.toml");
      const manifest = await until("gridfuse.toml", () => {
        const active = vscode.window.activeTextEditor?.document;
        return active?.fileName.endsWith("gridfuse.toml") && active.getText().includes("runner") ? active : undefined;
      });
      assert.match(manifest.getText(), /^\[measure\]\nrunner = "ssh HOST"$/m);
    },
  },
  {
    name: "a measurement is a table that says which rewrite is fastest",
    async run() {
      await measurement("measured.cu");
      const tree = await ask<string>("panel", "measured.cu");
      for (const part of [
        /heading "measured\.cu" \[level=1\]/,
        /status: .*Fastest: optimize/,
        /table "The original and its rewrites/,
        /columnheader "GPU time, ms"/,
        /rowheader "original"/,
        /button "Apply optimize"/,
        /button "Run Again…"/,
        /heading "Notes" \[level=2\]/,
      ]) {
        assert.match(tree, part);
      }
      assert.doesNotMatch(tree, /button "Apply original"/);
      assert.deepEqual(await ask("faint", "measured.cu"), []);
    },
  },
  {
    name: "the measurement with the keyboard alone",
    async run() {
      await measurement("measured_keys.cu");
      await ask("panel", "measured_keys.cu");
      const places = await ask<Focus[]>("focusAfter", "measured_keys.cu", ["Tab", "Tab", "Tab", "ArrowDown"]);
      const buttons = places.filter((one) => one.tag === "button");
      assert.ok(buttons.length >= 2, JSON.stringify(places));
      assert.ok(buttons.every((one) => one.seen), `where the focus is must be seen: ${JSON.stringify(buttons)}`);
    },
  },
  {
    name: "a rewrite is previewed and applied from the measurement",
    async run() {
      const { document } = await measurement("applied.cu");
      await ask("press", "applied.cu", "button", "Preview aggregate-block");
      await message("Assumes:");
      await vscode.commands.executeCommand("gridfuse.discardPreview");
      await answering("Apply", () => ask("press", "applied.cu", "button", "Apply optimize"));
      await until("the rewritten text", () => /gridfuse::ThreadReuseInStream</.test(document.getText()));
      await vscode.workspace.saveAll();
    },
  },
];
