// The page's end of the connection to the extension.

interface Host {
  postMessage(message: unknown): void;
}

declare function acquireVsCodeApi(): Host;

export const host: Host = acquireVsCodeApi();

/** An element with attributes, text and children. */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** Where the page's content goes. */
export function content(): HTMLElement {
  return document.getElementById("content") ?? document.body;
}
