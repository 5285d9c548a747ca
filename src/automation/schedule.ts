/** When a job is due: cron expressions, intervals and single times -> the times to come. Pure; croner is the calculator. */
import { Cron } from "croner";
import type { Schedule } from "../core/automation.ts";
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
const DAY_MS = 24 * 60 * MINUTE_MS;
/** `24:00` is no time of day. */
const TIME_OF_DAY = /^([01]?\d|2[0-3]):([0-5]\d)$/;
const LOCAL_TIME = /^(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)(?::(\d\d)(?:\.\d{1,9})?)?$/;
const ABSOLUTE_TIME = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)$/i;

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
    return { kind: "interval", minutes: fields.interval_minutes as number, anchor: now };
  if (way === "run_at") return { kind: "once", at: timeOf(fields.run_at as string, timezone, now) };
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

/** croner's own words name the part; without a callback it sets no timer. */
function cronOf({ expression, timezone }: Extract<Schedule, { kind: "cron" }>): Cron {
  return new Cron(expression, { timezone, mode: "5-or-6-parts" });
}

function checkExpression(schedule: Extract<Schedule, { kind: "cron" }>, now: Date): void {
  const { expression } = schedule;
  const quoted = `'${expression.slice(0, 100)}'`;
  let next: Date | null;
  try {
    next = cronOf(schedule).nextRun(now);
  } catch (error) {
    const reason = String((error as Error).message)
      .replace(/^Cron(Pattern|Date): /, "")
      .replace(/\.$/, "");
    throw wrong(
      "schedule",
      `${quoted} is no cron expression: ${reason}. Write 5 fields (minute hour day month weekday), 6 with seconds in front, or @hourly, @daily, @weekly, @monthly, @yearly.`,
    );
  }
  if (next === null)
    throw wrong("schedule", `${quoted} never comes: there is no such date. Correct the day or the month.`);
}

function dailyAt(time: string): string {
  const parts = TIME_OF_DAY.exec(time.trim());
  if (!parts)
    throw wrong("cron_time", `has to be a time of day such as 07:30, but it is '${time.slice(0, 40)}'.`);
  return `${Number(parts[2])} ${Number(parts[1])} * * *`;
}

function zoneOf(name: string): string {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone;
  } catch {
    throw wrong(
      "timezone",
      `there is no time zone '${name.slice(0, 100)}'. Use a name of the IANA database, such as Europe/Berlin or UTC.`,
    );
  }
}

function timeOf(text: string, timezone: string, now: Date): Date {
  const at = ABSOLUTE_TIME.test(text.trim()) ? new Date(text.trim()) : localTime(text.trim(), timezone);
  if (!at || Number.isNaN(at.getTime()))
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

/** A wall clock's time in a zone; one that a clock change leaves out is the first moment behind the gap. */
function localTime(text: string, timezone: string): Date | null {
  const parts = LOCAL_TIME.exec(text);
  if (!parts) return null;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = parts
    .slice(1)
    .map((part) => Number(part ?? 0));
  const wall = Date.UTC(year, month - 1, day, hour, minute, second);
  const back = new Date(wall);
  // 30 February is another day.
  if (back.getUTCDate() !== day || back.getUTCMonth() !== month - 1 || hour > 23) return null;
  const cron = new Cron(`${second} ${minute} ${hour} ${day} ${month} *`, { timezone });
  return cron.nextRun(new Date(wall - DAY_MS));
}

function wrong(field: string, sentence: string): AppError {
  const message = `${field}: ${sentence}`;
  return new AppError("invalid_request", message, {
    param: field,
    details: { errors: [{ path: field, message }] },
  });
}
