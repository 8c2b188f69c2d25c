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

/** Where toolkits are installed. */
const USUAL_HOMES = ["/usr/local/cuda", "/opt/cuda"];

/** Looks where the server looks, in the same order. */
export async function machine(usualHomes: string[] = USUAL_HOMES): Promise<Machine> {
  const { CUDA_HOME, CUDA_PATH } = process.env;
  const homes = [CUDA_HOME, CUDA_PATH, ...usualHomes].filter((home) => home !== undefined && home !== "");
  const compilers = ["nvcc", ...homes.map((home) => `${home}/bin/nvcc`)];
  const [gpus, ...versions] = await Promise.all([
    output("nvidia-smi", ["--query-gpu=name", "--format=csv,noheader"]),
    ...compilers.map((nvcc) => output(nvcc, ["--version"])),
  ]);
  const releases = versions.map((version) => /release (\d+\.\d+)/.exec(version)?.[1]);
  return {
    cuda: releases.find((release) => release !== undefined),
    gpu: gpus.split("\n")[0]?.trim() || undefined,
  };
}
