// Makes the packages for npm: `gridfuse`, which starts the program, and `@gridfuse/PLATFORM`, which holds it for one platform.
//
// node make.mjs --program PROGRAM --target TRIPLE --version VERSION --out DIRECTORY
import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

// The platforms of releases: Rust's word, and npm's. The programs for Linux need glibc.
const PLATFORMS = {
  "x86_64-unknown-linux-gnu": { os: "linux", cpu: "x64", libc: "glibc" },
  "aarch64-unknown-linux-gnu": { os: "linux", cpu: "arm64", libc: "glibc" },
  "aarch64-apple-darwin": { os: "darwin", cpu: "arm64" },
  "x86_64-pc-windows-msvc": { os: "win32", cpu: "x64" },
};

const here = path.dirname(fileURLToPath(import.meta.url));
const root = path.join(here, "../..");
const option = { type: "string" };
const { values } = parseArgs({ options: { program: option, target: option, version: option, out: option } });
const platform = PLATFORMS[values.target];
if (platform === undefined) {
  throw new Error(`npm has no package for ${values.target}: add the platform to .ci/npm/make.mjs and .github/workflows/release.yml`);
}

const nameOf = ({ os, cpu }) => `@gridfuse/${os}-${cpu}`;
const { bin, ...about } = JSON.parse(readFileSync(path.join(here, "package.json"), "utf8"));
about.version = values.version;
const npm = process.platform === "win32" ? "npm.cmd" : "npm";

function pack(manifest, files) {
  const staged = mkdtempSync(path.join(tmpdir(), "gridfuse-npm-"));
  try {
    for (const [name, from] of [...files, ["LICENSE-MIT"], ["LICENSE-APACHE"], ["README.md"]]) {
      copyFileSync(from ?? path.join(root, name), path.join(staged, name));
    }
    for (const [name] of files) {
      chmodSync(path.join(staged, name), 0o755);
    }
    writeFileSync(path.join(staged, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
    const shell = process.platform === "win32";
    execFileSync(npm, ["pack", "--silent", "--pack-destination", path.resolve(values.out)], { cwd: staged, stdio: "inherit", shell });
  } finally {
    rmSync(staged, { recursive: true, force: true });
  }
}

mkdirSync(values.out, { recursive: true });
const optionalDependencies = Object.fromEntries(Object.values(PLATFORMS).map((known) => [nameOf(known), values.version]));
pack({ ...about, bin, optionalDependencies }, [["gridfuse.js", path.join(here, "gridfuse.js")]]);
const { os, cpu, libc } = platform;
const only = { os: [os], cpu: [cpu], ...(libc && { libc: [libc] }), preferUnplugged: true };
const name = os === "win32" ? "gridfuse.exe" : "gridfuse";
pack({ ...about, name: nameOf(platform), ...only }, [[name, values.program]]);
