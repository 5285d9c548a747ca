/** `cancel_schedule`: deletes a job, once the user has agreed to it. */
import * as z from "zod";
import type { Job } from "../core/jobs.ts";
import type { Scheduler } from "../core/scheduler.ts";
import { defineTool, type Tool } from "../core/tool.ts";
import { AppError } from "../errors.ts";
import { answer, refusal } from "./result.ts";

export function createCancelSchedule(scheduler: Scheduler): Tool {
  return defineTool({
    name: "cancel_schedule",
    description: "Deletes a scheduled task or a watchdog for good, with the record of its runs.",
    args: z.strictObject({
      id: z.string().min(1).max(64).describe("As list_schedules gives it."),
      name: z.string().min(1).describe("Its name word for word, so that the user sees what will be gone."),
    }),
    needs: [],
    risk: "write",
    consent: "ask",
    async run({ id, name }, { owner }) {
      let job: Job;
      try {
        job = await scheduler.get(owner, id);
      } catch (error) {
        if (!(error instanceof AppError) || error.code !== "not_found") throw error;
        return refusal(`There is no scheduled task ${id}. Use list_schedules to find its id.`);
      }
      // What a person has agreed to is this one.
      if (job.name !== name) return refusal(`Not deleted: ${id} has another name. It is "${job.name}".`);
      await scheduler.delete(owner, id);
      return answer(`Deleted ${id} (${name}). A run of it that is under way goes on.`);
    },
  });
}
