// Makes a package for one platform, with the gridfuse program in it.
//
// node package.mjs [--server PROGRAM] [--target PLATFORM] [--out FILE]
//
// Without --server, the program is built first. Without --target, the package is for the platform that this runs on. Without --out, it is
// called with-program.vsix.
import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const here = path.dirname(fileURLToPath(import.meta.url));
// npm goes to the package's directory, too.
const start = process.env.INIT_CWD ?? process.cwd();
process.chdir(here);
const { values } = parseArgs({ options: { server: { type: "string" }, target: { type: "string" }, out: { type: "string" } } });
const target = values.target ?? `${process.platform}-${process.arch}`;
const name = target.startsWith("win32") ? "gridfuse.exe" : "gridfuse";
const { version } = JSON.parse(readFileSync("package.json", "utf8"));

let program = values.server && path.resolve(start, values.server);
if (program === undefined) {
  const root = path.join(here, "../..");
  execFileSync("cargo", ["build", "--release", "--locked", "--bin", "gridfuse"], { cwd: root, stdio: "inherit" });
  program = path.join(path.resolve(root, process.env.CARGO_TARGET_DIR ?? "target"), "release", name);
}
// One for another platform doesn't run here.
if (values.target === undefined || values.target === `${process.platform}-${process.arch}`) {
  const says = execFileSync(program, ["--version"], { encoding: "utf8" }).trim();
  if (!says.endsWith(` ${version}`)) {
    throw new Error(`${program} is "${says}", and the extension's version is ${version}`);
  }
}
rmSync("server", { recursive: true, force: true });
try {
  mkdirSync("server");
  copyFileSync(program, path.join("server", name));
  chmodSync(path.join("server", name), 0o755);
  const out = values.out ?? "with-program.vsix";
  // On Windows npm is a script for the shell, which Node.js doesn't start without one. npm says where its own program is.
  const npm = process.env.npm_execpath;
  const [command, ...first] = npm === undefined ? ["npm"] : [process.execPath, npm];
  execFileSync(command, [...first, "run", "--silent", "package", "--", "--target", target, "--out", out], { stdio: "inherit" });
} finally {
  // A package without a program is made from the same directory.
  rmSync("server", { recursive: true, force: true });
}
