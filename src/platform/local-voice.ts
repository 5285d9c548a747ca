/**
 * The embedded voice on Node and Bun: espeak-ng, a program that is not part of this one and may be absent. It speaks in a
 * thread of its own, one text after the other, so that nothing waits for it but those who asked; once nobody has for a while
 * the thread ends, and its memory is free again.
 */
import { Worker } from "node:worker_threads";
import type { LocalVoice, VoiceOrder, VoiceSamples } from "../core/speech.ts";
import { AppError } from "../errors.ts";

export type VoiceReport =
  | VoiceSamples
  | { problem: "voice"; voices: string[] }
  | { problem: "missing" }
  | { problem: "failed"; reason: string };

export interface LocalVoiceOptions {
  /** After the last text the thread stays for this long. Milliseconds. */
  idleMs?: number;
  /** One text may take this long. Milliseconds. */
  timeoutMs?: number;
  /** Texts that may wait. */
  waiting?: number;
}

const IDLE_MS = 60_000;
const TIMEOUT_MS = 30_000;
const WAITING = 64;
/** Seconds after which it may have become quieter. */
const WAIT_S = 2;
/** A language, as `en-us`, and a variant, as `+f3`. */
const VOICE = /^[a-z]{2,4}(-[a-z0-9]+)*(\+[a-z0-9_-]+)?$/i;

interface Job {
  order: VoiceOrder;
  settle(report: VoiceReport): void;
}

/** `loaded`: there is a thread, with the program in its memory. */
export function createLocalVoice(options: LocalVoiceOptions = {}): LocalVoice & { readonly loaded: boolean } {
  return new EspeakVoice(options);
}

class EspeakVoice implements LocalVoice {
  readonly #options: Required<LocalVoiceOptions>;
  readonly #waiting: Job[] = [];
  #worker: Worker | undefined;
  #job: Job | undefined;
  /** The one text's, or that of the silence after it. */
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor({ idleMs = IDLE_MS, timeoutMs = TIMEOUT_MS, waiting = WAITING }: LocalVoiceOptions) {
    this.#options = { idleMs, timeoutMs, waiting };
  }

  get loaded(): boolean {
    return this.#worker !== undefined;
  }

  async speak(order: VoiceOrder, signal: AbortSignal): Promise<VoiceSamples> {
    if (signal.aborted) throw cancelled();
    // With another form it is no name of a voice, and lists of voices are for those who look for one.
    const named = VOICE.test(order.voice) ? order : { ...order, voice: "unknown" };
    const report = await this.#report(named, signal);
    if ("samples" in report) return report;
    if (report.problem === "voice")
      throw new AppError(
        "invalid_request",
        `voice: the embedded voice has no '${order.voice.slice(0, 60)}'. It has ${report.voices.join(", ")}, each also with +m1 to +m8 or +f1 to +f5 behind it.`,
        { param: "voice" },
      );
    if (report.problem === "missing")
      throw new AppError(
        "not_implemented",
        "The embedded voice is not installed here: install the package espeak-ng, or name a provider and send its key.",
      );
    throw new Error(`The embedded voice failed: ${report.reason}`);
  }

  #report(order: VoiceOrder, signal: AbortSignal): Promise<VoiceReport> {
    if (this.#waiting.length >= this.#options.waiting)
      throw new AppError("unavailable", "Too many texts wait for the embedded voice. Send this one again.", {
        retryAfter: WAIT_S,
      });
    return new Promise((resolve, reject) => {
      // A text that is under way is not waited for, and its end is short.
      const leave = () => {
        const at = this.#waiting.indexOf(job);
        if (at !== -1) this.#waiting.splice(at, 1);
        reject(cancelled());
      };
      const settle = (report: VoiceReport) => {
        signal.removeEventListener("abort", leave);
        resolve(report);
      };
      const job: Job = { order, settle };
      signal.addEventListener("abort", leave, { once: true });
      this.#waiting.push(job);
      this.#next();
    });
  }

  #next(): void {
    if (this.#job) return;
    clearTimeout(this.#timer);
    this.#job = this.#waiting.shift();
    if (this.#job) {
      this.#worker ??= this.#start();
      this.#worker.ref();
      this.#worker.postMessage(this.#job.order);
      this.#timer = setTimeout(() => this.#stop(failed("it took too long")), this.#options.timeoutMs);
      return;
    }
    if (!this.#worker) return;
    this.#worker.unref();
    this.#timer = setTimeout(() => this.#stop(), this.#options.idleMs);
    this.#timer.unref();
  }

  #start(): Worker {
    const worker = new Worker(new URL("./local-voice-worker.ts", import.meta.url), {
      env: {},
      execArgv: [],
      stdout: true,
      stderr: true,
    });
    worker.on("message", (report: VoiceReport) => {
      // One that is not there may be by the next time.
      if ("problem" in report && report.problem === "missing") this.#stop(report);
      else this.#settle(report);
    });
    const ended = (reason: unknown) => {
      if (this.#worker === worker) this.#stop(failed(String(reason)));
    };
    worker.on("error", ended);
    worker.once("exit", () => ended("its thread has ended"));
    return worker;
  }

  #settle(report: VoiceReport): void {
    const job = this.#job;
    this.#job = undefined;
    job?.settle(report);
    this.#next();
  }

  /** The thread ends; the text that it was at has failed, and the next one gets a new thread. */
  #stop(report: VoiceReport = failed("its thread was ended")): Promise<number> | undefined {
    clearTimeout(this.#timer);
    const worker = this.#worker;
    this.#worker = undefined;
    if (this.#job) this.#settle(report);
    return worker?.terminate();
  }

  async close(): Promise<void> {
    for (const { settle } of this.#waiting.splice(0)) settle(failed("the service ends"));
    await this.#stop();
  }
}

function failed(reason: string): VoiceReport {
  return { problem: "failed", reason };
}

function cancelled(): AppError {
  return new AppError("cancelled", "The request was cancelled.");
}
