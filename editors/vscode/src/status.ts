// The status bar item: whether the server runs, and with what could be measured.

import * as vscode from "vscode";
import { type Machine, machine } from "./machine";
import type { Server, ServerState } from "./server";

export class Status implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("gridfuse.status", vscode.StatusBarAlignment.Right, 100);
  private readonly subscriptions: vscode.Disposable[] = [];
  private found: Machine | undefined;

  constructor(server: Server) {
    this.item.name = "gridfuse";
    this.item.command = "gridfuse.showMenu";
    this.show(server.state);
    this.subscriptions.push(
      server.onDidChangeState((state) => {
        this.show(state);
        if (state.kind === "running") {
          // Anew each time: a toolkit may have been installed since.
          void machine().then((found) => {
            this.found = found;
            this.show(server.state);
          });
        }
      }),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration("gridfuse.measure.runner")) {
          this.show(server.state);
        }
      }),
    );
    this.item.show();
  }

  dispose(): void {
    vscode.Disposable.from(this.item, ...this.subscriptions).dispose();
  }

  /** With what could be measured. */
  private places(): string[] {
    const runner = vscode.workspace.getConfiguration("gridfuse").get<string | null>("measure.runner")?.trim();
    if (runner) {
      return [`programs run through ${runner}`];
    }
    if (this.found === undefined) {
      return [];
    }
    return [`CUDA: ${this.found.cuda ?? "no nvcc found"}`, `GPU: ${this.found.gpu ?? "none found"}`];
  }

  private show(state: ServerState): void {
    const [icon, word] = look(state);
    this.item.text = `${icon} gridfuse`;
    const places = state.kind === "running" ? this.places() : [];
    const label = `gridfuse: ${[word, ...places].join(", ")}`;
    this.item.accessibilityInformation = { label, role: "button" };
    const wrong = state.kind === "missing" || state.kind === "failed";
    this.item.backgroundColor = wrong ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined;
    const lines = [`**gridfuse**: ${word}`];
    if (state.kind === "missing" || state.kind === "failed") {
      lines.push(state.reason);
    }
    const tooltip = new vscode.MarkdownString(lines.join("\n\n"));
    for (const place of places) {
      // What a program or a setting says is no markup.
      tooltip.appendMarkdown("\n\n").appendText(place);
    }
    this.item.tooltip = tooltip;
  }
}

function look(state: ServerState): [icon: string, word: string] {
  switch (state.kind) {
    case "stopped":
      return ["$(circle-slash)", "not running"];
    case "missing":
      return ["$(warning)", "no server"];
    case "failed":
      return ["$(error)", "the server failed"];
    case "starting":
      return ["$(loading~spin)", "starting"];
    case "running":
      return ["$(zap)", `running, version ${state.version}`];
  }
}
