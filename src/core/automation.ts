/** Automation as the store keeps it: each change that many may try at once is one conditional statement. */
import type { DueJob, Job, JobChange, JobKind, JobSpec, WatchState } from "./jobs.ts";
import type {
  Delivery,
  DeliveryResult,
  NewDelivery,
  NewOccurrence,
  Occurrence,
  OccurrenceKey,
  Outcome,
  Spent,
} from "./occurrences.ts";

/** What is done about a job that is due. */
export interface Plan {
  records: NewOccurrence[];
  nextAt: Date | null;
  /** It will never be due again, for this reason. */
  done: string | null;
  /** What a watchdog's check has left; without `state` that stays. */
  watchState?: (Omit<WatchState, "state"> & Partial<Pick<WatchState, "state">>) | undefined;
}

/** A look that has found nothing, and leaves what its watchdog has in mind as it is. */
export interface QuietLook extends Omit<WatchState, "state"> {
  id: string;
  nextAt: Date;
}

export interface JobPage {
  jobs: Job[];
  next: string | null;
}

export interface OccurrencePage {
  occurrences: Occurrence[];
  next: string | null;
}

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
  claim(wish: { kind: JobKind; claim: string; now: Date; until: Date; limit: number }): Promise<DueJob[]>;
  /**
   * Ends a claim with what is done about it, in one batch. Returns the records that were written: a time that has one
   * already, as after a clock was set back, keeps it. null: the claim is another's by now, and nothing was written.
   */
  settle(
    jobId: string,
    claim: string,
    plan: Plan,
    look: { holder: string; at: Date },
  ): Promise<NewOccurrence[] | null>;
  /** Ends claims on what was looked at in vain, in one statement. What is another's by now is left alone. */
  rest(claim: string, looks: readonly QuietLook[]): Promise<void>;
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
  /**
   * Those whose time to be looked at has come, for the caller alone until `until`. `queued` false: those in the queue are
   * left to others, since the caller could begin none.
   */
  look(wish: { now: Date; until: Date; limit: number; queued: boolean }): Promise<Occurrence[]>;
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

/** A watchdog on a directory that looks again and again. */
export interface WatchedDirectory {
  id: string;
  owner: string;
  directory: string;
}

/** Hints that a directory has changed. They make a look due sooner and do nothing else, so any process may give them. */
export interface WatchHints {
  /** Of all owners, out of a limited number of active watchdogs. */
  directories(): Promise<WatchedDirectory[]>;
  /**
   * Those that would not look soon by themselves are due now, or when they have cooled down; what came while their own
   * run was under way waits for the interval. One conditional statement. `sooner`: how many are. `busy`: somebody is
   * looking at these just now and may have missed it, so they are to be told again.
   */
  hint(changes: readonly { id: string; at: Date }[], now: Date): Promise<{ sooner: number; busy: string[] }>;
}

export interface Automation {
  jobs: Jobs;
  occurrences: Occurrences;
  deliveries: Deliveries;
  hints: WatchHints;
  /** When something is due next, whatever it is; null: nothing ever. */
  nextDue(): Promise<Date | null>;
}
