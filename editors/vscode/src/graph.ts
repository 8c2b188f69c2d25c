// The launch graph: the server draws it, a click on a function leads to its source.

import * as vscode from "vscode";
import { ExecuteCommandRequest, type LanguageClient, type Location } from "vscode-languageclient/node";
import { openPanel } from "./panel";

interface Drawn {
  svg: string;
  nodes: { label: string; location: Location | null; findings: string }[];
  launches: { from: number; to: number; count: string; certain: boolean }[];
}

type Message = { type: "ready" } | { type: "open"; node: number };

export class LaunchGraph implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private drawn: Drawn | undefined;
  private client: LanguageClient | undefined;

  constructor(private readonly context: vscode.ExtensionContext) {}

  dispose(): void {
    this.panel?.dispose();
  }

  async show(client: LanguageClient, document: vscode.TextDocument): Promise<void> {
    const argument = { uri: client.code2ProtocolConverter.asUri(document.uri) };
    const params = { command: "gridfuse.graph", arguments: [argument] };
    this.drawn = (await client.sendRequest(ExecuteCommandRequest.type, params)) as Drawn;
    this.client = client;
    if (this.panel === undefined) {
      const panel = openPanel(this.context, "graph", "gridfuse: launch graph");
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
    const labels = this.drawn?.nodes.map(({ label, location, findings }) => ({ label, known: location !== null, findings }));
    const { svg, launches } = this.drawn ?? {};
    void this.panel?.webview.postMessage({ type: "graph", svg, nodes: labels, launches });
  }

  private async receive(message: Message): Promise<void> {
    if (message.type === "ready") {
      this.send();
      return;
    }
    const location = this.drawn?.nodes[message.node]?.location;
    if (location === undefined || location === null || this.client === undefined) {
      return;
    }
    const { uri, range } = this.client.protocol2CodeConverter.asLocation(location);
    const visible = vscode.window.visibleTextEditors.find((editor) => editor.document.uri.toString() === uri.toString());
    await vscode.window.showTextDocument(uri, {
      selection: range,
      viewColumn: visible?.viewColumn ?? vscode.ViewColumn.One,
    });
  }
}
