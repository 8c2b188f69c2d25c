// Finds the gridfuse program: the one that the settings name, the one that came with the extension, the one on PATH.

import * as fs from "node:fs";
import * as path from "node:path";

/** Where to look. */
export interface Places {
  /** What the setting says; empty: nothing. */
  configured: string;
  /** The extension's directory. */
  extension: string;
  /** The variable PATH. */
  searchPath: string;
  /** The home directory, for `~`. */
  home: string;
  /** Directory from which a relative setting starts. */
  workspace: string | undefined;
  windows: boolean;
}

export type Located = { found: string; by: "setting" | "bundled" | "PATH" } | { missing: string };

export function locate(places: Places): Located {
  const name = places.windows ? "gridfuse.exe" : "gridfuse";
  const configured = places.configured.trim();
  if (configured !== "") {
    const expanded = configured.replace(/^~(?=\/|\\|$)/, places.home);
    const named = path.isAbsolute(expanded) ? expanded : path.resolve(places.workspace ?? places.home, expanded);
    return runnable(named)
      ? { found: named, by: "setting" }
      : { missing: `gridfuse.server.path names ${named}, which is no program.` };
  }
  const bundled = path.join(places.extension, "server", name);
  if (runnable(bundled)) {
    return { found: bundled, by: "bundled" };
  }
  for (const directory of places.searchPath.split(path.delimiter)) {
    const candidate = path.join(directory, name);
    if (directory !== "" && runnable(candidate)) {
      return { found: candidate, by: "PATH" };
    }
  }
  return { missing: "There is no gridfuse program: none came with this extension, and none is on PATH." };
}

function runnable(file: string): boolean {
  try {
    fs.accessSync(file, fs.constants.X_OK);
    return fs.statSync(file).isFile();
  } catch {
    return false;
  }
}
