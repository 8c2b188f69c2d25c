// Run on GPU, and Tune on GPU: ask the server to build and run the program, and show what it found out.

import * as vscode from "vscode";
import {
  ExecuteCommandRequest,
  type LanguageClient,
  WorkDoneProgress,
  type WorkspaceEdit,
} from "vscode-languageclient/node";
import { openRunner } from "./manifest";
import { missingFor } from "./missing";
import { openPanel } from "./panel";
import { factor, type Report } from "./report";
import type { Rewriter } from "./rewrite";

const MEASURE = "gridfuse.measure";
const TUNE = "gridfuse.tune";

/** What the server answers to gridfuse.tune: that of the JSON of `gridfuse tune --json` which is shown, and the edit. */
interface TuneReport {
  machine: { gpu: string };
  search: {
    /** `threshold=64+aggregate-grid`; `null`: the program is as good as it is. */
    best: string | null;
    speedup: number | null;
  };
  edit: WorkspaceEdit | null;
}

/** From the panel's page. */
type Message = { type: "ready" } | { type: "apply"; rewrites: string } | { type: "preview"; rewrites: string } | { type: "again" };

/** How many commands were executed: a number for each. */
let executed = 0;

export class Measurements implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private shown: { document: vscode.Uri; line: number | undefined; report: Report } | undefined;

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly rewriter: Rewriter,
    private readonly client: () => LanguageClient | undefined,
    /** Shows what there is for measuring, and what is missing. */
    private readonly doctor: (document: vscode.Uri) => Promise<void>,
  ) {}

  dispose(): void {
    this.panel?.dispose();
  }

  /** Tells why it can't be measured, and offers what helps. */
  private async explain(error: unknown, document: vscode.Uri): Promise<void> {
    const text = `gridfuse: ${error instanceof Error ? error.message : String(error)}`;
    if (missingFor(error) === undefined) {
      void vscode.window.showErrorMessage(text);
      return;
    }
    const open = "Open gridfuse.toml";
    const doctor = "Run Doctor";
    const answer = await vscode.window.showWarningMessage(text, open, doctor);
    if (answer === open) {
      await openRunner(document);
    } else if (answer === doctor) {
      await this.doctor(document);
    }
  }

  /** Whether it can be measured here: what is missing is told before the user is asked for anything. */
  private async canMeasure(client: LanguageClient, document: vscode.TextDocument): Promise<boolean> {
    const argument = { uri: client.code2ProtocolConverter.asUri(document.uri), check: true };
    try {
      await client.sendRequest(ExecuteCommandRequest.type, { command: MEASURE, arguments: [argument] });
    } catch (error) {
      // What else is wrong is told when it's measured.
      if (missingFor(error) !== undefined) {
        void this.explain(error, document.uri);
        return false;
      }
    }
    return true;
  }

  /** Asks for the arguments of a document's program; `undefined`: the user has changed their mind, or it can't be measured. */
  private async askArguments(
    client: LanguageClient,
    document: vscode.TextDocument,
    verb: string,
  ): Promise<string | undefined> {
    if (!vscode.workspace.isTrusted) {
      void vscode.window.showWarningMessage("gridfuse: programs are built and run in trusted workspaces only.");
      return undefined;
    }
    if (!(await this.canMeasure(client, document))) {
      return undefined;
    }
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

  /** Asks for the program's arguments, searches what is fastest, and offers it; with `line`, only what stands there is tuned. */
  async tune(client: LanguageClient, document: vscode.TextDocument, line?: number): Promise<void> {
    const args = await this.askArguments(client, document, "Tune");
    const more = line === undefined ? { args } : { args, line };
    const report = args === undefined ? null : await this.execute<TuneReport>(client, TUNE, document, more);
    if (report === null) {
      return;
    }
    const { best, speedup } = report.search;
    const { edit } = report;
    if (best === null || speedup === null || edit === null) {
      const text =
        `gridfuse: no combination is faster than the program as it is on ${report.machine.gpu}. ` +
        "Leave it as it is, or tune it with other arguments.";
      void vscode.window.showInformationMessage(text);
      return;
    }
    const text =
      `gridfuse: ${best} is ${factor(speedup)} as fast as the program as it is on ${report.machine.gpu}. ` +
      "Preview the change, or apply it.";
    const isStillSo = await this.rewriter.watch(client, edit);
    const answer = await vscode.window.showInformationMessage(text, "Preview", "Apply");
    if (answer !== undefined && !(await isStillSo())) {
      // The message outlives the text that it is about.
      void vscode.window.showWarningMessage("gridfuse: the text changed since it was tuned; tune it again.");
    } else if (answer === "Apply") {
      await this.rewriter.apply(client, edit, `Apply ${best}`);
    } else if (answer === "Preview") {
      await this.rewriter.show(client, edit, best);
    }
  }

  /** Asks for the program's arguments, runs it, and shows the times; with `line`, only what stands there is rewritten. */
  async run(client: LanguageClient, document: vscode.TextDocument, line?: number): Promise<void> {
    const args = await this.askArguments(client, document, "Run");
    const more = line === undefined ? { args } : { args, line };
    const report = args === undefined ? null : await this.execute<Report>(client, MEASURE, document, more);
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

  /**
   * Lets the server execute a command for a document, and shows how far it is, with a button that cancels it. `null`: it was cancelled, or has
   * failed, which the user was told.
   */
  private async execute<Answer>(
    client: LanguageClient,
    command: string,
    document: vscode.TextDocument,
    more: object,
  ): Promise<Answer | null> {
    const argument = { uri: client.code2ProtocolConverter.asUri(document.uri), ...more };
    const doing = command === TUNE ? "tuning" : "measuring";
    const title = `gridfuse: ${doing} ${vscode.workspace.asRelativePath(document.uri)}`;
    const options = { location: vscode.ProgressLocation.Notification, title, cancellable: true };
    return vscode.window.withProgress(options, async (progress, token) => {
      executed += 1;
      const workDoneToken = `gridfuse-execute-${executed}`;
      let done = 0;
      // The editor would show the server's own progress in the status bar, without the button.
      const listening = client.onProgress(WorkDoneProgress.type, workDoneToken, (value) => {
        if (value.kind !== "end") {
          const increment = Math.max(0, (value.percentage ?? 0) - done);
          done += increment;
          progress.report({ message: value.message ?? "", increment });
        }
      });
      try {
        const params = { command, arguments: [argument], workDoneToken };
        return (await client.sendRequest(ExecuteCommandRequest.type, params, token)) as Answer;
      } catch (error) {
        if (!token.isCancellationRequested) {
          void this.explain(error, document.uri);
        }
        return null;
      } finally {
        listening.dispose();
      }
    });
  }
}
