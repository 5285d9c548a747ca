/** `/api/cron` and `/api/automation`. */
import * as z from "zod";
import { cronPatch, cronRequest } from "../cron-fields.ts";
import { cronList, cronSaved, cronView, occurrenceList, runStarted } from "../cron-records.ts";
import type { Operation } from "./operation.ts";
import { idempotency, paging } from "./parameters.ts";
import { deleted } from "./session-routes.ts";

const jobId = z.object({ id: z.string().meta({ examples: ["job_example"] }) });
const ticked = z
  .object({
    status: z.literal("ticked"),
    next_due: z.string().nullable().describe("When to come again at the latest."),
  })
  .meta({ id: "Ticked" });

const JOB = {
  ...{ id: "job_example", name: "Morning news", command: "Write a summary of today's news into news.md." },
  ...{ schedule: "30 7 * * 1-5", interval_minutes: null, run_at: null, timezone: "Europe/Berlin" },
  ...{ session: "new", agent_name: null, provider: "anthropic", model: null, has_api_key: false },
  ...{ allowed_tools: ["search_web", "read_web_page", "create_file"], approval: "deny" as const },
  ...{ misfire: "once" as const, overlap: "skip" as const, max_runs: null, runs_made: 3 },
  ...{ repeat_after_crash: false, webhook_url: "https://example.com/hook", budget: { run_tokens: 50_000 } },
  ...{ usage: { tokens: 41_250, money: 0 }, failures: 0, status: "active" as const, reason: null },
  ...{ created_at: "2026-11-18T10:00:00.000Z", updated_at: "2026-11-18T10:00:00.000Z" },
  ...{ next_run_time: "2026-11-23T06:30:00.000Z", last_run: "2026-11-20T06:31:12.000Z" },
  last_fate: "ran" as const,
};
const RUN = {
  ...{ scheduled_at: "2026-11-20T06:30:00.000Z", until: null, count: 1, trigger: "schedule" as const },
  ...{ fate: "ran" as const, reason: null, run_id: "run_example", session_id: "ses_example", attempts: 0 },
  ...{ started_at: "2026-11-20T06:30:00.120Z", ended_at: "2026-11-20T06:31:12.000Z" },
  ...{ usage: { tokens: 13_750, money: 0 }, denied_tools: [] },
  delivery: {
    ...{ status: "delivered" as const, attempts: 1, next_at: null, last_status: 204, last_error: null },
  },
};
const STARTED = {
  ...RUN,
  ...{ scheduled_at: "2026-11-20T10:00:00.000Z", trigger: "manual" as const, fate: "claimed" as const },
  ...{
    started_at: "2026-11-20T10:00:00.050Z",
    ended_at: null,
    usage: { tokens: 0, money: 0 },
    delivery: null,
  },
};
const MISSED = {
  ...RUN,
  ...{ scheduled_at: "2026-11-18T06:30:00.000Z", until: "2026-11-19T06:30:00.000Z", count: 2 },
  ...{ fate: "missed" as const, run_id: null, session_id: null, started_at: null, delivery: null },
  reason: "Found late: only the newest is made up for, and only within an hour (misfire: once).",
  usage: { tokens: 0, money: 0 },
};

export const CRON_ROUTES = [
  {
    id: "listCronJobs",
    method: "get",
    path: "/api/cron",
    tag: "Automation",
    summary: "List cron jobs",
    description: "Newest first.",
    family: "api",
    query: z.object(paging),
    replies: {
      200: {
        description: "A page of jobs.",
        json: { schema: cronList, examples: { Page: { jobs: [JOB], next_cursor: null } } },
      },
    },
    faults: [400],
  },
  {
    id: "createCronJob",
    method: "post",
    path: "/api/cron",
    tag: "Automation",
    summary: "Have something done at its time",
    description:
      "Each time the agent gets the command in a run of its own, with nobody there to ask. The same job again, but for its key and secret, is not made twice: the first is returned.",
    family: "api",
    headers: idempotency,
    body: {
      schema: cronRequest,
      examples: {
        "On weekdays": {
          command: JOB.command,
          schedule: JOB.schedule,
          timezone: JOB.timezone,
          allowed_tools: JOB.allowed_tools,
          webhook_url: JOB.webhook_url,
          budget: JOB.budget,
        },
        "Each minute": { command: "Look at the queue folder.", interval_minutes: 1, max_runs: 60 },
        Once: { prompt: "Remind me to call Mia.", run_at: "2026-12-24T18:00", timezone: "Europe/Berlin" },
      },
    },
    replies: {
      200: {
        description: "There is one that is just the same.",
        headers: ["idempotency-replayed"],
        json: { schema: cronSaved, examples: { Exists: { status: "exists", job_id: JOB.id, job: JOB } } },
      },
      201: {
        description: "It is scheduled.",
        headers: ["idempotency-replayed"],
        json: {
          schema: cronSaved,
          examples: {
            Created: { status: "created", job_id: JOB.id, job: JOB, webhook_secret: "whsec_example" },
          },
        },
      },
    },
    faults: [404, 409, 422, 507],
  },
  {
    id: "getCronJob",
    method: "get",
    path: "/api/cron/{id}",
    tag: "Automation",
    summary: "Get a cron job",
    family: "api",
    params: jobId,
    replies: { 200: { description: "The job.", json: { schema: cronView, examples: { Job: JOB } } } },
    faults: [404],
  },
  {
    id: "updateCronJob",
    method: "patch",
    path: "/api/cron/{id}",
    tag: "Automation",
    summary: "Change, pause or resume a cron job",
    description: "A job that ten failures or its budget have paused goes on with `status: active`.",
    family: "api",
    params: jobId,
    body: {
      schema: cronPatch,
      examples: { Pause: { status: "paused" }, "Another time": { cron_time: "08:15" } },
    },
    replies: {
      200: {
        description: "It is changed.",
        json: { schema: cronSaved, examples: { Updated: { status: "updated", job_id: JOB.id, job: JOB } } },
      },
    },
    faults: [404, 409, 507],
  },
  {
    id: "deleteCronJob",
    method: "delete",
    path: "/api/cron/{id}",
    tag: "Automation",
    summary: "Delete a cron job",
    description: "With the record of its runs. A run under way goes on, and the sessions stay.",
    family: "api",
    params: jobId,
    replies: {
      200: {
        description: "It is gone.",
        json: { schema: deleted, examples: { Deleted: { status: "deleted", deleted: 1 } } },
      },
    },
    faults: [404],
  },
  {
    id: "runCronJob",
    method: "post",
    path: "/api/cron/{id}/run",
    tag: "Automation",
    summary: "Run a cron job now",
    description: "Whatever its status, and beside its schedule.",
    family: "api",
    params: jobId,
    headers: idempotency,
    replies: {
      202: {
        description: "`GET /api/runs/{id}/events` shows it live.",
        headers: ["x-run-id", "idempotency-replayed"],
        json: { schema: runStarted, examples: { Started: { status: "started", run: STARTED } } },
      },
    },
    faults: [404, 409, 422, 507],
  },
  {
    id: "listCronRuns",
    method: "get",
    path: "/api/cron/{id}/runs",
    tag: "Automation",
    summary: "See what became of each time",
    description: "Every time that has come has one fate. The newest 1,000 are kept.",
    family: "api",
    params: jobId,
    query: z.object(paging),
    replies: {
      200: {
        description: "Past and to come.",
        json: {
          schema: occurrenceList,
          examples: {
            Runs: { runs: [RUN, MISSED], upcoming: ["2026-11-23T06:30:00.000Z"], next_cursor: null },
          },
        },
      },
    },
    faults: [400, 404],
  },
  {
    id: "tickAutomation",
    method: "post",
    path: "/api/automation/tick",
    tag: "Automation",
    summary: "Do what is due",
    description:
      "For hosts without a clock: call it each minute with the operator's token. On Node, Bun and Workers the service does so by itself. Any number may tick at once.",
    family: "api",
    replies: {
      200: {
        description: "What was due is under way.",
        json: {
          schema: ticked,
          examples: { Ticked: { status: "ticked", next_due: "2026-11-23T06:30:00.000Z" } },
        },
      },
    },
  },
] as const satisfies readonly Operation[];
