// gridfuse in Visual Studio Code. Activating does next to nothing: most files that are opened launch no kernels.

import * as vscode from "vscode";
import { concerns } from "./documents";
import type { Main } from "./main";

export function activate(context: vscode.ExtensionContext): void {
  let main: Promise<Main> | undefined;
  const load = (): Promise<Main> => {
    vscode.Disposable.from(...watching.splice(0)).dispose();
    main ??= import("./main").then(({ start }) => start(context));
    return main;
  };
  const look = (document: vscode.TextDocument) => {
    if (main === undefined && concerns(document)) {
      // Not before activating is done.
      setImmediate(() => void load());
    }
  };
  const watching = [
    vscode.workspace.onDidOpenTextDocument(look),
    vscode.workspace.onDidChangeTextDocument((event) => look(event.document)),
  ];
  const command = (id: string, run: () => unknown) =>
    context.subscriptions.push(vscode.commands.registerCommand(id, run));
  command("gridfuse.restartServer", async () => (await load()).restart());
  command("gridfuse.showOutput", async () => (await load()).showOutput());
  command("gridfuse.showMenu", async () => (await load()).showMenu());
  command("gridfuse.openWalkthrough", () =>
    vscode.commands.executeCommand("workbench.action.openWalkthrough", "gridfuse.gridfuse#start", false),
  );
  context.subscriptions.push({ dispose: () => vscode.Disposable.from(...watching).dispose() });
  vscode.workspace.textDocuments.forEach(look);
}
