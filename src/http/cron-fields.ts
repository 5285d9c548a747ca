/** What may be said of a cron job on the wire -> what the scheduler takes. */
import * as z from "zod";
import { type JobBudget, MISFIRES, OVERLAPS, UNATTENDED_APPROVALS } from "../core/jobs.ts";
import type { CronChange, CronFields } from "../core/scheduler.ts";

/** Characters. */
const COMMAND_LIMIT = 100_000;
const NAME_LIMIT = 200;
const WORD_LIMIT = 200;
const URL_LIMIT = 2_000;
const TOOLS_LIMIT = 1_000;
/** A year. */
const INTERVAL_LIMIT = 366 * 24 * 60;

const word = z.string().trim().min(1).max(WORD_LIMIT).nullish();
const tokens = z.int().min(1).max(Number.MAX_SAFE_INTEGER).nullish();
const money = z.number().positive().nullish();

const budget = z
  .looseObject({
    run_tokens: tokens.describe("Tokens of one run, input and output together."),
    day_tokens: tokens.describe("Not run once all jobs of yours have used so many on a day (UTC)."),
    job_tokens: tokens.describe("Tokens of all its runs together; then it is paused."),
    run_money: money.describe("The same in money, for models that MODEL_PRICES has a price for."),
    day_money: money,
    job_money: money,
  })
  .nullish()
  .describe("What is absent is the operator's limit, which is also the most that may be asked for.");

/** What a job is made of. A watchdog has these too. */
export const jobFields = {
  name: z.string().trim().min(1).max(NAME_LIMIT).nullish().describe("Default: the beginning of the command."),
  session: word.describe("`new`, for a session of its own each time, or the id of one. Default `new`."),
  agent_name: word.describe("The agent that does it. Unknown: 404."),
  provider: z.enum(["openai", "anthropic", "groq", "gemini", "claude", "google"]).nullish(),
  model: word,
  api_key: z
    .string()
    .trim()
    .regex(/^[\x21-\x7e]+$/)
    .nullish()
    .describe("Kept encrypted, and never shown. Without one the operator's is used."),
  allowed_tools: z
    .array(z.string().min(1))
    .max(TOOLS_LIMIT)
    .nullish()
    .describe(
      "A list: only these are there, and they run unasked unless policy denies them. null: all tools; what would ask is not run.",
    ),
  approval: z
    .enum(UNATTENDED_APPROVALS)
    .nullish()
    .describe(
      "A call that would ask: `deny` refuses and reports it, `wait` parks the run until somebody decides. Default `deny`.",
    ),
  overlap: z
    .enum(OVERLAPS)
    .nullish()
    .describe("A time that comes while the run before is not over: `skip` or `queue`. Default `skip`."),
  max_runs: z.int().min(1).max(1_000_000_000).nullish().describe("Then the job is done."),
  repeat_after_crash: z
    .boolean()
    .nullish()
    .describe(
      "true: an occurrence whose process died before its run began is begun again, rather than reported as failed.",
    ),
  webhook_url: z
    .string()
    .trim()
    .min(1)
    .max(URL_LIMIT)
    .nullish()
    .describe("Gets a POST about each run, signed as Standard Webhooks has it."),
  webhook_secret: z
    .string()
    .max(WORD_LIMIT)
    .nullish()
    .describe("`whsec_…`, to sign with. Default: one is made, and shown once."),
  budget,
};

const when = {
  schedule: z
    .string()
    .min(1)
    .max(WORD_LIMIT)
    .nullish()
    .describe(
      "A cron expression of 5 fields, or 6 with seconds in front, or `@hourly`, `@daily`, `@weekly`.",
    ),
  interval_minutes: z.int().min(1).max(INTERVAL_LIMIT).nullish(),
  run_at: z
    .string()
    .min(1)
    .max(WORD_LIMIT)
    .nullish()
    .describe("Once, at an ISO 8601 time; without an offset it is meant in `timezone`."),
  cron_time: z.string().min(1).max(WORD_LIMIT).nullish().describe("`HH:MM`, daily."),
  timezone: z.string().min(1).max(WORD_LIMIT).nullish().describe("IANA name. Default UTC."),
  misfire: z
    .enum(MISFIRES)
    .nullish()
    .describe(
      "Times that are found late: `skip` them, run the newest `once` if it is at most an hour late, or `all` up to five. Default `once`.",
    ),
};

const command = z
  .string()
  .max(COMMAND_LIMIT)
  .regex(/\S/)
  .describe("What the agent is told to do, each time.");

export const cronRequest = z
  .looseObject({
    command: command.nullish(),
    prompt: command.nullish().describe("Another word for `command`."),
    ...when,
    ...jobFields,
  })
  .refine((body) => Boolean(body.command ?? body.prompt), {
    params: { wants: "have a command: what the agent is to do" },
  })
  .meta({
    id: "CronRequest",
    description: "With exactly one of `schedule`, `interval_minutes`, `run_at`, `cron_time`.",
  });

export const cronPatch = z
  .looseObject({
    command: command.nullish(),
    prompt: command.nullish(),
    ...when,
    ...jobFields,
    status: z.enum(["active", "paused"]).nullish(),
  })
  .meta({ id: "CronPatch", description: "What is absent stays; null takes a field back to its default." });

const BUDGET = {
  runTokens: "run_tokens",
  dayTokens: "day_tokens",
  jobTokens: "job_tokens",
  runMoney: "run_money",
  dayMoney: "day_money",
  jobMoney: "job_money",
} as const satisfies Record<keyof JobBudget, string>;
const BUDGET_NAMES = Object.entries(BUDGET) as [keyof JobBudget, (typeof BUDGET)[keyof JobBudget]][];

export function encodeBudget(budget: JobBudget): Record<string, number> {
  return Object.fromEntries(
    BUDGET_NAMES.flatMap(([key, name]) => (budget[key] === undefined ? [] : [[name, budget[key]]])),
  );
}

export function decodeBudget(wire: z.output<typeof budget>): JobBudget | undefined {
  if (!wire) return undefined;
  return Object.fromEntries(
    BUDGET_NAMES.flatMap(([key, name]) => (typeof wire[name] === "number" ? [[key, wire[name]]] : [])),
  );
}

type Wire = z.output<typeof cronRequest>;

/** For a new job null stands for absent. */
export function decodeCron(wire: Wire): CronFields {
  const { allowed_tools, webhook_url, max_runs } = wire;
  const given = Object.fromEntries(
    Object.entries(fieldsOf(wire)).filter(([, value]) => value !== null && value !== undefined),
  );
  return { command: "", ...given, allowed_tools, webhook_url, max_runs };
}

export function decodeCronPatch(wire: z.output<typeof cronPatch>): CronChange {
  return { ...fieldsOf(wire), status: wire.status ?? undefined };
}

function fieldsOf(wire: Wire): CronChange {
  const { schedule, interval_minutes, run_at, cron_time, timezone, misfire, overlap, max_runs } = wire;
  const { name, session, agent_name, provider, model, allowed_tools, approval, repeat_after_crash } = wire;
  return {
    ...{ command: wire.command ?? wire.prompt, schedule, interval_minutes, run_at, cron_time, timezone },
    ...{ name, session, agent_name, provider, model, allowed_tools, approval, misfire, overlap, max_runs },
    ...{ repeat_after_crash, webhook_url: wire.webhook_url },
    budget: wire.budget === null ? null : decodeBudget(wire.budget),
  };
}
