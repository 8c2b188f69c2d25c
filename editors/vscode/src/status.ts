// The status bar item: whether the server runs, and with what could be measured.

import * as vscode from "vscode";
import { type Machine, machine } from "./machine";
import type { Server, ServerState } from "./server";

export class Status implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("gridfuse.status", vscode.StatusBarAlignment.Right, 100);
  private found: Machine | undefined;

  constructor(server: Server) {
    this.item.name = "gridfuse";
    this.item.command = "gridfuse.showMenu";
    this.show(server.state);
    server.onDidChangeState((state) => {
      this.show(state);
      if (state.kind === "running" && this.found === undefined) {
        void machine().then((found) => {
          this.found = found;
          this.show(server.state);
        });
      }
    });
    this.item.show();
  }

  dispose(): void {
    this.item.dispose();
  }

  private show(state: ServerState): void {
    const [icon, word] = look(state);
    this.item.text = `${icon} gridfuse`;
    this.item.accessibilityInformation = { label: `gridfuse: ${word}`, role: "button" };
    const wrong = state.kind === "missing" || state.kind === "failed";
    this.item.backgroundColor = wrong ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined;
    const lines = [`**gridfuse**: ${word}`];
    if (state.kind === "missing" || state.kind === "failed") {
      lines.push(state.reason);
    }
    if (state.kind === "running" && this.found !== undefined) {
      lines.push(`CUDA: ${this.found.cuda ?? "no nvcc found"}`, `GPU: ${this.found.gpu ?? "none found"}`);
    }
    this.item.tooltip = new vscode.MarkdownString(lines.join("\n\n"));
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
