/** `/api/cron`: jobs that the agent does at their time. */
import { type Context, Hono } from "hono";
import type * as z from "zod";
import type { Job } from "../core/jobs.ts";
import { FATES } from "../core/occurrences.ts";
import type { Services } from "../services.ts";
import { readBytes } from "./body.ts";
import { cronPatch, cronRequest, decodeCron, decodeCronPatch } from "./cron-fields.ts";
import { type cronSaved, encodeJob, encodeOccurrence } from "./cron-records.ts";
import type { AppEnv } from "./env.ts";
import { findUnavailable } from "./unavailable-tools.ts";
import { pageOf, readBody } from "./validate.ts";

/** Times to come that a list of runs shows. */
const UPCOMING = 10;
/** Fates of what has not ended. */
const UNDER_WAY: readonly string[] = FATES.slice(0, 2);

/** Of `POST …/run`, whose body says nothing and may be absent. */
export function runAsked({ config }: Services) {
  const limits = { limit: config.body.apiLimit, timeoutMs: config.body.timeoutMs };
  return async (c: Context<AppEnv>) =>
    new TextDecoder().decode(await readBytes(c.req.raw.clone() as Request, limits));
}

export function cronRoutes(services: Services): Hono<AppEnv> {
  const {
    automation: { cron },
    config,
  } = services;
  const limits = { limit: config.body.apiLimit, timeoutMs: config.body.timeoutMs };

  async function saved(
    status: "created" | "exists" | "updated",
    { job, webhookSecret }: { job: Job; webhookSecret: string | null },
  ): Promise<z.output<typeof cronSaved>> {
    return {
      ...{ status, job_id: job.id, job: encodeJob(job) },
      ...(webhookSecret === null ? {} : { webhook_secret: webhookSecret }),
      ...(await findUnavailable(services, job)),
    };
  }

  return new Hono<AppEnv>()
    .get("/", async (c) => {
      const { jobs, next } = await cron.list(c.get("owner"), pageOf(c));
      return c.json({ jobs: jobs.map(encodeJob), next_cursor: next });
    })
    .post("/", async (c) => {
      const wire = await readBody(c, cronRequest, limits);
      const secrets = {
        key: wire.api_key ?? c.get("providerKey"),
        webhookSecret: wire.webhook_secret ?? undefined,
      };
      const made = await cron.create(c.get("owner"), decodeCron(wire), secrets);
      const body = await saved(made.created ? "created" : "exists", made);
      return c.json(body, made.created ? 201 : 200, { location: `/api/cron/${made.job.id}` });
    })
    .get("/:id", async (c) => c.json(encodeJob(await cron.get(c.get("owner"), c.req.param("id")))))
    .patch("/:id", async (c) => {
      const wire = await readBody(c, cronPatch, limits);
      // Who comes with a key and nothing else never gets the operator's.
      const key = wire.api_key === null ? (c.get("providerKey") ?? null) : wire.api_key;
      const secrets = { key, webhookSecret: wire.webhook_secret ?? undefined };
      const change = decodeCronPatch(wire);
      const changed = await cron.update(c.get("owner"), c.req.param("id"), change, secrets);
      return c.json(await saved("updated", changed));
    })
    .delete("/:id", async (c) => {
      await cron.delete(c.get("owner"), c.req.param("id"));
      return c.json({ status: "deleted", deleted: 1 });
    })
    .post("/:id/run", async (c) => {
      const occurrence = await cron.run(c.get("owner"), c.req.param("id"));
      const { fate, runId, sessionId } = occurrence;
      if (runId !== null) c.set("runId", runId);
      const status = fate === "queued" ? "queued" : UNDER_WAY.includes(fate) ? "started" : "ended";
      const headers: Record<string, string> =
        runId === null || sessionId === null ? {} : { "x-run-id": runId };
      return c.json({ status, run: encodeOccurrence(occurrence) }, 202, headers);
    })
    .get("/:id/runs", async (c) => {
      const page = await cron.runs(c.get("owner"), c.req.param("id"), pageOf(c), UPCOMING);
      return c.json({
        runs: page.occurrences.map(encodeOccurrence),
        upcoming: page.upcoming.map((at) => at.toISOString()),
        next_cursor: page.next,
      });
    });
}
