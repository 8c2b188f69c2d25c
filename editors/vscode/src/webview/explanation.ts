// The page with an explanation. Its HTML comes from Markdown in which names of the user's code stand: of it only what the server's Markdown
// can mean is taken over, and no attribute but where a link leads.

import { content, element, host } from "./host";

interface Message {
  type: string;
  about?: string;
  text?: string;
  html?: string;
}

const TAGS = [
  "blockquote", "br", "code", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "span", "strong", "table", "tbody",
  "td", "th", "thead", "tr", "ul",
] as const;

window.addEventListener("message", (event: MessageEvent<Message>) => {
  const { type, about, text, html } = event.data;
  if (type === "explanation" && text !== undefined) {
    show(about ?? "", text, html);
  }
});

function show(about: string, text: string, html: string | undefined): void {
  const body = element("div", { class: "explanation" });
  if (html === undefined) {
    body.append(element("pre", {}, text));
  } else {
    const parsed = new DOMParser().parseFromString(html, "text/html");
    body.append(...taken(parsed.body));
  }
  content().replaceChildren(element("h1", {}, "Explanation"), element("p", { class: "about" }, about), body);
  for (const table of body.querySelectorAll("table")) {
    const scroll = element("div", { class: "scroll" });
    table.replaceWith(scroll);
    scroll.append(table);
  }
  content().focus();
}

/** What is taken over of the children of an element. */
function taken(from: Element): (Node | string)[] {
  return [...from.childNodes].flatMap((child): (Node | string)[] => {
    if (child instanceof Text) {
      return [child.data];
    }
    if (!(child instanceof HTMLElement) || ["script", "style"].includes(child.localName)) {
      return [];
    }
    const inside = taken(child);
    if (child.localName === "a") {
      return [link(child, inside)];
    }
    const tag = TAGS.find((known) => known === child.localName);
    return tag === undefined ? inside : [element(tag, {}, ...inside)];
  });
}

function link(from: HTMLElement, inside: (Node | string)[]): HTMLElement {
  // The editor's renderer keeps where a link leads apart from what it has made of it.
  const target = from.getAttribute("data-href") ?? from.getAttribute("href") ?? "";
  const rewrite = /\/rewrites\/[a-z0-9-]+\.md$/.test(target);
  const made = element("a", { href: "#", title: rewrite ? "Preview this rewrite" : "Go to the source" }, ...inside);
  made.addEventListener("click", (event) => {
    event.preventDefault();
    host.postMessage({ type: "open", target });
  });
  return made;
}

host.postMessage({ type: "ready" });
