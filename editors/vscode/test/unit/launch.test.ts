import assert from "node:assert/strict";
import { test } from "node:test";
import { launchColumn } from "../../src/launch";

test("a launch is found as it is written, and as it is collected", () => {
  assert.equal(launchColumn("  expand<<<n, 128>>>(a);"), 8);
  assert.equal(launchColumn("  expands.launch(n, 128, a);"), 10);
  assert.equal(launchColumn("  if (n) a.launch (n); else b<<<1, 1>>>();"), 11);
  assert.equal(launchColumn("  relaunch(n);"), -1);
});
