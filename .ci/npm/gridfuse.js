#!/usr/bin/env node
// Starts the program, which is in the package for this platform: one of the optional dependencies.
"use strict";

const { spawn } = require("node:child_process");
const { optionalDependencies } = require("./package.json");

const scope = "@gridfuse/";
const platform = `${process.platform}-${process.arch}`;
const name = process.platform === "win32" ? "gridfuse.exe" : "gridfuse";

let program;
try {
  program = require.resolve(`${scope}${platform}/${name}`);
} catch {
  const known = Object.keys(optionalDependencies).map((dependency) => dependency.slice(scope.length));
  const reason = known.includes(platform)
    ? `the package ${scope}${platform} is not installed: install without --omit=optional, where libc is glibc`
    : `there is no package for ${platform}, only for ${known.join(", ")}: build it with \`cargo install gridfuse\``;
  console.error(`gridfuse: ${reason}`);
  process.exit(2);
}

// An editor that ends this process means the program.
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
for (const signal of signals) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => {
  console.error(`gridfuse: ${program} cannot be started: ${error.message}`);
  process.exit(2);
});
child.on("exit", (code, signal) => {
  if (signal === null) {
    process.exit(code);
  }
  for (const known of signals) {
    process.removeAllListeners(known);
  }
  process.kill(process.pid, signal);
});
