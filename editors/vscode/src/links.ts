// Where the links of an explanation lead.

export type Target =
  | { kind: "place"; uri: string; line: number }
  /** A rewrite's name; the page tells about it. */
  | { kind: "rewrite"; uri: string; rewrite: string }
  | { kind: "page"; uri: string };

/** A link as the server has written it in its Markdown, however the editor has spelt it since; `undefined`: the server has written no such link. */
export function written(markdown: string, link: string): string | undefined {
  const plain = (text: string) => {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  };
  const links = [...markdown.matchAll(/\]\(([^()\s]+)\)/g)].map(([, target]) => target ?? "");
  return links.find((target) => target !== "" && plain(target) === plain(link));
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
