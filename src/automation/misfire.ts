/**
 * What is to be done about times that have come (R4). Pure. A time is late when it is found later than the runner's own
 * pace explains: the service was down, the machine slept, the clock jumped.
 */
import { MISFIRES, type Misfire } from "../core/jobs.ts";
import { nextTime, type Schedule, timesAfter, timesUpTo } from "./schedule.ts";

export { MISFIRES, type Misfire };

/** Found within this time after it, a time is not late. Milliseconds. */
export const PUNCTUAL_MS = 2 * 60_000;
/** By default nothing runs that is later than this. Milliseconds. */
export const TOO_LATE_MS = 60 * 60_000;
/** Never more late ones are made up for. */
export const CATCH_UPS = 5;
/** Times looked at one by one, oldest first and then newest first: each takes some 70 µs. */
const OLDEST = 100;
/** One a second in all that is punctual, and behind those what is made up for. */
const NEWEST = PUNCTUAL_MS / 1_000 + CATCH_UPS + 5;

export interface Verdict {
  /** To run now, oldest first. */
  run: { at: Date; late: boolean }[];
  /** Those that will not, as one record of each kind; null where there are none. */
  missed: Left | null;
  /** Not late, but a newer one of the same job is there already. */
  superseded: Left | null;
  /** When to look again; null: never. */
  next: Date | null;
}

export interface Left {
  first: Date;
  last: Date;
  count: number;
  /** There were more than that: they are not counted one by one. */
  more: boolean;
  reason: string;
}

/** `due`: the time that has come; `now`: not before it. */
export function judgeDue(schedule: Schedule, due: Date, now: Date, misfire: Misfire): Verdict {
  const { times, more } = timesUntil(schedule, due, now);
  const age = (at: Date) => now.getTime() - at.getTime();
  const split = times.findIndex((at) => age(at) <= PUNCTUAL_MS);
  const late = split === -1 ? times : times.slice(0, split);
  const punctual = split === -1 ? [] : times.slice(split);
  let madeUp: Date[] = [];
  if (misfire === "all") madeUp = late.slice(-CATCH_UPS);
  else if (misfire === "once" && punctual.length === 0)
    madeUp = late.slice(-1).filter((at) => age(at) <= TOO_LATE_MS);
  return {
    run: [
      ...madeUp.map((at) => ({ at, late: true })),
      ...punctual.slice(-1).map((at) => ({ at, late: false })),
    ],
    missed: left(late.slice(0, late.length - madeUp.length), more, reasonOf(misfire)),
    superseded: left(punctual.slice(0, -1), false, SUPERSEDED),
    next: nextTime(schedule, now),
  };
}

/** From `due` to `now`; of very many the oldest and the newest. `more`: there are some in between. */
function timesUntil(schedule: Schedule, due: Date, now: Date): { times: Date[]; more: boolean } {
  const oldest = [due];
  for (const at of timesAfter(schedule, due)) {
    if (at > now) return { times: oldest, more: false };
    if (oldest.length === OLDEST) {
      const last = oldest.at(-1) as Date;
      const newest = timesUpTo(schedule, now, NEWEST).filter((time) => time > last);
      return { times: [...oldest, ...newest], more: (newest[0] ?? at) > at };
    }
    oldest.push(at);
  }
  return { times: oldest, more: false };
}

const SUPERSEDED = "A newer time of the same job had come before this one was looked at.";

function left(times: Date[], more: boolean, reason: string): Left | null {
  const [first] = times;
  const last = times.at(-1);
  return first && last ? { first, last, count: times.length, more, reason } : null;
}

function reasonOf(misfire: Misfire): string {
  if (misfire === "skip") return "Found late, and the job skips what is late (misfire: skip).";
  if (misfire === "all")
    return `Found late, behind the ${CATCH_UPS} newest, which are all that is made up for (misfire: all).`;
  return "Found late: only the newest is made up for, and only within an hour (misfire: once).";
}
