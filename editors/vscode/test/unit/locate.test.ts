import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import { locate, type Places } from "../../src/locate";

const root = mkdtempSync(path.join(os.tmpdir(), "gridfuse-locate-"));
after(() => rmSync(root, { recursive: true }));

function program(...parts: string[]): string {
  const file = path.join(root, ...parts);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, "");
  chmodSync(file, 0o755);
  return file;
}

function places(changes: Partial<Places>): Places {
  const nothing = { configured: "", extension: path.join(root, "empty"), searchPath: "", home: root, workspace: undefined };
  return { ...nothing, windows: false, ...changes };
}

test("the setting comes before the program that came along, and that before PATH", () => {
  const [named, bundled, onPath] = [program("named"), program("extension", "server", "gridfuse"), program("bin", "gridfuse")];
  const extension = path.join(root, "extension");
  const searchPath = ["", path.join(root, "nowhere"), path.dirname(onPath)].join(path.delimiter);
  assert.deepEqual(locate(places({ configured: named, extension, searchPath })), { found: named, by: "setting" });
  assert.deepEqual(locate(places({ configured: "  ", extension, searchPath })), { found: bundled, by: "bundled" });
  assert.deepEqual(locate(places({ searchPath })), { found: onPath, by: "PATH" });
});

test("a setting may start at the home directory or at the workspace", () => {
  const named = program("tools", "gridfuse");
  assert.deepEqual(locate(places({ configured: "~/tools/gridfuse" })), { found: named, by: "setting" });
  assert.deepEqual(locate(places({ configured: "gridfuse", workspace: path.join(root, "tools") })), { found: named, by: "setting" });
});

test("a wrong setting is not passed over", () => {
  const onPath = program("bin", "gridfuse");
  for (const configured of [path.join(root, "missing"), path.join(root, "bin")]) {
    const found = locate(places({ configured, searchPath: path.dirname(onPath) }));
    assert.deepEqual(found, { missing: `gridfuse.server.path names ${configured}, which is no program.` });
  }
});

test("what can't be run is no program", () => {
  const file = program("text", "gridfuse");
  chmodSync(file, 0o644);
  assert.ok("missing" in locate(places({ searchPath: path.dirname(file) })));
});

test("on Windows the program is called gridfuse.exe", () => {
  const file = program("windows", "gridfuse.exe");
  assert.deepEqual(locate(places({ searchPath: path.dirname(file), windows: true })), { found: file, by: "PATH" });
});
