/** Automation as the rest of the service has it: the runner with its clock, and the jobs. */
import { Pace } from "./pace.ts";
import { CronJobs } from "./scheduler.ts";
import { Engine, type EngineParts, type Ticked } from "./tick.ts";
import type { Patterns } from "./watch-check.ts";
import { DirectoryHints } from "./watch-hints.ts";
import { Watchdogs } from "./watchdogs.ts";

export interface AutomationService {
  readonly cron: CronJobs;
  readonly watchdogs: Watchdogs;
  readonly engine: Engine;
  tick(): Promise<Ticked>;
  /** Something may be due sooner than was known. */
  wake(): void;
  /** Throws when the runner does not look at what is due. On Workers it is not ours to say. */
  check(): void;
  /** Takes up nothing more. */
  close(): void;
}

export function createAutomation(
  parts: Omit<EngineParts, "automation" | "planners"> & { patterns: Patterns },
): AutomationService {
  const { platform, store } = parts.agent;
  const { automation } = store;
  const engine: Engine = new Engine({
    ...{ ...parts, automation },
    planners: { watchdog: (job, situation) => watchdogs.plan(job, situation) },
  });
  // On Workers nothing may run between requests: what ticks there is the trigger.
  const pace =
    platform.runtime === "workerd"
      ? undefined
      : new Pace({
          tick: () => {
            platform.background(hints.refresh());
            return engine.tick();
          },
          nextDue: () => automation.nextDue(),
          now: () => platform.now(),
          background: (work) => platform.background(work),
        });
  const wake = () => pace?.wake();
  const hints = new DirectoryHints({ hints: automation.hints, platform, wake });
  wake();
  const cron = new CronJobs({ ...parts, automation, wake, runNow: (job) => engine.runNow(job) });
  const watchdogs: Watchdogs = new Watchdogs({ ...parts, automation, cron, hints, wake });
  return {
    ...{ cron, watchdogs, engine, wake },
    tick: () => engine.tick(),
    check: () => pace?.check(),
    close() {
      pace?.stop();
      hints.close();
      engine.stop();
    },
  };
}
