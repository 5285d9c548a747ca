/** A watchdog's look -> what is done about it. Pure. */
import type { Plan } from "../core/automation.ts";
import type { DueJob, WatchSpec } from "../core/jobs.ts";
import type { Look, Trial, WatchSituation } from "../core/watch.ts";
import { QUEUE_LIMIT, ranEnough } from "./plan-cron.ts";

/** What is expected to come to rest fires after so many times its pause, if it never does. */
const RESTLESS = 10;

/** What a watchdog has in mind between two looks. */
interface Memory {
  /** Of what it looks at: what was seen of something else is of no use. */
  of: string;
  /** Of the last look that counted, and what the checker kept of it. */
  digest: string;
  kept: Record<string, unknown>;
  /** Something is different, and may not be at rest yet. Times in milliseconds. */
  pending?: { digest: string; since: number; first: number } | undefined;
}

/** What it has in mind of this target; null before the first look. */
export function memoryOf({ watchState }: Pick<DueJob, "watchState">, of: string): Memory | null {
  const memory = watchState.state as unknown as Memory | null;
  return memory?.of === of ? memory : null;
}

export interface WatchVerdict {
  plan: Plan;
  trial: Trial;
}

/** `look`: what was found, or the sentence that says why nothing could be. */
export function planWatch(
  job: DueJob & { watch: WatchSpec },
  of: string,
  look: Look | { error: string },
  { now, open, createRunId }: WatchSituation & { createRunId(): string },
): WatchVerdict {
  const { watch, watchState } = job;
  const time = now.getTime();
  const soon = (ms: number) => new Date(time + Math.max(0, ms));
  const memory = memoryOf(job, of);
  const quiet = (
    reason: string,
    { state, next = watch.intervalMs, ...rest }: { state?: Memory; next?: number } & Partial<Trial> = {},
  ): WatchVerdict => ({
    plan: {
      ...{ records: [], nextAt: soon(next), done: null },
      watchState: {
        ...(state && { state: state as unknown as Record<string, unknown> }),
        ...{ lastCheckedAt: now, lastFiredAt: watchState.lastFiredAt, lastError: rest.error ?? null },
      },
    },
    trial: { wouldFire: false, reason, finding: null, error: null, ...rest },
  });

  if ("error" in look) return quiet("The check failed, and a failed check does not fire.", look);
  const { digest, kept, finding } = look;
  const seen: Memory = { of, digest, kept };
  if (!memory) return quiet("It is the first look, which later ones are compared with.", { state: seen });
  if (digest === memory.digest) {
    // What is said about its freshness may be new all the same.
    const { etag, modified } = memory.kept;
    const isNew = memory.pending !== undefined || kept.etag !== etag || kept.modified !== modified;
    return quiet("Nothing has changed.", isNew ? { state: seen } : {});
  }
  if (finding === null) return quiet("It has changed, but not so that it fires.", { state: seen });

  if (watch.debounceMs > 0) {
    const before = memory.pending;
    const since = before?.digest === digest ? before.since : time;
    const first = before?.first ?? time;
    const rests = Math.min(since + watch.debounceMs, first + watch.debounceMs * RESTLESS);
    if (time < rests) {
      const state =
        since === before?.since ? {} : { state: { ...memory, pending: { digest, since, first } } };
      return quiet("It has changed, and fires once it is at rest (debounce_seconds).", {
        ...{ ...state, next: rests - time, finding, wouldFire: true },
      });
    }
  }
  const cool = (watchState.lastFiredAt?.getTime() ?? Number.NEGATIVE_INFINITY) + watch.cooldownMs;
  if (time < cool)
    return quiet("It has changed, and fires once it has cooled down (cooldown_seconds).", {
      ...{ next: Math.min(cool - time, watch.intervalMs), finding },
    });
  // The difference stays one, and fires when there is room for it.
  if (open.length > QUEUE_LIMIT || (open.length > 0 && job.overlap === "skip"))
    return quiet("It has changed, and fires once the run before is over.", { finding });

  const enough = job.maxRuns !== null && job.runsMade + 1 >= job.maxRuns;
  return {
    plan: {
      records: [
        {
          ...{ scheduledAt: now, until: null, count: 1, trigger: "watchdog", late: false, reason: null },
          ...{ fate: open.length === 0 ? "claimed" : "queued", runId: createRunId(), finding },
        },
      ],
      nextAt: enough ? null : soon(watch.intervalMs),
      done: enough ? ranEnough(job.maxRuns) : null,
      watchState: {
        state: seen as unknown as Record<string, unknown>,
        ...{ lastCheckedAt: now, lastFiredAt: now, lastError: null },
      },
    },
    trial: { wouldFire: true, reason: "It has changed.", finding, error: null },
  };
}
