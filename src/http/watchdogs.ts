/** `/api/watchdog`: what the agent does when something happens. */
import { Hono } from "hono";
import type * as z from "zod";
import type { Job } from "../core/jobs.ts";
import type { Services } from "../services.ts";
import { encodeOccurrence } from "./cron-records.ts";
import type { AppEnv } from "./env.ts";
import { findUnavailable } from "./unavailable-tools.ts";
import { pageOf, readBody } from "./validate.ts";
import {
  decodeWatchdog,
  decodeWatchdogPatch,
  encodeTrial,
  encodeWatchdog,
  watchdogPatch,
  watchdogRequest,
  type watchdogSaved,
} from "./watchdog-records.ts";

export function watchdogRoutes(services: Services): Hono<AppEnv> {
  const {
    automation: { watchdogs },
    config,
  } = services;
  const limits = { limit: config.body.apiLimit, timeoutMs: config.body.timeoutMs };

  async function saved(
    status: "created" | "exists" | "updated",
    { job, webhookSecret }: { job: Job; webhookSecret: string | null },
  ): Promise<z.output<typeof watchdogSaved>> {
    return {
      ...{ status, watchdog_id: job.id, watchdog: encodeWatchdog(job) },
      ...(webhookSecret === null ? {} : { webhook_secret: webhookSecret }),
      ...(await findUnavailable(services, job)),
    };
  }

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
      const made = await watchdogs.create(c.get("owner"), decodeWatchdog(wire), secrets);
      const body = await saved(made.created ? "created" : "exists", made);
      return c.json(body, made.created ? 201 : 200, { location: `/api/watchdog/${made.job.id}` });
    })
    .get("/:id", async (c) => c.json(encodeWatchdog(await watchdogs.get(c.get("owner"), c.req.param("id")))))
    .patch("/:id", async (c) => {
      const wire = await readBody(c, watchdogPatch, limits);
      // Who comes with a key and nothing else never gets the operator's.
      const key = wire.api_key === null ? (c.get("providerKey") ?? null) : wire.api_key;
      const secrets = { key, webhookSecret: wire.webhook_secret ?? undefined };
      const change = decodeWatchdogPatch(wire);
      const changed = await watchdogs.update(c.get("owner"), c.req.param("id"), change, secrets);
      return c.json(await saved("updated", changed));
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
