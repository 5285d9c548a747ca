/** What is done later and without anybody: jobs, and when they are due. */
import type { Fate, Spent } from "./occurrences.ts";

/** When a job is due; automation/schedule.ts reckons with it. `timezone`: what its times were said in, where it changes nothing. */
export type Schedule =
  | { kind: "cron"; expression: string; timezone: string }
  /** Every so many minutes, counted from the anchor, so that a late run does not shift those behind it. */
  | { kind: "interval"; minutes: number; anchor: Date; timezone?: string | undefined }
  | { kind: "once"; at: Date; timezone?: string | undefined };

export const MISFIRES = ["skip", "once", "all"] as const;
/** `skip`: late ones never run. `once`: the newest of them does, when it is not too late. `all`: each, up to a limit. */
export type Misfire = (typeof MISFIRES)[number];

export const OVERLAPS = ["skip", "queue"] as const;
/** What becomes of a time that comes while the run before is not over. */
export type Overlap = (typeof OVERLAPS)[number];

export const UNATTENDED_APPROVALS = ["deny", "wait"] as const;
/** What happens to a call that would be asked about: it is denied and reported, or the run waits for somebody. */
export type UnattendedApproval = (typeof UNATTENDED_APPROVALS)[number];

export const JOB_KINDS = ["cron", "watchdog"] as const;
export type JobKind = (typeof JOB_KINDS)[number];

/** `done`: it will never be due again. */
export type JobStatus = "active" | "paused" | "done";

/** Tokens, and money in the currency of the prices that the operator has set. Absent: the operator's own limit. */
export interface JobBudget {
  runTokens?: number | undefined;
  dayTokens?: number | undefined;
  jobTokens?: number | undefined;
  runMoney?: number | undefined;
  dayMoney?: number | undefined;
  jobMoney?: number | undefined;
}

/** What a job is, as somebody has said it. */
export interface JobSpec {
  kind: JobKind;
  name: string;
  /** What the agent is told to do. */
  command: string;
  /** `new` each time, or the id of one session. */
  session: string;
  agentName: string | null;
  provider: string | null;
  model: string | null;
  /** The caller's provider key, encrypted; null: the operator's is used. */
  sealedKey: string | null;
  /** null: all that policy allows. These run unasked, unless policy denies them. */
  allowedTools: string[] | null;
  approval: UnattendedApproval;
  webhookUrl: string | null;
  sealedWebhookSecret: string | null;
  budget: JobBudget;
  overlap: Overlap;
  maxRuns: number | null;
  /** Of a cron job; null for others. */
  schedule: Schedule | null;
  misfire: Misfire;
  /** An occurrence whose process died before its run began is begun again. */
  repeatAfterCrash: boolean;
  /** Of a watchdog; null for others. */
  watch: WatchSpec | null;
}

/** What a watchdog looks at, and how often. `target` is its checker's own. */
export interface WatchSpec {
  target: Record<string, unknown>;
  intervalMs: number;
  debounceMs: number;
  cooldownMs: number;
}

/** What a watchdog's last check has left. `state` is its checker's own. */
export interface WatchState {
  state: Record<string, unknown> | null;
  lastCheckedAt: Date | null;
  lastFiredAt: Date | null;
  lastError: string | null;
}

export interface Job extends JobSpec {
  id: string;
  owner: string;
  status: JobStatus;
  /** Why it is paused or done; null where somebody has said so. */
  reason: string | null;
  runsMade: number;
  /** Failures in a row. */
  failures: number;
  spent: Spent;
  watchState: WatchState;
  /** When it is to be looked at next; null: never. */
  nextAt: Date | null;
  lastRunAt: Date | null;
  lastFate: Fate | null;
  createdAt: Date;
  updatedAt: Date;
}

/** As much of a job as a look at it needs that finds nothing, which is most of what is ever done. */
export type DueJob = Pick<
  Job,
  | "id"
  | "owner"
  | "kind"
  | "status"
  | "agentName"
  | "allowedTools"
  | "overlap"
  | "maxRuns"
  | "runsMade"
  | "schedule"
  | "misfire"
  | "watch"
  | "watchState"
  | "nextAt"
>;

/** What may be changed of a job. What is absent stays. */
export type JobChange = Partial<JobSpec> & {
  status?: JobStatus | undefined;
  reason?: string | null | undefined;
  failures?: number | undefined;
  nextAt?: Date | null | undefined;
  fingerprint?: string | null | undefined;
};

/** How a run that nobody watches differs from others; kept with it, so that whoever goes on with it knows. */
export interface Unattended {
  /** Tools that run unasked, behind the operator's rules: what they deny stays denied. */
  allow: string[];
  asking: "nobody" | "person";
  tokenBudget: number;
}
