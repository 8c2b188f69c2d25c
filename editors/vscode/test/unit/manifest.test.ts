import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";

interface Manifest {
  version: string;
  main: string;
  icon: string;
  capabilities: { untrustedWorkspaces: { restrictedConfigurations: string[] } };
  contributes: {
    commands: { command: string; title: string; category: string; enablement?: string }[];
    menus: Record<string, { command?: string; submenu?: string; when?: string }[]>;
    submenus: { id: string }[];
    keybindings: { command: string }[];
    configuration: { properties: Record<string, { scope?: string }> }[];
    walkthroughs: {
      steps: { description: string; media: { markdown: string }; completionEvents?: string[] }[];
    }[];
  };
}

const manifest = JSON.parse(readFileSync("package.json", "utf8")) as Manifest;
const { commands, menus, submenus, keybindings, configuration, walkthroughs } = manifest.contributes;
/** The context key that says what is missing for measuring. */
const LACKS = "gridfuse.lacks";
const known = new Set(commands.map(({ command }) => command));

test("menus and keys lead to commands that there are", () => {
  for (const { command, submenu } of Object.values(menus).flat()) {
    assert.ok(command === undefined ? submenus.some(({ id }) => id === submenu) : known.has(command), command ?? submenu);
  }
  for (const { command } of keybindings) {
    assert.ok(known.has(command), command);
  }
});

test("the walkthrough leads to commands and pages that there are", () => {
  const sources = ["src/main.ts", "src/rewrite.ts"].map((name) => readFileSync(name, "utf8")).join("\n");
  const contexts = new Set([...sources.matchAll(/"setContext", "([^"]+)"/g)].map(([, name]) => name));
  for (const { description, media, completionEvents } of walkthroughs.flatMap(({ steps }) => steps)) {
    assert.ok(existsSync(media.markdown), media.markdown);
    for (const [, command] of description.matchAll(/\]\(command:([^)]+)\)/g)) {
      assert.ok(command !== undefined && known.has(command), command);
    }
    assert.ok((completionEvents ?? []).length > 0, `nothing ticks ${media.markdown}`);
    for (const event of completionEvents ?? []) {
      const [kind, name = ""] = event.split(":");
      const happens = kind === "onContext" ? contexts.has(name) : known.has(name);
      assert.ok(happens, event);
    }
  }
});

test("what can't be run for want of nvcc or a GPU is greyed, and the palette says why in its place", () => {
  const palette = (command: string) => menus.commandPalette?.find((entry) => entry.command === command)?.when ?? "";
  for (const command of ["gridfuse.runOnGpu", "gridfuse.tuneOnGpu"]) {
    const enablement = commands.find((one) => one.command === command)?.enablement ?? "";
    for (const condition of [enablement, palette(command)]) {
      assert.ok(condition.split(" && ").includes(`!${LACKS}`), `${command}: ${condition}`);
    }
  }
  // By the names of the server's answers.
  for (const [command, lacks] of [["gridfuse.runWithoutNvcc", "nvcc"], ["gridfuse.runWithoutGpu", "gpu"]] as const) {
    assert.ok(palette(command).includes(`${LACKS} == ${lacks}`), palette(command));
  }
  const source = readFileSync("src/lacking.ts", "utf8");
  assert.ok(source.includes(`LACKS = "${LACKS}"`));
});

test("every command that is listed is in the README", () => {
  const readme = readFileSync("README.md", "utf8");
  const hidden = (menus.commandPalette ?? []).filter((entry) => "when" in entry && entry.when === "false");
  for (const { command, title } of commands) {
    if (!hidden.some((entry) => entry.command === command)) {
      assert.ok(readme.includes(title), title);
    }
  }
});

test("a setting that names a program is restricted where the workspace isn't trusted", () => {
  const settings = configuration.flatMap(({ properties }) => Object.entries(properties));
  for (const [name, { scope }] of settings) {
    const runs = /\.(path|runner)$/.test(name);
    assert.equal(manifest.capabilities.untrustedWorkspaces.restrictedConfigurations.includes(name), runs, name);
    assert.equal(scope === "machine-overridable", runs, name);
  }
});

test("the changelog has the version", () => {
  assert.match(readFileSync("CHANGELOG.md", "utf8"), new RegExp(`^## ${manifest.version.replaceAll(".", "\\.")}$`, "m"));
});
