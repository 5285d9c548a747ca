/** `/api/watchdog`: what the agent does when something happens. */
import { Hono } from "hono";
import type { Services } from "../services.ts";
import { encodeOccurrence } from "./cron-records.ts";
import type { AppEnv } from "./env.ts";
import { pageOf, readBody } from "./validate.ts";
import {
  decodeWatchdog,
  decodeWatchdogPatch,
  encodeTrial,
  encodeWatchdog,
  watchdogPatch,
  watchdogRequest,
} from "./watchdog-records.ts";

export function watchdogRoutes({ automation: { watchdogs }, config }: Services): Hono<AppEnv> {
  const limits = { limit: config.body.apiLimit, timeoutMs: config.body.timeoutMs };
  return new Hono<AppEnv>()
    .get("/", async (c) => {
      const { jobs, next } = await watchdogs.list(c.get("owner"), pageOf(c));
      return c.json({ watchdogs: jobs.map(encodeWatchdog), next_cursor: next });
    })
    .post("/", async (c) => {
      const wire = await readBody(c, watchdogRequest, limits);
      const secrets = {
        key: wire.api_key ?? c.get("providerKey"),
        webhookSecret: wire.webhook_secret ?? undefined,
      };
      const fields = decodeWatchdog(wire);
      const { job, created, webhookSecret } = await watchdogs.create(c.get("owner"), fields, secrets);
      const status = created ? "created" : "exists";
      const body = { status, watchdog_id: job.id, watchdog: encodeWatchdog(job) };
      const secret = webhookSecret === null ? {} : { webhook_secret: webhookSecret };
      const headers = { location: `/api/watchdog/${job.id}` };
      return c.json({ ...body, ...secret }, created ? 201 : 200, headers);
    })
    .get("/:id", async (c) => c.json(encodeWatchdog(await watchdogs.get(c.get("owner"), c.req.param("id")))))
    .patch("/:id", async (c) => {
      const wire = await readBody(c, watchdogPatch, limits);
      const secrets = { key: wire.api_key ?? undefined, webhookSecret: wire.webhook_secret ?? undefined };
      const change = decodeWatchdogPatch(wire);
      const id = c.req.param("id");
      const { job, webhookSecret } = await watchdogs.update(c.get("owner"), id, change, secrets);
      const secret = webhookSecret === null ? {} : { webhook_secret: webhookSecret };
      return c.json({ status: "updated", watchdog_id: job.id, watchdog: encodeWatchdog(job), ...secret });
    })
    .delete("/:id", async (c) => {
      await watchdogs.delete(c.get("owner"), c.req.param("id"));
      return c.json({ status: "deleted", deleted: 1 });
    })
    .post("/:id/test", async (c) =>
      c.json(encodeTrial(await watchdogs.test(c.get("owner"), c.req.param("id")))),
    )
    .get("/:id/runs", async (c) => {
      const page = await watchdogs.runs(c.get("owner"), c.req.param("id"), pageOf(c));
      return c.json({ runs: page.occurrences.map(encodeOccurrence), next_cursor: page.next });
    });
}
