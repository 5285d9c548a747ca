/** Every read of the service, on a connection of its own so that no read waits behind a busy writer. */
import type { InStatement, ResultSet, Row } from "@libsql/client/web";
import type { Database } from "./database.ts";
import { codeOf, isBusy, toStoreFault } from "./faults.ts";

export class Reader {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async rows(statement: InStatement): Promise<Row[]> {
    return (await this.#attempt(() => this.#database.read.execute(statement))).rows;
  }

  /** Several statements over one and the same state of the database. */
  batch(statements: InStatement[]): Promise<ResultSet[]> {
    return this.#attempt(() => this.#database.read.batch(statements, "read"));
  }

  /** One repeat: a reader is held up only while another process recovers or closes the file. */
  async #attempt<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const { kind, read } = this.#database;
      // Closed by another read's reconnect, not by the store's end.
      const replaced = kind === "file" && codeOf(error) === "CLIENT_CLOSED" && !read.closed;
      if (!isBusy(error) && !replaced) throw toStoreFault(error);
      if (kind === "file" && !replaced) await read.reconnect();
    }
    try {
      return await work();
    } catch (error) {
      throw toStoreFault(error);
    }
  }
}
