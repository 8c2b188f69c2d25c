// Tuning, by the real server, with a compiler and a GPU that are faked at the process boundary: a program's time is a function of its
// constants.

import assert from "node:assert/strict";
import * as path from "node:path";
import * as vscode from "vscode";
import {
  ask,
  diagnostics,
  difference,
  message,
  pressInMessage,
  serve,
  type Test,
  until,
  withEnvironment,
  workspaceFile,
} from "./harness";

/** Runs with the server on a machine where nvcc is faked: see fake_nvcc.sh. */
async function faked(fakes: Record<string, string>, run: (document: vscode.TextDocument) => Promise<void>): Promise<void> {
  const PATH = `${process.env.GRIDFUSE_TEST_FAKE_CUDA}${path.delimiter}${process.env.PATH}`;
  await withEnvironment({ ...fakes, PATH }, async () => {
    await serve(process.env.GRIDFUSE_TEST_SERVER);
    const document = await vscode.workspace.openTextDocument(workspaceFile("program.cu"));
    await vscode.window.showTextDocument(document);
    await diagnostics(document);
    await run(document);
  });
}

export const tests: Test[] = [
  {
    name: "tuning can be cancelled, and says nothing then",
    async run() {
      await faked({ FAKE_HANGS: ".*", FAKE_TIME: "1" }, async (document) => {
        const before = document.getText();
        const done = vscode.commands.executeCommand("gridfuse.tuneOnGpu");
        await ask("enter", "Arguments of the program");
        await until("how far it is", async () => /building|running/.test(await message("tuning program.cu")));
        await pressInMessage("tuning program.cu", "Cancel");
        await done;
        const said = async (text: string) => (await ask<string[]>("messages")).some((one) => one.includes(text));
        await until("the end of the progress", async () => !(await said("tuning program.cu")));
        assert.equal(await said("gridfuse"), false, "the user knows it");
        assert.equal(document.getText(), before);
      });
    },
  },
  {
    name: "tuning finds the fastest combination, shows it, and applies it when told to",
    async run() {
      await faked({ FAKE_TIME: "0.1 + abs(g - 3) + abs(log2(t + 1) - log2(65)) / 10" }, async (document) => {
        const before = document.getText();
        const done = vscode.commands.executeCommand("gridfuse.tuneOnGpu");
        await ask("enter", "Arguments of the program");
        const said = await message("as fast as the program as it is");
        assert.match(said, /threshold=64\S*aggregate-block is \d+× as fast .* on Fake GPU/);
        await pressInMessage("as fast as the program as it is", "Preview");
        const shown = await until("the difference", difference);
        const after = (await vscode.workspace.openTextDocument(shown.modified)).getText();
        assert.match(after, /constexpr int kChildThreshold = 64;/);
        assert.equal(document.getText(), before);
        // What is taken for granted is told here, too.
        assert.match(await message("Assumes:"), /independent/);
        await pressInMessage("Assumes:", "Apply");
        await until("the tuned text", () => document.getText() === after);
        await done;
        // The editor itself saves what such an edit changes in several files; to save while it does so says that nothing was saved.
        await until("the tuned text on disk", async () => !document.isDirty || (await document.save()));
        await vscode.workspace.fs.stat(workspaceFile("gridfuse.cuh"));
      });
    },
  },
];
