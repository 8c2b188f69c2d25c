import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import { type Machine, machine } from "../../src/machine";

const root = mkdtempSync(path.join(os.tmpdir(), "gridfuse-machine-"));
after(() => rmSync(root, { recursive: true }));

const NVCC = "nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 13.0, V13.0.88";

/** A directory with programs that print something. */
function programs(name: string, says: Record<string, string>): string {
  const directory = path.join(root, name);
  mkdirSync(directory, { recursive: true });
  for (const [program, text] of Object.entries(says)) {
    writeFileSync(path.join(directory, program), `#!/bin/sh\necho '${text}'\n`);
    chmodSync(path.join(directory, program), 0o755);
  }
  return directory;
}

async function machineWith(variables: Record<string, string>, usualHomes: string[] = []): Promise<Machine> {
  const { PATH, CUDA_HOME, CUDA_PATH } = process.env;
  delete process.env.CUDA_HOME;
  delete process.env.CUDA_PATH;
  Object.assign(process.env, variables);
  try {
    return await machine(usualHomes);
  } finally {
    for (const [name, value] of Object.entries({ PATH, CUDA_HOME, CUDA_PATH })) {
      if (value === undefined) {
        delete process.env[name];
      } else {
        process.env[name] = value;
      }
    }
  }
}

test("nvcc and the first GPU are found", async () => {
  const both = programs("both", { nvcc: NVCC, "nvidia-smi": "NVIDIA H200\nNVIDIA H100" });
  assert.deepEqual(await machineWith({ PATH: both }), { cuda: "13.0", gpu: "NVIDIA H200" });
});

test("nvcc may be in CUDA_HOME alone", async () => {
  programs("toolkit/bin", { nvcc: NVCC.replace("13.0,", "12.4,") });
  const toolkit = path.join(root, "toolkit");
  assert.deepEqual(await machineWith({ PATH: path.join(root, "none"), CUDA_HOME: toolkit }), { cuda: "12.4", gpu: undefined });
});

test("nvcc may be where toolkits are installed, behind all others", async () => {
  programs("installed/bin", { nvcc: NVCC.replace("13.0,", "12.9,") });
  programs("named/bin", { nvcc: NVCC.replace("13.0,", "12.6,") });
  const [none, usual] = [path.join(root, "none"), [path.join(root, "nowhere"), path.join(root, "installed")]];
  assert.deepEqual(await machineWith({ PATH: none }, usual), { cuda: "12.9", gpu: undefined });
  const named = { PATH: none, CUDA_PATH: path.join(root, "named") };
  assert.deepEqual(await machineWith(named, usual), { cuda: "12.6", gpu: undefined });
});

test("a machine without either", async () => {
  const broken = programs("broken", { nvcc: "something else" });
  assert.deepEqual(await machineWith({ PATH: broken }), { cuda: undefined, gpu: undefined });
});
