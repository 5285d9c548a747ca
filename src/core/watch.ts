/** Watchdogs: what they look at, what a look finds, and what may be said of one. */
import type { JobPage, OccurrencePage } from "./automation.ts";
import type { Job } from "./jobs.ts";
import type { Occurrence } from "./occurrences.ts";
import type { ChangedSecrets, CronChange, CronFields, JobSource } from "./scheduler.ts";

export const EXPECT_ON = ["change", "met", "unmet"] as const;

/** How an answer or an output should be. All that is given has to hold. */
export interface Expectation {
  /** Of a url. */
  status?: number | undefined;
  /** Of a command. */
  exit_code?: number | undefined;
  /** A text that is in it. */
  body?: string | undefined;
  /** RE2. */
  regex?: string | undefined;
  /** `$.items[0].name`; it has to exist, or to be what `equals` says. */
  json_path?: string | undefined;
  equals?: unknown;
  /** When it fires: each time that it begins or ceases to hold, or at one of both only. Default `change`. */
  on?: (typeof EXPECT_ON)[number] | undefined;
}

/** Exactly one of `directory`, `url` and `command`. */
export interface WatchTarget {
  directory?: string | undefined;
  /** Of a directory: a glob that narrows it. */
  pattern?: string | undefined;
  url?: string | undefined;
  command?: string | undefined;
  expect?: Expectation | undefined;
}

/** What a look has found: the same `digest` as before means that nothing has happened. */
export interface Look {
  digest: string;
  /** What the next look is compared with, once this one counts. */
  kept: Record<string, unknown>;
  /** For the agent, in words; null where the difference is none that fires. */
  finding: string | null;
}

/** Fields of a job, as a cron job has them, with what is watched in place of a time. */
export type WatchFields = WatchTarget & {
  job: CronFields;
  interval_seconds?: number | undefined;
  debounce_seconds?: number | undefined;
  cooldown_seconds?: number | undefined;
};

/** What is absent stays; null takes a field back to what it is without one. */
export type WatchChange = { [Name in keyof Omit<WatchFields, "job">]?: WatchFields[Name] | null } & {
  job: CronChange;
};

/** What a look would lead to now. */
export interface Trial {
  wouldFire: boolean;
  reason: string;
  finding: string | null;
  error: string | null;
}

/** Watchdogs as routes and tools handle them. Throws AppError with a sentence that names the field at fault. */
export interface Watcher {
  create(
    owner: string,
    fields: WatchFields,
    source: JobSource,
  ): Promise<{ job: Job; created: boolean; webhookSecret: string | null }>;
  update(
    owner: string,
    id: string,
    change: WatchChange,
    secrets: ChangedSecrets,
  ): Promise<{ job: Job; webhookSecret: string | null }>;
  list(owner: string, options: { limit: number; cursor?: string | undefined }): Promise<JobPage>;
  /** Throws AppError `not_found`, as all that take an id do. */
  get(owner: string, id: string): Promise<Job>;
  delete(owner: string, id: string): Promise<void>;
  /** Looks now, fires nothing and keeps nothing. */
  test(owner: string, id: string): Promise<Trial>;
  runs(
    owner: string,
    id: string,
    options: { limit: number; cursor?: string | undefined },
  ): Promise<OccurrencePage>;
}

/** What decides on a look: the job as it is, and those of its occurrences that have not ended. */
export interface WatchSituation {
  now: Date;
  open: readonly Occurrence[];
}
