// Previewing and applying rewrites, through what the user sees.

import assert from "node:assert/strict";
import * as vscode from "vscode";
import { answering, ask, bfs, diagnostics, difference, edit, message, pressInMessage, putCursor, set, type Test, until, workspaceFile } from "./harness";

const AGGREGATOR = "gridfuse::Aggregator<gridfuse::PerBlock, expand_aggregated>";

const PAIR = `#pragma once
__global__ void child(int* out, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[begin + i] = i;
}
__global__ void parent(const int* row, int* out, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int count = row[v + 1] - row[v];
    if (count > 0) child<<<(count + 127) / 128, 128>>>(out, row[v], count);
}
`;

/** The files whose differences are shown in one tab. */
function differences(): string[] | undefined {
  const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
  // It has no type of its own in this version of the interface.
  const inputs = tabs.map((tab) => tab.input as { textDiffs?: { modified: vscode.Uri }[] } | undefined);
  const shown = inputs.find((input) => input?.textDiffs !== undefined)?.textDiffs;
  return shown?.map(({ modified }) => modified.path.split("/").pop() ?? "");
}

async function preview(name: string, row: string): Promise<vscode.TextEditor> {
  const editor = await bfs(name);
  await diagnostics(editor.document);
  putCursor(editor, "expand<<<");
  const shown = vscode.commands.executeCommand("gridfuse.previewRewrite");
  await ask("choose", row);
  await shown;
  return editor;
}

export const tests: Test[] = [
  {
    name: "a preview is a difference that changes nothing, and can be discarded",
    async run() {
      const { document } = await preview("discarded.cu", "Collect launches per block");
      const before = document.getText();
      const shown = await until("the difference", difference);
      assert.equal(shown.original.toString(), document.uri.toString());
      const after = await vscode.workspace.openTextDocument(shown.modified);
      assert.ok(after.getText().includes(AGGREGATOR));
      assert.equal(document.getText(), before);
      const said = await message("Assumes:");
      assert.match(said, /independent of each other/);
      await vscode.commands.executeCommand("gridfuse.discardPreview");
      await until("the preview is gone", () => difference() === undefined);
      assert.equal(document.getText(), before);
      assert.equal(document.isDirty, false);
    },
  },
  {
    name: "the lens of the rewrites lists those of its launches, and selects the first launch",
    async run() {
      const editor = await bfs("listed.cu");
      await diagnostics(editor.document);
      putCursor(editor, "#include");
      const at = editor.document.positionAt(editor.document.getText().indexOf("expand<<<"));
      const shown = vscode.commands.executeCommand("gridfuse.showRewrites", editor.document.uri.toString(), {
        start: { line: at.line, character: at.character },
        end: { line: at.line, character: at.character + 1 },
      });
      await ask("choose", "Collect launches per block");
      await shown;
      await until("the difference", difference);
      assert.ok(editor.selection.active.isEqual(at));
      await vscode.commands.executeCommand("gridfuse.discardPreview");
      await until("the preview is gone", () => difference() === undefined);
    },
  },
  {
    name: "accepting a preview writes what was shown, with the header, and can be undone",
    async run() {
      const { document } = await preview("accepted.cu", "Collect launches per block");
      const before = document.getText();
      const shown = await until("the difference", difference);
      const after = (await vscode.workspace.openTextDocument(shown.modified)).getText();
      await vscode.commands.executeCommand("gridfuse.acceptPreview");
      assert.equal(document.getText(), after);
      await until("the preview is gone", () => difference() === undefined);
      assert.ok(await document.save());
      const saved = Buffer.from(await vscode.workspace.fs.readFile(workspaceFile("accepted.cu"))).toString();
      assert.equal(saved, after);
      const header = Buffer.from(await vscode.workspace.fs.readFile(workspaceFile("gridfuse.cuh"))).toString();
      assert.match(header, /namespace gridfuse/);
      // The rewritten launch is no launch of its own any more.
      await until("the diagnostic is gone", () =>
        vscode.languages
          .getDiagnostics(document.uri)
          .every((one) => (one.code as { value: string }).value !== "serialized-launches"),
      );
      await vscode.window.showTextDocument(document);
      await vscode.commands.executeCommand("undo");
      await until("the original text", () => document.getText() === before);
      await vscode.commands.executeCommand("redo");
      await until("the rewritten text", () => document.getText() === after);
      await vscode.workspace.saveAll();
      const again = Buffer.from(await vscode.workspace.fs.readFile(workspaceFile("gridfuse.cuh"))).toString();
      assert.equal(again, header);
    },
  },
  {
    name: "the message of a preview that was closed still applies what it says",
    async run() {
      const { document } = await preview("closed.cu", "Collect launches per block");
      const before = document.getText();
      await until("the difference", difference);
      await message("Assumes:");
      await vscode.commands.executeCommand("workbench.action.closeActiveEditor");
      await until("the preview is gone", () => difference() === undefined);
      assert.equal(document.getText(), before);
      await pressInMessage("Assumes:", "Apply");
      await until("the rewritten text", () => document.getText().includes(AGGREGATOR));
      await vscode.workspace.saveAll();
    },
  },
  {
    name: "the message of a preview that was closed applies nothing to a text that has changed since",
    async run() {
      const { document } = await preview("closed_changed.cu", "Collect launches per block");
      await until("the difference", difference);
      await message("Assumes:");
      await vscode.commands.executeCommand("workbench.action.closeActiveEditor");
      await until("the preview is gone", () => difference() === undefined);
      const change = new vscode.WorkspaceEdit();
      change.insert(document.uri, new vscode.Position(0, 0), "// another line\n");
      assert.ok(await vscode.workspace.applyEdit(change));
      const changed = document.getText();
      await pressInMessage("Assumes:", "Apply");
      await message("the text changed since the preview");
      assert.equal(document.getText(), changed);
    },
  },
  {
    name: "a preview of a text that has changed since is not applied",
    async run() {
      const editor = await preview("changed.cu", "Collect launches per block");
      await until("the difference", difference);
      const change = new vscode.WorkspaceEdit();
      change.insert(editor.document.uri, new vscode.Position(0, 0), "// another line\n");
      assert.ok(await vscode.workspace.applyEdit(change));
      const changed = editor.document.getText();
      await vscode.commands.executeCommand("gridfuse.acceptPreview");
      await message("the text changed since the preview");
      assert.equal(editor.document.getText(), changed);
    },
  },
  {
    name: "the best rewrite asks before it assumes, and is applied when told to",
    async run() {
      const editor = await bfs("best.cu");
      await diagnostics(editor.document);
      const before = editor.document.getText();
      putCursor(editor, "expand<<<");
      const best = () => Promise.resolve(vscode.commands.executeCommand("gridfuse.applyBestRewrite"));
      const question = await answering(undefined, best);
      assert.match(question, /^\S.* — \d+ assumptions?\n/, "it says first what it will do");
      assert.match(question, /Changes best\.cu\./);
      assert.match(question, /It is right if this holds:[^]*independent of each other/);
      assert.equal(editor.document.getText(), before);
      await answering("Apply", best);
      assert.match(editor.document.getText(), /gridfuse::ThreadReuseInStream</);
      await vscode.workspace.saveAll();
    },
  },
  {
    name: "a kernel that waits for its children gets the fix of the wait as the best",
    async run() {
      const editor = await edit(
        "waits.cu",
        "__global__ void child(int* out) { out[threadIdx.x] += 1; }\n" +
          "__global__ void parent(int* out) {\n    child<<<1, 32>>>(out);\n    cudaDeviceSynchronize();\n}\n" +
          "void run(int* out) { parent<<<1, 1>>>(out); }\n",
      );
      await diagnostics(editor.document);
      putCursor(editor, "child<<<");
      const best = () => Promise.resolve(vscode.commands.executeCommand("gridfuse.applyBestRewrite"));
      assert.match(await answering("Apply", best), /^.*\bwait\b.*\n/);
      await until("no wait", () => !editor.document.getText().includes("cudaDeviceSynchronize();"));
      await vscode.workspace.saveAll();
    },
  },
  {
    name: "who doesn't want to be asked isn't",
    async run() {
      const editor = await bfs("unasked.cu");
      await diagnostics(editor.document);
      putCursor(editor, "expand<<<");
      await set("rewrite.confirmAssumptions", false);
      await vscode.commands.executeCommand("gridfuse.applyBestRewrite");
      assert.match(editor.document.getText(), /gridfuse::ThreadReuseInStream</);
      await set("rewrite.confirmAssumptions", undefined);
    },
  },
  {
    name: "a rewrite of several files is shown and applied as one",
    async run() {
      const caller = await edit(
        "pair.cu",
        '#include "pair.cuh"\nvoid run(const int* row, int* out, int n) {\n    parent<<<(n + 255) / 256, 256>>>(row, out, n);\n}\n',
      );
      const editor = await edit("pair.cuh", PAIR);
      assert.equal(editor.document.languageId, "cuda-cpp");
      await diagnostics(editor.document);
      putCursor(editor, "child<<<");
      const shown = vscode.commands.executeCommand("gridfuse.previewRewrite");
      await ask("choose", "Collect launches per block");
      await shown;
      const files = await until("the differences", differences);
      assert.deepEqual(files.sort(), ["pair.cu", "pair.cuh"], "what is new needs no difference");
      assert.match(await message("Assumes:"), /independent of each other/);
      assert.equal(editor.document.isDirty || caller.document.isDirty, false);
      await vscode.commands.executeCommand("gridfuse.acceptPreview");
      await until("the preview is gone", () => differences() === undefined);
      assert.match(editor.document.getText(), /gridfuse::Aggregator<gridfuse::PerBlock, child_aggregated>/);
      assert.match(caller.document.getText(), /gridfuse::arena_for\(/);
      await vscode.workspace.saveAll();
    },
  },
  {
    name: "of two launches that are collected together, the second one can be chosen as well",
    async run() {
      const launches = "    if (n > 9) child<<<1, 32>>>(out, n);\n    if (n > 5) child<<<1, 32>>>(out, n);\n";
      const editor = await edit(
        "twice.cu",
        "__global__ void child(int* out, int n) { out[threadIdx.x] = n; }\n" +
          `__global__ void parent(int* out, int n) {\n${launches}}\n` +
          "void run(int* out, int n) { parent<<<n, 64>>>(out, n); }\n",
      );
      await diagnostics(editor.document);
      putCursor(editor, "__global__ void child");
      const shown = vscode.commands.executeCommand("gridfuse.previewRewrite");
      await ask("choose", "if (n > 5)");
      await ask("choose", "Collect launches per block");
      await shown;
      await until("the difference", difference);
      await vscode.commands.executeCommand("gridfuse.discardPreview");
      await until("the preview is gone", () => difference() === undefined);
    },
  },
  {
    name: "where there is nothing to rewrite, it is said",
    async run() {
      const editor = await edit("nothing.cu", "__global__ void alone(int* p) { *p = 1; }\n");
      await vscode.commands.executeCommand("gridfuse.previewRewrite");
      await message("no kernel launches another here");
      assert.equal(editor.document.isDirty, false);
    },
  },
];
