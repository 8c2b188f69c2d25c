// Run on GPU: asks the server to build and run the program, and shows what it found out.

import * as vscode from "vscode";
import { ExecuteCommandRequest, type LanguageClient, type WorkspaceEdit } from "vscode-languageclient/node";
import { openPanel } from "./panel";
import type { Report } from "./report";
import type { Rewriter } from "./rewrite";

/** From the panel's page. */
type Message = { type: "ready" } | { type: "apply"; rewrites: string } | { type: "preview"; rewrites: string } | { type: "again" };

export class Measurements implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private shown: { document: vscode.Uri; line: number | undefined; report: Report } | undefined;

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly rewriter: Rewriter,
    private readonly client: () => LanguageClient | undefined,
  ) {}

  dispose(): void {
    this.panel?.dispose();
  }

  /** Asks for the arguments of a document's program; `undefined`: the user has changed their mind. */
  private async askArguments(document: vscode.TextDocument, verb: string): Promise<string | undefined> {
    const key = `arguments:${document.uri.toString()}`;
    const args = await vscode.window.showInputBox({
      title: `${verb} ${vscode.workspace.asRelativePath(document.uri)} on the GPU`,
      prompt: "Arguments of the program, quoted as in a shell",
      value: this.context.workspaceState.get<string>(key, ""),
      ignoreFocusOut: true,
    });
    if (args !== undefined) {
      await this.context.workspaceState.update(key, args);
      await document.save();
    }
    return args;
  }

  /** Searches what is fastest; the server shows how far it is, and asks whether to apply what it has found. */
  async tune(client: LanguageClient, document: vscode.TextDocument): Promise<void> {
    const args = await this.askArguments(document, "Tune");
    if (args === undefined) {
      return;
    }
    const argument = { uri: client.code2ProtocolConverter.asUri(document.uri), args, show: true };
    try {
      await client.sendRequest(ExecuteCommandRequest.type, { command: "gridfuse.tune", arguments: [argument] });
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      void vscode.window.showErrorMessage(`gridfuse: ${text}`);
    }
  }

  /** Asks for the program's arguments, runs it, and shows the times; with `line`, only what stands there is rewritten. */
  async run(client: LanguageClient, document: vscode.TextDocument, line?: number): Promise<void> {
    const args = await this.askArguments(document, "Run");
    if (args === undefined) {
      return;
    }
    const report = await vscode.window.withProgress(
      { location: vscode.ProgressLocation.Notification, title: "gridfuse: building and running", cancellable: true },
      async (_, token) => {
        const argument = { uri: client.code2ProtocolConverter.asUri(document.uri), args, ...(line === undefined ? {} : { line }) };
        try {
          const params = { command: "gridfuse.measure", arguments: [argument] };
          return (await client.sendRequest(ExecuteCommandRequest.type, params, token)) as Report | null;
        } catch (error) {
          if (!token.isCancellationRequested) {
            const text = error instanceof Error ? error.message : String(error);
            void vscode.window.showErrorMessage(`gridfuse: ${text}`);
          }
          return null;
        }
      },
    );
    if (report !== null) {
      this.show(document.uri, line, report);
    }
  }

  private show(document: vscode.Uri, line: number | undefined, report: Report): void {
    this.shown = { document, line, report };
    if (this.panel === undefined) {
      const panel = openPanel(this.context, "measurement", "gridfuse: measurement");
      panel.webview.onDidReceiveMessage((message: Message) => this.receive(message));
      panel.onDidDispose(() => {
        this.panel = undefined;
      });
      this.panel = panel;
    } else {
      this.panel.reveal(undefined, false);
      this.send();
    }
  }

  private send(): void {
    void this.panel?.webview.postMessage({ type: "report", report: this.shown?.report });
  }

  private async receive(message: Message): Promise<void> {
    const client = this.client();
    const shown = this.shown;
    if (message.type === "ready") {
      this.send();
      return;
    }
    if (client === undefined || shown === undefined) {
      void vscode.window.showWarningMessage("gridfuse: the server isn't running.");
      return;
    }
    if (message.type === "again") {
      await this.run(client, await vscode.workspace.openTextDocument(shown.document), shown.line);
      return;
    }
    try {
      const uri = client.code2ProtocolConverter.asUri(shown.document);
      const argument = { uri, rewrites: message.rewrites, ...(shown.line === undefined ? {} : { line: shown.line }) };
      const params = { command: "gridfuse.rewrite", arguments: [argument] };
      const { edit } = (await client.sendRequest(ExecuteCommandRequest.type, params)) as { edit: WorkspaceEdit };
      if (message.type === "apply") {
        await this.rewriter.apply(client, edit, `Apply ${message.rewrites}`);
      } else {
        await this.rewriter.show(client, edit, message.rewrites);
      }
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      void vscode.window.showErrorMessage(`gridfuse: ${text}`);
    }
  }
}
