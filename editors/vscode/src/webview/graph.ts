// The page with the launch graph.

import { content, element, host } from "./host";

interface Message {
  type: string;
  svg?: string;
  nodes?: GraphNode[];
  launches?: Launch[];
}

interface GraphNode {
  label: string;
  known: boolean;
  /** `2 warnings`; empty: nothing is found in it. */
  findings: string;
}

interface Launch {
  from: number;
  to: number;
  count: string;
  certain: boolean;
}

/** How much the picture may shrink: its names have 13 pixels, its labels 11, which are hard to read when they get smaller than 10. */
const LEAST_SCALE = 0.9;

window.addEventListener("message", (event: MessageEvent<Message>) => {
  const { type, svg, nodes, launches } = event.data;
  if (type === "graph" && svg !== undefined) {
    show(svg, nodes ?? [], launches ?? []);
  }
});

function show(text: string, nodes: GraphNode[], launches: Launch[]): void {
  // The panel's own style follows the editor's theme; the picture's isn't allowed to be parsed here at all.
  const plain = text.replace(/<style>[^]*?<\/style>/, "");
  const parsed = new DOMParser().parseFromString(plain, "image/svg+xml").documentElement;
  const svg = document.importNode(parsed, true);
  svg.setAttribute("role", "group");
  // It fits the panel as long as it can be read; beyond that it scrolls.
  const natural = Number(svg.getAttribute("width"));
  if (svg instanceof SVGSVGElement && Number.isFinite(natural)) {
    svg.style.minWidth = `${Math.round(LEAST_SCALE * natural)}px`;
  }
  for (const shape of svg.querySelectorAll<SVGElement>("[data-node]")) {
    const index = Number(shape.dataset.node);
    const node = nodes[index];
    if (node?.known !== true) {
      continue;
    }
    shape.setAttribute("tabindex", "0");
    shape.setAttribute("role", "link");
    shape.setAttribute("aria-label", `Go to ${node.label}${node.findings === "" ? "" : `, ${node.findings}`}`);
    const open = () => host.postMessage({ type: "open", node: index });
    shape.addEventListener("click", open);
    shape.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        open();
      }
    });
  }
  const hint =
    nodes.length === 0
      ? "No kernel is launched in this file."
      : "Boxes are kernels, rounded boxes device functions, ellipses host functions; colours show the worst that is found in them. A click leads to the source.";
  content().replaceChildren(element("h1", {}, "Launch graph"), element("p", {}, hint), element("div", { class: "scroll" }));
  content().querySelector(".scroll")?.append(svg);
  if (launches.length > 0) {
    content().append(inWords(nodes, launches));
  }
}

/** What lines and arrows show. */
function inWords(nodes: GraphNode[], launches: Launch[]): HTMLElement {
  const sentences = launches.map(({ from, to, count, certain }) => {
    const verb = certain ? "launches" : "may launch";
    return `${nodes[from]?.label} ${verb} ${nodes[to]?.label}${count === "" ? "" : `, ${count}`}`;
  });
  // A function may launch the same kernel in several places.
  const items = [...new Set(sentences)].map((sentence) => element("li", {}, sentence));
  return element("details", {}, element("summary", {}, "The launches in words"), element("ul", {}, ...items));
}

host.postMessage({ type: "ready" });
