/**
 * The tables, from which drizzle-kit generates `migrations/`. The service itself never loads this file: its statements
 * are written out beside their use, because the query builder costs more start-up time than the whole service may.
 * test/store/schema.test.ts holds tables and statements together.
 *
 * Every table has its owner. Ids are text, times are integers in milliseconds, and no value outgrows what a libSQL
 * server takes (see text.ts): what is longer goes on in rows of its own.
 */
import {
  blob,
  foreignKey,
  index,
  integer,
  primaryKey,
  sqliteTable,
  text,
  uniqueIndex,
} from "drizzle-orm/sqlite-core";

export const sessions = sqliteTable(
  "sessions",
  {
    id: text("id").primaryKey(),
    owner: text("owner").notNull(),
    /** The caller's own word for the session; null when the caller has only the id. */
    label: text("label"),
    /** Empty until the first user message. */
    title: text("title").notNull(),
    lastSeq: integer("last_seq").notNull(),
    messageCount: integer("message_count").notNull(),
    createdAt: integer("created_at").notNull(),
    updatedAt: integer("updated_at").notNull(),
  },
  (table) => [uniqueIndex("sessions_label").on(table.owner, table.label)],
);

export const messages = sqliteTable(
  "messages",
  {
    id: text("id").primaryKey(),
    owner: text("owner").notNull(),
    sessionId: text("session_id")
      .notNull()
      .references(() => sessions.id, { onDelete: "cascade" }),
    seq: integer("seq").notNull(),
    role: text("role").notNull(),
    /** A core Message as JSON; its first piece when `pieces` is more than 1. */
    content: text("content").notNull(),
    pieces: integer("pieces").notNull(),
    createdAt: integer("created_at").notNull(),
  },
  (table) => [uniqueIndex("messages_position").on(table.sessionId, table.seq)],
);

/** The second and further pieces of long messages, numbered from 1. */
export const messagePieces = sqliteTable(
  "message_pieces",
  {
    owner: text("owner").notNull(),
    messageId: text("message_id")
      .notNull()
      .references(() => messages.id, { onDelete: "cascade" }),
    piece: integer("piece").notNull(),
    content: text("content").notNull(),
  },
  (table) => [primaryKey({ columns: [table.messageId, table.piece] })],
);

export const handedBackTurns = sqliteTable(
  "handed_back_turns",
  {
    id: text("id").primaryKey(),
    owner: text("owner").notNull(),
    context: text("context").notNull(),
    /** JSON array of the client's call ids. */
    callIds: text("call_ids").notNull(),
    /** JSON array of core Messages; its first piece when `pieces` is more than 1. */
    content: text("content").notNull(),
    pieces: integer("pieces").notNull(),
    expiresAt: integer("expires_at").notNull(),
  },
  (table) => [index("handed_back_turns_expiry").on(table.expiresAt)],
);

export const handedBackPieces = sqliteTable(
  "handed_back_pieces",
  {
    owner: text("owner").notNull(),
    turnId: text("turn_id")
      .notNull()
      .references(() => handedBackTurns.id, { onDelete: "cascade" }),
    piece: integer("piece").notNull(),
    content: text("content").notNull(),
  },
  (table) => [primaryKey({ columns: [table.turnId, table.piece] })],
);

/** Under each of its call ids a turn is found; a newer turn of the same context takes the id over. */
export const handedBackCalls = sqliteTable(
  "handed_back_calls",
  {
    owner: text("owner").notNull(),
    callId: text("call_id").notNull(),
    context: text("context").notNull(),
    turnId: text("turn_id")
      .notNull()
      .references(() => handedBackTurns.id, { onDelete: "cascade" }),
  },
  (table) => [
    primaryKey({ columns: [table.owner, table.callId, table.context] }),
    index("handed_back_calls_turn").on(table.turnId),
  ],
);

export const usage = sqliteTable(
  "usage",
  {
    id: text("id").primaryKey(),
    owner: text("owner").notNull(),
    runId: text("run_id").notNull(),
    door: text("door").notNull(),
    provider: text("provider").notNull(),
    model: text("model").notNull(),
    outcome: text("outcome").notNull(),
    steps: integer("steps").notNull(),
    inputTokens: integer("input_tokens").notNull(),
    outputTokens: integer("output_tokens").notNull(),
    /** null where the provider does not count it. */
    cacheReadTokens: integer("cache_read_tokens"),
    cacheWriteTokens: integer("cache_write_tokens"),
    reasoningTokens: integer("reasoning_tokens"),
    durationMs: integer("duration_ms").notNull(),
    createdAt: integer("created_at").notNull(),
  },
  (table) => [index("usage_time").on(table.owner, table.createdAt)],
);

export const files = sqliteTable(
  "files",
  {
    owner: text("owner").notNull(),
    path: text("path").notNull(),
    /** The directory it is in; empty for the root. */
    parent: text("parent").notNull(),
    /** 0 or 1. */
    directory: integer("directory").notNull(),
    size: integer("size").notNull(),
    mode: integer("mode").notNull(),
    /** Changes with every write, so that a reader of several chunks knows that they belong together. */
    revision: text("revision").notNull(),
    modifiedAt: integer("modified_at").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.owner, table.path] }),
    index("files_parent").on(table.owner, table.parent),
    /** Lets the sum of an owner's sizes be read from the index alone. */
    index("files_size").on(table.owner, table.size),
  ],
);

/** The bytes of files, apart from their rows so that listings never read them. Numbered from 0. */
export const fileChunks = sqliteTable(
  "file_chunks",
  {
    owner: text("owner").notNull(),
    path: text("path").notNull(),
    chunk: integer("chunk").notNull(),
    bytes: blob("bytes", { mode: "buffer" }).notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.owner, table.path, table.chunk] }),
    foreignKey({ columns: [table.owner, table.path], foreignColumns: [files.owner, files.path] }).onDelete(
      "cascade",
    ),
  ],
);
