/** What one owner may ask of this process: requests a minute, and runs under way at once (A5). Beyond it: 429. */
import type { MiddlewareHandler } from "hono";
import { AppError } from "../errors.ts";
import type { AppEnv } from "./env.ts";

const MINUTE_MS = 60_000;
/** Seconds after which a run may have ended. */
const RUN_WAIT_S = 5;
/** Owners whose buckets are kept before the full ones are dropped. */
const OWNERS_KEPT = 10_000;

export interface QuotaOptions {
  /** Of one owner; 0 is no limit. */
  requestsPerMinute: number;
  runs: number;
  /** Milliseconds since the epoch. */
  now(): number;
}

export interface Quota {
  /** Counts a request. Throws AppError `rate_limited`. */
  request(owner: string): void;
  /** Counts a run; call the result once it is over. Throws AppError `rate_limited`. */
  run(owner: string): () => void;
}

/** Who waits exactly as long as told is not sent away by the last bit of a fraction. */
const ROUNDING = 1e-9;

/** A bucket of tokens that fills as time passes, so that a burst of a minute's requests is well. */
interface Bucket {
  tokens: number;
  at: number;
}

export function createQuota({ requestsPerMinute, runs, now }: QuotaOptions): Quota {
  const buckets = new Map<string, Bucket>();
  const underWay = new Map<string, number>();

  function filled(bucket: Bucket, at: number): number {
    const more = (Math.max(0, at - bucket.at) * requestsPerMinute) / MINUTE_MS;
    return Math.min(requestsPerMinute, bucket.tokens + more);
  }

  return {
    request(owner) {
      if (requestsPerMinute === 0) return;
      const at = now();
      const bucket = buckets.get(owner);
      const tokens = bucket ? filled(bucket, at) : requestsPerMinute;
      if (tokens < 1 - ROUNDING)
        throw new AppError(
          "rate_limited",
          `You may send ${requestsPerMinute} requests a minute (RATE_LIMIT). Send this one again later.`,
          { retryAfter: ((1 - tokens) * MINUTE_MS) / requestsPerMinute / 1000 },
        );
      if (!bucket && buckets.size >= OWNERS_KEPT)
        for (const [name, other] of buckets) if (filled(other, at) >= requestsPerMinute) buckets.delete(name);
      buckets.set(owner, { tokens: Math.max(0, tokens - 1), at });
    },
    run(owner) {
      const count = underWay.get(owner) ?? 0;
      if (runs > 0 && count >= runs)
        throw new AppError(
          "rate_limited",
          `You have ${count} runs under way, and ${runs} is the limit (MAX_RUNS). Wait until one has ended, or stop one with POST /api/runs/{id}/stop.`,
          { retryAfter: RUN_WAIT_S },
        );
      underWay.set(owner, count + 1);
      let over = false;
      return () => {
        if (over) return;
        over = true;
        const left = (underWay.get(owner) ?? 1) - 1;
        if (left === 0) underWay.delete(owner);
        else underWay.set(owner, left);
      };
    },
  };
}

/** Behind the guard: who asks is known. */
export function quota(limits: Quota): MiddlewareHandler<AppEnv> {
  return async function quota(c, next) {
    limits.request(c.get("owner"));
    await next();
  };
}
