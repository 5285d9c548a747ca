/** Cron jobs and watchdogs as one list: what an agent shows and cancels is either. */
import type { JobPage } from "../core/automation.ts";
import type { Job } from "../core/jobs.ts";
import type { Scheduler } from "../core/scheduler.ts";
import type { Watcher } from "../core/watch.ts";

type Jobs = Pick<Scheduler, "list" | "get" | "delete">;
/** Before the cursor of a page of watchdogs, which come behind the jobs. */
const WATCHDOGS = "watchdogs:";

export function allJobs(cron: Jobs, watchdogs: Pick<Watcher, keyof Jobs>): Jobs {
  const of = (id: string): Jobs => (id.startsWith("wdg_") ? watchdogs : cron);
  const watched = async (owner: string, limit: number, cursor: string | undefined): Promise<JobPage> => {
    const { jobs, next } = await watchdogs.list(owner, { limit, cursor });
    return { jobs, next: next === null ? null : WATCHDOGS + next };
  };
  return {
    async list(owner, { limit, cursor }) {
      if (cursor?.startsWith(WATCHDOGS))
        return watched(owner, limit, cursor.slice(WATCHDOGS.length) || undefined);
      const page = await cron.list(owner, { limit, cursor });
      if (page.next !== null) return page;
      const left = limit - page.jobs.length;
      if (left > 0) {
        const { jobs, next } = await watched(owner, left, undefined);
        return { jobs: [...page.jobs, ...jobs], next };
      }
      const { jobs } = await watchdogs.list(owner, { limit: 1 });
      return { jobs: page.jobs, next: jobs.length === 0 ? null : WATCHDOGS };
    },
    get: (owner, id): Promise<Job> => of(id).get(owner, id),
    delete: (owner, id) => of(id).delete(owner, id),
  };
}
