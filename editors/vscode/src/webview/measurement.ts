// The page with the results of a measurement: bars, a table, buttons that apply a rewrite.

import { factor, milliseconds, type Report, type Row, refused, rows } from "../report";
import { content, element, host } from "./host";

window.addEventListener("message", (event: MessageEvent<{ type: string; report?: Report }>) => {
  if (event.data.type === "report" && event.data.report !== undefined) {
    show(event.data.report);
  }
});

function show(report: Report): void {
  const lines = rows(report);
  const page = content();
  page.replaceChildren(
    element("h1", {}, report.file.split(/[\\/]/).pop() ?? report.file),
    element("p", { class: "about" }, about(report)),
    element("p", { class: "summary", role: "status" }, summary(lines)),
    table(lines),
    ...notes(report, lines),
    again(),
  );
  page.focus();
}

function about(report: Report): string {
  const { gpu, runtime, driver } = report.machine;
  const runs = report.original.outcome === "ran" ? report.original.times_ms.length : 0;
  const sites = report.sites.map((site) => `${site.kernel} (line ${site.line})`).join(", ");
  const args = report.args.length > 0 ? ` Arguments: ${report.args.join(" ")}.` : "";
  return (
    `${gpu}, built with CUDA ${runtime}, driver for CUDA ${driver}. GPU time of the launches of ${sites} ` +
    `until all children are done${runs > 1 ? `, median of ${runs} runs` : ""}.${args}`
  );
}

function summary(lines: Row[]): string {
  const best = lines.find((line) => line.fastest);
  if (best?.speedup === undefined || best.median === undefined) {
    return "No rewrite is faster than the original.";
  }
  return `Fastest: ${best.name}, ${milliseconds(best.median)} ms, ${factor(best.speedup)} as fast as the original.`;
}

/** Columns that not every measurement fills. */
interface Wanted {
  /** Programs ran more than once. */
  range: boolean;
  /** Device-side launches were counted. */
  launches: boolean;
}

function table(lines: Row[]): HTMLElement {
  const wanted: Wanted = {
    range: lines.some((line) => line.least !== line.most),
    launches: lines.some((line) => line.launches !== undefined),
  };
  const title = (text: string) => element("th", { scope: "col" }, text);
  const number = (text: string) => element("th", { scope: "col", class: "number" }, text);
  const head = element("tr", {}, title("Program"), number("GPU time, ms"), element("td", { "aria-hidden": "true" }));
  head.append(
    ...(wanted.range ? [number("Least … most")] : []),
    number("Speedup"),
    ...(wanted.launches ? [number("Launches")] : []),
    title("Result"),
    title("Rewrite"),
  );
  const body = element("tbody", {});
  const times = lines.flatMap((line) => (line.median === undefined ? [] : [line.median]));
  const scale = logarithmic(Math.min(...times), Math.max(...times));
  body.append(...lines.map((line) => row(line, scale, wanted)));
  const caption = element("caption", {}, "The original and its rewrites. Bars are logarithmic: shorter is faster.");
  const made = element("table", {}, caption, element("thead", {}, head), body);
  made.addEventListener("keydown", moveBetweenRows);
  return element("div", { class: "scroll" }, made);
}

/** Where a time lies between the least and the greatest, both of which must be seen. */
function logarithmic(least: number, most: number): (time: number) => number {
  const span = Math.log(most / least);
  return (time) => (span > 0 ? 0.06 + 0.94 * (Math.log(time / least) / span) : 1);
}

function row(line: Row, scale: (time: number) => number, wanted: Wanted): HTMLElement {
  const number = (text: string | undefined) => element("td", { class: "number" }, text ?? "–");
  const bar = element("td", { class: "bars", "aria-hidden": "true" });
  if (line.median !== undefined) {
    const filled = element("div", { class: "bar" });
    filled.style.width = `${(100 * scale(line.median)).toFixed(1)}%`;
    bar.append(filled);
  }
  const result = element("td", { class: "result" }, line.result);
  const buttons = element("td", { class: "buttons" });
  if (line.applies !== undefined) {
    buttons.append(button("Preview", "preview", line.applies), button("Apply", "apply", line.applies));
  }
  const range =
    line.least === undefined || line.most === undefined
      ? undefined
      : `${milliseconds(line.least)} … ${milliseconds(line.most)}`;
  const name = element("th", { scope: "row" }, line.name);
  if (line.fastest) {
    name.append(" ", element("span", { class: "badge" }, "fastest"));
  }
  const classes = [line.fastest ? "fastest" : "", line.bad ? "bad" : "", line.median === undefined ? "absent" : ""];
  return element(
    "tr",
    { class: classes.join(" ").trim() },
    name,
    number(line.median === undefined ? undefined : milliseconds(line.median)),
    bar,
    ...(wanted.range ? [number(range)] : []),
    number(line.speedup === undefined || line.name === "original" ? undefined : factor(line.speedup)),
    ...(wanted.launches ? [number(line.launches?.toLocaleString("en"))] : []),
    result,
    buttons,
  );
}

function button(text: string, type: string, rewrites: string): HTMLElement {
  const made = element("button", { type: "button", "aria-label": `${text} ${rewrites}`, "data-kind": type }, text);
  made.addEventListener("click", () => host.postMessage({ type, rewrites }));
  return made;
}

/** The arrow keys lead from the buttons of a row to those of the next one. */
function moveBetweenRows(event: KeyboardEvent): void {
  const from = event.target;
  const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
  if (step === 0 || !(from instanceof HTMLButtonElement)) {
    return;
  }
  const kind = from.dataset.kind ?? "apply";
  const table = event.currentTarget as HTMLElement;
  const all = [...table.querySelectorAll<HTMLButtonElement>(`button[data-kind="${kind}"]`)];
  const next = all[all.indexOf(from) + step];
  if (next !== undefined) {
    next.focus();
    event.preventDefault();
  }
}

function notes(report: Report, lines: Row[]): HTMLElement[] {
  const texts: string[] = [];
  if (report.deterministic === false) {
    texts.push("Two runs of the original disagree: what differs between them was not compared.");
  }
  for (const left of report.left_out) {
    texts.push(`Not measured: the launch at ${left.path}:${left.line}: ${left.reason}.`);
  }
  if (report.original.outcome === "ran") {
    for (const error of report.original.errors) {
      const advice = error.advice ? ` ${error.advice}` : "";
      texts.push(`The original loses launches or fails: ${error.name} (${error.during}).${advice}`);
    }
  }
  // What several rewrites take for granted is told once.
  const assumptions = new Map<string, string[]>();
  for (const line of lines) {
    for (const assumption of line.assumptions) {
      assumptions.set(assumption, [...(assumptions.get(assumption) ?? []), line.name]);
    }
  }
  for (const [assumption, names] of assumptions) {
    texts.push(`Assumed by ${names.join(", ")}: ${assumption}.`);
  }
  texts.push(...refused(report));
  if (texts.length === 0) {
    return [];
  }
  const list = element("ul", {}, ...texts.map((text) => element("li", {}, text)));
  return [element("h2", {}, "Notes"), list];
}

function again(): HTMLElement {
  const made = element("button", { type: "button", class: "secondary" }, "Run Again…");
  made.addEventListener("click", () => host.postMessage({ type: "again" }));
  return element("p", {}, made);
}

host.postMessage({ type: "ready" });
