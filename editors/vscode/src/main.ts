// What runs once a CUDA file was seen: the server, the commands, the panels.

import { execFile } from "node:child_process";
import * as vscode from "vscode";
import type { LanguageClient, Location, Position, Range } from "vscode-languageclient/node";
import { concerns } from "./documents";
import { Explanations } from "./explain";
import { LaunchGraph } from "./graph";
import { Lacking } from "./lacking";
import { Measurements } from "./measure";
import { Rewriter, tickRewritten } from "./rewrite";
import { AFTER_REWRITE, Server, SHOW_LAUNCHES, SHOW_REWRITES } from "./server";
import { Status } from "./status";

/** What can be asked for before a CUDA file was seen. */
export interface Main {
  restart(): Promise<void>;
  showOutput(): void;
  showMenu(): Promise<void>;
}

export function start(context: vscode.ExtensionContext): Main {
  const output = vscode.window.createOutputChannel("gridfuse", { log: true });
  const server = new Server(context, output);
  const rewriter = new Rewriter();
  const explanations = new Explanations(context, rewriter, () => server.running);
  const graph = new LaunchGraph(context);
  const measurements = new Measurements(context, rewriter, () => server.running, (document) => doctor(server, output, document));
  const lacking = new Lacking(() => server.running);
  context.subscriptions.push(output, server, rewriter, explanations, graph, measurements, lacking, new Status(server));

  server.measure = async (uri, line, tunes) => {
    const client = server.running;
    if (client !== undefined) {
      const document = await vscode.workspace.openTextDocument(client.protocol2CodeConverter.asUri(uri));
      await (tunes ? measurements.tune(client, document, line) : measurements.run(client, document, line));
    }
  };

  const enabled = () => vscode.workspace.getConfiguration("gridfuse").get<boolean>("enable", true);
  const startFor = (document: vscode.TextDocument) => {
    if (server.state.kind === "stopped" && enabled() && concerns(document)) {
      void server.start();
    }
  };
  const command = (id: string, run: (...args: never[]) => unknown) =>
    context.subscriptions.push(vscode.commands.registerCommand(id, run));
  /** A command for the editor's CUDA document; says why not when there is none. */
  const editorCommand = (id: string, run: (client: LanguageClient, editor: vscode.TextEditor) => Promise<void>) =>
    command(id, async () => {
      const client = server.running;
      const editor = vscode.window.activeTextEditor;
      if (client === undefined) {
        await explainState(server);
      } else if (editor === undefined || !concerns(editor.document)) {
        void vscode.window.showInformationMessage("gridfuse: open a CUDA file first.");
      } else {
        try {
          await run(client, editor);
        } catch (error) {
          void vscode.window.showErrorMessage(`gridfuse: ${error instanceof Error ? error.message : String(error)}`);
        }
      }
    });

  editorCommand("gridfuse.applyBestRewrite", (client, editor) => rewriter.applyBest(client, editor));
  editorCommand("gridfuse.previewRewrite", (client, editor) => rewriter.previewOne(client, editor));
  editorCommand("gridfuse.explainLaunch", (client, editor) => explanations.show(client, editor));
  editorCommand("gridfuse.showLaunchGraph", (client, editor) => graph.show(client, editor.document));
  editorCommand("gridfuse.runOnGpu", (client, editor) => measurements.run(client, editor.document));
  editorCommand("gridfuse.tuneOnGpu", (client, editor) => measurements.tune(client, editor.document));
  // What the command palette has in their place where something is missing: they say what.
  editorCommand("gridfuse.runWithoutNvcc", (client, editor) => measurements.run(client, editor.document));
  editorCommand("gridfuse.runWithoutGpu", (client, editor) => measurements.run(client, editor.document));
  command("gridfuse.acceptPreview", async () => server.running && rewriter.accept(server.running));
  command("gridfuse.discardPreview", () => rewriter.discard());
  command("gridfuse.doctor", () => doctor(server, output, vscode.window.activeTextEditor?.document.uri));
  command(AFTER_REWRITE, async (...uris: vscode.Uri[]) => {
    tickRewritten();
    const created = uris.map((uri) => uri.toString());
    const open = vscode.workspace.textDocuments.filter((document) => created.includes(document.uri.toString()));
    await Promise.all(open.map((document) => document.save()));
  });
  // Code lenses of the server: all positions are the protocol's.
  command(SHOW_LAUNCHES, (uri: string, position: Position, locations: Location[]) => {
    const convert = server.running?.protocol2CodeConverter;
    if (convert !== undefined) {
      const places = locations.map((location) => convert.asLocation(location));
      const at = convert.asPosition(position);
      return vscode.commands.executeCommand("editor.action.showReferences", convert.asUri(uri), at, places);
    }
    return undefined;
  });
  command(SHOW_REWRITES, async (uri: string, range: Range) => {
    const client = server.running;
    if (client === undefined) {
      return;
    }
    try {
      const convert = client.protocol2CodeConverter;
      await rewriter.previewIn(client, convert.asUri(uri), convert.asRange(range));
    } catch (error) {
      void vscode.window.showErrorMessage(`gridfuse: ${error instanceof Error ? error.message : String(error)}`);
    }
  });

  context.subscriptions.push(
    server.onDidChangeState((state) => {
      void vscode.commands.executeCommand("setContext", "gridfuse.running", state.kind === "running");
      const measures = state.kind === "running" && state.canMeasure;
      void vscode.commands.executeCommand("setContext", "gridfuse.canMeasure", measures);
      if (measures) {
        lacking.look();
      }
      if (state.kind === "missing" || state.kind === "failed") {
        void explainState(server);
      }
    }),
    vscode.workspace.onDidOpenTextDocument(startFor),
    vscode.workspace.onDidChangeTextDocument((event) => startFor(event.document)),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("gridfuse.server.path") || event.affectsConfiguration("gridfuse.enable")) {
        void server.stop().then(() => vscode.workspace.textDocuments.forEach(startFor));
      }
    }),
  );
  vscode.workspace.textDocuments.forEach(startFor);
  return { restart: () => server.restart(), showOutput: () => output.show(), showMenu: () => showMenu(server) };
}

/** Says why the server isn't running, and offers what helps. */
async function explainState(server: Server): Promise<void> {
  const state = server.state;
  if (state.kind === "missing") {
    const choose = "Choose the Program…";
    const settings = "Open Settings";
    const text = `${state.reason} Build it with \`cargo install --path server\` in a checkout of gridfuse, or choose the program.`;
    const answer = await vscode.window.showErrorMessage(text, choose, "Get Started", settings);
    if (answer === choose) {
      await chooseServer();
    } else if (answer === settings) {
      await vscode.commands.executeCommand("workbench.action.openSettings", "gridfuse.server.path");
    } else if (answer === "Get Started") {
      await vscode.commands.executeCommand("gridfuse.openWalkthrough");
    }
  } else if (state.kind === "failed") {
    const text = `gridfuse: the server failed. ${state.reason}`;
    const answer = await vscode.window.showErrorMessage(text, "Restart", "Show Output");
    if (answer === "Restart") {
      await server.restart();
    } else if (answer === "Show Output") {
      await vscode.commands.executeCommand("gridfuse.showOutput");
    }
  } else if (state.kind !== "running") {
    void vscode.window.showInformationMessage("gridfuse: the server isn't running; it starts when a CUDA file is opened.");
  }
}

/**
 * Shows what there is for measuring, and what is missing, in the output channel: for the project of a document, else for that of the first
 * folder.
 */
function doctor(server: Server, output: vscode.LogOutputChannel, document: vscode.Uri | undefined): Promise<void> {
  const program = server.state.kind === "running" ? server.state.program : undefined;
  if (program === undefined) {
    return explainState(server);
  }
  // What the editor shows may be no file: the output channel, or a difference.
  const file = document?.scheme === "file" ? document : undefined;
  const folder = file === undefined ? vscode.workspace.workspaceFolders?.[0] : vscode.workspace.getWorkspaceFolder(file);
  const cwd = folder?.uri.fsPath ?? (file === undefined ? undefined : vscode.Uri.joinPath(file, "..").fsPath);
  return new Promise((resolve) => {
    // It fails where something is missing, which is what it's asked about.
    execFile(program, ["doctor"], { cwd, timeout: 60_000, windowsHide: true }, (error, stdout, stderr) => {
      const said = `${stdout}${stderr}`.trim();
      output.info(`gridfuse doctor\n${said === "" ? String(error) : said}`);
      output.show();
      resolve();
    });
  });
}

async function chooseServer(): Promise<void> {
  const picked = await vscode.window.showOpenDialog({ title: "The gridfuse program", canSelectMany: false });
  const program = picked?.[0]?.fsPath;
  if (program !== undefined) {
    await vscode.workspace
      .getConfiguration("gridfuse")
      .update("server.path", program, vscode.ConfigurationTarget.Global);
  }
}

async function showMenu(server: Server): Promise<void> {
  const running = server.state.kind === "running" ? server.state : undefined;
  const item = (label: string, command: string, wanted = true) => (wanted ? [{ label, command }] : []);
  const items = [
    ...item("$(rocket) Apply Best Rewrite", "gridfuse.applyBestRewrite", running !== undefined),
    ...item("$(diff) Preview Rewrite…", "gridfuse.previewRewrite", running !== undefined),
    ...item("$(info) Explain Launch", "gridfuse.explainLaunch", running !== undefined),
    ...item("$(type-hierarchy-sub) Show Launch Graph", "gridfuse.showLaunchGraph", running !== undefined),
    ...item("$(play) Run on GPU…", "gridfuse.runOnGpu", running?.canMeasure === true),
    ...item("$(settings) Tune on GPU…", "gridfuse.tuneOnGpu", running?.canMeasure === true),
    ...item("$(pulse) Doctor", "gridfuse.doctor", running !== undefined),
    ...item("$(debug-restart) Restart Server", "gridfuse.restartServer"),
    ...item("$(output) Show Output", "gridfuse.showOutput"),
    ...item("$(folder-opened) Choose the Program…", "choose"),
    ...item("$(book) Get Started", "gridfuse.openWalkthrough"),
  ];
  const title = running === undefined ? "gridfuse" : `gridfuse ${running.version}: ${running.program}`;
  const picked = await vscode.window.showQuickPick(items, { title });
  if (picked?.command === "choose") {
    await chooseServer();
  } else if (picked !== undefined) {
    await vscode.commands.executeCommand(picked.command);
  }
}
