/**
 * `/healthz`: the process answers. `/readyz`: so does all that it needs. Neither says anything that is not for everybody.
 * `/metrics` counts what goes on; who reads it needs a token where there are any.
 */
import { Hono } from "hono";
import type { Log } from "../core/platform.ts";
import type { Services } from "../services.ts";
import type { AppEnv } from "./env.ts";

/** A check that has not ended by then has failed. Milliseconds. */
const CHECK_WAIT_MS = 2_000;

const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** By name: resolves when that part works, throws when it does not. */
type Checks = Record<string, () => Promise<void>>;

export function healthRoutes({ store, platform, metrics, automation }: Services): Hono<AppEnv> {
  const { disk } = platform;
  const checks: Checks = {
    database: () => store.ping(),
    ...(disk ? { disk: () => disk() } : {}),
    automation: async () => automation.check(),
  };
  const app = new Hono<AppEnv>();
  app.get("/healthz", (c) => c.json({ status: "ok" }));
  app.get("/readyz", async (c) => {
    const states = await Promise.all(
      Object.entries(checks).map(
        async ([name, check]) => [name, await stateOf(name, check, platform.log)] as const,
      ),
    );
    const ready = states.every(([, state]) => state === "ok");
    if (!ready) c.header("retry-after", "1");
    return c.json(
      { status: ready ? "ok" : "unavailable", checks: Object.fromEntries(states) },
      ready ? 200 : 503,
    );
  });
  app.get("/metrics", (c) => c.text(metrics.text(), 200, { "content-type": METRICS_TYPE }));
  return app;
}

/** The reason is for the log: it may name hosts and files. */
async function stateOf(name: string, check: () => Promise<void>, log: Log): Promise<"ok" | "failing"> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${CHECK_WAIT_MS / 1000} s`)), CHECK_WAIT_MS);
  });
  try {
    await Promise.race([check(), late]);
    return "ok";
  } catch (error) {
    log("warning", "not ready", { check: name, error: String(error) });
    return "failing";
  } finally {
    clearTimeout(timer);
  }
}
