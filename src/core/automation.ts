/** Work that is done later and without anybody: jobs, the times they were due, and what is told of them elsewhere. */

/** When a job is due; automation/schedule.ts reckons with it. */
export type Schedule =
  | { kind: "cron"; expression: string; timezone: string }
  /** Every so many minutes, counted from the anchor, so that a late run does not shift those behind it. */
  | { kind: "interval"; minutes: number; anchor: Date }
  | { kind: "once"; at: Date };

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

/** What a run has used. */
export interface Spent {
  tokens: number;
  money: number;
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

/** `queued` waits for its turn and `claimed` is under way; each of the others is an end, and an occurrence has one. */
export const FATES = [
  "queued",
  "claimed",
  "ran",
  "late",
  "skipped",
  "missed",
  "superseded",
  "blocked",
  "failed",
] as const;
export type Fate = (typeof FATES)[number];
export type FinalFate = Exclude<Fate, "queued" | "claimed">;

export type Trigger = "schedule" | "manual" | "watchdog";

/** A time at which a job was due, or several of one kind that nothing was done about. */
export interface NewOccurrence {
  scheduledAt: Date;
  /** The last of those that this record stands for. */
  until: Date | null;
  /** How many it stands for. */
  count: number;
  trigger: Trigger;
  fate: Fate;
  late: boolean;
  reason: string | null;
  /** Given before anything happens, so that the run is found again. */
  runId: string | null;
  /** What a watchdog has seen, for the run; null for others. */
  finding: string | null;
}

export interface Occurrence extends NewOccurrence {
  jobId: string;
  owner: string;
  sessionId: string | null;
  /** Times that its run was begun in vain. */
  attempts: number;
  startedAt: Date | null;
  endedAt: Date | null;
  spent: Spent;
  /** Calls that were not run because nobody could be asked. */
  denied: string[];
  delivery: DeliveryRecord | null;
}

export interface OccurrenceKey {
  jobId: string;
  scheduledAt: Date;
}

/** How an occurrence has ended. */
export interface Outcome {
  fate: FinalFate;
  reason: string | null;
  sessionId: string | null;
  spent: Spent;
  denied: string[];
  at: Date;
  /** What it means for the job: so many failures in a row pause it, a success forgets them. */
  counts: "success" | "failure" | "neither";
  /** The job is paused at once, for this reason. */
  pause?: string | undefined;
}

export type DeliveryStatus = "pending" | "delivered" | "failed";

export interface DeliveryRecord {
  status: DeliveryStatus;
  attempts: number;
  /** When it is tried again; null where it is not. */
  nextAt: Date | null;
  lastStatus: number | null;
  lastError: string | null;
}

export interface NewDelivery {
  url: string;
  sealedSecret: string;
  body: string;
}

export interface Delivery extends NewDelivery, OccurrenceKey {
  owner: string;
  /** This one included. */
  attempt: number;
}

export interface DeliveryResult {
  status: DeliveryStatus;
  httpStatus: number | null;
  error: string | null;
  /** Of the next attempt, while it is `pending`. */
  nextAt: Date | null;
  at: Date;
}

/** What is done about a job that is due. */
export interface Plan {
  records: NewOccurrence[];
  nextAt: Date | null;
  /** It will never be due again, for this reason. */
  done: string | null;
  /** What a watchdog's check has left; without `state` that stays. */
  watchState?: (Omit<WatchState, "state"> & Partial<Pick<WatchState, "state">>) | undefined;
}

export interface JobPage {
  jobs: Job[];
  next: string | null;
}

export interface OccurrencePage {
  occurrences: Occurrence[];
  next: string | null;
}

/** What may be changed of a job. What is absent stays. */
export type JobChange = Partial<JobSpec> & {
  status?: JobStatus | undefined;
  reason?: string | null | undefined;
  failures?: number | undefined;
  nextAt?: Date | null | undefined;
  fingerprint?: string | null | undefined;
};

/** Another owner's job is one that is not there. */
export interface Jobs {
  /**
   * `fingerprint` names what the job is: while the owner has one with the same that is not done, that one is returned, and
   * nothing is written. Throws AppError `conflict` over the limit of jobs.
   */
  create(
    owner: string,
    spec: JobSpec,
    options: { fingerprint: string; nextAt: Date | null },
  ): Promise<{ job: Job; created: boolean }>;
  /** `kind` null: any. */
  get(owner: string, kind: JobKind | null, id: string): Promise<Job | null>;
  /** Newest first. */
  list(
    owner: string,
    kind: JobKind,
    options: { limit: number; cursor?: string | undefined },
  ): Promise<JobPage>;
  /** Takes it out of the hands of whoever has claimed it. null where there is none. Throws AppError `conflict` where another job is the same by then. */
  update(owner: string, kind: JobKind, id: string, change: JobChange): Promise<Job | null>;
  /** With its occurrences. false where there is none. */
  delete(owner: string, kind: JobKind, id: string): Promise<boolean>;
  /** Jobs of all owners that are due, for `claim` alone until `until`; those due first. One conditional statement. */
  claim(wish: { kind: JobKind; claim: string; now: Date; until: Date; limit: number }): Promise<Job[]>;
  /** Ends a claim with what is done about it, in one batch. false: it is another's by now, and nothing was written. */
  settle(jobId: string, claim: string, plan: Plan, look: { holder: string; at: Date }): Promise<boolean>;
}

export interface Occurrences {
  /** Newest first. */
  list(
    owner: string,
    jobId: string,
    options: { limit: number; cursor?: string | undefined },
  ): Promise<OccurrencePage>;
  get(owner: string, key: OccurrenceKey): Promise<Occurrence | null>;
  /** Those of these jobs that have not ended. */
  open(jobIds: string[]): Promise<Occurrence[]>;
  /** By hand: `queued`, or with `alone` null where one of the job has not ended. null too where there is no such job. */
  add(
    owner: string,
    jobId: string,
    occurrence: NewOccurrence,
    options: { now: Date; alone: boolean },
  ): Promise<Occurrence | null>;
  /** Those whose time to be looked at has come, for the caller alone until `until`. */
  look(now: Date, until: Date, limit: number): Promise<Occurrence[]>;
  /** `queued` -> `claimed`, unless another of the job is; whose turn it is. false: nothing was written. */
  start(key: OccurrenceKey, by: { holder: string; until: Date }): Promise<boolean>;
  /** Still `claimed` with this run, and not to be looked at before `until`. */
  hold(key: OccurrenceKey, runId: string, until: Date): Promise<boolean>;
  /** Looked at again at another time. */
  postpone(key: OccurrenceKey, at: Date): Promise<void>;
  /** Its session, once the run has begun. */
  begun(key: OccurrenceKey, sessionId: string, at: Date): Promise<void>;
  /** `claimed` -> `queued`: its run could not begin, and is tried again. */
  requeue(key: OccurrenceKey, runId: string, at: Date, reason: string): Promise<boolean>;
  /**
   * The one end of an occurrence, with what it means for its job, the owner's day and whoever is told of it, in one batch.
   * false: it has one already.
   */
  finish(key: OccurrenceKey, outcome: Outcome, delivery: NewDelivery | null): Promise<boolean>;
  /** What the owner's jobs have used on the day of `at`, in UTC. */
  spentOn(owner: string, at: Date): Promise<Spent>;
}

export interface Deliveries {
  /** Those that are due, counted as attempts and left alone by others until `until`. */
  claim(now: Date, until: Date, limit: number): Promise<Delivery[]>;
  settle(key: OccurrenceKey, attempt: number, result: DeliveryResult): Promise<void>;
}

export interface Automation {
  jobs: Jobs;
  occurrences: Occurrences;
  deliveries: Deliveries;
  /** When something is due next, whatever it is; null: nothing ever. */
  nextDue(): Promise<Date | null>;
}

/** How a run that nobody watches differs from others; kept with it, so that whoever goes on with it knows. */
export interface Unattended {
  /** Tools that run unasked, behind the operator's rules: what they deny stays denied. */
  allow: string[];
  asking: "nobody" | "person";
  tokenBudget: number;
}

/** What a request or a model says of a cron job. */
export interface CronFields {
  command: string;
  schedule?: string | undefined;
  interval_minutes?: number | undefined;
  run_at?: string | undefined;
  cron_time?: string | undefined;
  timezone?: string | undefined;
  name?: string | undefined;
  session?: string | undefined;
  agent_name?: string | undefined;
  provider?: string | undefined;
  model?: string | undefined;
  allowed_tools?: string[] | null | undefined;
  approval?: UnattendedApproval | undefined;
  misfire?: Misfire | undefined;
  overlap?: Overlap | undefined;
  max_runs?: number | null | undefined;
  repeat_after_crash?: boolean | undefined;
  webhook_url?: string | null | undefined;
  budget?: JobBudget | undefined;
}

/** What is absent stays; null takes a field back to what it is without one. */
export type CronChange = { [Name in keyof CronFields]?: CronFields[Name] | null } & {
  status?: "active" | "paused" | undefined;
};

/** Where the provider key of a new job comes from: what the caller has sent, or what a run has kept of its caller's. */
export interface KeySource {
  key?: string | undefined;
  sealedKey?: string | undefined;
}

/** Cron jobs as routes and tools handle them. Throws AppError with a sentence that names the field at fault. */
export interface Scheduler {
  /** `webhookSecret`: made for a new job, and shown this once. */
  create(
    owner: string,
    fields: CronFields,
    source: KeySource & { webhookSecret?: string | undefined },
  ): Promise<{ job: Job; created: boolean; webhookSecret: string | null }>;
  list(owner: string, options: { limit: number; cursor?: string | undefined }): Promise<JobPage>;
  /** Throws AppError `not_found`, as {@link delete} does. */
  get(owner: string, id: string): Promise<Job>;
  delete(owner: string, id: string): Promise<void>;
}
