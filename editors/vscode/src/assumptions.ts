// What an edit takes for granted, as the change annotations of the protocol tell it.

/** What is needed of a change annotation. */
interface Annotation {
  description?: string;
}

/** The assumptions, each by itself: an annotation holds one of them, or several as "assumes (1) …; (2) …". */
export function assumptionsIn(annotations: Record<string, Annotation> | undefined): string[] {
  // Objects keep no order that could be relied on: the names of the annotations count them.
  const byName = Object.entries(annotations ?? {}).sort(([a], [b]) => a.localeCompare(b, "en", { numeric: true }));
  const all = byName.flatMap(([, { description }]) => (description === undefined ? [] : numbered(description)));
  return [...new Set(all)];
}

/** The parts of "assumes (1) …; (2) …"; a text without numbers is one part. */
function numbered(description: string): string[] {
  let rest = description.replace(/^assumes /, "").trim();
  if (!rest.startsWith("(1) ")) {
    return rest === "" ? [] : [rest];
  }
  const parts: string[] = [];
  for (let next = 1; rest !== ""; next += 1) {
    rest = rest.slice(`(${next}) `.length);
    // Only the number that is due separates: there are others in what is assumed, such as `f(2)`.
    const end = rest.indexOf(`; (${next + 1}) `);
    parts.push((end < 0 ? rest : rest.slice(0, end)).trim());
    rest = end < 0 ? "" : rest.slice(end + "; ".length);
  }
  return parts;
}
