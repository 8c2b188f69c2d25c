// Where the links of an explanation lead.

export type Target =
  | { kind: "place"; uri: string; line: number }
  /** A rewrite's name; the page tells about it. */
  | { kind: "rewrite"; uri: string; rewrite: string }
  | { kind: "page"; uri: string };

/** The server's Markdown with numbers in place of where its links lead, and where each leads: renderers leave links to files out. */
export function numbered(markdown: string): { markdown: string; links: string[] } {
  const links: string[] = [];
  const text = markdown.replace(/\]\((file:[^()\s]+)\)/g, (_, link: string) => `](#link-${links.push(link) - 1})`);
  return { markdown: text, links };
}

/** What a link leads to; `undefined`: nothing that the server writes. */
export function linkTarget(link: string): Target | undefined {
  const parts = /^(file:\/\/[^#\s]+)(?:#L(\d+)(?:,\d+)?)?$/.exec(link);
  const uri = parts?.[1];
  if (uri === undefined) {
    return undefined;
  }
  const rewrite = /\/rewrites\/([a-z0-9-]+)\.md$/.exec(uri)?.[1];
  if (rewrite !== undefined) {
    return { kind: "rewrite", uri, rewrite };
  }
  if (uri.endsWith(".md")) {
    return { kind: "page", uri };
  }
  return { kind: "place", uri, line: Math.max(0, Number(parts?.[2] ?? 1) - 1) };
}
