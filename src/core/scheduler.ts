/** Cron jobs as routes and tools make and handle them. */
import type { JobPage } from "./automation.ts";
import type { Job, JobBudget, Misfire, Overlap, UnattendedApproval } from "./jobs.ts";

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

/** Who asks for a new job. */
export interface JobSource extends KeySource {
  webhookSecret?: string | undefined;
  /** The tools of the run that asks, where it is no person: the job gets no others. */
  within?: readonly string[] | undefined;
}

/** What a change says of a job's secrets. `key` null: the job goes back to the operator's. */
export interface ChangedSecrets {
  key?: string | null | undefined;
  webhookSecret?: string | undefined;
}

/** Cron jobs as routes and tools handle them. Throws AppError with a sentence that names the field at fault. */
export interface Scheduler {
  /** `webhookSecret`: made for a new job, and shown this once. */
  create(
    owner: string,
    fields: CronFields,
    source: JobSource,
  ): Promise<{ job: Job; created: boolean; webhookSecret: string | null }>;
  list(owner: string, options: { limit: number; cursor?: string | undefined }): Promise<JobPage>;
  /** Throws AppError `not_found`, as {@link delete} does. */
  get(owner: string, id: string): Promise<Job>;
  delete(owner: string, id: string): Promise<void>;
}
