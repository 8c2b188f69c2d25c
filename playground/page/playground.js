// The page: shows what gridfuse says of the program, and asks again when the program changes. The answers come from engine.js.

/** An answer may take so long, in ms; then gridfuse is stopped. */
const PATIENCE = 30_000;

/** After the last key, in ms. */
const PAUSE = 300;

/** The height of a line, in pixels: playground.css says it. */
const LINE = 20;

const byId = (id) => document.getElementById(id);
const [text, marks, lineNumbers, example, status, failure] = ["text", "marks", "numbers", "example", "status", "failure"].map(byId);

/** The program's other files: gridfuse.cuh, once a rewrite has added it. */
let others = [];
/** The programs before the rewrites that were taken over. */
let before = [];
/** What the last check has found, and the text that it has seen. */
let checked = { findings: [], launches: [], text: "" };
/** The launch that is shown, by its offset. */
let shown;

// Asking.

let engine;
let ready;
let questions = 0;
const waiting = new Map();

function start() {
  engine = new Worker(new URL("engine.js", import.meta.url), { type: "module" });
  ready = new Promise((resolve) => {
    engine.onmessage = ({ data }) => {
      if (data.ready) {
        resolve();
        return;
      }
      waiting.get(data.id)?.(data);
      waiting.delete(data.id);
    };
    engine.onerror = (event) => fail(`The playground can't be started: ${event.message || "engine.js can't be loaded"}.`);
  });
}

/** What gridfuse answers to a question about the program, and how long that took. */
export async function ask(about) {
  const asked = engine;
  await ready;
  const id = (questions += 1);
  const question = { ...about, files: [{ name: example.value || "program.cu", text: text.value.toWellFormed() }, ...others] };
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      waiting.delete(id);
      if (asked === engine) {
        engine.terminate();
        start();
      }
      const message = `gridfuse has not answered within ${PATIENCE / 1000} s, and was started anew.`;
      resolve({ answer: { answer: "error", message }, milliseconds: PATIENCE });
    }, PATIENCE);
    waiting.set(id, (data) => {
      clearTimeout(timer);
      resolve(data);
    });
    asked.postMessage({ id, question });
  });
}

function fail(message) {
  failure.textContent = message;
  failure.hidden = message === "";
}

/** Counts checks: an answer about an older text isn't shown. */
let checks = 0;

async function check() {
  const own = (checks += 1);
  status.textContent = "looking …";
  const seen = text.value;
  const { answer, milliseconds } = await ask({ ask: "check" });
  if (own !== checks) {
    return;
  }
  fail(answer.answer === "error" ? answer.message : "");
  checked = answer.answer === "check" ? { ...answer, text: seen } : { findings: [], launches: [], text: seen };
  byId("version").textContent = answer.version ?? byId("version").textContent;
  status.textContent = `${count(checked.findings, "finding")}, ${count(checked.launches, "launch", "launches")}; ${Math.ceil(milliseconds)} ms`;
  status.dataset.milliseconds = milliseconds;
  status.dataset.checks = own;
  showFindings();
  showLaunches();
  mark();
  await explainAtCaret();
}

/** Shows the launch at the caret. */
async function explainAtCaret() {
  const offset = bytesBefore(text.value, text.selectionStart);
  const launch = checked.launches.find(({ place }) => place.start.offset <= offset && offset <= place.end.offset);
  if (launch === undefined || checked.text !== text.value) {
    shown = undefined;
    byId("launch").hidden = true;
    return;
  }
  if (shown === launch) {
    return;
  }
  shown = launch;
  const { answer } = await ask({ ask: "explain", offset: launch.place.start.offset });
  if (shown !== launch) {
    return;
  }
  if (answer.answer === "explain" && answer.launch) {
    showLaunch(answer.launch);
  } else {
    fail(answer.message ?? "gridfuse knows nothing of this launch.");
  }
}

async function rewrite({ rewrite: id, title }) {
  const { answer } = await ask({ ask: "rewrite", offset: shown.place.start.offset, rewrite: id });
  showChange(id, title, answer);
}

// Showing.

/** An element: `node("p", { className: "x" }, "text", …)`. */
function node(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

/** Text in which backquotes stand around code. */
function prose(words) {
  return words.split("`").map((part, index) => (index % 2 ? node("code", {}, part) : part));
}

function count(list, one, many = `${one}s`) {
  return `${list.length} ${list.length === 1 ? one : many}`;
}

function reason({ text: words, place }) {
  return node("span", { className: "reason" }, ...prose(words), place ? ` (${where(place)})` : "");
}

function where(place) {
  return place.path === example.value ? `line ${place.start.line}` : `${place.path}:${place.start.line}`;
}

/** A list of choices, or what stands there when there are none. */
function choices(list, items, none) {
  byId(list).replaceChildren(...(items.length ? items.map((item) => node("li", {}, item)) : [node("li", {}, none)]));
}

function choice(place, ...children) {
  const button = node("button", { type: "button" }, ...children);
  button.addEventListener("click", () => goTo(place));
  return button;
}

function showFindings() {
  const items = checked.findings.map(({ id, severity, message, help, place }) => {
    const button = choice(
      place,
      node("span", { className: `severity ${severity}` }, severity),
      ` ${id} `,
      node("span", { className: "place" }, `line ${place.start.line}`),
      node("span", { className: "reason" }, ...prose(message), help ? "; " : "", ...prose(help ?? "")),
    );
    button.dataset.id = id;
    return button;
  });
  choices("findings", items, "Nothing was found.");
}

function showLaunches() {
  const items = checked.launches.map(({ place, text: launch }) =>
    choice(place, node("span", { className: "place" }, `line ${place.start.line} `), node("code", {}, launch)),
  );
  choices("launches", items, "No kernel launches another.");
}

function row(name, ...cells) {
  return node("tr", {}, node("th", { scope: "row" }, name), ...cells.map((cell) => node("td", {}, ...[cell].flat())));
}

function operandRow(name, operand) {
  const { level, why, assumes } = operand.uniformity;
  const reasons = [...(why ? [why] : []), ...assumes.map((note) => ({ ...note, text: `assumes ${note.text}` }))];
  return row(name, node("code", {}, operand.text), [level, ...reasons.map(reason)]);
}

/** The hover of an editor: the answer, the facts, the rewrites. */
function showLaunch({ sentence, because, launching, best, menu, facts }) {
  const code = (words) => node("code", {}, words);
  const { per_thread: thread, per_block: block, per_grid: grid, child_threads: threads } = facts.count;
  const known = node(
    "table",
    {},
    row("launched", [`${launching}: `, code(thread), " per thread, ", code(block), " per block, ", code(grid), " per grid"]),
    row("reached", [facts.divergence.level, ...(facts.divergence.why ? [reason(facts.divergence.why)] : [])]),
    row("child grid", [code(threads), " threads"]),
    row("stream", facts.stream === "null" ? "NULL: grids that the threads of a block launch run one at a time" : facts.stream),
  );
  const operands = node("table", {}, operandRow("grid", facts.grid), operandRow("block", facts.block));
  if (facts.shared) {
    operands.append(operandRow("shared memory", facts.shared));
  }
  facts.args.forEach((arg, index) => operands.append(operandRow(code(arg.parameter ?? `${index + 1}`), arg)));
  // Rewrites mostly share their reasons: each stands below them, once.
  const reasons = [];
  const items = (entries) => entries.map((entry) => menuItem(entry, reasons));
  const fitting = menu.filter(({ verdict }) => verdict === "eligible" || verdict === "assumes");
  const unfit = menu.filter((entry) => !fitting.includes(entry));
  byId("launch").replaceChildren(
    node("h2", {}, "Launch of ", code(facts.child.name ?? "a computed kernel"), ` in line ${facts.place.start.line}`),
    node("p", {}, node("strong", {}, ...prose(sentence))),
    ...(because ? [node("p", {}, best ? "Takes for granted: " : "Mostly because ", ...prose(because))] : []),
    node("h2", {}, "Rewrites"),
    node("ul", { className: "choices", id: "menu" }, ...items(fitting)),
    ...(reasons.length ? [node("ol", { className: "reasons" }, ...reasons.map((told) => node("li", {}, reason(told))))] : []),
    ...(unfit.length ? [node("details", {}, node("summary", {}, `${unfit.length} more don't fit`), unfitList(unfit))] : []),
    node("details", { open: true }, node("summary", {}, "What is known"), known, operands),
  );
  byId("launch").hidden = false;
}

/** Numbers of reasons among those that are told of a launch. */
function numbers(own, told) {
  const found = own.map((one) => {
    const known = told.findIndex((other) => JSON.stringify(other) === JSON.stringify(one));
    return known < 0 ? told.push(one) : known + 1;
  });
  return [...new Set(found)].map((number) => `(${number})`).join(" ");
}

function menuItem({ rewrite: id, title, verdict, reasons }, told) {
  const words = verdict === "eligible" ? "fits" : `fits, if ${numbers(reasons, told)}`;
  const button = node("button", { type: "button", className: verdict }, `${title} — `, node("span", { className: "verdict" }, words));
  button.dataset.rewrite = id;
  button.addEventListener("click", () => rewrite({ rewrite: id, title }));
  return node("li", {}, button);
}

function unfitList(entries) {
  const words = { ineligible: "doesn't fit", contradicted: "the code contradicts it" };
  const items = entries.map(({ title, verdict, reasons }) =>
    node("li", { className: verdict }, `${title} — `, node("span", { className: "verdict" }, words[verdict]), ...reasons.map(reason)),
  );
  return node("ul", {}, ...items);
}

/** A unified diff, without the names of the files. */
function difference(diff) {
  const lines = diff.replace(/\n$/, "").split("\n").slice(2);
  const classes = { "+": "added", "-": "removed", "@": "hunk" };
  return node("pre", { className: "difference", tabIndex: 0 }, ...lines.map((line) => node("span", { className: classes[line[0]] ?? "" }, line)));
}

function showChange(id, title, answer) {
  const change = byId("change");
  const heading = node("h2", {}, `${title} `, node("code", {}, id));
  change.dataset.rewrite = id;
  if (answer.answer === "rewrite") {
    const take = node("button", { type: "button", id: "take" }, "Take it over");
    take.addEventListener("click", () => takeOver(answer.files));
    const assumed = answer.assumptions.map(reason);
    change.replaceChildren(
      heading,
      take,
      ...(assumed.length ? [node("p", {}, "It is right if", ...assumed)] : [node("p", {}, "It is proven right.")]),
      ...answer.files.map(({ name, created, diff, text: whole }) =>
        created
          ? node("details", {}, node("summary", {}, `${name}, a header that stands beside the program`), node("pre", { className: "difference", tabIndex: 0 }, whole))
          : difference(diff),
      ),
    );
  } else {
    const reasons = answer.answer === "refused" ? answer.reasons.map(reason) : [node("span", {}, answer.message)];
    change.replaceChildren(heading, node("p", {}, "It can't be applied: ", ...reasons));
  }
  change.hidden = false;
  change.focus({ preventScroll: true });
  change.scrollIntoView({ block: "nearest" });
}

function takeOver(files) {
  before.push({ text: text.value, others });
  byId("undo").hidden = false;
  const main = example.value || "program.cu";
  for (const { name, text: whole } of files) {
    if (name === main) {
      text.value = whole;
    } else {
      others = [...others.filter((other) => other.name !== name), { name, text: whole }];
    }
  }
  changed();
}

// The editor.

/** Offsets of gridfuse are bytes of UTF-8, those of a text area are units of UTF-16. */
function bytesBefore(whole, unit) {
  return new TextEncoder().encode(whole.slice(0, unit)).length;
}

function unitsBefore(bytes, offset) {
  return new TextDecoder().decode(bytes.subarray(0, offset)).length;
}

function goTo({ start }) {
  const bytes = new TextEncoder().encode(text.value);
  text.focus();
  text.setSelectionRange(unitsBefore(bytes, start.offset), unitsBefore(bytes, start.offset));
  byId("editor").scrollTop = Math.max(0, (start.line - 5) * LINE);
  explainAtCaret();
}

/** Underlines the findings and colours the launches, on the layer below the text. */
function mark() {
  const bytes = new TextEncoder().encode(text.value);
  const spans = [
    ...checked.launches.map(({ place }) => ({ place, kind: "launch" })),
    ...checked.findings.map(({ place, severity }) => ({ place, kind: severity })),
  ].map(({ place, kind }) => ({ kind, from: unitsBefore(bytes, place.start.offset), to: unitsBefore(bytes, place.end.offset) }));
  const ends = [...new Set([0, text.value.length, ...spans.flatMap(({ from, to }) => [from, to])])].sort((a, b) => a - b);
  const pieces = ends.slice(1).map((end, index) => {
    const begin = ends[index];
    const kinds = spans.filter(({ from, to }) => from <= begin && end <= to).map(({ kind }) => kind);
    const piece = text.value.slice(begin, end);
    return kinds.length ? node("span", { className: [...new Set(kinds)].join(" ") }, piece) : piece;
  });
  marks.replaceChildren(...pieces);
}

/** Makes the text area as large as its text. */
function fit() {
  const lines = text.value.split("\n");
  lineNumbers.textContent = lines.map((_, index) => index + 1).join("\n");
  text.rows = lines.length + 1;
  text.cols = Math.max(...lines.map((line) => line.replaceAll("\t", "    ").length), 20) + 2;
}

/** Shows a text that gridfuse has yet to look at. */
function changed() {
  byId("change").hidden = true;
  shown = undefined;
  marks.replaceChildren();
  fit();
  return check();
}

async function load(name) {
  try {
    const response = await fetch(`examples/${name}`);
    if (!response.ok) {
      throw new Error(`${response.status}`);
    }
    text.value = await response.text();
  } catch (error) {
    fail(`${name} can't be loaded: ${error.message}.`);
    return;
  }
  others = [];
  before = [];
  byId("undo").hidden = true;
  text.setSelectionRange(0, 0);
  byId("editor").scrollTop = 0;
  await changed();
}

let timer;
text.addEventListener("input", () => {
  marks.replaceChildren();
  fit();
  clearTimeout(timer);
  timer = setTimeout(changed, PAUSE);
});
for (const event of ["click", "keyup"]) {
  text.addEventListener(event, explainAtCaret);
}
example.addEventListener("change", () => load(example.value));
byId("undo").addEventListener("click", () => {
  ({ text: text.value, others } = before.pop());
  byId("undo").hidden = before.length === 0;
  changed();
});

start();
const names = await (await fetch("examples/list.json")).json();
example.replaceChildren(...names.map((name) => node("option", { value: name }, name)));
await load(example.value);
