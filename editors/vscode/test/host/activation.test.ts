import assert from "node:assert/strict";
import * as vscode from "vscode";
import { ask, bfs, diagnostics, edit, status, type Test, until } from "./harness";

/** Activating takes less, all that the extension host does for it included. */
const ACTIVATION_MS = 100;

function processorMs(since?: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1000;
}

/** Waits until the extension host, which has just started, has nothing to do. */
async function quiet(): Promise<void> {
  await until("a quiet extension host", async () => {
    const before = process.cpuUsage();
    await new Promise((resolve) => setTimeout(resolve, 500));
    return processorMs(before) < 25;
  });
}

export const tests: Test[] = [
  {
    name: "the extension waits for a file that it is for, and is activated at once",
    async run() {
      const extension = vscode.extensions.getExtension("gridfuse.gridfuse");
      assert.ok(extension);
      assert.equal(extension.isActive, false);
      await quiet();
      const start = performance.now();
      const before = process.cpuUsage();
      await extension.activate();
      // Other tests run beside this one: what counts is the processor's time.
      const took = processorMs(before);
      console.log(`gridfuse test: activating took ${took.toFixed(1)} ms of ${(performance.now() - start).toFixed(1)} ms`);
      assert.ok(took < ACTIVATION_MS, `${took} ms`);
    },
  },
  {
    name: "C++ files that launch no kernels are none of its business",
    async run() {
      const editor = await edit("plain.cpp", "#include <iostream>\nint main() { std::cout << 1 << 2; return 8 >> 1; }\n");
      assert.equal(editor.document.languageId, "cpp");
      assert.equal(await ask("status"), null, "nothing is loaded");
      // Next to a CUDA file, for which the server runs.
      await diagnostics((await bfs("beside.cu")).document);
      const at = new vscode.Position(1, 4);
      const plain = editor.document.uri;
      const hovers = await vscode.commands.executeCommand<vscode.Hover[]>("vscode.executeHoverProvider", plain, at);
      const actions = await vscode.commands.executeCommand<vscode.CodeAction[]>(
        "vscode.executeCodeActionProvider",
        plain,
        new vscode.Range(at, at),
      );
      const lenses = await vscode.commands.executeCommand<vscode.CodeLens[]>("vscode.executeCodeLensProvider", plain);
      assert.deepEqual([hovers, actions, lenses ?? []], [[], [], []]);
      // Once a kernel is launched there, it is.
      const again = await vscode.window.showTextDocument(editor.document);
      const text =
        "__global__ void child(int* p) { *p = 1; }\n" +
        "__global__ void parent(int* p) { for (int i = 0; i < 9; ++i) child<<<1, 1>>>(p + i); }\n";
      const whole = new vscode.Range(new vscode.Position(0, 0), editor.document.lineAt(2).range.end);
      assert.ok(await again.edit((builder) => builder.replace(whole, text)));
      const found = await diagnostics(editor.document);
      assert.ok(found.some((one) => (one.code as { value: string }).value === "launch-in-loop"));
      await status(/running/);
    },
  },
];
