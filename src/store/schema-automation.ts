/** The tables of jobs, of the times they were due, and of what is told of them elsewhere; see schema.ts for the rules. */
import { sql } from "drizzle-orm";
import {
  foreignKey,
  index,
  integer,
  primaryKey,
  real,
  sqliteTable,
  text,
  uniqueIndex,
} from "drizzle-orm/sqlite-core";

/** Cron jobs and watchdogs. */
export const jobs = sqliteTable(
  "jobs",
  {
    id: text("id").primaryKey(),
    owner: text("owner").notNull(),
    kind: text("kind").notNull(),
    name: text("name").notNull(),
    command: text("command").notNull(),
    /** `new`, or a session's id. */
    session: text("session").notNull(),
    agentName: text("agent_name"),
    provider: text("provider"),
    model: text("model"),
    sealedKey: text("sealed_key"),
    /** A JSON array of names. */
    allowedTools: text("allowed_tools"),
    approval: text("approval").notNull(),
    webhookUrl: text("webhook_url"),
    sealedWebhookSecret: text("sealed_webhook_secret"),
    /** JSON. */
    budget: text("budget").notNull(),
    overlap: text("overlap").notNull(),
    maxRuns: integer("max_runs"),
    /** JSON; of a cron job. */
    schedule: text("schedule"),
    misfire: text("misfire").notNull(),
    repeatAfterCrash: integer("repeat_after_crash").notNull(),
    /** JSON; this and the next seven of a watchdog. */
    target: text("target"),
    intervalMs: integer("interval_ms"),
    debounceMs: integer("debounce_ms"),
    cooldownMs: integer("cooldown_ms"),
    checkState: text("check_state"),
    lastCheckedAt: integer("last_checked_at"),
    lastFiredAt: integer("last_fired_at"),
    lastError: text("last_error"),
    /** Of what the job is, while it is not done: the same again is not made twice. */
    fingerprint: text("fingerprint"),
    status: text("status").notNull(),
    reason: text("reason"),
    runsMade: integer("runs_made").notNull(),
    /** In a row. */
    failures: integer("failures").notNull(),
    tokens: integer("tokens").notNull(),
    money: real("money").notNull(),
    lastRunAt: integer("last_run_at"),
    lastFate: text("last_fate"),
    nextAt: integer("next_at"),
    claimedBy: text("claimed_by"),
    claimUntil: integer("claim_until"),
    createdAt: integer("created_at").notNull(),
    updatedAt: integer("updated_at").notNull(),
  },
  (table) => [
    index("jobs_due").on(table.kind, table.status, table.nextAt),
    index("jobs_recent").on(table.owner, table.kind, table.createdAt, table.id),
    index("jobs_not_done").on(table.owner).where(sql`status <> 'done'`),
    uniqueIndex("jobs_fingerprint").on(table.owner, table.fingerprint).where(sql`fingerprint IS NOT NULL`),
  ],
);

export const occurrences = sqliteTable(
  "occurrences",
  {
    jobId: text("job_id")
      .notNull()
      .references(() => jobs.id, { onDelete: "cascade" }),
    scheduledAt: integer("scheduled_at").notNull(),
    owner: text("owner").notNull(),
    /** The last of those that the row stands for. */
    until: integer("until"),
    count: integer("count").notNull(),
    trigger: text("trigger").notNull(),
    fate: text("fate").notNull(),
    late: integer("late").notNull(),
    reason: text("reason"),
    finding: text("finding"),
    /** Given before anything happens. */
    runId: text("run_id"),
    sessionId: text("session_id"),
    /** Who has claimed it; behind its end a word of the statement that ended it. */
    holder: text("holder"),
    /** When it is looked at again; null once it has ended. */
    lookAt: integer("look_at"),
    attempts: integer("attempts").notNull(),
    startedAt: integer("started_at"),
    endedAt: integer("ended_at"),
    tokens: integer("tokens").notNull(),
    money: real("money").notNull(),
    /** A JSON array of the names of tools. */
    denied: text("denied"),
  },
  (table) => [
    primaryKey({ columns: [table.jobId, table.scheduledAt] }),
    index("occurrences_open").on(table.lookAt).where(sql`look_at IS NOT NULL`),
    index("occurrences_open_of").on(table.jobId, table.scheduledAt).where(sql`look_at IS NOT NULL`),
  ],
);

/** What is told of an occurrence to its job's webhook. */
export const deliveries = sqliteTable(
  "deliveries",
  {
    jobId: text("job_id").notNull(),
    scheduledAt: integer("scheduled_at").notNull(),
    owner: text("owner").notNull(),
    url: text("url").notNull(),
    sealedSecret: text("sealed_secret").notNull(),
    body: text("body").notNull(),
    status: text("status").notNull(),
    attempts: integer("attempts").notNull(),
    /** null once it has been delivered or given up. */
    nextAt: integer("next_at"),
    lastStatus: integer("last_status"),
    lastError: text("last_error"),
    createdAt: integer("created_at").notNull(),
    endedAt: integer("ended_at"),
  },
  (table) => [
    primaryKey({ columns: [table.jobId, table.scheduledAt] }),
    foreignKey({
      columns: [table.jobId, table.scheduledAt],
      foreignColumns: [occurrences.jobId, occurrences.scheduledAt],
    }).onDelete("cascade"),
    index("deliveries_due").on(table.nextAt).where(sql`next_at IS NOT NULL`),
  ],
);

/** What the jobs of an owner have used in a day; `day` is the number of days since 1970. */
export const automationDays = sqliteTable(
  "automation_days",
  {
    owner: text("owner").notNull(),
    day: integer("day").notNull(),
    tokens: integer("tokens").notNull(),
    money: real("money").notNull(),
  },
  (table) => [primaryKey({ columns: [table.owner, table.day] })],
);
