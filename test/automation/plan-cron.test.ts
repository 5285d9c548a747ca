/** What is done about a cron job whose time has come. */
import { describe, expect, test } from "vitest";
import { planCron, QUEUE_LIMIT } from "../../src/automation/plan-cron.ts";
import type { Job, Schedule } from "../../src/core/jobs.ts";
import { DAY, HOUR, later, MINUTE, NOW, newJob } from "./records.ts";

const cron = (expression: string, timezone = "UTC"): Schedule => ({ kind: "cron", expression, timezone });

function planned(job: Partial<Job>, now: Date, open = 0) {
  let runs = 0;
  const full = newJob({ schedule: cron("0 * * * *"), ...job });
  const { schedule, nextAt } = full;
  if (!schedule || !nextAt) throw new Error("no time");
  const plan = planCron({ ...full, schedule, nextAt }, { now, open, createRunId: () => `run_${++runs}` });
  return { ...plan, fates: plan.records.map(({ fate, count, runId }) => [fate, count, runId]) };
}

describe("R4: a job that is due", () => {
  test("in time: one run", () => {
    const { fates, nextAt, done, records } = planned({}, later(500));
    expect([fates, nextAt, done]).toEqual([[["claimed", 1, "run_1"]], later(HOUR), null]);
    expect(records[0]).toMatchObject({ scheduledAt: NOW, until: null, late: false, trigger: "schedule" });
  });

  test("the clock jumps an hour ahead: one that is late runs, and the one in time", () => {
    const { fates, nextAt, records } = planned({}, later(HOUR + 1));
    expect([fates, nextAt]).toEqual([
      [
        ["missed", 1, null],
        ["claimed", 1, "run_1"],
      ],
      later(2 * HOUR),
    ]);
    expect(records[0]?.reason).toContain("misfire: once");
    const all = planned({ misfire: "all" }, later(HOUR + 1));
    expect(all.fates).toEqual([
      ["claimed", 1, "run_1"],
      ["queued", 1, "run_2"],
    ]);
    expect(all.records.map(({ late }) => late)).toEqual([true, false]);
  });

  test("a day ahead, found in between: the newest within the hour runs late, and all others are one record", () => {
    const now = later(DAY + 20 * MINUTE);
    expect(planned({}, now).fates).toEqual([
      ["missed", 24, null],
      ["claimed", 1, "run_1"],
    ]);
    expect(planned({ misfire: "skip" }, now).fates).toEqual([["missed", 25, null]]);
    const all = planned({ misfire: "all" }, now).fates;
    expect(all[0]).toEqual(["missed", 20, null]);
    expect(all.slice(1).map(([fate]) => fate)).toEqual(["claimed", "queued", "queued", "queued", "queued"]);
  });

  test("an hour back: what was done is not done again", () => {
    const { nextAt } = planned({}, NOW);
    expect(nextAt).toEqual(later(HOUR));
    // Nothing is due before that time, so nobody claims it while the clock says less.
    expect(planned({ nextAt }, later(HOUR)).fates).toEqual([["claimed", 1, "run_1"]]);
  });

  test("a laptop that slept two days: at most one run of a job each minute, and nothing without a trace", () => {
    const job = { schedule: cron("* * * * *"), nextAt: NOW };
    const { fates, records, nextAt } = planned(job, later(2 * DAY));
    expect(fates.filter(([fate]) => fate === "claimed")).toHaveLength(1);
    expect(records[0]).toMatchObject({ fate: "missed", scheduledAt: NOW });
    expect(records[0]?.reason).toContain("There were more than");
    expect(nextAt).toEqual(later(2 * DAY + MINUTE));
    expect(new Set(records.map(({ scheduledAt }) => scheduledAt.getTime())).size).toBe(records.length);
  });

  test("while the run before is not over: skipped, or in the queue up to its limit", () => {
    const skipped = planned({}, NOW, 1);
    expect(skipped.fates).toEqual([["skipped", 1, null]]);
    expect(skipped.records[0]?.reason).toContain("overlap: skip");
    expect(planned({ overlap: "queue" }, NOW, 1).fates).toEqual([["queued", 1, "run_1"]]);
    expect(planned({ overlap: "queue" }, NOW, QUEUE_LIMIT).fates).toEqual([["queued", 1, "run_1"]]);
    expect(planned({ overlap: "queue" }, NOW, QUEUE_LIMIT + 1).fates).toEqual([["superseded", 1, null]]);
  });

  test("max_runs: the last run ends the job, and there is none behind it", () => {
    const last = planned({ maxRuns: 3, runsMade: 2 }, NOW);
    expect([last.fates, last.nextAt]).toEqual([[["claimed", 1, "run_1"]], null]);
    expect(last.done).toContain("max_runs: 3");
    const none = planned({ maxRuns: 3, runsMade: 3 }, NOW);
    expect([none.fates, none.nextAt]).toEqual([[["skipped", 1, null]], null]);
    const some = planned({ maxRuns: 3, runsMade: 1, misfire: "all" }, later(3 * HOUR));
    expect(some.fates.map(([fate]) => fate)).toEqual(["claimed", "queued", "skipped", "skipped"]);
  });

  test("once is once", () => {
    const { fates, nextAt, done } = planned({ schedule: { kind: "once", at: NOW } }, later(1));
    expect([fates, nextAt, done]).toEqual([[["claimed", 1, "run_1"]], null, "Its time has come and gone."]);
  });
});
