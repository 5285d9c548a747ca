import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CATCH_UPS, judgeDue, MISFIRES, PUNCTUAL_MS, TOO_LATE_MS } from "../../src/automation/misfire.ts";
import { nextTime, type Schedule } from "../../src/automation/schedule.ts";

const at = (text: string) => new Date(`2026-05-04T${text}Z`);
const daily: Schedule = { kind: "cron", expression: "0 9 * * *", timezone: "UTC" };
const everyMinute: Schedule = { kind: "cron", expression: "* * * * *", timezone: "UTC" };
const DAY = 24 * 60 * 60_000;

describe("R4: times that have come", () => {
  test("in time", () => {
    expect(judgeDue(daily, at("09:00:00"), at("09:00:20"), "once")).toEqual({
      run: [{ at: at("09:00:00"), late: false }],
      ...{ missed: null, superseded: null },
      next: new Date(at("09:00:00").getTime() + DAY),
    });
  });

  test.each([
    ["skip", [], 1],
    ["once", ["09:00"], 0],
    ["all", ["09:00"], 0],
  ] as const)("forty minutes late, %s", (misfire, run, missed) => {
    const verdict = judgeDue(daily, at("09:00:00"), at("09:40:00"), misfire);
    expect(verdict.run.map((each) => [each.at.toISOString().slice(11, 16), each.late])).toEqual(
      run.map((time) => [time, true]),
    );
    expect(verdict.missed?.count ?? 0).toBe(missed);
  });

  test("later than an hour, the default runs nothing and says so", () => {
    const verdict = judgeDue(daily, at("09:00:00"), at("10:00:01"), "once");
    expect(verdict.run).toEqual([]);
    expect(verdict.missed).toMatchObject({
      count: 1,
      first: at("09:00:00"),
      reason: expect.stringContaining("hour"),
    });
  });

  test("a laptop that slept two days", () => {
    const now = new Date(at("09:00:00").getTime() + 2 * DAY + 30_000);
    const minutely = judgeDue(everyMinute, at("09:00:00"), now, "once");
    expect(minutely.run).toEqual([{ at: new Date(at("09:00:00").getTime() + 2 * DAY), late: false }]);
    expect(minutely.missed).toMatchObject({ first: at("09:00:00"), more: true });
    expect(minutely.missed?.count).toBeGreaterThan(200);
    expect(minutely.superseded?.count).toBe(1);
    const all = judgeDue(everyMinute, at("09:00:00"), now, "all");
    expect(all.run.length).toBe(CATCH_UPS + 1);
  });

  test.each([
    ["a year of hours", "0 * * * *"],
    ["working hours, found on a Sunday", "0 9-17 * * 1-5"],
    ["a minute in the night", "*/2 3 * * *"],
  ])("%s: the newest are made up for, never the oldest", (_, expression) => {
    const schedule: Schedule = { kind: "cron", expression, timezone: "Europe/Berlin" };
    const due = nextTime(schedule, at("00:00:00")) as Date;
    const now = new Date("2027-05-02T15:30:00Z");
    const { run, missed } = judgeDue(schedule, due, now, "all");
    expect(run).toHaveLength(CATCH_UPS);
    let time = run[0]?.at as Date;
    for (const each of run) {
      expect(each.at).toEqual(time);
      time = nextTime(schedule, time) as Date;
    }
    expect(time.getTime()).toBeGreaterThan(now.getTime());
    expect(missed).toMatchObject({ first: due, more: true });
  });

  test("a clock that jumps by an hour, forth and back", () => {
    const forth = judgeDue(daily, at("09:00:00"), at("10:00:00"), "once");
    expect(forth.run).toEqual([{ at: at("09:00:00"), late: true }]);
    // Set back after it ran: the next time is tomorrow's, and nothing is due before.
    expect(forth.next?.getTime()).toBe(at("09:00:00").getTime() + DAY);
  });

  test("every time has exactly one fate, and what is next is to come", () => {
    const schedule = fc.oneof(
      fc
        .constantFrom("* * * * *", "*/7 * * * *", "0 * * * *", "0 9 * * *", "*/20 * * * * *")
        .map((expression): Schedule => ({ kind: "cron", expression, timezone: "Europe/Berlin" })),
      fc
        .integer({ min: 1, max: 600 })
        .map((minutes): Schedule => ({ kind: "interval", minutes, anchor: at("00:00:00") })),
    );
    fc.assert(
      fc.property(
        schedule,
        fc.nat(60 * 60_000 * 20),
        fc.constantFrom(...MISFIRES),
        (plan, lateBy, misfire) => {
          const due = nextTime(plan, at("00:00:00")) as Date;
          const now = new Date(due.getTime() + lateBy);
          const verdict = judgeDue(plan, due, now, misfire);
          let times = 0;
          for (let time: Date | null = due; time !== null && time <= now; time = nextTime(plan, time))
            times++;
          const counted =
            verdict.run.length + (verdict.missed?.count ?? 0) + (verdict.superseded?.count ?? 0);
          if (verdict.missed?.more) expect(counted).toBeLessThan(times);
          else expect(counted).toBe(times);
          expect(verdict.next?.getTime()).toBeGreaterThan(now.getTime());
          expect(verdict.run.filter((each) => each.late).length).toBeLessThanOrEqual(CATCH_UPS);
          for (const each of verdict.run) {
            const age = now.getTime() - each.at.getTime();
            expect(each.late).toBe(age > PUNCTUAL_MS);
            if (misfire === "once") expect(age).toBeLessThanOrEqual(TOO_LATE_MS);
            if (misfire === "skip") expect(each.late).toBe(false);
          }
        },
      ),
      { numRuns: 60 },
    );
  });
});
