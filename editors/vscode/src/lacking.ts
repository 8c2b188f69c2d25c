// What is missing for measuring, as a context key: menus grey what can't be run, and the command palette says why.

import * as vscode from "vscode";
import { ExecuteCommandRequest, type LanguageClient } from "vscode-languageclient/node";
import { concerns } from "./documents";
import { missingFor } from "./missing";

/** `nvcc` or `gpu`; empty: it may well be possible to measure. */
export const LACKS = "gridfuse.lacks";

export class Lacking implements vscode.Disposable {
  private readonly subscriptions: vscode.Disposable[];
  /** How often was asked: a late answer doesn't count. */
  private asked = 0;

  constructor(private readonly client: () => LanguageClient | undefined) {
    const settings = (path: string) => path.endsWith("/gridfuse.toml");
    this.subscriptions = [
      vscode.window.onDidChangeActiveTextEditor(() => this.look()),
      // A toolkit may have been installed since.
      vscode.window.onDidChangeWindowState((state) => state.focused && this.look()),
      vscode.workspace.onDidSaveTextDocument((document) => settings(document.uri.path) && this.look()),
      vscode.workspace.onDidChangeConfiguration(
        (event) => event.affectsConfiguration("gridfuse.measure.runner") && this.look(),
      ),
    ];
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions).dispose();
  }

  /** Asks the server about the CUDA file that is shown; where there is none, what was known stays. */
  look(): void {
    const client = this.client();
    const document = vscode.window.activeTextEditor?.document;
    if (client !== undefined && document !== undefined && document.uri.scheme === "file" && concerns(document)) {
      void this.ask(client, document.uri);
    }
  }

  private async ask(client: LanguageClient, document: vscode.Uri): Promise<void> {
    this.asked += 1;
    const asked = this.asked;
    const lacks = await missing(client, document);
    if (asked === this.asked) {
      await vscode.commands.executeCommand("setContext", LACKS, lacks ?? "");
    }
  }
}

/** What is missing to measure a document's program; `undefined`: nothing that can be seen without trying. */
async function missing(client: LanguageClient, document: vscode.Uri): Promise<string | undefined> {
  const argument = { uri: client.code2ProtocolConverter.asUri(document), check: true };
  try {
    await client.sendRequest(ExecuteCommandRequest.type, { command: "gridfuse.measure", arguments: [argument] });
  } catch (error) {
    return missingFor(error);
  }
  return undefined;
}
