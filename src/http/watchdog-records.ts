/** Watchdogs on the wire: what may be sent, and what is shown. */
import * as z from "zod";
import type { Job } from "../core/jobs.ts";
import {
  EXPECT_ON,
  type Trial,
  type WatchChange,
  type WatchFields,
  type WatchTarget,
} from "../core/watch.ts";
import { decodeCron, decodeCronPatch, jobFields } from "./cron-fields.ts";
import { cronView, encodeCommon, encodeJob, occurrenceList } from "./cron-records.ts";
import { unavailableTools } from "./unavailable-tools.ts";

/** Characters. */
const ACTION_LIMIT = 100_000;
const PATH_LIMIT = 4_096;
const URL_LIMIT = 2_000;
const COMMAND_LIMIT = 20_000;
const PATTERN_LIMIT = 1_000;
const TEXT_LIMIT = 10_000;
/** Seconds. */
const LEAST_INTERVAL = 5;
const WEEK = 7 * 24 * 3_600;

const expectation = z
  .strictObject({
    status: z.int().min(100).max(599).nullish().describe("Of a url."),
    exit_code: z.int().min(0).max(4_294_967_295).nullish().describe("Of a command."),
    body: z.string().min(1).max(TEXT_LIMIT).nullish().describe("A text that is in the answer or the output."),
    regex: z
      .string()
      .min(1)
      .max(PATTERN_LIMIT)
      .nullish()
      .describe("An RE2 expression that matches in it; (?m) makes `^` and `$` those of lines."),
    json_path: z
      .string()
      .min(1)
      .max(PATTERN_LIMIT)
      .nullish()
      .describe("`$.items[0].name`, which has to exist, or to be what `equals` says."),
    equals: z.json().optional(),
    on: z
      .enum(EXPECT_ON)
      .nullish()
      .describe(
        "It fires when this begins or ceases to hold (`change`, the default), or only when it begins (`met`) or ceases (`unmet`).",
      ),
  })
  .nullish()
  .describe("All that is given has to hold. Without it, any change of the answer or the output fires.");

const action = z.string().max(ACTION_LIMIT).regex(/\S/).describe("What the agent is told to do.");
const seconds = z.int().min(0).max(WEEK).nullish();

const fields = {
  directory: z
    .string()
    .min(1)
    .max(PATH_LIMIT)
    .nullish()
    .describe("Of the workspace; `.` is all of it. Files made, changed or deleted below it fire."),
  pattern: z
    .string()
    .min(1)
    .max(500)
    .nullish()
    .describe("A glob that narrows the directory: `*.csv`, `in/**/*.{jpg,png}`."),
  url: z.string().trim().min(1).max(URL_LIMIT).nullish(),
  command: z
    .string()
    .max(COMMAND_LIMIT)
    .regex(/\S/)
    .nullish()
    .describe("Run at each check, so policy or `allowed_tools` has to let it run unasked."),
  expect: expectation,
  interval_seconds: z
    .int()
    .min(LEAST_INTERVAL)
    .max(WEEK)
    .nullish()
    .describe(
      "Between two checks. Default 60. A directory of the service's own machine is checked as soon as it changes, too.",
    ),
  debounce_seconds: seconds.describe(
    "A change fires once it has been at rest for so long. Default 2 for a directory, else 0.",
  ),
  cooldown_seconds: seconds.describe(
    "At least so long from one firing to the next; what happens meanwhile fires then, together. Default 0.",
  ),
  ...jobFields,
};

export const watchdogRequest = z
  .looseObject({ action, ...fields })
  .meta({ id: "WatchdogRequest", description: "With exactly one of `directory`, `url`, `command`." });

export const watchdogPatch = z
  .looseObject({ action: action.nullish(), ...fields, status: z.enum(["active", "paused"]).nullish() })
  .meta({
    id: "WatchdogPatch",
    description: "What is absent stays; null takes a field back to its default.",
  });

const time = z.string().nullable();
const {
  command: _,
  schedule,
  interval_minutes,
  run_at,
  timezone,
  misfire,
  next_run_time,
  ...common
} = cronView.shape;

export const watchdogView = z
  .object({
    ...common,
    action: z.string(),
    directory: z.string().nullable(),
    pattern: z.string().nullable(),
    url: z.string().nullable(),
    command: z.string().nullable(),
    expect: z.record(z.string(), z.unknown()).nullable(),
    interval_seconds: z.number(),
    debounce_seconds: z.number(),
    cooldown_seconds: z.number(),
    last_checked_at: time,
    last_fired_at: time,
    last_error: time.describe(
      "Why the last check failed; null where it did not. A failed check does not fire.",
    ),
    next_check_at: time,
  })
  .meta({ id: "Watchdog" });

export const watchdogSaved = z
  .object({
    status: z.enum(["created", "exists", "updated"]),
    watchdog_id: z.string(),
    watchdog: watchdogView,
    webhook_secret: z.string().optional().describe("Of a webhook that is new. It is shown this once."),
    ...unavailableTools,
  })
  .meta({ id: "WatchdogSaved" });

export const watchdogList = z
  .object({ watchdogs: z.array(watchdogView), next_cursor: z.string().nullable() })
  .meta({ id: "WatchdogList" });

export const watchdogRuns = occurrenceList.omit({ upcoming: true }).meta({ id: "WatchdogRuns" });

export const watchdogTrial = z
  .object({
    status: z.literal("tested"),
    would_fire: z.boolean(),
    reason: z.string(),
    finding: z.string().nullable().describe("What the agent would be told beside the action."),
    error: z.string().nullable().describe("Why the check failed."),
  })
  .meta({ id: "WatchdogTrial" });

const iso = (at: Date | null) => at?.toISOString() ?? null;

export function encodeWatchdog(job: Job): z.output<typeof watchdogView> {
  const { watch, watchState } = job;
  const target: WatchTarget = watch?.target ?? {};
  const inSeconds = (ms: number | undefined) => (ms ?? 0) / 1_000;
  return {
    ...{ id: job.id, name: job.name, action: job.command, ...encodeCommon(job) },
    usage: encodeJob(job).usage,
    ...{ directory: target.directory ?? null, pattern: target.pattern ?? null, url: target.url ?? null },
    ...{ command: target.command ?? null, expect: target.expect ? { ...target.expect } : null },
    interval_seconds: inSeconds(watch?.intervalMs),
    debounce_seconds: inSeconds(watch?.debounceMs),
    cooldown_seconds: inSeconds(watch?.cooldownMs),
    last_checked_at: iso(watchState.lastCheckedAt),
    last_fired_at: iso(watchState.lastFiredAt),
    last_error: watchState.lastError,
    next_check_at: job.status === "active" ? iso(job.nextAt) : null,
  };
}

export function encodeTrial({ wouldFire, reason, finding, error }: Trial): z.output<typeof watchdogTrial> {
  return { status: "tested", would_fire: wouldFire, reason, finding, error };
}

type Wire = z.output<typeof watchdogPatch>;

const WATCHED = [
  ...(["directory", "pattern", "url", "command", "interval_seconds"] as const),
  ...(["debounce_seconds", "cooldown_seconds"] as const),
];

/** For a new watchdog null stands for absent. */
export function decodeWatchdog(wire: z.output<typeof watchdogRequest>): WatchFields {
  const given = Object.fromEntries(
    WATCHED.flatMap((name) => (wire[name] === null || wire[name] === undefined ? [] : [[name, wire[name]]])),
  );
  return { ...given, expect: decodeExpect(wire.expect) ?? undefined, job: decodeCron(jobOf(wire)) };
}

export function decodeWatchdogPatch(wire: Wire): WatchChange {
  const given = Object.fromEntries(
    WATCHED.flatMap((name) => (wire[name] === undefined ? [] : [[name, wire[name]]])),
  );
  return {
    ...given,
    expect: decodeExpect(wire.expect),
    job: decodeCronPatch({ ...jobOf(wire), status: wire.status }),
  };
}

function decodeExpect(wire: Wire["expect"]) {
  if (!wire) return wire;
  return Object.fromEntries(
    Object.entries(wire).filter(
      ([name, value]) => name === "equals" || (value !== null && value !== undefined),
    ),
  );
}

/** What it has as a job; a watchdog has no time, and its `command` is another. */
function jobOf(wire: Wire) {
  const own = Object.fromEntries(
    (Object.keys(jobFields) as (keyof typeof jobFields)[]).map((name) => [name, wire[name]]),
  ) as Pick<Wire, keyof typeof jobFields>;
  return { ...own, command: wire.action };
}
