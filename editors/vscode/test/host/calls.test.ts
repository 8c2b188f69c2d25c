// Beside the C/C++ extension, for which host.mjs has installed a stand-in.

import assert from "node:assert/strict";
import * as vscode from "vscode";
import { bfs, diagnostics, place, set, type Test, until } from "./harness";

export const tests: Test[] = [
  {
    name: "the hierarchy of calls is left to the C/C++ extension while that one answers",
    async run() {
      assert.ok(vscode.extensions.getExtension("ms-vscode.cpptools"));
      const { document } = await bfs("calls.cu");
      await diagnostics(document);
      const at = place(document, "expand(const");
      const named = async () => {
        const items = await vscode.commands.executeCommand<vscode.CallHierarchyItem[] | undefined>(
          "vscode.prepareCallHierarchy",
          document.uri,
          at,
        );
        return (items ?? []).map((item) => item.name);
      };
      assert.deepEqual(await named(), []);
      // Many have it for its debugger alone.
      await set("intelliSenseEngine", "disabled", "C_Cpp");
      await vscode.commands.executeCommand("gridfuse.restartServer");
      await until("the hierarchy of calls", async () => (await named()).includes("expand"));
      await set("intelliSenseEngine", undefined, "C_Cpp");
      await vscode.commands.executeCommand("gridfuse.restartServer");
      await diagnostics(document);
      assert.deepEqual(await named(), []);
    },
  },
];
