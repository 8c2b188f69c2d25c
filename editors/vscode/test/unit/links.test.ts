import assert from "node:assert/strict";
import { test } from "node:test";
import { linkTarget, written } from "../../src/links";

test("links lead to places and rewrites, and nowhere else", () => {
  assert.deepEqual(linkTarget("file:///p/a.cu#L7"), { kind: "place", uri: "file:///p/a.cu", line: 6 });
  assert.deepEqual(linkTarget("file:///p/a%20b.cu"), { kind: "place", uri: "file:///p/a%20b.cu", line: 0 });
  const page = "file:///cache/rewrites/aggregate-block.md";
  assert.deepEqual(linkTarget(page), { kind: "rewrite", uri: page, rewrite: "aggregate-block" });
  assert.equal(linkTarget("file:///cache/diagnostics/device-sync.md")?.kind, "page");
  for (const other of ["https://example.com/", "command:workbench.action.quit", "javascript:alert(1)", "a.cu#L7", ""]) {
    assert.equal(linkTarget(other), undefined, other);
  }
});

test("only the server's own links count", () => {
  const markdown = "| [line 7](file:///p/a%C3%BC.cu#L7) | [x](file:///q.cu) |";
  assert.equal(written(markdown, "file:///p/aü.cu#L7"), "file:///p/a%C3%BC.cu#L7");
  assert.equal(written(markdown, "file:///q.cu"), "file:///q.cu");
  for (const other of ["file:///etc/passwd", "file:///p/a.cu#L8", "", "%"]) {
    assert.equal(written(markdown, other), undefined, other);
  }
});
