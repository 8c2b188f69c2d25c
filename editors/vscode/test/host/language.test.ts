// What the server says, as the editor's own interface gives it.

import assert from "node:assert/strict";
import * as vscode from "vscode";
import { bfs, diagnostics, edit, place, set, type Test, until, workspaceFile } from "./harness";

async function actionsAt(document: vscode.TextDocument, text: string, kind?: string, resolved = 0): Promise<vscode.CodeAction[]> {
  const at = place(document, text);
  return vscode.commands.executeCommand<vscode.CodeAction[]>(
    "vscode.executeCodeActionProvider",
    document.uri,
    new vscode.Range(at, at),
    kind,
    resolved,
  );
}

const words = (content: vscode.MarkdownString | vscode.MarkedString) => (typeof content === "string" ? content : content.value);

export const tests: Test[] = [
  {
    name: "diagnostics of bfs.cu",
    async run() {
      const { document } = await bfs("diagnostics.cu");
      const found = await diagnostics(document);
      const serialized = found.filter((one) => (one.code as { value: string }).value === "serialized-launches");
      assert.equal(serialized.length, 1);
      const [one] = serialized;
      assert.ok(one);
      assert.equal(one.severity, vscode.DiagnosticSeverity.Warning);
      assert.equal(one.source, "gridfuse");
      assert.ok(document.getText(one.range).startsWith("expand<<<"), document.getText(one.range));
      assert.ok((one.relatedInformation ?? []).length > 0, "what the diagnostic is about");
      const places = found.map((other) => `${(other.code as { value: string }).value} ${other.range.start.line}:${other.range.start.character}`);
      assert.equal(new Set(places).size, places.length, "each once");
    },
  },
  {
    name: "settings of the editor change diagnostics and hints at once",
    async run() {
      const { document } = await bfs("settings.cu");
      await diagnostics(document);
      const whole = new vscode.Range(0, 0, document.lineCount, 0);
      const hints = () =>
        vscode.commands.executeCommand<vscode.InlayHint[]>("vscode.executeInlayHintProvider", document.uri, whole);
      const before = (await hints()).length;
      await set("severity", { "serialized-launches": "error" });
      await set("inlayHints.arguments", true);
      await until("another severity", () =>
        vscode.languages
          .getDiagnostics(document.uri)
          .some((one) => (one.code as { value: string }).value === "serialized-launches" && one.severity === vscode.DiagnosticSeverity.Error),
      );
      await until("hints of arguments", async () => (await hints()).length > before);
      await set("severity", undefined);
      await set("inlayHints.arguments", undefined);
    },
  },
  {
    name: "the hover on a launch has its tables",
    async run() {
      const { document } = await bfs("hover.cu");
      await diagnostics(document);
      const at = place(document, "expand<<<");
      const hovers = await vscode.commands.executeCommand<vscode.Hover[]>("vscode.executeHoverProvider", document.uri, at);
      const ours = hovers.filter((hover) => hover.contents.some((content) => words(content).includes("varying")));
      assert.equal(ours.length, 1);
      const text = ours.flatMap((hover) => hover.contents.map(words)).join("\n");
      assert.match(text, /\| \*grid\* \|/);
      assert.match(text, /count/);
    },
  },
  {
    name: "code actions of a launch: kinds, titles with how much is assumed, edits when they are asked for",
    async run() {
      const { document } = await bfs("actions.cu");
      await diagnostics(document);
      const all = await actionsAt(document, "expand<<<");
      const titled = (title: string) => all.filter((action) => action.title.startsWith(title));
      for (const [title, kind] of [
        ["Collect launches per block", vscode.CodeActionKind.QuickFix],
        ["Collect launches per warp", vscode.CodeActionKind.RefactorRewrite.append("aggregate")],
        ["Launch fewer blocks, each with more work", vscode.CodeActionKind.RefactorRewrite.append("coarsen")],
      ] as const) {
        assert.equal(titled(title).length, 1, `${title} of ${all.map((action) => action.title).join(", ")}`);
        assert.equal(titled(title)[0]?.kind?.value, kind.value, title);
        assert.equal(titled(title)[0]?.edit, undefined, "made when it is chosen");
      }
      assert.match(titled("Collect launches per block")[0]?.title ?? "", / — 1 assumption$/);
      assert.equal(new Set(all.map((action) => action.title)).size, all.length, "each once");
      for (const kind of [vscode.CodeActionKind.QuickFix, vscode.CodeActionKind.RefactorRewrite]) {
        const some = await actionsAt(document, "expand<<<", kind.value);
        // "Run on GPU" is of no kind, and isn't among all where there is no GPU.
        const fewer = kind === vscode.CodeActionKind.QuickFix ? all.length - 1 : all.length;
        assert.ok(some.length > 0 && some.length <= fewer, kind.value);
        assert.ok(some.every((action) => action.kind !== undefined && kind.contains(action.kind)), kind.value);
      }
      const organize = await actionsAt(document, "expand<<<", "source.organizeImports");
      assert.deepEqual(organize, []);
    },
  },
  {
    name: "the edit of a code action changes the source, and writes the header that it needs",
    async run() {
      const { document } = await bfs("edit.cu");
      await diagnostics(document);
      const all = await actionsAt(document, "expand<<<", undefined, 50);
      const action = all.find((one) => one.title.startsWith("Collect launches per block"));
      assert.ok(action?.edit);
      const files = action.edit.entries().map(([uri]) => uri.path.split("/").pop());
      assert.deepEqual(files.sort(), ["edit.cu", "gridfuse.cuh"]);
      assert.ok(await vscode.workspace.applyEdit(action.edit));
      assert.ok(action.command);
      await vscode.commands.executeCommand(action.command.command, ...(action.command.arguments ?? []));
      assert.ok(document.getText().includes("gridfuse::Aggregator<gridfuse::PerBlock"));
      // On disk, though the user has saved nothing: the compiler will look for it.
      const header = workspaceFile("gridfuse.cuh");
      assert.match(Buffer.from(await vscode.workspace.fs.readFile(header)).toString(), /namespace gridfuse/);
      assert.equal(document.isDirty, true);
      await vscode.workspace.fs.delete(header);
    },
  },
  {
    name: "two code lenses count launches and rewrites, and each leads to what it counts",
    async run() {
      const { document } = await bfs("lens.cu");
      await diagnostics(document);
      const lenses = await vscode.commands.executeCommand<vscode.CodeLens[]>("vscode.executeCodeLensProvider", document.uri, 10);
      const titles = lenses.map((lens) => lens.command?.title).join(", ");
      const lead = (title: RegExp) =>
        lenses.filter((lens) => title.test(lens.command?.title ?? "")).map((lens) => lens.command?.command);
      assert.deepEqual(lead(/^1 launch$/), ["gridfuse.showLaunches"], titles);
      assert.deepEqual(lead(/^\d+ rewrites$/), ["gridfuse.showRewrites"], titles);
    },
  },
  {
    name: "text beyond the Basic Multilingual Plane moves nothing",
    async run() {
      const { document } = await edit(
        "unicode.cu",
        "__global__ void child(int* p) { *p = 1; }\n" +
          "__global__ void parent(int* p) { for (int i = 0; i < 9; ++i) /* 😀日本 */ child<<<1, 1>>>(p + i); }\n",
      );
      const found = (await diagnostics(document)).find((one) => (one.code as { value: string }).value === "launch-in-loop");
      assert.ok(found);
      assert.equal(document.getText(found.range), "child<<<1, 1>>>(p + i)");
    },
  },
];
