// Finding, starting and restarting the server, and what the status bar says about it.

import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import * as vscode from "vscode";
import { bfs, diagnostics, message, set, status, type Test, until, withEnvironment } from "./harness";

const program = process.env.GRIDFUSE_TEST_SERVER ?? "";

export const tests: Test[] = [
  {
    name: "a wrong setting is told, with what to do, and mended without a restart",
    async run() {
      await bfs("setting.cu");
      await set("server.path", "/no/such/program");
      const text = await message("/no/such/program");
      assert.match(text, /gridfuse\.server\.path names \/no\/such\/program/);
      assert.match(text, /Choose the Program….*Get Started.*Open Settings/s);
      const { warning, label } = await status(/no server/);
      assert.ok(warning, label);
      await set("server.path", program);
      assert.equal((await status(/running, version \d+\.\d+\.\d+/)).warning, false);
    },
  },
  {
    name: "without a setting, the program on PATH is taken; without one there, the message says how to get it",
    async run() {
      const { document } = await bfs("path.cu");
      const bin = fs.mkdtempSync(path.join(os.tmpdir(), "gridfuse-path-"));
      fs.symlinkSync(program, path.join(bin, "gridfuse"));
      try {
        await withEnvironment({ PATH: "/nowhere" }, async () => {
          await set("server.path", undefined);
          const text = await message("none is on PATH");
          assert.match(text, /cargo install --path server/);
          assert.equal((await status(/no server/)).warning, true);
        });
        await withEnvironment({ PATH: `${bin}${path.delimiter}${process.env.PATH}` }, async () => {
          await vscode.commands.executeCommand("gridfuse.restartServer");
          await status(/running/);
          await diagnostics(document);
        });
      } finally {
        fs.rmSync(bin, { recursive: true });
        await set("server.path", program);
      }
      await status(/running/);
    },
  },
  {
    name: "a program that is no server is told as a failure",
    async run() {
      await bfs("failure.cu");
      await set("server.path", "/bin/false");
      const text = await message("the server failed");
      assert.match(text, /Restart.*Show Output/s);
      assert.equal((await status(/the server failed/)).warning, true);
      await set("server.path", program);
      await status(/running/);
    },
  },
  {
    name: "restarting the server brings everything back",
    async run() {
      const { document } = await bfs("restart.cu");
      const before = (await diagnostics(document)).map((one) => one.message);
      await vscode.commands.executeCommand("gridfuse.restartServer");
      await status(/running/);
      assert.deepEqual((await diagnostics(document)).map((one) => one.message), before);
    },
  },
  {
    name: "the status tells with which toolkit and GPU programs are measured, or where",
    async run() {
      await bfs("machine.cu");
      const bin = fs.mkdtempSync(path.join(os.tmpdir(), "gridfuse-machine-"));
      const says = { nvcc: "Cuda compilation tools, release 12.8, V12.8.1", "nvidia-smi": "NVIDIA Test GPU" };
      for (const [name, text] of Object.entries(says)) {
        fs.writeFileSync(path.join(bin, name), `#!/bin/sh\necho '${text}'\n`, { mode: 0o755 });
      }
      try {
        await withEnvironment({ PATH: `${bin}${path.delimiter}${process.env.PATH}` }, async () => {
          await vscode.commands.executeCommand("gridfuse.restartServer");
          await status(/running, version \d+\.\d+\.\d+, CUDA: 12\.8, GPU: NVIDIA Test GPU/);
        });
        await set("measure.runner", "ssh gpu-server");
        await status(/running, version \d+\.\d+\.\d+, programs run through ssh gpu-server/);
      } finally {
        fs.rmSync(bin, { recursive: true });
        await set("measure.runner", undefined);
      }
      await status(/GPU: /);
    },
  },
  {
    name: "switched off, nothing runs",
    async run() {
      const { document } = await bfs("off.cu");
      await diagnostics(document);
      await set("enable", false);
      await status(/not running/);
      await until("no diagnostics", () => vscode.languages.getDiagnostics(document.uri).length === 0);
      await set("enable", undefined);
      await status(/running/);
      await diagnostics(document);
    },
  },
];
