/** `/api/runs`: what runs there are, what they show, and their stop. */
import { type Context, Hono } from "hono";
import { pendingOf } from "../agent/members.ts";
import type { RunRecord } from "../core/run.ts";
import { AppError } from "../errors.ts";
import { encodeRun } from "../protocols/native-chat-records.ts";
import type { Services } from "../services.ts";
import type { AppEnv } from "./env.ts";
import { streamRun } from "./run-stream.ts";
import { pageOf, wholeNumber } from "./validate.ts";

export function runRoutes(services: Services): Hono<AppEnv> {
  const { platform, store, runs } = services;

  const view = async (record: RunRecord) => encodeRun(record, await pendingOf(store, record, platform.now()));

  async function find(c: Context<AppEnv>): Promise<RunRecord> {
    const record = await store.runs.get(c.get("owner"), c.req.param("id") ?? "");
    if (record) return record;
    throw new AppError("not_found", "There is no run with this id.");
  }

  return new Hono<AppEnv>()
    .get("/", async (c) => {
      const owner = c.get("owner");
      const sessionId = c.req.query("session_id") || undefined;
      const { runs: records, next } = await store.runs.list(owner, { ...pageOf(c), sessionId });
      const views = await Promise.all(records.map(view));
      return c.json({ runs: views, next_cursor: next });
    })
    .get("/:id", async (c) => c.json(await view(await find(c))))
    .get("/:id/events", async (c) => {
      const after = afterOf(c);
      const { id, status, lastEvent } = await find(c);
      const over = status !== "running" && status !== "paused";
      // It tells an EventSource, which begins anew when a stream ends, that there is nothing more to come.
      if (over && after >= lastEvent) return c.body(null, 204);
      return streamRun(
        (signal) => runs.read(c.get("owner"), id, after, signal),
        { "x-run-id": id },
        services,
      );
    })
    .post("/:id/stop", async (c) => c.json(await view(await runs.stop(c.get("owner"), c.req.param("id")))));
}

/** The header, which browsers send when they come back, wins over the address that they come back to. */
function afterOf(c: Context<AppEnv>): number {
  const header = c.req.header("last-event-id");
  const [value, name] = header ? [header, "Last-Event-ID"] : [c.req.query("after"), "after"];
  return wholeNumber(value, name as string, 0, Number.MAX_SAFE_INTEGER) ?? 0;
}
