/** Cron jobs as people and models make and change them: checked as a whole before anything is stored. */
import type { Automation, OccurrencePage } from "../core/automation.ts";
import type { Job, JobSpec } from "../core/jobs.ts";
import type { Occurrence } from "../core/occurrences.ts";
import type {
  ChangedSecrets,
  CronChange,
  CronFields,
  JobSource,
  KeySource,
  Scheduler,
} from "../core/scheduler.ts";
import { AppError } from "../errors.ts";
import { type BudgetLimits, checkBudget } from "./budget.ts";
import {
  fingerprintOf,
  nameless,
  nameOf,
  partsOf,
  rescheduled,
  stateOf,
  upcomingOf,
  wrong,
} from "./cron-change.ts";
import { isPlainUrl } from "./plain-url.ts";
import { QUEUE_LIMIT } from "./plan-cron.ts";
import { nextTime, parseSchedule } from "./schedule.ts";
import { answererOf, keyOf, type RunHost } from "./start-run.ts";
import { checkWebhookSecret, createWebhookSecret } from "./webhook.ts";
import { checkWithin } from "./within.ts";

export interface SchedulerParts extends RunHost {
  automation: Automation;
  limits: BudgetLimits;
  /** Starts it now; null where one is not over. */
  runNow(job: Job): Promise<Occurrence | null>;
  /** Something may be due sooner than was known. */
  wake(): void;
}

export class CronJobs implements Scheduler {
  readonly #parts: SchedulerParts;

  constructor(parts: SchedulerParts) {
    this.#parts = parts;
  }

  async create(owner: string, fields: CronFields, source: JobSource) {
    const now = this.#parts.agent.platform.now();
    const schedule = parseSchedule(fields, now);
    const webhook = await this.webhook(fields.webhook_url ?? null, source.webhookSecret);
    const spec: JobSpec = {
      kind: "cron",
      name: fields.name ?? nameOf(fields.command),
      command: fields.command,
      session: fields.session ?? "new",
      agentName: nameless(fields.agent_name),
      provider: fields.provider ?? null,
      model: fields.model ?? null,
      sealedKey: await this.sealedKey(source),
      allowedTools: fields.allowed_tools ?? null,
      approval: fields.approval ?? "deny",
      ...webhook.columns,
      budget: fields.budget ?? {},
      overlap: fields.overlap ?? "skip",
      maxRuns: fields.max_runs ?? null,
      schedule,
      misfire: fields.misfire ?? "once",
      repeatAfterCrash: fields.repeat_after_crash ?? false,
      watch: null,
    };
    checkBudget(spec.budget, this.#parts.limits);
    await this.checkSession(owner, spec.session);
    const key = source.key ?? (await keyOf(this.#parts, spec));
    const { agent } = await answererOf(this.#parts, { ...spec, owner }, key);
    if (source.within) await checkWithin(this.#parts.agent, { ...spec, owner }, agent, source.within);
    const fingerprint = await fingerprintOf(spec);
    const nextAt = nextTime(schedule, now);
    const { job, created } = await this.#parts.automation.jobs.create(owner, spec, { fingerprint, nextAt });
    if (created) this.#parts.wake();
    return { job, created, webhookSecret: created ? webhook.secret : null };
  }

  list(owner: string, options: { limit: number; cursor?: string | undefined }) {
    return this.#parts.automation.jobs.list(owner, "cron", options);
  }

  /** Throws AppError `not_found`. */
  async get(owner: string, id: string): Promise<Job> {
    const job = await this.#parts.automation.jobs.get(owner, "cron", id);
    if (!job) throw noJob();
    return job;
  }

  async update(owner: string, id: string, change: CronChange, { key, webhookSecret }: ChangedSecrets) {
    const { automation, agent } = this.#parts;
    const now = agent.platform.now();
    const job = await this.get(owner, id);
    const schedule = rescheduled(job, change, now);
    const parts = partsOf(change);
    if (change.name === null) parts.name = nameOf(parts.command ?? job.command);
    const webhook = await this.changedWebhook(job, change.webhook_url, webhookSecret);
    Object.assign(parts, webhook?.columns);
    if (key !== undefined) parts.sealedKey = await this.sealedKey({ key: key ?? undefined });
    if (schedule) parts.schedule = schedule;
    const spec: JobSpec = { ...job, ...parts };
    // What is as it was is not looked at: a job whose session or key is gone can still be paused or renamed.
    if (parts.budget) checkBudget(parts.budget, this.#parts.limits);
    if (parts.session !== undefined) await this.checkSession(owner, parts.session);
    const { agent_name, provider, model } = change;
    if (key !== undefined || [agent_name, provider, model].some((each) => each !== undefined))
      await answererOf(this.#parts, { ...spec, owner }, key ?? (await keyOf(this.#parts, spec)));
    const state = stateOf(job, spec, { status: change.status, isRescheduled: schedule !== null, now });
    const isDone = (state.status ?? job.status) === "done";
    const fingerprint = isDone ? null : await fingerprintOf(spec);
    const changed = await automation.jobs.update(owner, "cron", id, { ...parts, fingerprint, ...state });
    if (!changed) throw noJob();
    this.#parts.wake();
    return { job: changed, webhookSecret: webhook?.secret ?? null };
  }

  async delete(owner: string, id: string): Promise<void> {
    if (!(await this.#parts.automation.jobs.delete(owner, "cron", id))) throw noJob();
  }

  /** Throws AppError `not_found`, or `conflict` while one is not over. */
  async run(owner: string, id: string): Promise<Occurrence> {
    const job = await this.get(owner, id);
    const occurrence = await this.#parts.runNow(job);
    if (occurrence) return occurrence;
    throw new AppError(
      "conflict",
      job.overlap === "queue"
        ? `${QUEUE_LIMIT} runs of this job wait for the one before already. Wait for their end, or stop it with POST /api/runs/{id}/stop.`
        : "A run of this job is not over yet. Wait for its end, stop it with POST /api/runs/{id}/stop, or let runs wait for each other (overlap: queue).",
    );
  }

  /** Past occurrences, newest first, and the next times. */
  async runs(
    owner: string,
    id: string,
    options: { limit: number; cursor?: string | undefined },
    upcoming: number,
  ): Promise<OccurrencePage & { upcoming: Date[] }> {
    const job = await this.get(owner, id);
    const page = await this.#parts.automation.occurrences.list(owner, id, options);
    return { ...page, upcoming: upcomingOf(job, upcoming) };
  }

  async #canSign({ sealedWebhookSecret }: Job): Promise<boolean> {
    if (sealedWebhookSecret === null) return false;
    return (await this.#parts.agent.vault?.open(sealedWebhookSecret)) != null;
  }

  /** Of watchdogs too, as the three behind it. */
  async sealedKey({ key, sealedKey }: KeySource): Promise<string | null> {
    if (sealedKey !== undefined) return sealedKey;
    if (key === undefined) return null;
    const { vault } = this.#parts.agent;
    if (vault) return vault.seal(key);
    throw wrong(
      "api_key",
      "it cannot be kept, since this server has no secret to encrypt it under. Set SECRET_KEY on the server, or leave it out where the operator has set a key.",
    );
  }

  async webhook(url: string | null, wished: string | undefined) {
    if (wished !== undefined) checkWebhookSecret(wished);
    if (url === null) {
      if (wished !== undefined) throw wrong("webhook_secret", "it is of no use without webhook_url.");
      return { columns: { webhookUrl: null, sealedWebhookSecret: null }, secret: null };
    }
    const { vault } = this.#parts.agent;
    if (!vault) throw wrong("webhook_url", "there is no secret to sign under. Set SECRET_KEY on the server.");
    if (!isPlainUrl(url))
      throw wrong("webhook_url", "it has to be an http or https URL without a user name or password.");
    const secret = wished ?? createWebhookSecret();
    return { columns: { webhookUrl: url, sealedWebhookSecret: await vault.seal(secret) }, secret };
  }

  /** null: it stays as it is. The same address keeps its secret, as long as that can be read. */
  async changedWebhook(job: Job, address: string | null | undefined, wished: string | undefined) {
    if (address === undefined && wished === undefined) return null;
    const url = address === undefined ? job.webhookUrl : address;
    const kept = wished === undefined && url === job.webhookUrl && (await this.#canSign(job));
    return kept ? null : this.webhook(url, wished);
  }

  /** What could be found wrong at each run is found wrong now. */
  async checkSession(owner: string, session: string): Promise<void> {
    if (session === "new") return;
    if (!session.startsWith("ses_"))
      throw wrong("session", "it has to be `new`, for one of its own each time, or the id of a session.");
    try {
      await this.#parts.agent.store.sessions.get(owner, session);
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== "not_found") throw error;
      throw new AppError("not_found", "session: there is no session with this id.", { param: "session" });
    }
  }
}

function noJob(): AppError {
  return new AppError("not_found", "There is no job with this id.");
}
