// Answers the page's questions with gridfuse, on a thread of its own: however long an answer takes, the page goes on.

/** gridfuse as WebAssembly, compiled once. */
const compiled = compile();
// Whoever waits for it learns why there is none.
compiled.then(() => postMessage({ ready: true }), () => postMessage({ ready: true }));

/** The exports of the running instance; `undefined` before the first question, and after a panic. */
let running;

async function compile() {
  const response = await fetch(new URL("gridfuse.wasm", import.meta.url));
  if (!response.ok) {
    throw new Error(`gridfuse.wasm can't be loaded (${response.status})`);
  }
  return WebAssembly.compile(await response.arrayBuffer());
}

onmessage = async ({ data: { id, question } }) => {
  let answer;
  let begin = performance.now();
  try {
    running ??= (await WebAssembly.instantiate(await compiled, {})).exports;
    begin = performance.now();
    answer = ask(question);
  } catch (error) {
    // What has panicked has ended. The next question gets an instance that knows nothing of it.
    const told = running === undefined ? "" : answerText();
    running = undefined;
    answer = { answer: "error", message: `gridfuse has failed, and was started anew: ${told || error.message}` };
  }
  postMessage({ id, answer, milliseconds: performance.now() - begin });
};

function ask(question) {
  const bytes = new TextEncoder().encode(JSON.stringify(question));
  const start = running.question_room(bytes.length);
  new Uint8Array(running.memory.buffer, start, bytes.length).set(bytes);
  running.ask();
  return JSON.parse(answerText());
}

function answerText() {
  const bytes = new Uint8Array(running.memory.buffer, running.answer_start(), running.answer_length());
  return new TextDecoder().decode(bytes);
}
