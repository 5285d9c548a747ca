/** The record of what runs cost: collected in memory and written together, since nothing waits for it. */
import type { Log } from "../core/platform.ts";
import type { UsageLog, UsageRow } from "../core/store.ts";
import { toStorable } from "./text.ts";
import type { WriteQueue } from "./write-queue.ts";

/** How long a row waits for company. Milliseconds. */
const WAIT_MS = 250;
/** Rows that are written without further waiting, and the most in one statement. */
const ROWS_AT_ONCE = 200;
/** Rows kept while the database does not take them; the oldest go first. */
const ROWS_KEPT = 10_000;
/** One parameter for all rows: binding fifteen values a row costs more than SQLite needs to take the JSON apart. */
const INSERT = `INSERT INTO usage (id, owner, run_id, door, provider, model, outcome, steps, input_tokens,
    output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, duration_ms, created_at)
  SELECT ${Array.from({ length: 15 }, (_, index) => `value ->> ${index}`).join(", ")} FROM json_each(?)
  WHERE true ON CONFLICT (id) DO NOTHING`;
/** Characters of a name that came from outside. */
const NAME_LENGTH = 200;

/** Column values in the order of the statement. */
type Line = (string | number | null)[];

export interface UsageOptions {
  log: Log;
  now(): Date;
  background(work: Promise<unknown>): void;
  waitMs?: number;
}

export function createUsageLog(writer: WriteQueue, options: UsageOptions): UsageLog {
  return new BufferedUsage(writer, options);
}

class BufferedUsage implements UsageLog {
  readonly #writer: WriteQueue;
  readonly #options: UsageOptions;
  #lines: Line[] = [];
  /** Rows recorded so far: the number of the next one. */
  #recorded = 0;
  #failing = false;
  #lost = 0;
  readonly #writing = new Set<Promise<void>>();

  constructor(writer: WriteQueue, options: UsageOptions) {
    this.#writer = writer;
    this.#options = options;
  }

  record(row: UsageRow): void {
    this.#lines.push(toLine(row, this.#options.now()));
    const number = this.#recorded++;
    if (this.#lines.length > ROWS_KEPT) {
      this.#lines.shift();
      this.#lost += 1;
    }
    const wait = this.#lines.length >= ROWS_AT_ONCE && !this.#failing ? 0 : (this.#options.waitMs ?? WAIT_MS);
    this.#options.background(this.#after(wait, number));
  }

  async flush(): Promise<void> {
    void this.#start();
    await Promise.all(this.#writing);
  }

  /**
   * Every row has a wait of its own, and the first that is over takes all rows along: on workerd a timer ends with the
   * request that set it, so that no request may leave its row to the timer of another. A wait whose row has gone along
   * leaves the younger rows to their own, for otherwise each would soon be written alone.
   */
  async #after(waitMs: number, number: number): Promise<void> {
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    if (number >= this.#recorded - this.#lines.length) await this.#start();
  }

  /** Waits for its own write only, for the same reason. */
  async #start(): Promise<void> {
    const write = this.#write();
    this.#writing.add(write);
    await write;
    this.#writing.delete(write);
  }

  /** Stops at the first failure: what is left waits for the next row. */
  async #write(): Promise<void> {
    while (this.#lines.length > 0) {
      const lines = this.#lines.splice(0, ROWS_AT_ONCE);
      try {
        await this.#writer.batch([{ sql: INSERT, args: [JSON.stringify(lines)] }]);
      } catch (error) {
        const kept = [...lines, ...this.#lines];
        this.#lost += Math.max(0, kept.length - ROWS_KEPT);
        this.#lines = kept.slice(-ROWS_KEPT);
        if (!this.#failing) this.#report(error);
        this.#failing = true;
        return;
      }
    }
    if (!this.#failing) return;
    this.#failing = false;
    this.#options.log("info", "Usage is recorded again.", { lost: this.#lost });
    this.#lost = 0;
  }

  #report(error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    this.#options.log("warning", "Usage cannot be recorded; it is kept in memory for now.", { reason });
  }
}

function toLine(row: UsageRow, now: Date): Line {
  const { usage } = row;
  return [
    timedId(now),
    row.owner,
    row.runId,
    row.door,
    row.provider,
    toStorable(row.model.slice(0, NAME_LENGTH)),
    row.outcome,
    whole(row.steps),
    whole(usage.input),
    whole(usage.output),
    usage.cacheRead === undefined ? null : whole(usage.cacheRead),
    usage.cacheWrite === undefined ? null : whole(usage.cacheWrite),
    usage.reasoning === undefined ? null : whole(usage.reasoning),
    whole(row.durationMs),
    now.getTime(),
  ];
}

/** Ids that grow with time are added at the end of their index: random ones touch all of it, and more with every row. */
function timedId(now: Date): string {
  return `${now.getTime().toString(36).padStart(9, "0")}-${crypto.randomUUID()}`;
}

/** An upstream's counts are its own: what is no number must not stop the rows beside it. */
function whole(value: number): number {
  return Number.isFinite(value) ? Math.round(value) : 0;
}
