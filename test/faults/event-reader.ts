/** A client of an event stream that keeps what it has had, byte for byte. */
import type { ChatEvent } from "../../src/protocols/native-chat-events.ts";
import { type Frame, parseFrames } from "../../src/protocols/native-chat-stream.ts";

export class EventReader {
  readonly response: Response;
  text = "";
  /** The stream came to its end; otherwise the connection broke, or was cut here. */
  whole = false;
  readonly over: Promise<void>;
  #waiting: (() => void)[] = [];
  #done = false;
  readonly #controller: AbortController;

  private constructor(response: Response, controller: AbortController, cutAt: number) {
    this.response = response;
    this.#controller = controller;
    this.over = this.#read(cutAt);
  }

  /** `cutAt`: bytes after which the connection is torn down. */
  static async open(
    url: string,
    init: RequestInit = {},
    cutAt = Number.POSITIVE_INFINITY,
  ): Promise<EventReader> {
    const controller = new AbortController();
    const response = await fetch(url, { ...init, signal: controller.signal });
    return new EventReader(response, controller, cutAt);
  }

  /** Whole frames only: what a client can have understood. */
  get frames(): Frame[] {
    return parseFrames(this.text);
  }

  get events(): ChatEvent[] {
    return this.frames.map(({ event }) => event);
  }

  get lastSeq(): number {
    return this.frames.at(-1)?.seq ?? 0;
  }

  /** Resolves with the first such event. Rejects when the stream is over before. */
  async event(match: (event: ChatEvent) => boolean): Promise<ChatEvent> {
    for (;;) {
      const found = this.events.find(match);
      if (found) return found;
      if (this.#done) throw new Error(`the stream ended without it: ${this.response.status} ${this.text}`);
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  cut(): void {
    this.#controller.abort();
  }

  async #read(cutAt: number): Promise<void> {
    const decoder = new TextDecoder();
    let bytes = 0;
    try {
      for await (const piece of this.response.body as unknown as AsyncIterable<Uint8Array>) {
        const taken = piece.subarray(0, Math.max(0, cutAt - bytes));
        bytes += taken.length;
        this.text += decoder.decode(taken, { stream: true });
        this.#wake();
        if (bytes >= cutAt) break;
      }
      this.whole = bytes < cutAt;
    } catch {
      // Cut by one side or the other.
    }
    this.#controller.abort();
    this.#done = true;
    this.#wake();
  }

  #wake(): void {
    for (const each of this.#waiting.splice(0)) each();
  }
}
