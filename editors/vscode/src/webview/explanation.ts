// The page with an explanation. Its HTML comes from Markdown in which names of the user's code stand: of it only what the server's Markdown
// can mean is taken over, and no attribute but where a link leads.

import { content, element, host } from "./host";

interface Message {
  type: string;
  about?: string;
  text?: string;
  html?: string;
  /** What the links lead to, by their numbers. */
  kinds?: (string | undefined)[];
}

const TAGS = [
  "blockquote", "br", "code", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "span", "strong", "table", "tbody",
  "td", "th", "thead", "tr", "ul",
] as const;

window.addEventListener("message", (event: MessageEvent<Message>) => {
  const { type, about, text, html, kinds } = event.data;
  if (type === "explanation" && text !== undefined) {
    show(about ?? "", text, html, kinds ?? []);
  }
});

function show(about: string, text: string, html: string | undefined, kinds: (string | undefined)[]): void {
  const body = element("div", { class: "explanation" });
  if (html === undefined) {
    body.append(element("pre", {}, text));
  } else {
    const parsed = new DOMParser().parseFromString(html, "text/html");
    body.append(...taken(parsed.body, kinds));
  }
  content().replaceChildren(element("h1", {}, "Explanation"), element("p", { class: "about" }, about), body);
  for (const table of body.querySelectorAll("table")) {
    const scroll = element("div", { class: "scroll" });
    table.replaceWith(scroll);
    scroll.append(table);
  }
  content().focus({ preventScroll: true });
}

/** What is taken over of the children of an element. */
function taken(from: Element, kinds: (string | undefined)[]): (Node | string)[] {
  return [...from.childNodes].flatMap((child): (Node | string)[] => {
    if (child instanceof Text) {
      return [child.data];
    }
    if (!(child instanceof HTMLElement) || ["script", "style"].includes(child.localName)) {
      return [];
    }
    const inside = taken(child, kinds);
    if (child.localName === "a") {
      return [link(child, inside, kinds)];
    }
    const tag = TAGS.find((known) => known === child.localName);
    return tag === undefined ? inside : [element(tag, {}, ...inside)];
  });
}

function link(from: HTMLElement, inside: (Node | string)[], kinds: (string | undefined)[]): HTMLElement {
  const number = Number(/^#link-(\d+)$/.exec(from.getAttribute("href") ?? "")?.[1] ?? NaN);
  const kind = kinds[number];
  if (kind === undefined) {
    return element("span", {}, ...inside);
  }
  const titles: Record<string, string> = { place: "Go to the source", rewrite: "Preview this rewrite", page: "Read about it" };
  const made = element("a", { href: "#", title: titles[kind] ?? "" }, ...inside);
  made.addEventListener("click", (event) => {
    event.preventDefault();
    host.postMessage({ type: "open", link: number });
  });
  return made;
}

host.postMessage({ type: "ready" });
