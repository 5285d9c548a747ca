/**
 * Vectors from the configured model: for what is searched, and in the background for every memory that has none of this
 * model yet. A failure is remembered and told to whoever asks; nothing else takes the model's place.
 */
import type { Embedder } from "../core/memory.ts";
import type { MemoryVectors } from "../core/memory-rows.ts";
import type { Log } from "../core/platform.ts";
import { toFault } from "../errors.ts";

/** Texts of one request. */
const BATCH = 64;
/** How long a search waits for the vector of what is searched. Milliseconds. */
const QUERY_WAIT_MS = 5_000;
const BATCH_WAIT_MS = 60_000;
/** Whoever has claimed memories and says nothing for so long has gone. Milliseconds. */
const CLAIM_MS = 2 * BATCH_WAIT_MS;
/** What is out for longer has ended with its request. Milliseconds. */
const LONGEST_OUT_MS = 2 * BATCH_WAIT_MS;
/** After a failure the next attempt waits. Milliseconds. */
const PAUSE_MS = 30_000;
/** Vectors of texts that were searched lately. */
const KEPT = 128;
/** Characters of a text that are embedded. */
const TEXT_LIMIT = 8_000;

export interface EmbeddingsOptions {
  embedder: Embedder;
  vectors: MemoryVectors;
  now(): Date;
  log: Log;
  background(work: Promise<unknown>): void;
}

export class Embeddings {
  readonly model: string;
  readonly #options: EmbeddingsOptions;
  readonly #queries = new Map<string, Float32Array>();
  #error: string | null = null;
  #working: Promise<void> | undefined;
  /** When it began what it is at. */
  #begun = 0;
  /** Asked again while it worked. */
  #again = false;
  #pausedUntil = 0;

  constructor(options: EmbeddingsOptions) {
    this.#options = options;
    this.model = options.embedder.model;
  }

  /** A sentence where the last call failed. */
  get error(): string | null {
    return this.#error;
  }

  /** Throws AppError. */
  async query(text: string, signal?: AbortSignal): Promise<Float32Array> {
    const wanted = text.slice(0, TEXT_LIMIT);
    let vector = this.#queries.get(wanted);
    if (vector) this.#queries.delete(wanted);
    else {
      const late = AbortSignal.timeout(QUERY_WAIT_MS);
      [vector] = await this.#embed([wanted], "query", signal ? AbortSignal.any([signal, late]) : late);
      if (this.#queries.size >= KEPT) this.#queries.delete(this.#queries.keys().next().value as string);
    }
    this.#queries.set(wanted, vector as Float32Array);
    return vector as Float32Array;
  }

  /** Says that there may be memories without a vector. */
  wake(): void {
    this.#options.background(this.catchUp());
  }

  /** Embeds all that is missing, unless the model has just failed. Any number of processes may do so at once. */
  catchUp(): Promise<void> {
    const begun = performance.now();
    if (this.#working && begun - this.#begun < LONGEST_OUT_MS) {
      this.#again = true;
      return this.#working;
    }
    this.#begun = begun;
    const working = this.#work().finally(() => {
      if (this.#working === working) this.#working = undefined;
    });
    this.#working = working;
    return working;
  }

  async #work(): Promise<void> {
    const { vectors, now, log } = this.#options;
    while (now().getTime() >= this.#pausedUntil) {
      this.#begun = performance.now();
      this.#again = false;
      const at = now();
      const claimed = await vectors.claim(this.model, at, new Date(at.getTime() + CLAIM_MS), BATCH);
      if (claimed.length === 0) {
        if (this.#again) continue;
        return;
      }
      try {
        const texts = claimed.map(({ document }) => document.slice(0, TEXT_LIMIT));
        const made = await this.#embed(texts, "document", AbortSignal.timeout(BATCH_WAIT_MS));
        await vectors.store(
          this.model,
          claimed.map((each, index) => ({ ...each, vector: made[index] as Float32Array })),
        );
      } catch (error) {
        this.#pausedUntil = now().getTime() + PAUSE_MS;
        log("warning", "memories could not be embedded, tried again later", {
          ...{ model: this.model, memories: claimed.length, error: toFault(error).message },
        });
      }
    }
  }

  async #embed(texts: string[], purpose: "document" | "query", signal: AbortSignal): Promise<Float32Array[]> {
    try {
      const vectors = await this.#options.embedder.embed(texts, purpose, signal);
      this.#error = null;
      return vectors;
    } catch (error) {
      this.#error = toFault(error).message;
      throw error;
    }
  }
}
