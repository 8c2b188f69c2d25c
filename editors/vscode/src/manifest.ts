// The project's gridfuse.toml, opened where it says which machine measures.

import * as vscode from "vscode";
import { runnerPlace } from "./missing";

const NAME = "gridfuse.toml";

async function exists(uri: vscode.Uri): Promise<boolean> {
  try {
    await vscode.workspace.fs.stat(uri);
    return true;
  } catch {
    return false;
  }
}

/** The gridfuse.toml that counts for a document: the nearest above it in its workspace folder; one that isn't there yet: in that folder. */
async function manifestOf(document: vscode.Uri): Promise<{ uri: vscode.Uri; there: boolean }> {
  const root = vscode.workspace.getWorkspaceFolder(document)?.uri ?? vscode.Uri.joinPath(document, "..");
  for (let directory = vscode.Uri.joinPath(document, ".."); ; directory = vscode.Uri.joinPath(directory, "..")) {
    const uri = vscode.Uri.joinPath(directory, NAME);
    if (await exists(uri)) {
      return { uri, there: true };
    }
    if (directory.path === root.path || directory.path.length <= root.path.length) {
      return { uri: vscode.Uri.joinPath(root, NAME), there: false };
    }
  }
}

/** Opens it with a line `runner = "ssh HOST"` to be filled in, unless there is one. Nothing is saved. */
export async function openRunner(document: vscode.Uri): Promise<void> {
  const { uri, there } = await manifestOf(document);
  const opened = await vscode.workspace.openTextDocument(there ? uri : uri.with({ scheme: "untitled" }));
  const editor = await vscode.window.showTextDocument(opened);
  const place = runnerPlace(opened.getText());
  if (place !== undefined) {
    const snippet = new vscode.SnippetString(place.table ? "[measure]\n" : "");
    snippet.appendText('runner = "ssh ').appendPlaceholder("HOST").appendText('"\n');
    const end = opened.lineAt(opened.lineCount - 1).range.end;
    const fresh = place.line >= opened.lineCount;
    if (fresh && end.character > 0) {
      snippet.value = `\n${snippet.value}`;
    }
    await editor.insertSnippet(snippet, fresh ? end : new vscode.Position(place.line, 0));
  }
}
