// Asks the server for the rewrites of launches, and for their edits.

import * as vscode from "vscode";
import {
  type CodeAction,
  CodeActionKind,
  CodeActionRequest,
  CodeActionResolveRequest,
  CodeActionTriggerKind,
  type Command,
  type LanguageClient,
  type WorkspaceEdit,
} from "vscode-languageclient/node";
import { assumptionsIn } from "./assumptions";

/** How long a server that is still reading is asked anew, and how often. */
const PATIENCE_MS = 30_000;
const AGAIN_MS = 200;

/** A rewrite that the server offers for a launch, or the fix of a finding. */
export interface Offer {
  action: CodeAction;
  /** Id of the rewrite: `aggregate-block`; a fix has none. */
  rewrite: string | undefined;
  /** First byte of the launch, or of what was found. */
  offset: number;
}

/** What the server keeps in an action until it is resolved. */
interface ActionData {
  rewrite: string;
  offset: number;
}

/** Whether this is what the server keeps in a rewrite. */
export function isData(data: unknown): data is ActionData {
  const candidate = data as Partial<ActionData> | null | undefined;
  return typeof candidate?.rewrite === "string" && typeof candidate.offset === "number";
}

/**
 * The rewrites that can be applied to the launches in a range, the best one first. Where there are none, the fixes of what is found there: a
 * kernel that waits for its children can't be rewritten before the wait is replaced.
 */
export async function offers(
  client: LanguageClient,
  document: vscode.TextDocument,
  range: vscode.Range,
): Promise<Offer[]> {
  const ask = () =>
    client.sendRequest(CodeActionRequest.type, {
      textDocument: client.code2ProtocolConverter.asTextDocumentIdentifier(document),
      range: client.code2ProtocolConverter.asRange(range),
      context: { diagnostics: [], triggerKind: CodeActionTriggerKind.Invoked },
    });
  let found = await ask();
  for (const deadline = Date.now() + PATIENCE_MS; (found ?? []).some(isUnfinished) && Date.now() < deadline; ) {
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    found = await ask();
  }
  const rewrites: Offer[] = [];
  const fixes: Offer[] = [];
  for (const action of found ?? []) {
    if (!("edit" in action || "kind" in action || "data" in action) || action.disabled !== undefined) {
      continue;
    }
    const mended = action.diagnostics?.[0];
    if (isData(action.data)) {
      rewrites.push({ action, rewrite: action.data.rewrite, offset: action.data.offset });
    } else if (action.kind === CodeActionKind.QuickFix && action.edit !== undefined && mended !== undefined) {
      const at = document.offsetAt(client.protocol2CodeConverter.asPosition(mended.range.start));
      const offset = Buffer.byteLength(document.getText().slice(0, at));
      if (!isSuppression(mended.code)) {
        fixes.push({ action, rewrite: undefined, offset });
      }
    }
  }
  return rewrites.length > 0 ? rewrites : fixes;
}

/** Whether this only says that the server is still reading the code: a rewrite's kind has another part. */
function isUnfinished(action: Command | CodeAction): boolean {
  return "kind" in action && action.kind === CodeActionKind.RefactorRewrite && action.disabled !== undefined;
}

/** Whether a finding is about a comment that suppresses others: no launch gets better by its fix. */
function isSuppression(code: unknown): boolean {
  return typeof code === "string" && code.endsWith("-suppression");
}

/** The offers of the launch at the cursor; when there are several or none there, the user picks one of the document's. */
export async function offersAtCursor(client: LanguageClient, editor: vscode.TextEditor): Promise<Offer[] | undefined> {
  const { document, selection } = editor;
  let found = await offers(client, document, selection);
  if (found.length === 0) {
    found = await offers(client, document, document.lineAt(selection.active.line).range);
  }
  if (found.length === 0) {
    const end = document.lineAt(document.lineCount - 1).range.end;
    found = await offers(client, document, new vscode.Range(new vscode.Position(0, 0), end));
  }
  return ofOneLaunch(client, document, found);
}

/** The offers of the launches in a range; when there are several launches, the user picks one. */
export async function offersIn(
  client: LanguageClient,
  document: vscode.TextDocument,
  range: vscode.Range,
): Promise<Offer[] | undefined> {
  return ofOneLaunch(client, document, await offers(client, document, range));
}

/** Lets the user pick the launch if several were found. */
export async function ofOneLaunch(
  client: LanguageClient,
  document: vscode.TextDocument,
  found: Offer[],
): Promise<Offer[] | undefined> {
  const launches = [...new Set(found.map((offer) => offer.offset))].sort((a, b) => a - b);
  if (launches.length === 0) {
    void vscode.window.showInformationMessage("gridfuse: no kernel launches another here in a way that can be rewritten.");
    return undefined;
  }
  if (launches.length === 1) {
    return found;
  }
  const items = launches.map((launch) => {
    const at = positionOf(document, launch);
    return { label: document.lineAt(at).text.trim(), description: `line ${at.line + 1}`, launch, at };
  });
  const picked = await vscode.window.showQuickPick(items, { placeHolder: "Which launch?" });
  // What does the same for two launches is offered for the first of them, unless only the second is asked about.
  const own = picked === undefined ? undefined : await offers(client, document, new vscode.Range(picked.at, picked.at));
  return own?.filter((offer) => offer.offset === picked?.launch);
}

/** Where a byte of a document is, such as an offer's first one. */
export function positionOf(document: vscode.TextDocument, offset: number): vscode.Position {
  return document.positionAt(Buffer.from(document.getText()).subarray(0, offset).toString().length);
}

/** The edit of an offer, as the protocol has it. */
export async function editOf(client: LanguageClient, offer: Offer): Promise<WorkspaceEdit | undefined> {
  const resolved =
    offer.action.edit === undefined
      ? await client.sendRequest(CodeActionResolveRequest.type, offer.action)
      : offer.action;
  return resolved.edit;
}

/** What an edit takes for granted: its change annotations tell. */
export function assumptionsOf(edit: WorkspaceEdit): string[] {
  return assumptionsIn(edit.changeAnnotations);
}
