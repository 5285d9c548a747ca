/**
 * Every write of the service. Each is one atomic batch.
 *
 * Batches that come within one turn of the event loop, or while the one before is written, share a transaction, since what
 * a commit costs hardly depends on how much is in it. A transaction that fails is taken back, and its batches are written
 * one by one.
 *
 * A file has one writing connection, and the batches wait for it in line: the client would otherwise open further
 * connections that fail each other with SQLITE_BUSY, and after one SQLITE_BUSY a connection reports writes as done that
 * nobody ever sees (libsql-client-ts#352). So after every failure that is not a constraint the connection is
 * replaced before anything else runs.
 *
 * A server orders its writers itself, but sqld 0.24 answers some of them with SQLITE_BUSY, and may stop for good, when
 * several wait at once. So a process sends it one transaction at a time too. On workerd the one before belongs to another
 * request and may end with it, unnoticed: there each batch is sent alone, and its wait also looks at the clock.
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
/** Statements of a shared transaction, and characters of their texts: nothing else is written until it is over. */
const TOGETHER_LIMIT = 200;
const TOGETHER_LENGTH = 256 * 1024;
/** A waiting batch looks this often whether the one before has vanished. Milliseconds. */
const LOOK_MS = 50;
/** A batch that is out for longer has ended with its request. Milliseconds. */
const LONGEST_OUT_MS = 20_000;

interface Waiting {
  statements: InStatement[];
  deadline: number;
  resolve(results: ResultSet[]): void;
  reject(error: unknown): void;
}

export class WriteQueue {
  readonly #database: Database;
  readonly #patienceMs: number;
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  /** Those that share the next transaction, how many statements they have, and how long these are. */
  #group: Waiting[] = [];
  #groupSize = 0;
  #groupLength = 0;
  /** The batch that a server has, and when it was sent. */
  #sent: { at: number } | undefined;
  readonly #wakes: (() => void)[] = [];

  constructor(database: Database, patienceMs = PATIENCE_MS) {
    this.#database = database;
    this.#patienceMs = patienceMs;
  }

  /** All statements or none. Throws AppError `unavailable` or `storage_full`; a broken constraint as it came. */
  batch(statements: InStatement[]): Promise<ResultSet[]> {
    if (this.#database.requestBound) return this.#enqueue(() => this.#write(statements));
    if (this.#waiting >= LINE_LIMIT) return Promise.reject(overloaded());
    const length = lengthOf(statements);
    return new Promise((resolve, reject) => {
      const full =
        this.#groupSize + statements.length > TOGETHER_LIMIT || this.#groupLength + length > TOGETHER_LENGTH;
      if (this.#group.length === 0 || full) this.#openGroup();
      this.#waiting += 1;
      this.#groupSize += statements.length;
      this.#groupLength += length;
      this.#group.push({ statements, deadline: performance.now() + this.#patienceMs, resolve, reject });
    });
  }

  #write(statements: InStatement[]): Promise<ResultSet[]> {
    return this.#database.write.batch(statements, "write");
  }

  #openGroup(): void {
    const group: Waiting[] = [];
    this.#group = group;
    this.#groupSize = 0;
    this.#groupLength = 0;
    const before = this.#last;
    this.#last = endOfTurn()
      .then(() => before)
      .then(() => {
        // Who comes while these are written is late for them.
        if (this.#group === group) this.#group = [];
        return this.#writeGroup(group);
      })
      .then(() => {
        this.#waiting -= group.length;
      });
  }

  /** Settles all of them, and never rejects itself. */
  async #writeGroup(all: Waiting[]): Promise<void> {
    const now = performance.now();
    const group = all.filter(({ deadline }) => deadline >= now);
    if (group.length < all.length)
      for (const { deadline, reject } of all) if (deadline < now) reject(overloaded());
    if (group.length > 1 && (await this.#writeTogether(group))) return;
    for (const { statements, deadline, resolve, reject } of group)
      await this.#attempt(() => this.#write(statements), deadline).then(resolve, reject);
  }

  /** Returns false when nothing has been written and each of them has to be tried by itself. */
  async #writeTogether(group: Waiting[]): Promise<boolean> {
    const statements = group.flatMap((each) => each.statements);
    const deadline = Math.min(...group.map((each) => each.deadline));
    try {
      const results = await this.#attempt(() => this.#write(statements), deadline);
      let from = 0;
      for (const { statements, resolve } of group) {
        resolve(results.slice(from, from + statements.length));
        from += statements.length;
      }
      return true;
    } catch (error) {
      const reason = error instanceof AppError ? error.cause : error;
      if (isConstraint(reason) || (isBeforeCommit(reason) && !isBusy(reason))) return false;
      for (const { reject } of group) reject(error);
      return true;
    }
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
    if (this.#database.requestBound) return this.#send(work, deadline);
    this.#waiting += 1;
    // What comes later stays behind it.
    this.#group = [];
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

/** A commit that has failed may have come to the file after all, and must not be repeated. */
function isBeforeCommit(error: unknown): boolean {
  return error instanceof Error && "statementIndex" in error;
}

function lengthOf(statements: InStatement[]): number {
  let length = 0;
  for (const statement of statements) {
    if (typeof statement === "string" || !Array.isArray(statement.args)) continue;
    for (const arg of statement.args) if (typeof arg === "string") length += arg.length;
  }
  return length;
}

/** What is under way in this turn of the event loop has sent its batches by then. */
function endOfTurn(): Promise<void> {
  return new Promise((resolve) => {
    soon(resolve);
  });
}

const soon: (task: () => void) => void =
  typeof setImmediate === "function" ? setImmediate : (task) => setTimeout(task, 0);

function overloaded(): AppError {
  return new AppError(
    "unavailable",
    "Too many writes wait for the database. Nothing was stored; try again.",
    {
      retryAfter: 1,
    },
  );
}
