/**
 * Brings a database to the present schema. Any number of processes may do so at once: the row that names a migration is
 * written in the same transaction as its statements, so that each is applied once.
 */
import type { InStatement, Row } from "@libsql/client/web";
import type { Database } from "./database.ts";
import { isConstraint, isMissingTable } from "./faults.ts";
import { Reader } from "./reader.ts";
import { WriteQueue } from "./write-queue.ts";

export interface Migration {
  /** File name without `.sql`; sorts in the order of application. */
  name: string;
  sql: string;
}

/** How long a migration waits for another process that is at it. Milliseconds. */
const PATIENCE_MS = 60_000;
/** What drizzle-kit writes between two statements. */
const BREAKPOINT = "--> statement-breakpoint";

const CREATE = `CREATE TABLE IF NOT EXISTS migrations (
  name text PRIMARY KEY NOT NULL, hash text NOT NULL, applied_at integer NOT NULL)`;
const CLAIM = "INSERT INTO migrations (name, hash, applied_at) VALUES (?, ?, ?)";

/**
 * Applies what is missing, in the order of the names, and returns those names. One query when nothing is. Throws when a
 * migration that was applied has changed since, and AppError when the database does not answer.
 */
export async function migrate(
  database: Database,
  migrations: readonly Migration[],
  now: () => Date = () => new Date(),
): Promise<string[]> {
  const applied = await appliedHashes(new Reader(database));
  const queue = new WriteQueue(database, PATIENCE_MS);
  const done: string[] = [];
  for (const migration of migrations.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const hash = await hashOf(migration.sql);
    const before = applied.get(migration.name);
    if (before !== undefined && before !== hash)
      throw new Error(
        `The migration ${migration.name} was changed after it had been applied to this database. Restore it, and put the change into a new one.`,
      );
    if (before !== undefined) continue;
    if (applied.size === 0 && done.length === 0) await queue.batch([CREATE]);
    if (await apply(queue, migration, hash, now())) done.push(migration.name);
  }
  return done;
}

async function appliedHashes(reader: Reader): Promise<Map<string, string>> {
  let rows: Row[];
  try {
    rows = await reader.rows("SELECT name, hash FROM migrations");
  } catch (error) {
    if (error instanceof Error && isMissingTable(error.cause)) return new Map();
    throw error;
  }
  return new Map(rows.map((row) => [row.name as string, row.hash as string]));
}

/** false when another process was first. The claim comes first, so that a latecomer waits there and then fails. */
async function apply(queue: WriteQueue, migration: Migration, hash: string, at: Date): Promise<boolean> {
  const statements: InStatement[] = [{ sql: CLAIM, args: [migration.name, hash, at.getTime()] }];
  for (const sql of migration.sql.split(BREAKPOINT)) if (sql.trim() !== "") statements.push(sql);
  try {
    await queue.migrate(statements);
    return true;
  } catch (error) {
    const claimed =
      isConstraint(error) && error instanceof Error && error.message.includes("migrations.name");
    if (claimed) return false;
    throw error;
  }
}

/** Of the text with Unix line ends, since version control may change them. */
async function hashOf(sql: string): Promise<string> {
  const bytes = new TextEncoder().encode(sql.replaceAll("\r\n", "\n"));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
