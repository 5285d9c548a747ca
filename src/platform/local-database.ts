/**
 * The client of a database file, in place of `@libsql/client/sqlite3`, over the same native library: it has one
 * connection and compiles each statement once, where the other compiles it for every use and costs twice as much.
 *
 * A failure leaves nothing behind: the transaction is rolled back, and all statements are forgotten with the one that
 * failed. Whether the connection itself is replaced is the caller's decision (`reconnect`).
 */
import type { Client, Config, InStatement, InValue, ResultSet, Row } from "@libsql/client/web";
import Native from "libsql";

type Connection = InstanceType<typeof Native>;

interface Compiled {
  statement: ReturnType<Connection["prepare"]>;
  /** Names of the columns; null for a statement that returns no rows. */
  columns: string[] | null;
}

/** Statements kept; the store has about half as many. */
const KEPT = 300;
/** A compiled statement holds on to its last values: with one longer than this it is not kept. Characters or bytes. */
const LONG = 64 * 1024;

/** As `createClient` of the other. Throws when the file cannot be opened. */
export function createClient(config: Config): FileClient {
  return new FileClient(config);
}

export class FileClient
  implements Pick<Client, "execute" | "batch" | "migrate" | "reconnect" | "close" | "closed">
{
  readonly #path: string;
  readonly #timeout: number;
  #connection: Connection;
  readonly #compiled = new Map<string, Compiled>();
  closed = false;

  constructor(config: Config) {
    this.#path = decodeURIComponent(config.url.replace(/^file:/, ""));
    this.#timeout = config.timeout ?? 0;
    this.#connection = this.#open();
  }

  async execute(statement: InStatement | string): Promise<ResultSet> {
    const connection = this.#usable();
    try {
      return this.#run(connection, statement);
    } catch (error) {
      throw this.#failed(connection, error);
    }
  }

  async batch(
    statements: (InStatement | [string, InValue[]?])[],
    mode: "write" | "read" | "deferred" = "deferred",
  ): Promise<ResultSet[]> {
    return this.#together(mode === "write" ? "BEGIN IMMEDIATE" : "BEGIN", statements);
  }

  async migrate(statements: InStatement[]): Promise<ResultSet[]> {
    const connection = this.#usable();
    connection.exec("PRAGMA foreign_keys = off");
    try {
      return this.#together("BEGIN", statements);
    } finally {
      if (connection.open) connection.exec("PRAGMA foreign_keys = on");
      this.#compiled.clear();
    }
  }

  reconnect(): void {
    this.#close();
    this.#connection = this.#open();
    this.closed = false;
  }

  close(): void {
    this.closed = true;
    this.#close();
  }

  #open(): Connection {
    return new Native(this.#path, { timeout: this.#timeout });
  }

  #close(): void {
    this.#compiled.clear();
    if (this.#connection.open) this.#connection.close();
  }

  /** Nothing but `open` may be asked of a connection that is closed: it would end the process. */
  #usable(): Connection {
    if (!this.closed && this.#connection.open) return this.#connection;
    throw Object.assign(new Error("The client is closed."), { code: "CLIENT_CLOSED" });
  }

  #together(begin: string, statements: (InStatement | [string, InValue[]?])[]): ResultSet[] {
    const connection = this.#usable();
    const results: ResultSet[] = [];
    try {
      // Compiled statements that meet a lock stay under way, and no transaction could end beside them.
      connection.exec(begin);
      for (const statement of statements) results.push(this.#run(connection, statement));
      connection.exec("COMMIT");
      return results;
    } catch (error) {
      const fault = this.#failed(connection, error);
      if (results.length < statements.length && fault instanceof Error)
        Object.assign(fault, { statementIndex: results.length });
      throw fault;
    }
  }

  #run(connection: Connection, wanted: InStatement | [string, InValue[]?]): ResultSet {
    const [sql, args] = partsOf(wanted);
    const values: unknown[] = [];
    let long = false;
    for (const arg of args) {
      values.push(toNative(arg));
      long ||= isLong(arg);
    }
    const { statement, columns } = this.#compile(connection, sql, long);
    if (columns === null) return resultOf([], [], Number(statement.run(values).changes));
    const rows: Row[] = [];
    for (const found of statement.all(values) as unknown[][]) rows.push(toRow(found, columns));
    return resultOf(columns, rows, 0);
  }

  #compile(connection: Connection, sql: string, once: boolean): Compiled {
    const known = this.#compiled.get(sql);
    if (known && !once) return known;
    const statement = connection.prepare(sql);
    const columns = statement.reader ? statement.columns().map(({ name }) => name) : null;
    if (columns) statement.raw(true);
    const compiled = { statement, columns };
    if (once) return compiled;
    if (this.#compiled.size >= KEPT) this.#compiled.delete(this.#compiled.keys().next().value as string);
    this.#compiled.set(sql, compiled);
    return compiled;
  }

  #failed(connection: Connection, error: unknown): unknown {
    this.#compiled.clear();
    try {
      if (connection.open && connection.inTransaction) connection.exec("ROLLBACK");
    } catch {
      // A connection that cannot take back what it has begun is of no more use.
      connection.close();
    }
    return error;
  }
}

function partsOf(wanted: InStatement | [string, InValue[]?]): [string, InValue[]] {
  if (typeof wanted === "string") return [wanted, []];
  if (Array.isArray(wanted)) return [wanted[0], wanted[1] ?? []];
  const { sql, args = [] } = wanted;
  if (!Array.isArray(args)) throw new TypeError("Parameters are given by their position.");
  return [sql, args];
}

function toNative(value: InValue): unknown {
  switch (typeof value) {
    case "string":
      return value;
    case "number":
      if (!Number.isFinite(value)) throw new RangeError("Only finite numbers can be stored.");
      return value;
    case "boolean":
      return value ? 1 : 0;
    case "undefined":
      throw new TypeError("undefined cannot be stored.");
  }
  if (value instanceof ArrayBuffer) return Buffer.from(value);
  return value instanceof Date ? value.getTime() : value;
}

function isLong(value: InValue): boolean {
  if (typeof value === "string") return value.length > LONG;
  return value instanceof ArrayBuffer || ArrayBuffer.isView(value) ? value.byteLength > LONG : false;
}

/** By name alone: positions would cost more than the values. */
function toRow(values: unknown[], columns: string[]): Row {
  const row: Record<string, unknown> = {};
  for (let index = 0; index < columns.length; index++) {
    const value = values[index];
    row[columns[index] as string] = value instanceof Uint8Array ? toArrayBuffer(value) : value;
  }
  return row as Row;
}

function toArrayBuffer({ buffer, byteOffset, byteLength }: Uint8Array): ArrayBuffer {
  const whole = byteOffset === 0 && byteLength === buffer.byteLength;
  return (whole ? buffer : buffer.slice(byteOffset, byteOffset + byteLength)) as ArrayBuffer;
}

function resultOf(columns: string[], rows: Row[], rowsAffected: number): ResultSet {
  return { columns, columnTypes: [], rows, rowsAffected, lastInsertRowid: undefined, toJSON: () => rows };
}
