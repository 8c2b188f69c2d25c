// The language server: finding, starting, restarting it, and which documents it is told of.

import * as os from "node:os";
import * as vscode from "vscode";
import {
  DidOpenTextDocumentNotification,
  ErrorAction,
  CloseAction,
  LanguageClient,
  type LanguageClientOptions,
  type Middleware,
  RevealOutputChannelOn,
  type StaticFeature,
  State,
} from "vscode-languageclient/node";
import { isData } from "./actions";
import { leavesCalls } from "./calls";
import { concerns, SELECTOR } from "./documents";
import { locate } from "./locate";

/** The command of the editor that the server's code lenses name. */
export const SHOW_LAUNCHES = "gridfuse.showLaunches";
export const SHOW_REWRITES = "gridfuse.showRewrites";

/** Follows a rewrite: saves the files that it has created. An unsaved one is empty on disk, where the compiler looks for it. */
export const AFTER_REWRITE = "gridfuse.afterRewrite";

/** The notification that the user trusts the workspace from now on. */
const WORKSPACE_TRUSTED = "gridfuse/workspaceTrusted";

/** The server crashed this often, this quickly: it isn't started again by itself. */
const MAX_CRASHES = 4;
const CRASH_MINUTES = 3;

export type ServerState =
  | { kind: "stopped" }
  | { kind: "missing"; reason: string }
  | { kind: "starting" }
  | { kind: "running"; version: string; program: string; canMeasure: boolean }
  | { kind: "failed"; reason: string };

export class Server implements vscode.Disposable {
  private client: LanguageClient | undefined;
  private current: ServerState = { kind: "stopped" };
  private readonly changed = new vscode.EventEmitter<ServerState>();
  private readonly told = new Set<string>();
  private starting: Promise<void> | undefined;
  readonly onDidChangeState = this.changed.event;
  /** Measures a document, all of it or a line, when a lens or an action of the server asks for it. */
  measure: ((uri: string, line: number | undefined, tunes: boolean) => Promise<void>) | undefined;

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly output: vscode.LogOutputChannel,
  ) {
    const granted = vscode.workspace.onDidGrantWorkspaceTrust(() => {
      void this.running?.sendNotification(WORKSPACE_TRUSTED);
    });
    context.subscriptions.push(granted);
  }

  get state(): ServerState {
    return this.current;
  }

  /** The client, if the server runs. */
  get running(): LanguageClient | undefined {
    return this.current.kind === "running" ? this.client : undefined;
  }

  /** Starts the server unless it runs or is starting. */
  start(): Promise<void> {
    if (this.client !== undefined && this.current.kind !== "failed") {
      return this.starting ?? Promise.resolve();
    }
    const starting = this.launch().finally(() => {
      if (this.starting === starting) {
        this.starting = undefined;
      }
    });
    this.starting = starting;
    return starting;
  }

  async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    this.starting = undefined;
    this.told.clear();
    this.enter({ kind: "stopped" });
    if (client !== undefined) {
      await this.end(client);
    }
  }

  private async end(client: LanguageClient): Promise<void> {
    await client.dispose().catch((error: unknown) => this.output.warn(`stopping the server: ${String(error)}`));
  }

  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  dispose(): void {
    void this.stop();
    this.changed.dispose();
  }

  private enter(state: ServerState): void {
    this.current = state;
    this.changed.fire(state);
  }

  private async launch(): Promise<void> {
    const configured = vscode.workspace.getConfiguration("gridfuse").get<string | null>("server.path") ?? "";
    const located = locate({
      configured,
      extension: this.context.extensionPath,
      searchPath: process.env.PATH ?? "",
      home: os.homedir(),
      workspace: vscode.workspace.workspaceFolders?.[0]?.uri.fsPath,
      windows: process.platform === "win32",
    });
    if ("missing" in located) {
      this.output.error(located.missing);
      this.enter({ kind: "missing", reason: located.missing });
      return;
    }
    this.enter({ kind: "starting" });
    this.output.info(`starting ${located.found} (${located.by})`);
    const run = { command: located.found, args: ["lsp"] };
    // The client goes on waiting for the answer of a program that has ended.
    let giveUp = (_reason: Error) => {};
    const ended = new Promise<never>((_, reject) => {
      giveUp = reject;
    });
    let answered = false;
    const closed = () => {
      if (!answered) {
        giveUp(new Error("it ended"));
      }
      return answered;
    };
    const client = new QuietClient("gridfuse", "gridfuse", { run, debug: run }, this.options(closed));
    client.registerFeature(knowsOwnCommands);
    client.registerFeature(leavesCallsToOthers);
    client.onDidChangeState(({ newState }) => {
      if (this.client === client && newState === State.Stopped && this.current.kind === "running") {
        this.told.clear();
        this.enter({ kind: "starting" });
      } else if (this.client === client && newState === State.Running && this.current.kind === "starting") {
        this.enter(runningState(client, located.found));
      }
    });
    this.client = client;
    try {
      await Promise.race([client.start(), ended]);
      answered = true;
      if (this.client !== client) {
        // Stopped meanwhile.
        await this.end(client);
      } else {
        const state = runningState(client, located.found);
        this.output.info(`gridfuse ${state.version} is running`);
        if (this.current.kind !== "running") {
          this.enter(state);
        }
      }
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      const reason = `${located.found} does not answer (${why}). Is it the gridfuse program?`;
      this.output.error(reason);
      if (this.client === client) {
        this.client = undefined;
        this.enter({ kind: "failed", reason });
      }
    }
  }

  /** `closed` is called when the server ends; it tells whether it may be started again. */
  private options(closed: () => boolean): LanguageClientOptions {
    const crashes: number[] = [];
    return {
      documentSelector: SELECTOR,
      outputChannel: this.output,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      // The state says so.
      initializationFailedHandler: () => false,
      diagnosticCollectionName: "gridfuse",
      // Asked for at each start: the server builds and runs nothing where it isn't trusted.
      initializationOptions: () => ({
        ...vscode.workspace.getConfiguration().get<object>("gridfuse"),
        workspaceTrusted: vscode.workspace.isTrusted,
      }),
      synchronize: { configurationSection: "gridfuse" },
      markdown: { isTrusted: false, supportHtml: false },
      diagnosticPullOptions: { onChange: true, onSave: false, onTabs: false },
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        closed: () => {
          if (!closed()) {
            return { action: CloseAction.DoNotRestart, handled: true };
          }
          const now = Date.now();
          crashes.push(now);
          const recent = crashes.filter((time) => now - time < CRASH_MINUTES * 60_000);
          if (recent.length < MAX_CRASHES) {
            return { action: CloseAction.Restart };
          }
          const reason = `The server ended ${recent.length} times within ${CRASH_MINUTES} minutes.`;
          this.client = undefined;
          this.enter({ kind: "failed", reason });
          return { action: CloseAction.DoNotRestart, message: reason, handled: true };
        },
      },
      middleware: this.middleware(),
    };
  }

  /** Keeps C++ files that launch no kernels from the server. */
  private middleware(): Middleware {
    const told = (document: vscode.TextDocument) => this.told.has(document.uri.toString());
    const nothing = undefined;
    return {
      didOpen: async (document, next) => {
        if (concerns(document)) {
          this.told.add(document.uri.toString());
          await next(document);
        }
      },
      didChange: async (event, next) => {
        if (told(event.document)) {
          await next(event);
        } else if (concerns(event.document)) {
          const feature = this.client?.getFeature(DidOpenTextDocumentNotification.method);
          await feature?.getProvider(event.document)?.send(event.document);
        }
      },
      didSave: async (document, next) => {
        if (told(document)) {
          await next(document);
        }
      },
      didClose: async (document, next) => {
        if (this.told.delete(document.uri.toString())) {
          await next(document);
        }
      },
      executeCommand: (command, args, next) => {
        const [asked] = args as { uri?: string; line?: number; show?: boolean }[];
        const tunes = command === "gridfuse.tune";
        const measures = command === "gridfuse.measure" || tunes;
        if (measures && asked?.show === true && asked.uri !== undefined && this.measure) {
          return this.measure(asked.uri, asked.line, tunes);
        }
        return next(command, args);
      },
      provideHover: (document, position, token, next) => (told(document) ? next(document, position, token) : nothing),
      provideCodeActions: (document, range, context, token, next) =>
        told(document) ? next(document, range, context, token) : nothing,
      resolveCodeAction: async (item, token, next) => {
        const resolved = await next(item, token);
        const files = resolved?.edit?.entries().map(([uri]) => uri) ?? [];
        const created = (await Promise.all(files.map(missing))).flat();
        const rewrites = resolved?.edit !== undefined && isData((item as { data?: unknown }).data);
        if (resolved && (created.length > 0 || (rewrites && resolved.command === undefined))) {
          resolved.command = { title: "Save", command: AFTER_REWRITE, arguments: created };
        }
        return resolved;
      },
      provideCodeLenses: (document, token, next) => (told(document) ? next(document, token) : nothing),
      provideInlayHints: (document, range, token, next) => (told(document) ? next(document, range, token) : nothing),
      prepareCallHierarchy: (document, position, token, next) =>
        told(document) ? next(document, position, token) : nothing,
      provideDiagnostics: (document, previous, token, next) => {
        const open = document instanceof vscode.Uri ? this.told.has(document.toString()) : told(document);
        return open ? next(document, previous, token) : nothing;
      },
    };
  }
}

/** The file, if it isn't there. */
async function missing(uri: vscode.Uri): Promise<vscode.Uri[]> {
  try {
    await vscode.workspace.fs.stat(uri);
    return [];
  } catch {
    return [uri];
  }
}

/** Writes to the output channel what goes wrong: the state tells the user, once. */
class QuietClient extends LanguageClient {
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }
}

/** Leaves the hierarchy of calls to extensions that know all calls. */
const leavesCallsToOthers: StaticFeature = {
  fillClientCapabilities: () => undefined,
  preInitialize: (capabilities) => {
    const installed = (id: string) => vscode.extensions.getExtension(id) !== undefined;
    if (leavesCalls({ installed, setting: (name) => vscode.workspace.getConfiguration().get(name) })) {
      delete capabilities.callHierarchyProvider;
    }
  },
  initialize: () => undefined,
  getState: () => ({ kind: "static" }),
  clear: () => undefined,
};

function runningState(client: LanguageClient, program: string): Extract<ServerState, { kind: "running" }> {
  const result = client.initializeResult;
  const commands = result?.capabilities.executeCommandProvider?.commands ?? [];
  return {
    kind: "running",
    version: result?.serverInfo?.version ?? "?",
    program,
    canMeasure: commands.includes("gridfuse.measure"),
  };
}

/** Tells the server what the editor's own commands can show. */
const knowsOwnCommands: StaticFeature = {
  fillClientCapabilities: (capabilities) => {
    const commands = { commands: [SHOW_LAUNCHES, SHOW_REWRITES] };
    capabilities.experimental = { ...(capabilities.experimental ?? {}), commands };
  },
  initialize: () => undefined,
  getState: () => ({ kind: "static" }),
  clear: () => undefined,
};
