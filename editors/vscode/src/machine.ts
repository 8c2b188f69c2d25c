// What this machine has for measuring: nvcc and a GPU.

import { execFile } from "node:child_process";

export interface Machine {
  /** `13.0`; `undefined`: no nvcc was found. */
  cuda: string | undefined;
  /** `NVIDIA H200`; `undefined`: no GPU was found. */
  gpu: string | undefined;
}

const PATIENCE_MS = 5000;

function output(program: string, args: string[]): Promise<string> {
  return new Promise((resolve) => {
    execFile(program, args, { timeout: PATIENCE_MS, windowsHide: true }, (error, stdout) => {
      resolve(error === null ? stdout : "");
    });
  });
}

export async function machine(): Promise<Machine> {
  const home = process.env.CUDA_HOME ?? process.env.CUDA_PATH;
  const [onPath, inHome, gpus] = await Promise.all([
    output("nvcc", ["--version"]),
    home === undefined ? "" : output(`${home}/bin/nvcc`, ["--version"]),
    output("nvidia-smi", ["--query-gpu=name", "--format=csv,noheader"]),
  ]);
  return {
    cuda: /release (\d+\.\d+)/.exec(onPath)?.[1] ?? /release (\d+\.\d+)/.exec(inHome)?.[1],
    gpu: gpus.split("\n")[0]?.trim() || undefined,
  };
}
