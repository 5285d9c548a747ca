/**
 * The tables, here those of conversations, from which drizzle-kit generates `migrations/`. The service itself never loads this file: its statements
 * are written out beside their use, because the query builder costs more start-up time than the whole service may.
 * test/store/migrations.test.ts holds tables and migrations together.
 *
 * Every table has its owner. Ids are text, times are integers in milliseconds, and no value outgrows what a libSQL
 * server takes (see text.ts): what is longer goes on in rows of its own.
 */
import { sql } from "drizzle-orm";
import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";

export const sessions = sqliteTable(
  "sessions",
  {
    /** Names the title's row in the search index, as `-row`; see search-index.ts. */
    row: integer("row").primaryKey(),
    id: text("id").notNull().unique(),
    owner: text("owner").notNull(),
    /** The caller's own word for the session; null when the caller has only the id. */
    label: text("label"),
    /** Empty until the first user message. */
    title: text("title").notNull(),
    lastSeq: integer("last_seq").notNull(),
    messageCount: integer("message_count").notNull(),
    createdAt: integer("created_at").notNull(),
    updatedAt: integer("updated_at").notNull(),
    /** 1 while lists leave it out. */
    unlisted: integer("unlisted").notNull().default(0),
    /** The run that is running or paused in this session. */
    turn: text("turn"),
  },
  (table) => [
    uniqueIndex("sessions_label").on(table.owner, table.label).where(sql`label IS NOT NULL`),
    index("sessions_recent").on(table.owner, table.updatedAt, table.id).where(sql`unlisted = 0`),
  ],
);

export const messages = sqliteTable(
  "messages",
  {
    /** Names the text's row in the search index, and grows with every message. */
    row: integer("row").primaryKey(),
    id: text("id").notNull().unique(),
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

/** What a person has allowed for the rest of a session: policy rules in the order of their making. */
export const sessionGrants = sqliteTable(
  "session_grants",
  {
    owner: text("owner").notNull(),
    sessionId: text("session_id")
      .notNull()
      .references(() => sessions.id, { onDelete: "cascade" }),
    position: integer("position").notNull(),
    /** A core PolicyRule as JSON. */
    rule: text("rule").notNull(),
  },
  (table) => [primaryKey({ columns: [table.sessionId, table.position] })],
);

export const sessionSummaries = sqliteTable(
  "session_summaries",
  {
    owner: text("owner").notNull(),
    sessionId: text("session_id")
      .notNull()
      .references(() => sessions.id, { onDelete: "cascade" }),
    /** Position of the last message that it stands for. */
    upTo: integer("up_to").notNull(),
    content: text("content").notNull(),
  },
  (table) => [primaryKey({ columns: [table.sessionId, table.upTo] })],
);
