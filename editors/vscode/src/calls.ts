// Who answers for the hierarchy of calls: other extensions know all calls, not only launches, and the editor asks a single one, the last
// that came.

/** What is known about the other extensions. */
export interface Others {
  /** The extension is there, and not switched off. */
  installed(id: string): boolean;
  /** A setting, whoever's it is; `undefined`: there is no such setting. */
  setting(name: string): unknown;
}

/** The hierarchy of calls is left to another extension. */
export function leavesCalls(others: Others): boolean {
  const clangd = others.installed("llvm-vs-code-extensions.vscode-clangd") && others.setting("clangd.enable") !== false;
  // It is often installed beside clangd, for its debugger alone.
  const engine = others.setting("C_Cpp.intelliSenseEngine");
  const cpptools = others.installed("ms-vscode.cpptools") && String(engine).toLowerCase() !== "disabled";
  return clangd || cpptools;
}
