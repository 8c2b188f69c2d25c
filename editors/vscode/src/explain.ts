// Explain Launch: all that is known about what stands at the cursor, as a Markdown page.

import * as vscode from "vscode";
import { ExecuteCommandRequest, type LanguageClient } from "vscode-languageclient/node";
import { launchColumn } from "./launch";

const SCHEME = "gridfuse-explanation";

export class Explanations implements vscode.Disposable, vscode.TextDocumentContentProvider {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  private readonly registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);
  private text = "";
  readonly onDidChange = this.changed.event;

  dispose(): void {
    this.registration.dispose();
    this.changed.dispose();
  }

  provideTextDocumentContent(): string {
    return this.text;
  }

  async show(client: LanguageClient, editor: vscode.TextEditor): Promise<void> {
    const { document, selection } = editor;
    const line = document.lineAt(selection.active.line);
    // The launch of the line is what is meant wherever in the line the cursor stands.
    const launch = launchColumn(line.text);
    const named = launch < 0 ? selection.active : line.range.start.translate(0, launch);
    const ask = async (position: vscode.Position): Promise<string | null> => {
      const argument = {
        uri: client.code2ProtocolConverter.asUri(document.uri),
        position: client.code2ProtocolConverter.asPosition(position),
      };
      const params = { command: "gridfuse.explain", arguments: [argument] };
      return (await client.sendRequest(ExecuteCommandRequest.type, params)) as string | null;
    };
    const explained = (await ask(named)) ?? (await ask(selection.active));
    if (explained === null) {
      void vscode.window.showInformationMessage("gridfuse: put the cursor on a launch or on the name of a kernel.");
      return;
    }
    this.text = explained;
    const uri = vscode.Uri.from({ scheme: SCHEME, path: "/Explanation.md" });
    this.changed.fire(uri);
    await vscode.commands.executeCommand("markdown.showPreviewToSide", uri);
  }
}
