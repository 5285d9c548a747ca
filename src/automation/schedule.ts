/** When a job is due: cron expressions, intervals and single times -> the times to come. Pure; croner is the calculator. */
import { Cron } from "croner";
import type { Schedule } from "../core/jobs.ts";
import { AppError } from "../errors.ts";

export type { Schedule };

/** What a request says of it: exactly one of the four ways. */
export interface ScheduleFields {
  schedule?: string | undefined;
  interval_minutes?: number | undefined;
  /** ISO 8601; without an offset it is meant in `timezone`. */
  run_at?: string | undefined;
  /** `HH:MM`, daily. */
  cron_time?: string | undefined;
  timezone?: string | undefined;
}

const WAYS = ["schedule", "interval_minutes", "run_at", "cron_time"] as const;
export const MINUTE_MS = 60_000;
/** What croner counts in. */
const SECOND_MS = 1_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
/** `24:00` is no time of day. */
const TIME_OF_DAY = /^([01]?\d|2[0-3]):([0-5]\d)$/;
const TIME =
  /^(\d{4})-(\d\d)-(\d\d)[T ]([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:[.,](\d{1,9}))?)?(Z|[+-]([01]\d|2[0-3]):?[0-5]\d)?$/i;
/** An expression of five has no seconds. */
const FIELDS = [
  { name: "second", range: "0 to 59", last: 59 },
  { name: "minute", range: "0 to 59", last: 59 },
  { name: "hour", range: "0 to 23", last: 23 },
  { name: "day", range: "1 to 31, or L for the last", last: 31 },
  { name: "month", range: "1 to 12, or JAN to DEC", last: 12 },
  { name: "weekday", range: "0 to 7, or SUN to SAT", last: 6 },
];

/** Throws AppError `invalid_request` that names the field and quotes the part at fault. */
export function parseSchedule(fields: ScheduleFields, now: Date): Schedule {
  const given = WAYS.filter((way) => fields[way] !== undefined && fields[way] !== null);
  const [way] = given;
  if (way === undefined || given.length > 1)
    throw wrong(
      way ?? "schedule",
      `say when with exactly one of ${WAYS.join(", ")}${way === undefined ? "" : `, not with ${given.join(" and ")}`}.`,
    );
  const timezone = zoneOf(fields.timezone ?? "UTC");
  if (way === "interval_minutes")
    return { kind: "interval", minutes: fields.interval_minutes as number, anchor: now, timezone };
  if (way === "run_at") return { kind: "once", at: timeOf(fields.run_at as string, timezone, now), timezone };
  const expression =
    way === "cron_time" ? dailyAt(fields.cron_time as string) : (fields.schedule as string).trim();
  const schedule: Schedule = { kind: "cron", expression, timezone };
  checkExpression(schedule, now);
  return schedule;
}

/** The times behind `after`, soonest first, as many as are asked for. */
export function* timesAfter(schedule: Schedule, after: Date): Generator<Date, void, void> {
  if (schedule.kind === "once") {
    if (schedule.at > after) yield schedule.at;
    return;
  }
  const next = stepper(schedule);
  for (let at = next(after); at !== null; at = next(at)) yield at;
}

export function nextTimes(schedule: Schedule, after: Date, count: number): Date[] {
  const times: Date[] = [];
  for (const at of timesAfter(schedule, after)) if (times.push(at) >= count) break;
  return times;
}

export function nextTime(schedule: Schedule, after: Date): Date | null {
  return timesAfter(schedule, after).next().value ?? null;
}

/** The last times up to `now`, oldest first, as many as are asked for at most. */
export function timesUpTo(schedule: Schedule, now: Date, count: number): Date[] {
  if (schedule.kind === "once") return schedule.at <= now ? [schedule.at] : [];
  if (schedule.kind === "cron") {
    const soon = new Date(now.getTime() + SECOND_MS);
    return cronOf(schedule)
      .previousRuns(count + 1, soon)
      .filter((at) => at <= now)
      .slice(0, count)
      .reverse();
  }
  const step = schedule.minutes * MINUTE_MS;
  const anchor = schedule.anchor.getTime();
  const passed = Math.floor((now.getTime() - anchor) / step);
  const first = Math.max(1, passed - count + 1);
  return Array.from(
    { length: Math.max(0, passed - first + 1) },
    (_, n) => new Date(anchor + (first + n) * step),
  );
}

function stepper(schedule: Exclude<Schedule, { kind: "once" }>): (after: Date) => Date | null {
  if (schedule.kind === "cron") {
    const cron = cronOf(schedule);
    return (after) => cron.nextRun(after);
  }
  const step = schedule.minutes * MINUTE_MS;
  const anchor = schedule.anchor.getTime();
  return (after) => {
    const passed = Math.floor((after.getTime() - anchor) / step);
    return new Date(anchor + Math.max(1, passed + 1) * step);
  };
}

/** Without a callback croner sets no timer. */
function cronOf({ expression, timezone }: Extract<Schedule, { kind: "cron" }>): Cron {
  return new Cron(withRanges(expression), { timezone, mode: "5-or-6-parts" });
}

/** `5/15` is `5-59/15` elsewhere. croner could be told so, but looks for years then where a field has no value at all. */
function withRanges(expression: string): string {
  const parts = expression.split(/\s+/);
  const fields = FIELDS.slice(-parts.length);
  const written = (part: string, last: number | undefined) =>
    last === undefined ? part : part.replace(/(?<![^,])(\d+)(?=\/\d+(,|$))/g, `$1-${last}`);
  return parts.map((part, i) => written(part, fields[i]?.last)).join(" ");
}

function checkExpression(schedule: Extract<Schedule, { kind: "cron" }>, now: Date): void {
  const { expression } = schedule;
  if (firstOf(schedule, now)) return;
  const fault = faultIn(expression, now);
  const quoted = `'${expression.slice(0, 100)}'`;
  throw wrong(
    "schedule",
    fault === null
      ? `${quoted} never comes: there is no such date. Correct the day or the month.`
      : `${quoted} is no cron expression: ${fault} Write 5 fields (minute hour day month weekday), 6 with seconds in front, or @hourly, @daily, @weekly, @monthly, @yearly.`,
  );
}

/** null where it never comes, or cannot be read. */
function firstOf(schedule: Extract<Schedule, { kind: "cron" }>, now: Date): Date | null {
  try {
    return cronOf(schedule).nextRun(now);
  } catch {
    return null;
  }
}

/** What is wrong, with the part at fault: each is tried by itself. null where each of them is right. */
function faultIn(expression: string, now: Date): string | null {
  if (expression.startsWith("@")) return "there is no such word.";
  const parts = expression.split(/\s+/).filter((part) => part !== "");
  if (parts.length < 5 || parts.length > 6)
    return `it has ${parts.length} part${parts.length === 1 ? "" : "s"}.`;
  const fields = FIELDS.slice(-parts.length);
  const at = parts.findIndex((part, i) => {
    const alone = parts.map((_, j) => (j === i ? part : "*")).join(" ");
    return !firstOf({ kind: "cron", expression: alone, timezone: "UTC" }, now);
  });
  const field = fields[at];
  return field === undefined
    ? null
    : `its ${field.name} '${parts[at]?.slice(0, 100)}' is wrong: it takes ${field.range}, lists such as 1,3, upward ranges such as 1-3 and steps such as */2.`;
}

function dailyAt(time: string): string {
  const parts = TIME_OF_DAY.exec(time.trim());
  if (!parts)
    throw wrong("cron_time", `has to be a time of day such as 07:30, but it is '${time.slice(0, 40)}'.`);
  return `${Number(parts[2])} ${Number(parts[1])} * * *`;
}

/** As it was given: what runtimes make of a name, `Asia/Calcutta` of `Asia/Kolkata`, differs. */
function zoneOf(name: string): string {
  try {
    new Intl.DateTimeFormat("en", { timeZone: name.trim() });
    return name.trim();
  } catch {
    throw wrong(
      "timezone",
      `there is no time zone '${name.slice(0, 100)}'. Use a name of the IANA database, such as Europe/Berlin or UTC.`,
    );
  }
}

function timeOf(text: string, timezone: string, now: Date): Date {
  const at = readTime(text.trim(), timezone);
  if (!at)
    throw wrong(
      "run_at",
      `has to be a time such as 2026-12-24T18:00:00Z or, in the job's timezone, 2026-12-24T18:00, but it is '${text.slice(0, 60)}'.`,
    );
  if (at <= now)
    throw wrong(
      "run_at",
      `${at.toISOString()} is over: it is ${now.toISOString()} now. Name a time to come.`,
    );
  return at;
}

/** Without an offset a wall clock's time in the zone; one that a clock change leaves out is the first moment behind the gap. */
function readTime(text: string, timezone: string): Date | null {
  const parts = TIME.exec(text);
  if (!parts) return null;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = parts
    .slice(1, 7)
    .map((part) => Number(part ?? 0));
  const ms = Number((parts[7] ?? "").slice(0, 3).padEnd(3, "0"));
  const wall = Date.UTC(year, month - 1, day, hour, minute, second);
  const back = new Date(wall);
  // 30 February is another day.
  if (back.getUTCDate() !== day || back.getUTCMonth() !== month - 1) return null;
  const offset = parts[8];
  if (offset !== undefined) return new Date(wall + ms - offsetMs(offset));
  const cron = new Cron(`${second} ${minute} ${hour} ${day} ${month} *`, { timezone });
  const at = cron.nextRun(new Date(wall - DAY_MS));
  return at && new Date(at.getTime() + ms);
}

/** Of `Z` and of `+02:00`. */
function offsetMs(offset: string): number {
  if (/z/i.test(offset)) return 0;
  const minutes = Number(offset.slice(1, 3)) * 60 + Number(offset.slice(-2));
  return (offset.startsWith("-") ? -minutes : minutes) * MINUTE_MS;
}

function wrong(field: string, sentence: string): AppError {
  const message = `${field}: ${sentence}`;
  return new AppError("invalid_request", message, {
    param: field,
    details: { errors: [{ path: field, message }] },
  });
}
