import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { milliseconds, type Report, refused, rows, type Variant } from "../../src/report";

const recorded = (): Report => JSON.parse(readFileSync(path.join("test", "recording.json"), "utf8")) as Report;

function variant(rewrites: string, outcome: Variant["outcome"]): Variant {
  return { rewrites, assumptions: [], outcome };
}

const ran = (median: number, agreement: object) =>
  ({ outcome: "ran", times_ms: [median, 2 * median], median_ms: median, host_launches: 1, device_launches: 5, errors: [], agreement }) as Variant["outcome"];

test("the original comes first, what ran by its time, and the rest behind it", () => {
  const lines = rows(recorded());
  assert.equal(lines[0]?.name, "original");
  const times = lines.slice(1).map((line) => line.median ?? Number.POSITIVE_INFINITY);
  assert.deepEqual(times, [...times].sort((a, b) => a - b));
  assert.equal(lines.filter((line) => line.fastest).length, 1);
  assert.equal(lines[1]?.fastest, true);
});

// The tests are copied to where there are no results.
const results = path.join("..", "..", "tests", "gpu", "results", "measured", "table.json");

test("the recorded times were measured", { skip: !existsSync(results) }, () => {
  const measured = JSON.parse(readFileSync(results, "utf8")) as Report;
  const outcomes = ({ original, variants }: Report) => [original, ...variants.map(({ rewrites, outcome }) => ({ rewrites, outcome }))];
  assert.deepEqual(outcomes(recorded()), outcomes(measured));
});

test("what computes something else is never the fastest, and can't be applied", () => {
  const report = recorded();
  const differs = { agreement: "differs", site: 0, launch: 2, argument: 1, element: 7, expected: "3", found: "4" };
  report.variants = [variant("wrong", ran(0.001, differs)), variant("right", ran(1, { agreement: "agrees", compared: 2, unstable: 0 }))];
  const [, wrong, right] = rows(report);
  assert.deepEqual([wrong?.name, wrong?.fastest, wrong?.applies, wrong?.bad], ["wrong", false, undefined, true]);
  assert.equal(wrong?.result, "DIFFERS: after launch 3 of bfs_level (bfs.cu:187), argument 2[7] is 4 instead of 3");
  assert.deepEqual([right?.fastest, right?.applies, right?.result], [true, "right", "agrees (2 buffers)"]);
});

test("nothing is the fastest that is slower than the original", () => {
  const report = recorded();
  report.variants = [variant("slow", ran(1e6, { agreement: "agrees", compared: 0, unstable: 0 }))];
  const [, slow] = rows(report);
  assert.deepEqual([slow?.fastest, slow?.applies, slow?.result], [false, "slow", "prints the same"]);
});

test("failures say what is wrong", () => {
  const report = recorded();
  report.variants = [
    variant("b", { outcome: "not-built", message: "1\n2\n3\n4\n5" }),
    variant("c", { outcome: "timed-out", seconds: 15 }),
    variant("d", { outcome: "failed", message: "crashed" }),
    variant("e", { outcome: "not-built", message: "long", advice: "mend it" }),
  ];
  const [, ...rest] = rows(report).map((line) => line.result);
  assert.deepEqual(rest, [
    "does not compile: 1\n2\n3\n4",
    "did not finish in 15 s",
    "crashed",
    "does not compile: mend it",
  ]);
});

test("what can't be applied is told once for each reason", () => {
  const report = recorded();
  const variants = ["promote", "promote-overlap", "threshold+serialize", "coarsen"];
  report.variants = variants.map((name) =>
    variant(name, { outcome: "refused", reasons: name === "coarsen" ? [] : [`${name.split("+").pop()}: it is too late`] }),
  );
  assert.equal(rows(report).length, 1);
  assert.deepEqual(refused(report), [
    "promote, promote-overlap, threshold+serialize can't be applied: it is too late.",
    "coarsen can't be applied.",
  ]);
});

test("times have three digits that say something", () => {
  assert.deepEqual([0.0123456, 1.23456, 123.456, 12345, 0].map(milliseconds), ["0.0123", "1.23", "123", "12345", "0.000"]);
});
