// Explain Launch: all that is known about what stands at the cursor, in a panel whose links lead to the places and the rewrites.

import * as vscode from "vscode";
import { ExecuteCommandRequest, type LanguageClient } from "vscode-languageclient/node";
import { launchColumn } from "./launch";
import { linkTarget, numbered } from "./links";
import { openPanel } from "./panel";
import type { Rewriter } from "./rewrite";

/** What is shown. */
interface Explanation {
  document: vscode.Uri;
  line: number;
  /** As the server writes it, with numbers for the links. */
  text: string;
  /** The same as HTML; `undefined`: nobody renders Markdown here. */
  html: string | undefined;
  /** Where the links lead. */
  links: string[];
}

type Message = { type: "ready" } | { type: "open"; link: number };

export class Explanations implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private shown: Explanation | undefined;

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly rewriter: Rewriter,
    private readonly client: () => LanguageClient | undefined,
  ) {}

  dispose(): void {
    this.panel?.dispose();
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
    const text = (await ask(named)) ?? (await ask(selection.active));
    if (text === null) {
      void vscode.window.showInformationMessage("gridfuse: put the cursor on a launch or on the name of a kernel.");
      return;
    }
    const { markdown, links } = numbered(text);
    const html = await vscode.commands.executeCommand<string>("markdown.api.render", markdown).then(
      (rendered) => rendered,
      () => undefined,
    );
    this.shown = { document: document.uri, line: line.lineNumber, text: markdown, html, links };
    if (this.panel === undefined) {
      const panel = openPanel(this.context, "explanation", "gridfuse: explanation");
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
    const { document, line, text, html, links } = this.shown ?? {};
    const about = document === undefined ? "" : `${vscode.workspace.asRelativePath(document)}, line ${(line ?? 0) + 1}`;
    void this.panel?.webview.postMessage({ type: "explanation", about, text, html, kinds: links?.map((link) => linkTarget(link)?.kind) });
  }

  private async receive(message: Message): Promise<void> {
    const shown = this.shown;
    if (message.type === "ready") {
      this.send();
      return;
    }
    // Only what the server itself has written leads anywhere.
    const link = shown?.links[message.link];
    const target = link === undefined ? undefined : linkTarget(link);
    if (shown === undefined || target === undefined) {
      return;
    }
    try {
      const uri = vscode.Uri.parse(target.uri, true);
      const client = this.client();
      if (target.kind === "place") {
        const visible = vscode.window.visibleTextEditors.find((one) => one.document.uri.toString() === uri.toString());
        const at = new vscode.Position(target.line, 0);
        await vscode.window.showTextDocument(uri, {
          selection: new vscode.Range(at, at),
          viewColumn: visible?.viewColumn ?? vscode.ViewColumn.One,
        });
      } else if (
        target.kind === "page" ||
        client === undefined ||
        !(await this.rewriter.previewNamed(client, shown.document, shown.line, target.rewrite))
      ) {
        await vscode.commands.executeCommand("markdown.showPreview", uri);
      }
    } catch (error) {
      void vscode.window.showErrorMessage(`gridfuse: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
}
