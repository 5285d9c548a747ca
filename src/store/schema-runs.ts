/** The tables of runs: their calls, what was shown of them, and what they cost; see schema.ts for the rules. */
import { sql } from "drizzle-orm";
import { index, integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { sessions } from "./schema.ts";

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
