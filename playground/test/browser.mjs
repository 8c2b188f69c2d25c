// A chromium without a window, and a server for the page. It is spoken to over a pipe, so nothing has to be installed besides.

import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import path from "node:path";

const TYPES = { ".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".json": "application/json", ".wasm": "application/wasm" };

/** Serves a directory on a port of its own. */
export async function serve(directory) {
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, "http://localhost");
    try {
      const name = path.normalize(pathname === "/" ? "/index.html" : pathname);
      const bytes = await readFile(path.join(directory, name));
      response.writeHead(200, { "content-type": TYPES[path.extname(name)] ?? "text/plain" }).end(bytes);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}/`, close: () => server.close() };
}

/** A page in a browser. `complaints` are its uncaught exceptions and errors on its console. */
export class Page {
  #browser;
  #calls = new Map();
  #number = 0;
  #session;
  complaints = [];

  static async open(program, profile) {
    const page = new Page();
    const options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"];
    const more = ["--disable-component-update", "--remote-debugging-pipe", "--window-size=1280,900", `--user-data-dir=${profile}`];
    page.#browser = spawn(program, [...options, ...more], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
    page.#browser.on("error", (error) => page.#end(error));
    page.#browser.on("exit", () => page.#end(new Error("the browser has ended")));
    let text = "";
    page.#browser.stdio[4].setEncoding("utf8").on("data", (chunk) => {
      const messages = (text + chunk).split("\0");
      text = messages.pop();
      messages.forEach((message) => page.#take(JSON.parse(message)));
    });
    const { targetId } = await page.#call("Target.createTarget", { url: "about:blank" });
    page.#session = (await page.#call("Target.attachToTarget", { targetId, flatten: true })).sessionId;
    for (const domain of ["Page", "Runtime", "Log"]) {
      await page.#call(`${domain}.enable`);
    }
    return page;
  }

  #end(error) {
    this.#calls.forEach(({ reject }) => reject(error));
    this.#calls.clear();
  }

  #take({ id, result, error, method, params }) {
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    if (error) {
      call?.reject(new Error(error.message));
    } else {
      call?.resolve(result);
    }
    if (method === "Runtime.exceptionThrown") {
      this.complaints.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
    }
    if (method === "Log.entryAdded" && params.entry.level === "error") {
      this.complaints.push(`${params.entry.text} ${params.entry.url ?? ""}`);
    }
  }

  #call(method, params = {}) {
    const id = (this.#number += 1);
    this.#browser.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId: this.#session })}\0`);
    return new Promise((resolve, reject) => this.#calls.set(id, { resolve, reject }));
  }

  goTo(url) {
    return this.#call("Page.navigate", { url });
  }

  /** The value of an expression in the page. */
  async value(expression) {
    const options = { expression, awaitPromise: true, returnByValue: true };
    const { result, exceptionDetails } = await this.#call("Runtime.evaluate", options);
    if (exceptionDetails) {
      throw new Error(`${expression}: ${exceptionDetails.exception?.description ?? exceptionDetails.text}`);
    }
    return result.value;
  }

  /** Looks until the expression's value is true, and returns it. */
  async until(expression, patience) {
    const deadline = Date.now() + patience;
    for (;;) {
      const value = await this.value(expression);
      if (value) {
        return value;
      }
      if (Date.now() > deadline) {
        throw new Error(`waited in vain for ${expression}\n${await this.value("document.body.innerText")}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** Clicks with the mouse into the middle of what a selector finds first. */
  async click(selector) {
    const { x, y } = await this.value(`(() => {
      const element = document.querySelector(${JSON.stringify(selector)});
      element.scrollIntoView({ block: "center" });
      const { x, y, width, height } = element.getBoundingClientRect();
      return { x: x + Math.min(width, 200) / 2, y: y + height / 2 };
    })()`);
    for (const type of ["mousePressed", "mouseReleased"]) {
      await this.#call("Input.dispatchMouseEvent", { type, x, y, button: "left", clickCount: 1 });
    }
  }

  /** Presses Enter where the focus is. */
  async enter() {
    const key = { key: "Enter", code: "Enter", windowsVirtualKeyCode: 13 };
    await this.#call("Input.dispatchKeyEvent", { type: "keyDown", text: "\r", ...key });
    await this.#call("Input.dispatchKeyEvent", { type: "keyUp", ...key });
  }

  async screenshot(theme) {
    await this.#call("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: theme }] });
    const { data } = await this.#call("Page.captureScreenshot", { captureBeyondViewport: true });
    return Buffer.from(data, "base64");
  }

  close() {
    this.#browser.kill();
  }
}
