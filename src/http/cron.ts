/** `/api/cron`: jobs that the agent does at their time. */
import { Hono } from "hono";
import { FATES } from "../core/automation.ts";
import type { Services } from "../services.ts";
import {
  cronPatch,
  cronRequest,
  decodeCron,
  decodeCronPatch,
  encodeJob,
  encodeOccurrence,
} from "./cron-records.ts";
import type { AppEnv } from "./env.ts";
import { pageOf, readBody } from "./validate.ts";

/** Times to come that a list of runs shows. */
const UPCOMING = 10;
/** Fates of what has not ended. */
const UNDER_WAY: readonly string[] = FATES.slice(0, 2);

export function cronRoutes({ automation: { cron }, config }: Services): Hono<AppEnv> {
  const limits = { limit: config.body.apiLimit, timeoutMs: config.body.timeoutMs };
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
      const { job, created, webhookSecret } = await cron.create(c.get("owner"), decodeCron(wire), secrets);
      const body = { status: created ? "created" : "exists", job_id: job.id, job: encodeJob(job) };
      const secret = webhookSecret === null ? {} : { webhook_secret: webhookSecret };
      const headers = { location: `/api/cron/${job.id}` };
      return c.json({ ...body, ...secret }, created ? 201 : 200, headers);
    })
    .get("/:id", async (c) => c.json(encodeJob(await cron.get(c.get("owner"), c.req.param("id")))))
    .patch("/:id", async (c) => {
      const wire = await readBody(c, cronPatch, limits);
      const secrets = { key: wire.api_key ?? undefined, webhookSecret: wire.webhook_secret ?? undefined };
      const change = decodeCronPatch(wire);
      const { job, webhookSecret } = await cron.update(c.get("owner"), c.req.param("id"), change, secrets);
      const secret = webhookSecret === null ? {} : { webhook_secret: webhookSecret };
      return c.json({ status: "updated", job_id: job.id, job: encodeJob(job), ...secret });
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
