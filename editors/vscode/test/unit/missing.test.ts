import assert from "node:assert/strict";
import { test } from "node:test";
import { missingFor, runnerPlace } from "../../src/missing";

test("what is missing is read from an answer", () => {
  assert.equal(missingFor(Object.assign(new Error("no"), { data: { missing: "gpu" } })), "gpu");
  for (const other of [new Error("no"), { data: { missing: 7 } }, { data: null }, null, undefined, "gpu"]) {
    assert.equal(missingFor(other), undefined);
  }
});

test("the runner gets a place in gridfuse.toml", () => {
  assert.deepEqual(runnerPlace(""), { line: 1, table: true });
  assert.deepEqual(runnerPlace('arch = "sm_90"\n[measure]\nbuild = "make"\n'), { line: 2, table: false });
  assert.equal(runnerPlace('[measure]\nbuild = "make"\nrunner = "ssh gpu"\n'), undefined);
  assert.deepEqual(runnerPlace('[measure]\n[other]\nrunner = "x"\n'), { line: 1, table: false });
});
