/** The times that jobs were due, one fate each, and what is told of them elsewhere. */

/** What a run has used. */
export interface Spent {
  tokens: number;
  money: number;
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
