/** The tables of answers kept for a repeat, and of turns handed back with calls for the client; see schema.ts for the rules. */
import { foreignKey, index, integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";

export const idempotencyKeys = sqliteTable(
  "idempotency_keys",
  {
    owner: text("owner").notNull(),
    key: text("key").notNull(),
    fingerprint: text("fingerprint").notNull(),
    /** Of the answer, or before there is one, of the hold. */
    expiresAt: integer("expires_at").notNull(),
    /** null until there is an answer. */
    status: integer("status"),
    /** JSON object. */
    headers: text("headers"),
    /** Its first piece when `pieces` is more than 1. */
    body: text("body"),
    pieces: integer("pieces"),
  },
  (table) => [
    primaryKey({ columns: [table.owner, table.key] }),
    index("idempotency_keys_expiry").on(table.expiresAt),
  ],
);

/** The second and further pieces of long answers, numbered from 1. */
export const idempotencyPieces = sqliteTable(
  "idempotency_pieces",
  {
    owner: text("owner").notNull(),
    key: text("key").notNull(),
    piece: integer("piece").notNull(),
    content: text("content").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.owner, table.key, table.piece] }),
    foreignKey({
      columns: [table.owner, table.key],
      foreignColumns: [idempotencyKeys.owner, idempotencyKeys.key],
    }).onDelete("cascade"),
  ],
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
