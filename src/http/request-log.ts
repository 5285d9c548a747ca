/** One line in the log for each request, and one more in the counts, when its response begins. A stream's end is in the line of its run. */
import type { MiddlewareHandler } from "hono";
import type { Metrics } from "../core/metrics.ts";
import type { Log } from "../core/platform.ts";
import type { AppEnv } from "./env.ts";
import { doorOf } from "./problem.ts";

const METHODS = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

/** Stands outside the guard, so that what the guard refuses is logged too. Queries are left out: they may hold anything. */
export function requestLog(log: Log, metrics: Metrics): MiddlewareHandler<AppEnv> {
  return async function requestLog(c, next) {
    const start = performance.now();
    await next();
    const status = c.res.status;
    const runId = c.get("runId");
    const ms = performance.now() - start;
    metrics.request(doorOf(c.req.path), methodOf(c.req.method), status, ms / 1000);
    log(status >= 500 ? "warning" : "info", "request", {
      method: c.req.method,
      path: c.req.path,
      status,
      ms: Math.round(ms * 10) / 10,
      request_id: c.get("requestId"),
      ...(runId === undefined ? {} : { run_id: runId }),
      owner: c.get("owner"),
    });
  };
}

/** Methods that somebody makes up must not make series. */
function methodOf(method: string): string {
  return METHODS.has(method) ? method : "other";
}
