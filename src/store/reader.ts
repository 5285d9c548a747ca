/** Every read of the service, on a connection of its own so that no read waits behind a busy writer. */
import type { InStatement, ResultSet, Row } from "@libsql/client/web";
import type { Database } from "./database.ts";
import { codeOf, isBusy, isTooLarge, toStoreFault } from "./faults.ts";

/** How long a read waits for its turn. Milliseconds. */
const PATIENCE_MS = 5_000;
const FIRST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 80;

export class Reader {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async rows(statement: InStatement): Promise<Row[]> {
    return (await this.#attempt(() => this.#database.read.execute(statement))).rows;
  }

  /**
   * A page of rows that may be long. A server refuses an answer of more than 10 MB: such a page is read as two halves.
   * `after` makes the statement for what follows a row, at first of null.
   */
  async page(after: (last: Row | null, limit: number) => InStatement, limit: number): Promise<Row[]> {
    const rows: Row[] = [];
    for (let size = limit; rows.length < limit; ) {
      const want = Math.min(size, limit - rows.length);
      try {
        const more = await this.rows(after(rows.at(-1) ?? null, want));
        rows.push(...more);
        if (more.length < want) break;
      } catch (error) {
        if (!isTooLarge(error) || want <= 1) throw error;
        size = Math.ceil(want / 2);
      }
    }
    return rows;
  }

  /** Several statements over one and the same state of the database. */
  batch(statements: InStatement[]): Promise<ResultSet[]> {
    return this.#attempt(() => this.#database.read.batch(statements, "read"));
  }

  /** A reader is held up while another process recovers or closes the file, or while a server has too many. */
  async #attempt<T>(work: () => Promise<T>): Promise<T> {
    const { kind, read } = this.#database;
    let deadline: number | undefined;
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      try {
        return await work();
      } catch (error) {
        // Closed by another read's reconnect, not by the store's end.
        const replaced = kind === "file" && codeOf(error) === "CLIENT_CLOSED" && !read.closed;
        deadline ??= performance.now() + PATIENCE_MS;
        if (!(isBusy(error) || replaced) || performance.now() + pause > deadline) throw toStoreFault(error);
        if (kind === "file" && !replaced) await read.reconnect();
      }
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }
}
