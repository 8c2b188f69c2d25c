// The entry that the extension host calls. GRIDFUSE_TEST_ONLY, part of a name, picks tests.

import * as activation from "./activation.test";
import * as calls from "./calls.test";
import * as commands from "./commands.test";
import { ask, closeAll, PATIENCE_MS, set } from "./harness";
import * as language from "./language.test";
import * as panels from "./panels.test";
import * as rewrite from "./rewrite.test";
import * as server from "./server.test";
import * as tune from "./tune.test";

/** Tests that hang are given up, after each wait in them would have been. */
const LIMIT_MS = 2 * PATIENCE_MS;

/** With so many failures, the rest isn't tried. */
const MOST_FAILURES = 4;

function say(text: string): void {
  // test/host.mjs prints what begins like this.
  console.log(`gridfuse test: ${text}`);
}

async function limited(work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done after ${LIMIT_MS} ms`)), LIMIT_MS);
  });
  try {
    await Promise.race([work, limit]);
  } finally {
    clearTimeout(timer);
  }
}

export async function run(): Promise<void> {
  // The first one activates the extension.
  const all = [activation, server, language, calls, rewrite, commands, panels, tune].flatMap(({ tests }) => tests);
  const part = process.env.GRIDFUSE_TEST_ONLY ?? "";
  const tests = all.filter(({ name }) => name.includes(part));
  const failed: string[] = [];
  await set("server.path", process.env.GRIDFUSE_TEST_SERVER);
  for (const test of tests) {
    const start = performance.now();
    try {
      await limited(test.run());
      say(`ok ${test.name} (${Math.round(performance.now() - start)} ms)`);
    } catch (error) {
      failed.push(test.name);
      await ask("picture");
      say(`FAILED ${test.name}: ${error instanceof Error ? error.stack : String(error)}`);
    }
    await limited(closeAll());
    if (failed.length === MOST_FAILURES) {
      break; // each may take its time to fail
    }
  }
  if (failed.length > 0) {
    throw new Error(`failed: ${failed.join(", ")}`);
  }
}
