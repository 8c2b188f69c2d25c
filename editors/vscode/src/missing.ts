// What the server says is missing for measuring.

/** `gpu` or `nvcc`, where an answer of the server says so; `undefined`: it failed for something else. */
export function missingFor(error: unknown): string | undefined {
  const data = (error as { data?: { missing?: unknown } } | null | undefined)?.data;
  return typeof data?.missing === "string" ? data.missing : undefined;
}

/** Where a line `runner = …` belongs in the text of a gridfuse.toml; `undefined`: there is one already. */
export function runnerPlace(text: string): { line: number; table: boolean } | undefined {
  const lines = text.split("\n");
  const table = lines.findIndex((line) => /^\s*\[measure\]/.test(line));
  const end = lines.findIndex((line, index) => index > table && /^\s*\[/.test(line));
  const measure = table < 0 ? [] : lines.slice(table + 1, end < 0 ? undefined : end);
  if (measure.some((line) => /^\s*runner\s*=/.test(line))) {
    return undefined;
  }
  return table < 0 ? { line: lines.length, table: true } : { line: table + 1, table: false };
}
