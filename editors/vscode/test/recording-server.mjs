#!/usr/bin/env node
// A server for tests without a GPU: the real one, which runs beside it, but gridfuse.measure is answered with a recorded report.
//
// GRIDFUSE_TEST_SERVER names the real program, GRIDFUSE_TEST_RECORDING the report.
//
// recording.json is what `gridfuse measure bfs.cu --json` printed in tests/corpus, with the arguments that it names.

import { spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

if (process.argv[2] !== "lsp") {
  process.exit(spawnSync(process.env.GRIDFUSE_TEST_SERVER, process.argv.slice(2), { stdio: "inherit" }).status ?? 1);
}
const MEASURE = "gridfuse.measure";
const report = JSON.parse(readFileSync(process.env.GRIDFUSE_TEST_RECORDING, "utf8"));
const server = spawn(process.env.GRIDFUSE_TEST_SERVER, process.argv.slice(2), { stdio: ["pipe", "pipe", "inherit"] });
server.on("exit", (code) => process.exit(code ?? 1));

function frame(message) {
  const body = Buffer.from(JSON.stringify(message));
  return Buffer.concat([Buffer.from(`Content-Length: ${body.length}\r\n\r\n`), body]);
}

/** Calls `receive` with each message of a stream. */
function messages(stream, receive) {
  let pending = Buffer.alloc(0);
  stream.on("data", (chunk) => {
    pending = Buffer.concat([pending, chunk]);
    for (;;) {
      const end = pending.indexOf("\r\n\r\n");
      const length = end < 0 ? undefined : Number(/content-length: *(\d+)/i.exec(pending.subarray(0, end).toString())?.[1]);
      if (length === undefined || pending.length < end + 4 + length) {
        return;
      }
      const body = pending.subarray(end + 4, end + 4 + length);
      pending = pending.subarray(end + 4 + length);
      receive(JSON.parse(body.toString()));
    }
  });
}

messages(process.stdin, (message) => {
  if (message.method === "workspace/executeCommand" && message.params.command === MEASURE) {
    const [{ uri, args = "", check = false }] = message.params.arguments;
    const result = check ? null : { ...report, file: decodeURIComponent(new URL(uri).pathname), args: args === "" ? report.args : args.split(" ") };
    setTimeout(() => process.stdout.write(frame({ jsonrpc: "2.0", id: message.id, result })), 300);
  } else {
    server.stdin.write(frame(message));
  }
});
process.stdin.on("end", () => server.stdin.end());

messages(server.stdout, (message) => {
  const commands = message.result?.capabilities?.executeCommandProvider?.commands;
  if (commands !== undefined && !commands.includes(MEASURE)) {
    commands.push(MEASURE);
  }
  process.stdout.write(frame(message));
});
