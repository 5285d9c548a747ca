/**
 * The tables, from which drizzle-kit generates `migrations/`. The service itself never loads this file: its statements
 * are written out beside their use, because the query builder costs more start-up time than the whole service may.
 * test/store/schema.test.ts holds tables and statements together.
 *
 * Every table has its owner. Ids are text, times are integers in milliseconds, and no value outgrows what a libSQL
 * server takes (see text.ts): what is longer goes on in rows of its own.
 */
import { sql } from "drizzle-orm";
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

export const runs = sqliteTable(
  "runs",
  {
    id: text("id").primaryKey(),
    owner: text("owner").notNull(),
    sessionId: text("session_id")
      .notNull()
      .references(() => sessions.id, { onDelete: "cascade" }),
    status: text("status").notNull(),
    /** A core RunSpec as JSON; empty, with all of it in run_pieces, when `specPieces` is more than 1. */
    spec: text("spec").notNull(),
    specPieces: integer("spec_pieces").notNull(),
    sealedKey: text("sealed_key"),
    /** null unless the run is running. */
    leaseHolder: text("lease_holder"),
    leaseUntil: integer("lease_until"),
    /** 0 or 1. */
    stopAsked: integer("stop_asked").notNull(),
    historySeq: integer("history_seq").notNull(),
    steps: integer("steps").notNull(),
    lastEvent: integer("last_event").notNull(),
    recoveries: integer("recoveries").notNull(),
    /** A core Usage as JSON. */
    usage: text("usage").notNull(),
    stop: text("stop"),
    /** A Fault as JSON. */
    fault: text("fault"),
    createdAt: integer("created_at").notNull(),
    updatedAt: integer("updated_at").notNull(),
    endedAt: integer("ended_at"),
    /** The frames of its end when they are short, and the number of the first; the last one is `lastEvent`. */
    framesFirst: integer("frames_first"),
    frames: text("frames"),
    /** Of a member of a swarm: the run that all of it hangs from. */
    root: text("root"),
  },
  (table) => [
    index("runs_members").on(table.root, table.createdAt).where(sql`root IS NOT NULL`),
    /** As small as what is under way. */
    index("runs_open_members")
      .on(table.root)
      .where(sql`root IS NOT NULL AND status IN ('running', 'paused')`),
    index("runs_time").on(table.owner, table.createdAt, table.id),
    index("runs_session").on(table.sessionId, table.createdAt, table.id),
    /** Small, since it has only what runs: it serves both who looks for a holder and who looks for an expired lease. */
    index("runs_lease").on(table.leaseHolder, table.leaseUntil).where(sql`status = 'running'`),
  ],
);

export const runCalls = sqliteTable(
  "run_calls",
  {
    owner: text("owner").notNull(),
    runId: text("run_id")
      .notNull()
      .references(() => runs.id, { onDelete: "cascade" }),
    sessionId: text("session_id").notNull(),
    callId: text("call_id").notNull(),
    step: integer("step").notNull(),
    position: integer("position").notNull(),
    name: text("name").notNull(),
    /** Empty, with all of it in run_pieces, when `argsPieces` is more than 1. */
    args: text("args").notNull(),
    argsPieces: integer("args_pieces").notNull(),
    risk: text("risk").notNull(),
    state: text("state").notNull(),
    codeHash: text("code_hash"),
    expiresAt: integer("expires_at"),
    decidedAt: integer("decided_at"),
    /** A core ToolResultMessage as JSON; empty, with all of it in run_pieces, when `resultPieces` is more than 1. */
    result: text("result"),
    resultPieces: integer("result_pieces").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.runId, table.callId] }),
    index("run_calls_session").on(table.sessionId, table.callId),
    index("run_calls_pending").on(table.sessionId).where(sql`state = 'pending'`),
    index("run_calls_expiry").on(table.expiresAt).where(sql`state = 'pending'`),
    index("run_calls_decided")
      .on(table.decidedAt)
      .where(sql`result IS NULL AND state IN ('allowed', 'denied')`),
    index("run_calls_code").on(table.codeHash).where(sql`code_hash IS NOT NULL`),
  ],
);

export const runFrames = sqliteTable(
  "run_frames",
  {
    owner: text("owner").notNull(),
    runId: text("run_id")
      .notNull()
      .references(() => runs.id, { onDelete: "cascade" }),
    /** Numbers of the first and of the last event. */
    first: integer("first").notNull(),
    last: integer("last").notNull(),
    /** Its first piece when `pieces` is more than 1; the others are in run_pieces. */
    content: text("content").notNull(),
    pieces: integer("pieces").notNull(),
  },
  (table) => [primaryKey({ columns: [table.runId, table.last] })],
);

/** What of a run is too long for its own row; `part` says what it is (see run-rows.ts). Numbered from 1. */
export const runPieces = sqliteTable(
  "run_pieces",
  {
    owner: text("owner").notNull(),
    runId: text("run_id")
      .notNull()
      .references(() => runs.id, { onDelete: "cascade" }),
    part: text("part").notNull(),
    piece: integer("piece").notNull(),
    content: text("content").notNull(),
  },
  (table) => [primaryKey({ columns: [table.runId, table.part, table.piece] })],
);

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
