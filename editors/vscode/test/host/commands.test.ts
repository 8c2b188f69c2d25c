// Commands that show something: the explanation, the walkthrough, the menu of the status bar.

import assert from "node:assert/strict";
import * as vscode from "vscode";
import { answering, ask, bfs, diagnostics, putCursor, type Test, until } from "./harness";

function shows(text: string): Promise<boolean> {
  return until(`"${text}" in the window`, () => ask<boolean>("shows", text));
}

export const tests: Test[] = [
  {
    name: "explaining the launch of a line opens a page with all that is known",
    async run() {
      const editor = await bfs("explained.cu");
      await diagnostics(editor.document);
      // Anywhere in the line.
      putCursor(editor, "begin, count);");
      await vscode.commands.executeCommand("gridfuse.explainLaunch");
      await shows("launch of expand");
      await shows("Collect launches per block");
      // That a kernel that doesn't launch itself isn't flattened goes without saying.
      assert.equal(await ask<boolean>("shows", "Flatten the recursion"), false);
    },
  },
  {
    name: "the walkthrough opens with its steps",
    async run() {
      await vscode.commands.executeCommand("gridfuse.openWalkthrough");
      for (const step of ["Start the server", "Look at a launch", "Rewrite it", "Measure it"]) {
        await shows(step);
      }
    },
  },
  {
    name: "the menu of the status bar offers the best rewrite",
    async run() {
      const editor = await bfs("menu_best.cu");
      await diagnostics(editor.document);
      putCursor(editor, "expand<<<");
      const asked = answering(undefined, async () => {
        const done = vscode.commands.executeCommand("gridfuse.showMenu");
        await ask("choose", "Apply Best Rewrite");
        await done;
      });
      assert.match(await asked, /Changes menu_best\.cu\./);
    },
  },
  {
    name: "the menu of the status bar leads to the launch graph",
    async run() {
      const { document } = await bfs("menu.cu");
      await diagnostics(document);
      const done = vscode.commands.executeCommand("gridfuse.showMenu");
      await ask("choose", "Show Launch Graph");
      await done;
      assert.match(await ask<string>("panel", "Launch graph"), /link "Go to expand"/);
    },
  },
];
