// Where a line launches a kernel.

/** The column of a line's first launch, `kernel<<<` or, once it is collected, `kernels.launch(`; -1: the line has none. */
export function launchColumn(line: string): number {
  const direct = line.indexOf("<<<");
  const collected = line.search(/(?<=\.)launch\s*\(/);
  return direct < 0 || collected < 0 ? Math.max(direct, collected) : Math.min(direct, collected);
}
