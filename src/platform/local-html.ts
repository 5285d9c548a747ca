/**
 * Main content of web pages on Node and Bun. It is found without pauses, and a page from anywhere can make that take for
 * ever, so it is done in a thread, which ends with the time or the caller. A thread waits a while for the next page: to
 * start one takes longer than to read most pages.
 */
import { Worker } from "node:worker_threads";
import type { HtmlText, ReadHtml } from "../core/platform.ts";
import { AppError } from "../errors.ts";
import type { HtmlOrder } from "./html-document.ts";

const TIMEOUT_MS = 15_000;
const IDLE_MS = 60_000;
const MAX_HEAP_MB = 512;
/** Pages that are read at once; others wait their turn. */
const MAX_THREADS = 2;
const MAX_CHARS = 5 * 1024 * 1024;

/** What the thread is given, and what it answers: null for a page that it could not read. */
export interface HtmlTask {
  html: string;
  order: HtmlOrder;
}
export interface HtmlReport {
  page: HtmlText | null;
}

export interface HtmlTimes {
  /** After which a page is given up. */
  timeoutMs?: number;
  /** For which a thread waits for the next page. */
  idleMs?: number;
}

export function createReadHtml({ timeoutMs = TIMEOUT_MS, idleMs = IDLE_MS }: HtmlTimes = {}): ReadHtml {
  const idle: HtmlThread[] = [];
  const waiting: (() => void)[] = [];
  let free = MAX_THREADS;
  const take = () => {
    for (let kept = idle.pop(); kept; kept = idle.pop()) if (!kept.ended) return kept;
    return new HtmlThread();
  };
  const readNow = async (html: string, url: string, signal: AbortSignal): Promise<HtmlText> => {
    signal.throwIfAborted();
    const thread = take();
    const onAbort = () => thread.end(signal.reason);
    const timer = setTimeout(() => thread.end(refusal(url, "took too long to take apart")), timeoutMs);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      const { page } = await thread.ask({ html, order: { url, maxChars: MAX_CHARS } });
      if (page) return page;
      throw refusal(url, "cannot be taken apart");
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      if (!thread.ended) {
        thread.rest(idleMs);
        idle.push(thread);
      }
    }
  };
  return async (html, { url, signal }) => {
    signal.throwIfAborted();
    if (free > 0) free--;
    else await turn(waiting, signal);
    try {
      return await readNow(html, url, signal);
    } finally {
      const next = waiting.shift();
      if (next) next();
      else free++;
    }
  };
}

/** Reads one page after the other, and ends itself when none has come for a while. */
class HtmlThread {
  readonly #worker = startWorker();
  #asked: { task: HtmlTask; resolve(report: HtmlReport): void; reject(reason: unknown): void } | null = null;
  #idle: NodeJS.Timeout | undefined;
  ended = false;

  constructor() {
    this.#worker.on("message", (report: HtmlReport) => {
      this.#asked?.resolve(report);
      this.#asked = null;
    });
    // Out of memory among others.
    this.#worker.on("error", () => this.end());
    this.#worker.on("exit", () => this.end());
  }

  ask(task: HtmlTask): Promise<HtmlReport> {
    clearTimeout(this.#idle);
    this.#worker.ref();
    return new Promise((resolve, reject) => {
      this.#asked = { task, resolve, reject };
      this.#worker.postMessage(task);
    });
  }

  /** Neither the thread nor its timer keeps a process that is otherwise done. */
  rest(ms: number): void {
    this.#worker.unref();
    this.#idle = setTimeout(() => this.end(), ms).unref();
  }

  /** What was asked of it fails with `reason`. */
  end(reason?: unknown): void {
    if (this.ended) return;
    this.ended = true;
    clearTimeout(this.#idle);
    void this.#worker.terminate();
    if (this.#asked)
      this.#asked.reject(reason ?? refusal(this.#asked.task.order.url, "cannot be taken apart"));
    this.#asked = null;
  }
}

/** Resolves with a place of one that is done. */
function turn(waiting: (() => void)[], signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onTurn = () => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    };
    const onAbort = () => {
      waiting.splice(waiting.indexOf(onTurn), 1);
      reject(signal.reason);
    };
    waiting.push(onTurn);
    signal.addEventListener("abort", onAbort, { once: true });
  });
}

function startWorker(): Worker {
  const worker = new Worker(new URL("./local-html-worker.ts", import.meta.url), {
    env: {},
    // What the parser complains about is nobody's business.
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
  });
  worker.stdout?.resume();
  worker.stderr?.resume();
  return worker;
}

function refusal(url: string, what: string): AppError {
  return new AppError("invalid_request", `${url} ${what}. Look for another source of it.`);
}
