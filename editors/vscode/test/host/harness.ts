// What tests in the extension host are made of.

import assert from "node:assert/strict";
import * as path from "node:path";
import * as vscode from "vscode";

export interface Test {
  name: string;
  run: () => Promise<void>;
}

/** How long anything may take: tests/src/patience.rs says it. On a busy machine it is much longer than usual. */
export const PATIENCE_MS = Number(process.env.GRIDFUSE_TEST_PATIENCE);

/** The window's answer to a question of test/host.mjs. */
export async function ask<T>(question: string, ...values: unknown[]): Promise<T> {
  const response = await fetch(`http://127.0.0.1:${process.env.GRIDFUSE_TEST_WINDOW}`, {
    method: "POST",
    body: JSON.stringify({ question, values }),
  });
  const { answer, error } = (await response.json()) as { answer: T; error?: string };
  if (error !== undefined) {
    throw new Error(error);
  }
  return answer;
}

/**
 * Waits until `look` finds something. Where `story` says how things stand, patience begins anew whenever that changes: what takes many steps
 * is not late as long as it goes on.
 */
export async function until<T>(
  what: string,
  look: () => T | Promise<T>,
  story?: () => Promise<string>,
): Promise<NonNullable<T>> {
  let told = "";
  for (let deadline = Date.now() + PATIENCE_MS; Date.now() < deadline; ) {
    const found = await look();
    if (found !== undefined && found !== null && found !== false) {
      return found;
    }
    const tells = (await story?.()) ?? "";
    if (tells !== told) {
      told = tells;
      deadline = Date.now() + PATIENCE_MS;
    }
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
  throw new Error(`waited in vain: ${what}${told === "" ? "" : `; there is: ${told}`}`);
}

export interface StatusItem {
  text: string;
  label: string;
  warning: boolean;
}

/** Waits until the status bar's item says something. */
export function status(label: RegExp): Promise<StatusItem> {
  return until(`the status ${label}`, async () => {
    const item = await ask<StatusItem | null>("status");
    return item !== null && label.test(item.label) ? item : undefined;
  });
}

export function workspaceFile(name: string): vscode.Uri {
  const folder = vscode.workspace.workspaceFolders?.[0];
  assert.ok(folder);
  return vscode.Uri.joinPath(folder.uri, name);
}

/** Makes a file of the workspace and opens it in the editor. */
export async function edit(name: string, text: string): Promise<vscode.TextEditor> {
  const uri = workspaceFile(name);
  await vscode.workspace.fs.writeFile(uri, Buffer.from(text));
  return vscode.window.showTextDocument(await vscode.workspace.openTextDocument(uri), { preview: false });
}

/** The program of the corpus, under a name of its own. */
export async function bfs(name: string): Promise<vscode.TextEditor> {
  const text = await vscode.workspace.fs.readFile(workspaceFile("bfs.cu"));
  return edit(name, Buffer.from(text).toString());
}

/** The first place of a text in a document. */
export function place(document: vscode.TextDocument, text: string): vscode.Position {
  const at = document.getText().indexOf(text);
  assert.ok(at >= 0, `${text} is not in ${path.basename(document.fileName)}`);
  return document.positionAt(at);
}

/** Puts the cursor on a text. */
export function putCursor(editor: vscode.TextEditor, text: string): void {
  const at = place(editor.document, text);
  editor.selection = new vscode.Selection(at, at);
}

/** The server's diagnostics of a document, once there are some. */
export function diagnostics(document: vscode.TextDocument): Promise<vscode.Diagnostic[]> {
  return until("diagnostics", () => {
    const found = vscode.languages.getDiagnostics(document.uri).filter((one) => one.source === "gridfuse");
    return found.length > 0 ? found : undefined;
  });
}

/** Changes a setting for the workspace; without another section, one of the extension. */
export async function set(name: string, value: unknown, section = "gridfuse"): Promise<void> {
  await vscode.workspace.getConfiguration(section).update(name, value, vscode.ConfigurationTarget.Workspace);
}

/** Makes a program the server, and waits until it runs. */
export async function serve(program: string | undefined): Promise<void> {
  await set("server.path", program);
  // The status bar may still speak of the one before.
  await vscode.commands.executeCommand("gridfuse.restartServer");
  await status(/running/);
}

/** Runs with other variables in the environment, which programs that are started then get. */
export async function withEnvironment(variables: Record<string, string>, run: () => Promise<void>): Promise<void> {
  const before = Object.keys(variables).map((name) => [name, process.env[name]] as const);
  Object.assign(process.env, variables);
  try {
    await run();
  } finally {
    for (const [name, value] of before) {
      if (value === undefined) {
        delete process.env[name];
      } else {
        process.env[name] = value;
      }
    }
  }
}

/** Asks about a message until there is an answer. Messages leave the window after a while, but not the list of all. */
async function askMessage<T>(question: string, text: string, ...values: unknown[]): Promise<NonNullable<T>> {
  return until(
    `the message ${text}`,
    async () => {
      const answer = await ask<T>(question, text, ...values);
      if (answer === null || answer === false) {
        await vscode.commands.executeCommand("notifications.showList");
      }
      return answer;
    },
    async () => (await ask<string[]>("messages")).join(" | "),
  );
}

/** What a message says, with its buttons, once it is shown. */
export function message(text: string): Promise<string> {
  return askMessage<string>("message", text);
}

/** Presses a button of a message, once it is shown. */
export async function pressInMessage(text: string, button: string): Promise<void> {
  await askMessage<boolean>("pressInMessage", text, button);
}

/** Answers the modal question that `run` leads to: in tests, the editor shows none. Returns what the question says. */
export async function answering(button: string | undefined, run: () => Promise<unknown>): Promise<string> {
  const window = vscode.window as { showWarningMessage: unknown };
  const real = window.showWarningMessage;
  const asked: string[] = [];
  window.showWarningMessage = (text: string, options: vscode.MessageOptions, ...buttons: string[]) => {
    assert.equal(options.modal, true);
    assert.ok(button === undefined || buttons.includes(button), buttons.join());
    asked.push(`${text}\n${options.detail}`);
    return Promise.resolve(button);
  };
  try {
    await run();
    await until("the question", () => asked.length > 0);
  } finally {
    window.showWarningMessage = real;
  }
  return asked.join("\n");
}

/** The difference that is shown. */
export function difference(): vscode.TabInputTextDiff | undefined {
  const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
  return tabs.map((tab) => tab.input).find((input) => input instanceof vscode.TabInputTextDiff);
}

/** Closes all editors without saving. */
export async function closeAll(): Promise<void> {
  for (const document of vscode.workspace.textDocuments) {
    if (document.isDirty) {
      await vscode.window.showTextDocument(document);
      await vscode.commands.executeCommand("workbench.action.files.revert");
    }
  }
  await vscode.commands.executeCommand("workbench.action.closeAllEditors");
  await vscode.commands.executeCommand("notifications.clearAll");
}
