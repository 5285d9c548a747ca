/** What is done about what a watchdog sees, over any course of events. */
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { planWatch } from "../../src/automation/watch-plan.ts";
import type { Job, WatchSpec } from "../../src/core/jobs.ts";
import { later, newJob, occurrenceOf } from "./records.ts";

type Watching = Job & { watch: WatchSpec };

const watching = (watch: Partial<WatchSpec> = {}): Watching => {
  const spec = { target: {}, intervalMs: 5_000, debounceMs: 0, cooldownMs: 0, ...watch };
  return { ...newJob({ kind: "watchdog", schedule: null }), watch: spec };
};

/** One look at `digest` after so many milliseconds; what it leaves is the job's. */
function look(job: Watching, digest: string, ms: number, { busy = false, failed = false } = {}) {
  const seen = failed ? { error: "no answer" } : { digest, kept: {}, finding: `now ${digest}` };
  const open = busy ? [occurrenceOf()] : [];
  const now = later(ms);
  const { plan, trial } = planWatch(job, "target", seen, { now, open, createRunId: () => "run_1" });
  const { state, ...times } = plan.watchState ?? { ...job.watchState };
  job.watchState = { ...times, state: state === undefined ? job.watchState.state : state };
  job.runsMade += plan.records.length;
  if (plan.done !== null) job.status = "done";
  return { plan, trial, fired: plan.records.length };
}

const steps = fc.array(
  fc.record({
    digest: fc.constantFrom("a", "b", "c"),
    ms: fc.integer({ min: 1_000, max: 20_000 }),
    busy: fc.boolean(),
    failed: fc.boolean(),
  }),
  { maxLength: 40 },
);

test("fires for a difference only, never in its cooldown, while it runs or for a failed check", () => {
  fc.assert(
    fc.property(
      steps,
      fc.constantFrom(0, 3_000, 15_000),
      fc.constantFrom(0, 30_000),
      (all, pause, cooldown) => {
        const job = watching({ debounceMs: pause, cooldownMs: cooldown });
        let at = 0;
        let told: string | undefined;
        let firedAt = Number.NEGATIVE_INFINITY;
        for (const { digest, ms, ...how } of all) {
          at += ms;
          const { plan, trial, fired } = look(job, digest, at, how);
          expect(plan.nextAt?.getTime()).toBeGreaterThanOrEqual(later(at).getTime());
          expect(plan.nextAt?.getTime()).toBeLessThanOrEqual(later(at + Math.max(5_000, pause)).getTime());
          expect(trial.error === null).toBe(!how.failed);
          if (fired === 1) {
            expect([how.busy, how.failed, digest === told]).toEqual([false, false, false]);
            expect(at - firedAt).toBeGreaterThanOrEqual(cooldown);
            firedAt = at;
          }
          if (fired === 1 || (told === undefined && !how.failed)) told = digest;
        }
        // Left alone, what is different from what was told fires in the end, once.
        if (told === undefined) return;
        const final = told === "a" ? "b" : "a";
        let fires = 0;
        for (let i = 1; i <= 20; i++) fires += look(job, final, at + i * 5_000).fired;
        expect(fires).toBe(1);
      },
    ),
  );
});

test("what never comes to rest fires after ten times the pause", () => {
  const job = watching({ debounceMs: 5_000 });
  let fires = 0;
  for (let i = 0; i <= 11; i++) fires += look(job, `state ${i}`, i * 5_000).fired;
  expect(fires).toBe(1);
});

test("a look that finds nothing leaves what is in mind as it is", () => {
  const job = watching();
  look(job, "a", 0);
  expect(look(job, "a", 5_000).plan.watchState).not.toHaveProperty("state");
  expect(look(job, "a", 10_000, { failed: true }).plan.watchState).not.toHaveProperty("state");
});

test("the last run that it may make is the end of it", () => {
  const job = { ...watching(), maxRuns: 1 };
  look(job, "a", 0);
  expect(look(job, "b", 5_000).plan).toMatchObject({
    nextAt: null,
    done: expect.stringContaining("max_runs: 1"),
  });
});
