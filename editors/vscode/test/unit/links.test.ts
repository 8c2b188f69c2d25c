import assert from "node:assert/strict";
import { test } from "node:test";
import { linkTarget, numbered } from "../../src/links";

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

test("links of the server's Markdown become numbers", () => {
  const { markdown, links } = numbered("| [line 7](file:///p/a%C3%BC.cu#L7) | `f(file)` | [x](https://x.org) [y](file:///q.cu) |");
  assert.equal(markdown, "| [line 7](#link-0) | `f(file)` | [x](https://x.org) [y](#link-1) |");
  assert.deepEqual(links, ["file:///p/a%C3%BC.cu#L7", "file:///q.cu"]);
});
