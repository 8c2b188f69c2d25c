import assert from "node:assert/strict";
import { test } from "node:test";
import { assumptionsIn } from "../../src/assumptions";

test("each annotation is an assumption, in the order of their numbers", () => {
  const annotations = {
    "assumption-10": { description: "assumes the last" },
    "assumption-2": { description: "assumes the second; it has a semicolon" },
    "assumption-1": { description: "assumes the first" },
    label: {},
  };
  assert.deepEqual(assumptionsIn(annotations), ["the first", "the second; it has a semicolon", "the last"]);
});

test("numbered assumptions of one annotation are told apart", () => {
  const description = "assumes (1) grids of `k` are independent; check line 3: `f(2)`; (2) `n` is positive; (3) nobody waits";
  assert.deepEqual(assumptionsIn({ assumptions: { description } }), [
    "grids of `k` are independent; check line 3: `f(2)`",
    "`n` is positive",
    "nobody waits",
  ]);
});

test("the same is assumed once, and an edit may assume nothing", () => {
  assert.deepEqual(assumptionsIn({ a: { description: "assumes x" }, b: { description: "assumes x" } }), ["x"]);
  assert.deepEqual(assumptionsIn({ a: { description: "assumes " } }), []);
  assert.deepEqual(assumptionsIn(undefined), []);
});
