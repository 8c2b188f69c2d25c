// Applying and previewing rewrites.

import * as vscode from "vscode";
import { type LanguageClient, TextDocumentEdit, type TextEdit, type WorkspaceEdit } from "vscode-languageclient/node";
import { assumptionsOf, editOf, offers, offersAtCursor, offersIn, ofOneLaunch, positionOf, type Offer } from "./actions";
import { asWorkspaceEdit } from "./edit";

const PREVIEW_SCHEME = "gridfuse-preview";

/** A file before and after a rewrite. */
interface Change {
  uri: vscode.Uri;
  created: boolean;
  before: string;
  after: string;
  /** The line of `after` that is worth looking at first. */
  line: number;
}

/** A rewrite that is shown and can be applied. */
interface Preview {
  title: string;
  edit: WorkspaceEdit;
  changes: Change[];
}

export class Rewriter implements vscode.Disposable, vscode.TextDocumentContentProvider {
  private readonly subscriptions: vscode.Disposable[] = [];
  private readonly contents = new Map<string, string>();
  private readonly contentChanged = new vscode.EventEmitter<vscode.Uri>();
  private preview: Preview | undefined;
  private serial = 0;
  readonly onDidChange = this.contentChanged.event;

  constructor() {
    this.subscriptions.push(
      vscode.workspace.registerTextDocumentContentProvider(PREVIEW_SCHEME, this),
      vscode.window.tabGroups.onDidChangeTabs(({ closed }) => {
        // Not those of an earlier preview, nor before the tab of this one is there.
        if (closed.some((tab) => previewed(tab)?.authority === this.side("after"))) {
          this.forget();
        }
      }),
      this.contentChanged,
    );
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions).dispose();
  }

  /** Tells the texts of this preview from those of earlier ones. */
  private side(which: "before" | "after"): string {
    return `${this.serial}-${which}`;
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.contents.get(uri.toString()) ?? "";
  }

  /** Applies what the server thinks is best for the launch at the cursor, which it offers first. */
  async applyBest(client: LanguageClient, editor: vscode.TextEditor): Promise<void> {
    const [best] = (await offersAtCursor(client, editor)) ?? [];
    const edit = best === undefined ? undefined : await editOf(client, best);
    if (best !== undefined && edit !== undefined) {
      const { line } = positionOf(editor.document, best.offset);
      // The only one of the document is taken wherever the cursor is: where it changes something else than what is in sight, it's said.
      const place = line === editor.selection.active.line ? "" : ` (line ${line + 1})`;
      await this.apply(client, edit, shortTitle(best), `${best.action.title}${place}`);
    }
  }

  /** Lets the user choose a rewrite of the launch at the cursor, and shows what it would change. */
  async previewOne(client: LanguageClient, editor: vscode.TextEditor): Promise<void> {
    await this.choose(client, editor, await offersAtCursor(client, editor));
  }

  /** The same for the launches in a range of a document, which is opened. */
  async previewIn(client: LanguageClient, uri: vscode.Uri, range: vscode.Range): Promise<void> {
    const selection = new vscode.Range(range.start, range.start);
    const editor = await vscode.window.showTextDocument(uri, { selection });
    await this.choose(client, editor, await offersIn(client, editor.document, range));
  }

  /**
   * Shows what a rewrite, by its id, would change at the launches on a line, else at one of the document that the user picks. `false`: it can
   * be applied to none.
   */
  async previewNamed(client: LanguageClient, uri: vscode.Uri, line: number, rewrite: string): Promise<boolean> {
    const document = await vscode.workspace.openTextDocument(uri);
    const here = document.lineAt(Math.min(line, document.lineCount - 1)).range;
    const whole = new vscode.Range(new vscode.Position(0, 0), document.lineAt(document.lineCount - 1).range.end);
    const named = async (range: vscode.Range) => {
      const found = await offers(client, document, range);
      return found.filter((offer) => offer.rewrite === rewrite);
    };
    const onLine = await named(here);
    const found = onLine.length > 0 ? onLine : await named(whole);
    if (found.length === 0) {
      return false;
    }
    const picked = await ofOneLaunch(client, document, found);
    const offer = picked?.find((one) => one.rewrite === rewrite);
    const edit = offer === undefined ? undefined : await editOf(client, offer);
    if (offer !== undefined && edit !== undefined) {
      await this.show(client, edit, shortTitle(offer), here.start);
    }
    return true;
  }

  private async choose(client: LanguageClient, editor: vscode.TextEditor, found: Offer[] | undefined): Promise<void> {
    if (found === undefined) {
      return;
    }
    const items = found.map((offer) => {
      const [label, assumptions] = offer.action.title.split(" — ");
      return { label: label ?? offer.action.title, description: offer.rewrite ?? "", detail: assumptions ?? "", offer };
    });
    const picked = await vscode.window.showQuickPick(items, {
      placeHolder: "Which rewrite?",
      matchOnDescription: true,
      matchOnDetail: true,
    });
    const edit = picked === undefined ? undefined : await editOf(client, picked.offer);
    if (picked !== undefined && edit !== undefined) {
      await this.show(client, edit, picked.label, editor.selection.active);
    }
  }

  /** Shows what an edit would change, file by file, without changing anything. */
  async show(client: LanguageClient, edit: WorkspaceEdit, title: string, near?: vscode.Position): Promise<void> {
    this.forget();
    const changes = await changesOf(client, edit, near?.line ?? 0);
    if (changes.length === 0) {
      return;
    }
    this.serial += 1;
    const sides = changes.map((change) => {
      const side = (which: "before" | "after") =>
        vscode.Uri.from({ scheme: PREVIEW_SCHEME, authority: this.side(which), path: change.uri.path });
      this.contents.set(side("after").toString(), change.after);
      const before = change.created ? side("before") : change.uri;
      return { uri: change.uri, before, after: side("after"), line: change.line };
    });
    const preview = { title, edit, changes };
    this.preview = preview;
    await vscode.commands.executeCommand("setContext", "gridfuse.previewing", true);
    const label = `${title} (preview)`;
    // New files and the runtime header are not worth a difference of their own: what they are called is said.
    const edited = sides.filter((side, index) => changes[index]?.created === false && !isHeader(side.uri));
    const [first] = edited;
    if (edited.length === 1 && first !== undefined) {
      const { before, after, line } = first;
      const options = { preview: true, selection: new vscode.Range(line, 0, line, 0) };
      await vscode.commands.executeCommand("vscode.diff", before, after, label, options);
    } else {
      const resources = (first === undefined ? sides : edited).map((side) => [side.uri, side.before, side.after]);
      await vscode.commands.executeCommand("vscode.changes", label, resources);
    }
    const assumptions = assumptionsOf(edit);
    const names = (some: Change[]) => some.map((change) => basename(change.uri)).join(", ");
    const creates = changes.filter((change) => change.created);
    const completes = changes.filter((change) => !change.created && isHeader(change.uri));
    const text = [
      `${title}.`,
      ...(assumptions.length > 0 ? [`Assumes: ${assumptions.join("; ")}.`] : []),
      ...(creates.length > 0 ? [`Adds ${names(creates)}.`] : []),
      ...(completes.length > 0 ? [`Adds to ${names(completes)} what it needs.`] : []),
    ].join(" ");
    void vscode.window.showInformationMessage(text, "Apply", "Discard").then(async (answer) => {
      // The message outlives the tab. It says what it applies, and it does so as long as the text is the one that was previewed.
      if (answer === "Apply") {
        await this.take(client, preview);
      } else if (answer === "Discard" && this.preview === preview) {
        await this.discard();
      }
    });
  }

  /** Notes the texts that an edit is of; the answer says whether they are still the same. */
  async watch(client: LanguageClient, edit: WorkspaceEdit): Promise<() => Promise<boolean>> {
    const changes = await changesOf(client, edit, 0);
    return async () => (await Promise.all(changes.map(isStillSo))).every(Boolean);
  }

  /** Applies what is shown. */
  async accept(client: LanguageClient): Promise<void> {
    if (this.preview !== undefined) {
      await this.take(client, this.preview);
    }
  }

  /** Applies a preview, if the text is still the one that it was made for. */
  private async take(client: LanguageClient, preview: Preview): Promise<void> {
    const same = await Promise.all(preview.changes.map(isStillSo));
    await this.discard();
    if (same.every(Boolean)) {
      await this.write(client, preview.edit, preview.title);
    } else {
      void vscode.window.showWarningMessage("gridfuse: the text changed since the preview; preview the rewrite again.");
    }
  }

  /** Closes what is shown. */
  async discard(): Promise<void> {
    const tabs = previewTabs();
    this.forget();
    await vscode.window.tabGroups.close(tabs);
  }

  /** Applies an edit; asks first if it takes something for granted, or with `question` always. */
  async apply(client: LanguageClient, edit: WorkspaceEdit, title: string, question?: string): Promise<void> {
    const assumptions = assumptionsOf(edit);
    const ask = vscode.workspace.getConfiguration("gridfuse").get<boolean>("rewrite.confirmAssumptions", true);
    if (ask && (assumptions.length > 0 || question !== undefined)) {
      const changes = await changesOf(client, edit, 0);
      const files = changes.map((change) => `${change.created ? "Adds" : "Changes"} ${basename(change.uri)}.`);
      const holds = assumptions.map((assumption) => `• ${assumption}`).join("\n");
      const condition = assumptions.length > 0 ? `It is right if this holds:\n\n${holds}` : "It assumes nothing.";
      const detail = `${files.join(" ")}\n\n${condition}`;
      const asked = question ?? `${title}?`;
      const answer = await vscode.window.showWarningMessage(asked, { modal: true, detail }, "Apply", "Preview");
      if (answer === "Preview") {
        await this.show(client, edit, title);
      }
      if (answer !== "Apply") {
        return;
      }
    }
    await this.write(client, edit, title);
  }

  private async write(client: LanguageClient, edit: WorkspaceEdit, title: string): Promise<void> {
    const converted = await asWorkspaceEdit(client, edit);
    const done = await vscode.workspace.applyEdit(converted, { isRefactoring: true });
    if (done) {
      tickRewritten();
    } else {
      void vscode.window.showErrorMessage(`gridfuse: "${title}" could not be applied.`);
    }
  }

  private forget(): void {
    this.preview = undefined;
    this.contents.clear();
    void vscode.commands.executeCommand("setContext", "gridfuse.previewing", false);
  }
}

/** Ticks the step of the walkthrough. */
export function tickRewritten(): void {
  void vscode.commands.executeCommand("setContext", "gridfuse.rewritten", true);
}

function shortTitle(offer: Offer): string {
  return offer.action.title.split(" — ")[0] ?? offer.action.title;
}

function basename(uri: vscode.Uri): string {
  return uri.path.split("/").pop() ?? uri.path;
}

/** Whether a file is the runtime header, which gridfuse writes. */
function isHeader(uri: vscode.Uri): boolean {
  return basename(uri) === "gridfuse.cuh";
}

function previewTabs(): vscode.Tab[] {
  return vscode.window.tabGroups.all.flatMap((group) => group.tabs).filter((tab) => previewed(tab) !== undefined);
}

/** What a tab shows of a preview, if it is the tab of one. */
function previewed(tab: vscode.Tab): vscode.Uri | undefined {
  const { input } = tab;
  const modified =
    input instanceof vscode.TabInputTextDiff
      ? input.modified
      : // A difference of several files has no type of its own in this version of the interface.
        (input as { textDiffs?: { modified: vscode.Uri }[] } | undefined)?.textDiffs?.[0]?.modified;
  return modified?.scheme === PREVIEW_SCHEME ? modified : undefined;
}

/** Whether a file has the text that a change was made for. */
async function isStillSo(change: Change): Promise<boolean> {
  if (change.created) {
    // Creating it fails where it is there by now.
    return true;
  }
  try {
    return (await vscode.workspace.openTextDocument(change.uri)).getText() === change.before;
  } catch {
    return false;
  }
}

/** The texts that an edit leads to. */
async function changesOf(client: LanguageClient, edit: WorkspaceEdit, near: number): Promise<Change[]> {
  const created = new Set<string>();
  const edits = new Map<string, TextEdit[]>();
  const add = (uri: string, list: TextEdit[]) => edits.set(uri, [...(edits.get(uri) ?? []), ...list]);
  for (const operation of edit.documentChanges ?? []) {
    if (TextDocumentEdit.is(operation)) {
      add(operation.textDocument.uri, operation.edits as TextEdit[]);
    } else if (operation.kind === "create") {
      created.add(operation.uri);
    }
  }
  for (const [uri, list] of Object.entries(edit.changes ?? {})) {
    add(uri, list);
  }
  const changes: Change[] = [];
  for (const [protocolUri, list] of edits) {
    const uri = client.protocol2CodeConverter.asUri(protocolUri);
    if (created.has(protocolUri)) {
      changes.push({ uri, created: true, before: "", after: list.map((one) => one.newText).join(""), line: 0 });
      continue;
    }
    const document = await vscode.workspace.openTextDocument(uri);
    changes.push({ uri, created: false, before: document.getText(), ...applied(client, document, list, near) });
  }
  // Edited files before new ones.
  return changes.sort((a, b) => Number(a.created) - Number(b.created));
}

/** The text after edits, and the line in it of the edit that was nearest to the line `near`. */
function applied(
  client: LanguageClient,
  document: vscode.TextDocument,
  edits: TextEdit[],
  near: number,
): { after: string; line: number } {
  const placed = edits.map((edit) => {
    const range = client.protocol2CodeConverter.asRange(edit.range);
    const [start, end] = [document.offsetAt(range.start), document.offsetAt(range.end)];
    const outside = Math.max(range.start.line - near, near - range.end.line, 0);
    return { start, end, text: edit.newText, outside };
  });
  // Those at the same place keep their order.
  placed.sort((a, b) => a.start - b.start || a.end - b.end);
  const text = document.getText();
  const nearest = Math.min(...placed.map((edit) => edit.outside));
  let at = 0;
  let after = "";
  let line = 0;
  for (const edit of placed) {
    after += text.slice(at, edit.start);
    if (edit.outside === nearest) {
      line = after.split("\n").length - 1;
    }
    after += edit.text;
    at = edit.end;
  }
  return { after: after + text.slice(at), line };
}
