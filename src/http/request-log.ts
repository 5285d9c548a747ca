/** One line in the log for each request, when its response begins. A stream's end is in the line of its run. */
import type { MiddlewareHandler } from "hono";
import type { Log } from "../core/platform.ts";
import type { AppEnv } from "./env.ts";

/** Stands outside the guard, so that what the guard refuses is logged too. Queries are left out: they may hold anything. */
export function requestLog(log: Log): MiddlewareHandler<AppEnv> {
  return async function requestLog(c, next) {
    const start = performance.now();
    await next();
    const status = c.res.status;
    const runId = c.get("runId");
    log(status >= 500 ? "warning" : "info", "request", {
      method: c.req.method,
      path: c.req.path,
      status,
      ms: Math.round((performance.now() - start) * 10) / 10,
      request_id: c.get("requestId"),
      ...(runId === undefined ? {} : { run_id: runId }),
      owner: c.get("owner"),
    });
  };
}
