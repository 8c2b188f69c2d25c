// Which documents the server is told of: CUDA files, and C++ files in which kernels are launched.

import * as vscode from "vscode";

const CUDA_LANGUAGES = ["cuda-cpp", "cuda"];
const LAUNCH = /<<<[^;{}]*?>>>\s*\(/;

export const SELECTOR = [...CUDA_LANGUAGES, "cpp"].map((language) => ({ scheme: "file", language }));

export function concerns(document: vscode.TextDocument): boolean {
  if (document.uri.scheme !== "file") {
    return false;
  }
  return CUDA_LANGUAGES.includes(document.languageId) || (document.languageId === "cpp" && LAUNCH.test(document.getText()));
}
