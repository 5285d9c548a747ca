/**
 * Every write of the service. Each is one atomic batch.
 *
 * A file has one writing connection, and the batches wait for it in line: the client would otherwise open further
 * connections that fail each other with SQLITE_BUSY, and after one SQLITE_BUSY a connection reports writes as done that
 * nobody ever sees (libsql-client-ts#352). So after every failure that is not a constraint the connection is
 * replaced before anything else runs.
 *
 * A server orders its writers itself, but sqld 0.24 answers some of them with SQLITE_BUSY, and may stop for good, when
 * several wait at once. So a process sends it one batch at a time too. That wait also looks at the clock, because on
 * workerd the batch before belongs to another request and may end with it, unnoticed.
 */
import type { InStatement, ResultSet } from "@libsql/client/web";
import { AppError } from "../errors.ts";
import { type Database, tuneWriter } from "./database.ts";
import { isBusy, isConstraint, toStoreFault } from "./faults.ts";

/** How long a batch waits for other writers, its time in line included. Milliseconds. */
const PATIENCE_MS = 5_000;
const FIRST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 80;
/** Batches in line at once. */
const LINE_LIMIT = 10_000;
/** A waiting batch looks this often whether the one before has vanished. Milliseconds. */
const LOOK_MS = 50;
/** A batch that is out for longer has ended with its request. Milliseconds. */
const LONGEST_OUT_MS = 20_000;

export class WriteQueue {
  readonly #database: Database;
  readonly #patienceMs: number;
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  /** The batch that a server has, and when it was sent. */
  #sent: { at: number } | undefined;
  readonly #wakes: (() => void)[] = [];

  constructor(database: Database, patienceMs = PATIENCE_MS) {
    this.#database = database;
    this.#patienceMs = patienceMs;
  }

  /** All statements or none. Throws AppError `unavailable` or `storage_full`; a broken constraint as it came. */
  batch(statements: InStatement[]): Promise<ResultSet[]> {
    return this.#enqueue(() => this.#database.write.batch(statements, "write"));
  }

  /** As `batch`, with foreign keys off, as a migration that rebuilds a table needs it. */
  migrate(statements: InStatement[]): Promise<ResultSet[]> {
    return this.#enqueue(() => this.#database.write.migrate(statements));
  }

  /** Resolves when all that is in line now has ended. */
  async drain(): Promise<void> {
    await this.#last;
  }

  #enqueue(work: () => Promise<ResultSet[]>): Promise<ResultSet[]> {
    const deadline = performance.now() + this.#patienceMs;
    if (this.#waiting >= LINE_LIMIT || this.#wakes.length >= LINE_LIMIT) return Promise.reject(overloaded());
    if (this.#database.kind === "remote") return this.#send(work, deadline);
    this.#waiting += 1;
    const turn = this.#last.then(() => this.#attempt(work, deadline));
    const ended = () => {
      this.#waiting -= 1;
    };
    this.#last = turn.then(ended, ended);
    return turn;
  }

  async #send(work: () => Promise<ResultSet[]>, deadline: number): Promise<ResultSet[]> {
    while (this.#sent !== undefined && performance.now() - this.#sent.at < LONGEST_OUT_MS) {
      if (performance.now() > deadline) throw overloaded();
      await this.#released();
    }
    const sent = { at: performance.now() };
    this.#sent = sent;
    try {
      return await this.#attempt(work, deadline);
    } finally {
      if (this.#sent === sent) this.#sent = undefined;
      this.#wakes.shift()?.();
    }
  }

  #released(): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        const at = this.#wakes.indexOf(wake);
        if (at !== -1) this.#wakes.splice(at, 1);
        resolve();
      }, LOOK_MS);
      this.#wakes.push(wake);
    });
  }

  async #attempt(work: () => Promise<ResultSet[]>, deadline: number): Promise<ResultSet[]> {
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      try {
        return await work();
      } catch (error) {
        if (isConstraint(error)) throw error;
        await this.#replaceConnection();
        if (!isBusy(error) || performance.now() + pause > deadline) throw toStoreFault(error);
      }
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }

  async #replaceConnection(): Promise<void> {
    if (this.#database.kind === "remote") return;
    try {
      // Declared as void by the interface, but the file client returns a promise.
      await this.#database.write.reconnect();
      await tuneWriter(this.#database.write);
    } catch {
      // The next attempt meets the same trouble and reports it.
    }
  }
}

function overloaded(): AppError {
  return new AppError(
    "unavailable",
    "Too many writes wait for the database. Nothing was stored; try again.",
    {
      retryAfter: 1,
    },
  );
}
