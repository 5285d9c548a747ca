/** The agent's tools that take more than a platform: each with the service behind it. */
import { allJobs } from "../automation/all-jobs.ts";
import type { AutomationService } from "../automation/service.ts";
import type { MemoryVault } from "../core/memory.ts";
import type { Images } from "../core/notes.ts";
import type { Scheduler } from "../core/scheduler.ts";
import type { Store } from "../core/store.ts";
import type { Tool } from "../core/tool.ts";
import { createCancelSchedule } from "../tools/cancel-schedule.ts";
import { createForget } from "../tools/forget.ts";
import { createListSchedules } from "../tools/list-schedules.ts";
import { createReadNote } from "../tools/read-note.ts";
import { createRecall } from "../tools/recall.ts";
import { createRemember } from "../tools/remember.ts";
import { createScheduleTask } from "../tools/schedule-task.ts";
import { createSearchNotes } from "../tools/search-notes.ts";
import { createWatch } from "../tools/watch.ts";
import { createWriteNote } from "../tools/write-note.ts";

export function memoryTools(vault: MemoryVault): Tool[] {
  return [createRemember(vault), createRecall(vault), createForget(vault)];
}

export function noteTools({ notes }: Store, images: Images): Tool[] {
  return [createSearchNotes(notes), createReadNote(notes, images), createWriteNote(notes)];
}

export function scheduleTools(
  { runs }: Store,
  automation: () => Pick<AutomationService, "cron" | "watchdogs">,
): Tool[] {
  const all = () => allJobs(automation().cron, automation().watchdogs);
  const scheduler: Scheduler = {
    create: (...args) => automation().cron.create(...args),
    list: (...args) => all().list(...args),
    get: (...args) => all().get(...args),
    delete: (...args) => all().delete(...args),
  };
  return [
    createScheduleTask(scheduler, runs),
    createWatch({ create: (...args) => automation().watchdogs.create(...args) }, runs),
    createListSchedules(scheduler),
    createCancelSchedule(scheduler),
  ];
}

const joins = new WeakMap<readonly Tool[], readonly Tool[]>();

/** Our own and those of servers; the same list as long as both are. */
export function joined(own: readonly Tool[], theirs: readonly Tool[]): readonly Tool[] {
  if (theirs.length === 0) return own;
  let all = joins.get(theirs);
  if (!all) {
    all = [...own, ...theirs];
    joins.set(theirs, all);
  }
  return all;
}
