/** `schedule_task`: a job that the agent does later by itself. */
import * as z from "zod";
import { MISFIRES } from "../core/jobs.ts";
import type { Runs } from "../core/run.ts";
import type { Scheduler } from "../core/scheduler.ts";
import { defineTool, type Tool } from "../core/tool.ts";
import { answer, refusal } from "./result.ts";

/** Characters. */
const COMMAND_LIMIT = 20_000;

export function createScheduleTask(scheduler: Scheduler, runs: Pick<Runs, "get">): Tool {
  return defineTool({
    name: "schedule_task",
    description:
      "Has a task done later, once or again and again, in a run of its own in which nobody can be asked. command has to " +
      "say everything, since that run knows nothing of this conversation. Give exactly one of run_at, cron_time, " +
      "interval_minutes and schedule, and in allowed_tools those of your own tools that the task needs beyond reading.",
    args: z.strictObject({
      command: z.string().trim().min(1).max(COMMAND_LIMIT).describe("What is to be done, in full."),
      name: z.string().trim().min(1).max(200).optional(),
      run_at: z.string().optional().describe("Once, for example 2026-12-24T18:00."),
      cron_time: z.string().optional().describe("Daily, HH:MM."),
      interval_minutes: z.int().min(1).max(527_040).optional(),
      schedule: z.string().max(200).optional().describe("A cron expression of 5 fields."),
      timezone: z.string().optional().describe("IANA name, for example Europe/Berlin. Default UTC."),
      allowed_tools: z
        .array(z.string().min(1))
        .max(100)
        .optional()
        .describe("Only these are there, and they run unasked. Default: all that need no approval."),
      max_runs: z.int().min(1).optional(),
      misfire: z.enum(MISFIRES).optional().describe("What happens to times that were missed. Default once."),
    }),
    needs: [],
    risk: "write",
    consent: "ask",
    async run(fields, { owner, runId }) {
      const run = await runs.get(owner, runId);
      if (!run)
        return refusal("Not scheduled: this conversation is not kept, so nobody could say who asked.");
      // The key that this run has goes along, and so does what it belongs to: its model, its agent, its tools.
      const { provider, agent, tools, request, callersKey } = run.spec;
      if (callersKey && run.sealedKey === null)
        return refusal(
          "Not scheduled: the user's provider key cannot be kept for later, since the server has no secret to encrypt it under. Somebody has to set SECRET_KEY.",
        );
      const asked = { ...fields, provider, model: request.model, agent_name: agent ?? undefined };
      const source = { sealedKey: run.sealedKey ?? undefined, within: tools };
      const { job, created } = await scheduler.create(owner, asked, source);
      const next = job.nextAt?.toISOString() ?? "never";
      return answer(
        created
          ? `Scheduled as ${job.id} (${job.name}). The next time is ${next}.`
          : `There is the same job already: ${job.id} (${job.name}), ${job.status}. Its next time is ${next}.`,
      );
    },
  });
}
