import assert from "node:assert/strict";
import { test } from "node:test";
import { leavesCalls } from "../../src/calls";

const CLANGD = "llvm-vs-code-extensions.vscode-clangd";
const CPPTOOLS = "ms-vscode.cpptools";

function left(installed: string[], settings: Record<string, unknown> = {}): boolean {
  return leavesCalls({ installed: (id) => installed.includes(id), setting: (name) => settings[name] });
}

test("alone, the extension answers for the hierarchy of calls", () => {
  assert.equal(left([]), false);
  assert.equal(left(["ms-vscode.cmake-tools"], { "clangd.enable": true }), false);
});

test("it is left to clangd and to the C/C++ extension", () => {
  assert.equal(left([CLANGD]), true);
  assert.equal(left([CPPTOOLS]), true);
  assert.equal(left([CLANGD, CPPTOOLS], { "C_Cpp.intelliSenseEngine": "disabled" }), true);
  assert.equal(left([CPPTOOLS], { "C_Cpp.intelliSenseEngine": "default" }), true);
});

test("not to one that is switched off", () => {
  assert.equal(left([CPPTOOLS], { "C_Cpp.intelliSenseEngine": "disabled" }), false);
  assert.equal(left([CPPTOOLS], { "C_Cpp.intelliSenseEngine": "Disabled" }), false);
  assert.equal(left([CLANGD], { "clangd.enable": false }), false);
  assert.equal(left([CLANGD, CPPTOOLS], { "clangd.enable": false }), true);
});
