// Edits of the server as the editor takes them.

import * as vscode from "vscode";
import { type LanguageClient, TextDocumentEdit, type WorkspaceEdit } from "vscode-languageclient/node";

/**
 * Converts an edit that this extension applies itself. A file that it creates comes with its content: it is on disk at once, and not an empty file with a change that nobody
 * has saved, which the compiler would include. It comes first, so that whoever saves the file that includes it never includes nothing.
 */
export async function asWorkspaceEdit(client: LanguageClient, edit: WorkspaceEdit): Promise<vscode.WorkspaceEdit> {
  const created = new Map<string, string>();
  for (const operation of edit.documentChanges ?? []) {
    if (!TextDocumentEdit.is(operation) && operation.kind === "create") {
      created.set(operation.uri, "");
    }
  }
  if (created.size === 0) {
    return client.protocol2CodeConverter.asWorkspaceEdit(edit);
  }
  const rest = (edit.documentChanges ?? []).filter((operation) => {
    if (!TextDocumentEdit.is(operation)) {
      return operation.kind !== "create";
    }
    const { uri } = operation.textDocument;
    const text = created.get(uri);
    if (text === undefined) {
      return true;
    }
    created.set(uri, text + operation.edits.map((one) => ("newText" in one ? one.newText : "")).join(""));
    return false;
  });
  const ordered = new vscode.WorkspaceEdit();
  for (const [uri, text] of created) {
    ordered.createFile(client.protocol2CodeConverter.asUri(uri), { contents: Buffer.from(text) });
  }
  const converted = await client.protocol2CodeConverter.asWorkspaceEdit({ ...edit, documentChanges: rest });
  for (const [uri, edits] of converted.entries()) {
    ordered.set(uri, edits);
  }
  return ordered;
}
