/** `list_schedules`: the jobs that are there. */
import * as z from "zod";
import type { Job } from "../core/jobs.ts";
import type { Scheduler } from "../core/scheduler.ts";
import { defineTool, type Tool } from "../core/tool.ts";
import { answer } from "./result.ts";

const JOBS_SHOWN = 50;
/** Characters of a command. */
const COMMAND_SHOWN = 200;

export function createListSchedules(scheduler: Scheduler): Tool {
  return defineTool({
    name: "list_schedules",
    description:
      "Lists the scheduled tasks and what is watched, newest first: id, name, when, status, next time, and what is done.",
    args: z.strictObject({
      cursor: z.string().optional().describe("From the answer before, for those that come next."),
    }),
    needs: [],
    risk: "read",
    async run({ cursor }, { owner }) {
      const { jobs, next } = await scheduler.list(owner, { limit: JOBS_SHOWN, cursor });
      if (jobs.length === 0) return answer("Nothing is scheduled.");
      const more = next === null ? "" : `\nThere are more: call again with cursor ${next}.`;
      return answer(jobs.map(lineOf).join("\n") + more);
    },
  });
}

function lineOf({ id, name, status, reason, nextAt, command, lastFate, ...job }: Job): string {
  const next = status === "active" && nextAt ? `next ${nextAt.toISOString()}` : (reason ?? "no next time");
  const last = lastFate === null ? "" : `, last time ${lastFate}`;
  const told = command.replace(/\s+/g, " ").slice(0, COMMAND_SHOWN).toWellFormed();
  return `- ${id} "${name}", ${whenOf(job)}: ${status}, ${next}${last}. ${told}`;
}

function whenOf({ schedule, watch }: Pick<Job, "schedule" | "watch">): string {
  if (watch) return `every ${watch.intervalMs / 1_000} s a look at ${JSON.stringify(watch.target)}`;
  if (schedule?.kind === "cron") return `${schedule.expression} (${schedule.timezone})`;
  if (schedule?.kind === "interval") return `every ${schedule.minutes} min`;
  return schedule ? `once, ${schedule.at.toISOString()}` : "by itself";
}
