import { type CronExpression, CronExpressionParser } from "cron-parser";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  nextTime,
  nextTimes,
  parseSchedule,
  type Schedule,
  timesUpTo,
} from "../../src/automation/schedule.ts";
import { AppError } from "../../src/errors.ts";

const NOW = new Date("2026-01-01T00:00:00Z");
const BEFORE = new Date(NOW.getTime() - 1);
const YEAR_END = new Date("2027-01-01T00:00:00Z");
/** North and south, half hours, a change of half an hour (Lord Howe), one at midnight (Beirut), none at all. */
const ZONES = [
  ...["UTC", "Europe/Berlin", "America/New_York", "America/St_Johns", "Australia/Lord_Howe"],
  ...["Asia/Kolkata", "Asia/Beirut", "Pacific/Chatham", "Africa/Casablanca"],
];

function yearOf(schedule: Schedule): Date[] {
  const times: Date[] = [];
  let at = nextTime(schedule, BEFORE);
  while (at !== null && at < YEAR_END) {
    times.push(at);
    at = nextTime(schedule, at);
  }
  return times;
}

/** The same by another implementation; undefined where that one loses its way (clocks that change by half an hour). */
function otherYearOf(expression: string, tz: string): Date[] | undefined {
  const cron = CronExpressionParser.parse(expression, { tz, currentDate: BEFORE });
  const times: Date[] = [];
  try {
    for (;;) {
      const at = cron.next().toDate();
      if (at >= YEAR_END) return times;
      times.push(at);
    }
  } catch {
    return undefined;
  }
}

/** undefined where it gives up: it counts its steps, and some dates take it more than it allows itself. */
function otherNext(cron: CronExpression): Date | undefined {
  try {
    return cron.next().toDate();
  } catch {
    return undefined;
  }
}

/** What a clock on the wall shows, in minutes; a gap or a doubled hour shows in its steps. */
function offsetAt(at: Date, timeZone: string): number {
  const parts = Object.fromEntries(
    new Intl.DateTimeFormat("en-CA", {
      ...{ timeZone, hourCycle: "h23", year: "numeric", month: "2-digit", day: "2-digit" },
      ...{ hour: "2-digit", minute: "2-digit" },
    })
      .formatToParts(at)
      .map(({ type, value }) => [type, Number(value)]),
  ) as Record<string, number>;
  const { year = 0, month = 0, day, hour, minute } = parts;
  const wall = Date.UTC(year, month - 1, day, hour, minute);
  return (wall - Math.floor(at.getTime() / 60_000) * 60_000) / 60_000;
}

const HOUR = 3_600_000;
function nearClockChange(at: Date, zone: string): boolean {
  return (
    offsetAt(new Date(at.getTime() - 3 * HOUR), zone) !== offsetAt(new Date(at.getTime() + 3 * HOUR), zone)
  );
}

describe("a year of schedules, beside a second implementation", () => {
  const expressions = [
    ...["0 9 * * *", "30 2 * * *", "30 1 * * *", "0 0 * * *", "15 */6 * * *", "0 12 * * 1-5"],
    ...["0 8 1 * *", "59 23 31 12 *", "0 3 * * 0", "*/45 2 * * *", "0 7 15 * 1"],
  ];
  test.each(ZONES)("%s", (zone) => {
    let compared = 0;
    for (const expression of expressions) {
      const ours = yearOf({ kind: "cron", expression, timezone: zone });
      const theirs = otherYearOf(expression, zone);
      const calm = (times: Date[]) =>
        times.filter((at) => !nearClockChange(at, zone)).map((at) => at.toISOString());
      if (theirs) {
        compared++;
        expect([expression, calm(ours)]).toEqual([expression, calm(theirs)]);
      }
      // Where clocks change, implementations differ in the minute, never in how often.
      expect(ours.every((at, i) => i === 0 || at > (ours[i - 1] as Date))).toBe(true);
    }
    expect(compared).toBeGreaterThanOrEqual(zone === "Australia/Lord_Howe" ? 7 : expressions.length);
  });

  test("generated expressions, away from clock changes", () => {
    const field = (low: number, high: number) =>
      fc.oneof(
        fc.constant("*"),
        fc.integer({ min: low, max: high }).map(String),
        fc.integer({ min: 2, max: Math.min(9, high) }).map((step) => `*/${step}`),
        fc
          .tuple(fc.integer({ min: low, max: high }), fc.integer({ min: low, max: high }))
          .map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`),
        fc.uniqueArray(fc.integer({ min: low, max: high }), { minLength: 1, maxLength: 3 }).map(String),
      );
    const expression = fc
      .tuple(field(0, 59), field(0, 23), field(1, 28), field(1, 12), field(0, 6))
      .map((fields) => fields.join(" "));
    fc.assert(
      fc.property(expression, fc.constantFrom(...ZONES), fc.nat(364), (text, zone, day) => {
        const from = new Date(NOW.getTime() + day * 24 * HOUR);
        if (nearClockChange(new Date(from.getTime() + 12 * HOUR), zone)) return;
        const cron = CronExpressionParser.parse(text, { tz: zone, currentDate: from });
        for (const at of nextTimes({ kind: "cron", expression: text, timezone: zone }, from, 3)) {
          const other = otherNext(cron);
          if (!other) return;
          if (nearClockChange(at, zone) || nearClockChange(other, zone)) return;
          expect(at.toISOString()).toBe(other.toISOString());
        }
      }),
      { numRuns: 100 },
    );
  });

  test("a daily job runs once on each day, whatever the clocks do", () => {
    for (const zone of ZONES)
      for (const expression of ["30 2 * * *", "30 1 * * *", "0 0 * * *", "15 3 * * *"]) {
        const times = yearOf({ kind: "cron", expression, timezone: zone });
        const days = times.map((at) => Math.floor((at.getTime() / 60_000 + offsetAt(at, zone)) / (24 * 60)));
        const first = days[0] as number;
        expect([zone, expression, days]).toEqual([zone, expression, days.map((_, i) => first + i)]);
        expect(days.length).toBeGreaterThanOrEqual(364);
      }
  });

  test("02:30 in a spring gap is 03:00, and a doubled 01:30 comes once", () => {
    const berlin: Schedule = { kind: "cron", expression: "30 2 * * *", timezone: "Europe/Berlin" };
    expect(nextTime(berlin, new Date("2026-03-28T12:00:00Z"))?.toISOString()).toBe(
      "2026-03-29T01:00:00.000Z",
    );
    const newYork: Schedule = { kind: "cron", expression: "30 1 * * *", timezone: "America/New_York" };
    expect(nextTimes(newYork, new Date("2026-10-31T12:00:00Z"), 2).map((at) => at.toISOString())).toEqual([
      ...["2026-11-01T05:30:00.000Z", "2026-11-02T06:30:00.000Z"],
    ]);
  });
});

describe("intervals and single times", () => {
  test("an interval counts from its anchor, whenever it is asked", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 10_000 }),
        fc.integer({ min: 0, max: 10 ** 11 }),
        (minutes, late) => {
          const schedule: Schedule = { kind: "interval", minutes, anchor: NOW };
          const at = nextTime(schedule, new Date(NOW.getTime() + late)) as Date;
          expect((at.getTime() - NOW.getTime()) % (minutes * 60_000)).toBe(0);
          expect(at.getTime()).toBeGreaterThan(NOW.getTime() + late);
          expect(at.getTime()).toBeLessThanOrEqual(NOW.getTime() + late + minutes * 60_000);
        },
      ),
    );
  });

  test("the last times up to now are those that come before it, one by one", () => {
    const schedule = fc.oneof(
      fc
        .constantFrom("* * * * *", "*/7 * * * *", "0 9 * * 1-5", "30 2 * * *", "*/20 * * * * *", "0 0 L * *")
        .map((expression): Schedule => ({ kind: "cron", expression, timezone: "Europe/Berlin" })),
      fc
        .integer({ min: 1, max: 600 })
        .map((minutes): Schedule => ({ kind: "interval", minutes, anchor: NOW })),
      fc.nat(10 ** 9).map((ms): Schedule => ({ kind: "once", at: new Date(NOW.getTime() + ms) })),
    );
    fc.assert(
      fc.property(schedule, fc.nat(10 ** 10), fc.integer({ min: 1, max: 30 }), (plan, passed, count) => {
        const now = new Date(NOW.getTime() + passed);
        const times = timesUpTo(plan, now, count);
        expect(times.length).toBeLessThanOrEqual(count);
        for (const [i, at] of times.entries()) {
          const following = nextTime(plan, at);
          if (i < times.length - 1) expect(following).toEqual(times[i + 1]);
          else expect(following === null || following > now).toBe(true);
          expect(at <= now).toBe(true);
        }
        if (times.length === 0)
          expect((nextTime(plan, NOW) as Date).getTime()).toBeGreaterThan(now.getTime());
      }),
    );
  });

  test("a clock that was set back does not make an interval due before its first time", () => {
    const schedule: Schedule = { kind: "interval", minutes: 5, anchor: NOW };
    expect(nextTime(schedule, new Date(NOW.getTime() - HOUR))?.getTime()).toBe(NOW.getTime() + 300_000);
  });

  test("a single time comes once", () => {
    const at = new Date("2026-02-01T00:00:00Z");
    expect(nextTimes({ kind: "once", at }, NOW, 5)).toEqual([at]);
    expect(nextTime({ kind: "once", at }, at)).toBeNull();
  });
});

describe("what a request says", () => {
  const parse = (fields: Parameters<typeof parseSchedule>[0]) => parseSchedule(fields, NOW);

  test("each of the four ways", () => {
    expect(parse({ schedule: " @daily " })).toEqual({ kind: "cron", expression: "@daily", timezone: "UTC" });
    expect(parse({ interval_minutes: 15 })).toEqual({
      ...{ kind: "interval", minutes: 15, anchor: NOW, timezone: "UTC" },
    });
    expect(parse({ cron_time: "7:30", timezone: "Europe/Berlin" })).toEqual({
      ...{ kind: "cron", expression: "30 7 * * *", timezone: "Europe/Berlin" },
    });
    const at = (run_at: string, timezone?: string) => {
      const schedule = parse({ run_at, timezone });
      return schedule.kind === "once" ? schedule.at.toISOString() : null;
    };
    expect(at("2026-12-24T18:00:00+02:00")).toBe("2026-12-24T16:00:00.000Z");
    expect(at("2026-12-24T18:00", "America/New_York")).toBe("2026-12-24T23:00:00.000Z");
    expect(at("2026-07-01 08:15:30", "Europe/Berlin")).toBe("2026-07-01T06:15:30.000Z");
    expect(at("2026-03-29T02:30", "Europe/Berlin")).toBe("2026-03-29T01:00:00.000Z");
    expect(at("2026-07-01T08:15:30.25", "Asia/Tokyo")).toBe("2026-06-30T23:15:30.250Z");
    expect(at("2026-07-01 08:15-0330")).toBe("2026-07-01T11:45:00.000Z");
    expect(at("2026-07-01t08:15:00z", "Asia/Tokyo")).toBe("2026-07-01T08:15:00.000Z");
  });

  test.each([
    [{}, "schedule", "exactly one"],
    [{ schedule: "@daily", interval_minutes: 5 }, "schedule", "schedule and interval_minutes"],
    [{ schedule: "61 * * * *" }, "schedule", "its minute '61' is wrong: it takes 0 to 59"],
    [{ schedule: "0 0 0 * *" }, "schedule", "its day '0'"],
    [{ schedule: "0 0 * 13 *" }, "schedule", "its month '13'"],
    [{ schedule: "60 0 0 * * 1" }, "schedule", "its second '60'"],
    [{ schedule: "70/5 * * * *" }, "schedule", "its minute '70/5'"],
    [{ schedule: "0 22-2 * * *" }, "schedule", "its hour '22-2'"],
    [{ schedule: "0 0 * * 5#6" }, "schedule", "its weekday '5#6'"],
    [{ schedule: "* * * *" }, "schedule", "'* * * *'"],
    [{ schedule: "0 0 1 1 0 0 0" }, "schedule", "7 parts"],
    [{ schedule: "a b c d e" }, "schedule", "its minute 'a'"],
    [{ schedule: "@reboot" }, "schedule", "@reboot"],
    [{ schedule: "0 0 31 4 *" }, "schedule", "never comes"],
    [{ schedule: "@daily", timezone: "Mars/Phobos" }, "timezone", "'Mars/Phobos'"],
    [{ cron_time: "24:00" }, "cron_time", "'24:00'"],
    [{ cron_time: "7.30" }, "cron_time", "'7.30'"],
    [{ run_at: "2026-02-30T10:00" }, "run_at", "'2026-02-30T10:00'"],
    [{ run_at: "2026-02-30T10:00:00Z" }, "run_at", "'2026-02-30T10:00:00Z'"],
    [{ run_at: "2026-02-20T10:00:60" }, "run_at", "'2026-02-20T10:00:60'"],
    [{ run_at: "2026-02-20T10:60" }, "run_at", "'2026-02-20T10:60'"],
    [{ run_at: "2026-02-20T10:00+25:00" }, "run_at", "+25:00"],
    [{ run_at: "tomorrow" }, "run_at", "'tomorrow'"],
    [{ run_at: "2025-12-31T23:59:00Z" }, "run_at", "is over"],
  ])("%j is refused with the part at fault", (fields, param, words) => {
    try {
      parse(fields);
      expect.unreachable();
    } catch (error) {
      expect(error).toBeInstanceOf(AppError);
      expect(error).toMatchObject({ code: "invalid_request", param });
      expect((error as AppError).message).toContain(words);
    }
  });

  test("a zone keeps the name that it was given", () => {
    for (const timezone of ["Asia/Kolkata", "Europe/Kyiv", "US/Eastern"])
      for (const when of [{ cron_time: "9:00" }, { interval_minutes: 5 }, { run_at: "2026-07-01T08:00" }])
        expect(parse({ ...when, timezone: ` ${timezone} ` })).toMatchObject({ timezone });
  });

  test("a step behind a number goes on from there, as other schedulers have it", () => {
    const times = nextTimes(parse({ schedule: "5/20 * * * *" }), NOW, 4).map((at) => at.getUTCMinutes());
    expect(times).toEqual([5, 25, 45, 5]);
  });

  test("whatever is written as a time is one to come, or refused", () => {
    const two = fc.nat(99).map((n) => String(n).padStart(2, "0"));
    const written = fc
      .tuple(two, two, two, two, two, fc.constantFrom("", "Z", "+02:00", "-99:99"))
      .map(
        ([month, day, hour, minute, second, zone]) =>
          `2026-${month}-${day}T${hour}:${minute}:${second}${zone}`,
      );
    fc.assert(
      fc.property(fc.oneof(written, fc.string({ maxLength: 30 })), (run_at) => {
        try {
          expect(nextTime(parse({ run_at, timezone: "Europe/Berlin" }), NOW)).not.toBeNull();
        } catch (error) {
          expect(error).toBeInstanceOf(AppError);
        }
      }),
    );
  });

  test("whatever is written is a schedule with a time to come, or refused", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ maxLength: 30 }),
          fc
            .array(fc.constantFrom("*", "5", "0", "*/2", "1-3", "L", "MON#1", "?", "-", "/"), {
              maxLength: 7,
            })
            .map((f) => f.join(" ")),
        ),
        (text) => {
          let schedule: Schedule;
          try {
            schedule = parse({ schedule: text });
          } catch (error) {
            expect(error).toBeInstanceOf(AppError);
            return;
          }
          expect(nextTime(schedule, NOW)?.getTime()).toBeGreaterThan(NOW.getTime());
        },
      ),
    );
  });
});
