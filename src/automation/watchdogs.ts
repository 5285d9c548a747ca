/** Watchdogs as people and models make and change them, and their looks when they are due. */
import { findAgent } from "../agent/named-agents.ts";
import { outsideText } from "../agent/outside.ts";
import { AGENT } from "../agent/target.ts";
import { createRunId } from "../agent/turns.ts";
import type { Automation, JobPage } from "../core/automation.ts";
import type { DueJob, Job, JobChange, JobSpec, WatchSpec } from "../core/jobs.ts";
import type { ChangedSecrets, JobSource } from "../core/scheduler.ts";
import type { Look, Trial, WatchChange, Watcher, WatchFields, WatchTarget } from "../core/watch.ts";
import { AppError } from "../errors.ts";
import { type BudgetLimits, checkBudget } from "./budget.ts";
import { fingerprintOf, nameless, nameOf, partsOf, wrong } from "./cron-change.ts";
import { ranEnough } from "./plan-cron.ts";
import type { CronJobs } from "./scheduler.ts";
import { nextLook } from "./spread.ts";
import { answererOf, keyOf, type RunHost } from "./start-run.ts";
import type { Planner } from "./tick.ts";
import { checkTarget, lookAt, type Patterns, TOOL } from "./watch-check.ts";
import { digestOf } from "./watch-digest.ts";
import type { DirectoryHints } from "./watch-hints.ts";
import { memoryOf, planWatch, type WatchVerdict } from "./watch-plan.ts";
import { checkWithin } from "./within.ts";

/** Seconds. */
const INTERVAL = 60;
/** Files often come in bursts: one run for all of them. Seconds. */
const DIRECTORY_DEBOUNCE = 2;
/** Of a check, within the time that a job stays with whoever has claimed it. Milliseconds. */
const CHECK_MS = 10_000;
/** Between the plan of a look and this one. Milliseconds. */
const LATE_MS = 100;
/** Characters of a target that stands for itself; a longer one is known by its digest, which takes its time. */
const NAMED_LENGTH = 500;

export interface WatchdogParts extends RunHost {
  automation: Automation;
  limits: BudgetLimits;
  leaseMs: number;
  patterns: Patterns;
  cron: Pick<CronJobs, "sealedKey" | "webhook" | "changedWebhook" | "checkSession">;
  hints: Pick<DirectoryHints, "put" | "drop" | "looked">;
  wake(): void;
}

export class Watchdogs implements Watcher {
  readonly #parts: WatchdogParts;

  constructor(parts: WatchdogParts) {
    this.#parts = parts;
  }

  /** For the runner: never throws for what a look finds. */
  readonly plan: Planner = async (job, { open }) => {
    const since = performance.now();
    this.#watch(job);
    const verdict = await this.#look(job, open);
    if (verdict.plan.done !== null) this.#parts.hints.drop(job.id);
    const found = verdict.trial.finding !== null;
    this.#parts.hints.looked(job.id, { ms: performance.now() - since, found });
    const { records, nextAt } = verdict.plan;
    for (const record of records)
      if (record.finding !== null) record.finding = outsideText("watchdog", record.finding);
    const { intervalMs, target } = job.watch as WatchSpec;
    const now = this.#parts.agent.platform.now();
    // What is looked at sooner, as to see whether it rests, is so for a reason. And few directories change unseen.
    const isUsual =
      target.directory === undefined &&
      nextAt !== null &&
      nextAt.getTime() - now.getTime() >= intervalMs - LATE_MS;
    return isUsual ? { ...verdict.plan, nextAt: nextLook(job.id, now, intervalMs) } : verdict.plan;
  };

  async create(owner: string, fields: WatchFields, source: JobSource) {
    const { automation, agent, limits, cron } = this.#parts;
    const { job: common } = fields;
    const target = targetOf(fields);
    const webhook = await cron.webhook(common.webhook_url ?? null, source.webhookSecret);
    const spec: JobSpec = {
      ...{ kind: "watchdog", name: common.name ?? nameOf(common.command), command: common.command },
      ...{ session: common.session ?? "new", agentName: nameless(common.agent_name) },
      ...{ provider: common.provider ?? null, model: common.model ?? null },
      sealedKey: await cron.sealedKey(source),
      ...{ allowedTools: common.allowed_tools ?? null, approval: common.approval ?? "deny" },
      ...webhook.columns,
      ...{ budget: common.budget ?? {}, overlap: common.overlap ?? "skip", maxRuns: common.max_runs ?? null },
      ...{ schedule: null, misfire: "once", repeatAfterCrash: common.repeat_after_crash ?? false },
      watch: {
        target: target as Record<string, unknown>,
        intervalMs: (fields.interval_seconds ?? INTERVAL) * 1_000,
        debounceMs: (fields.debounce_seconds ?? debounceOf(target)) * 1_000,
        cooldownMs: (fields.cooldown_seconds ?? 0) * 1_000,
      },
    };
    await this.#checkTarget({ ...spec, owner });
    checkBudget(spec.budget, limits);
    await cron.checkSession(owner, spec.session);
    const key = source.key ?? (await keyOf(this.#parts, spec));
    const { agent: named } = await answererOf(this.#parts, { ...spec, owner }, key);
    if (source.within) {
      await checkWithin(agent, { ...spec, owner }, named, source.within);
      if (target.command !== undefined && !source.within.includes(TOOL))
        throw wrong("command", `this conversation has no tool ${TOOL} itself. Watch a directory or a url.`);
    }
    const fingerprint = await fingerprintOf(spec);
    const nextAt = agent.platform.now();
    const { job, created } = await automation.jobs.create(owner, spec, { fingerprint, nextAt });
    if (created) {
      this.#watch(job);
      this.#parts.wake();
    }
    return { job, created, webhookSecret: created ? webhook.secret : null };
  }

  list(owner: string, options: { limit: number; cursor?: string | undefined }): Promise<JobPage> {
    return this.#parts.automation.jobs.list(owner, "watchdog", options);
  }

  async get(owner: string, id: string): Promise<Job> {
    const job = await this.#parts.automation.jobs.get(owner, "watchdog", id);
    if (!job) throw noWatchdog();
    return job;
  }

  async update(owner: string, id: string, change: WatchChange, { key, webhookSecret }: ChangedSecrets) {
    const { automation, agent, limits, cron } = this.#parts;
    const job = await this.get(owner, id);
    const parts = partsOf(change.job);
    const { name, webhook_url, agent_name, provider, model, status } = change.job;
    if (name === null) parts.name = nameOf(parts.command ?? job.command);
    const webhook = await cron.changedWebhook(job, webhook_url, webhookSecret);
    Object.assign(parts, webhook?.columns);
    if (key !== undefined) parts.sealedKey = await cron.sealedKey({ key: key ?? undefined });
    const watch = changedWatch(job, change);
    if (watch) parts.watch = watch;
    const spec: JobSpec = { ...job, ...parts };
    // What is as it was is not looked at: a watchdog whose session or key is gone can still be paused or renamed.
    if (watch || parts.allowedTools !== undefined || agent_name !== undefined)
      await this.#checkTarget({ ...spec, owner });
    if (parts.budget) checkBudget(parts.budget, limits);
    if (parts.session !== undefined) await cron.checkSession(owner, parts.session);
    if (key !== undefined || [agent_name, provider, model].some((each) => each !== undefined))
      await answererOf(this.#parts, { ...spec, owner }, key ?? (await keyOf(this.#parts, spec)));
    const state = stateOf(job, spec, status ?? undefined, watch !== null, agent.platform.now());
    // What will never fire again as it is, paused or not, stands in the way of no other.
    const fingerprint = isOver({ ...job, ...spec, ...state }) ? null : await fingerprintOf(spec);
    const changed = await automation.jobs.update(owner, "watchdog", id, { ...parts, fingerprint, ...state });
    if (!changed) throw noWatchdog();
    this.#watch(changed);
    this.#parts.wake();
    return { job: changed, webhookSecret: webhook?.secret ?? null };
  }

  async delete(owner: string, id: string): Promise<void> {
    if (!(await this.#parts.automation.jobs.delete(owner, "watchdog", id))) throw noWatchdog();
    this.#parts.hints.drop(id);
  }

  async test(owner: string, id: string): Promise<Trial> {
    const job = await this.get(owner, id);
    const open = await this.#parts.automation.occurrences.open([id]);
    return (await this.#look(job, open)).trial;
  }

  async runs(owner: string, id: string, options: { limit: number; cursor?: string | undefined }) {
    await this.get(owner, id);
    return this.#parts.automation.occurrences.list(owner, id, options);
  }

  /** Natively too, as long as it is active. */
  #watch({ id, owner, status, watch }: Pick<Job, "id" | "owner" | "status" | "watch">): void {
    const { directory } = (watch as WatchSpec).target as WatchTarget;
    if (directory === undefined || status !== "active") this.#parts.hints.drop(id);
    else this.#parts.hints.put({ id, owner, directory });
  }

  get #checks() {
    const { agent, patterns, leaseMs } = this.#parts;
    return { agent, patterns, timeoutMs: Math.min(CHECK_MS, Math.floor((leaseMs * 2) / 3)) };
  }

  async #checkTarget(job: Pick<JobSpec, "watch" | "agentName" | "allowedTools"> & { owner: string }) {
    const { target } = job.watch as WatchSpec;
    await checkTarget(this.#checks, target, { ...job, rules: await this.#rulesOf(job) });
  }

  /** The agent's own, which hold at the checks of a command too. */
  async #rulesOf({ owner, agentName, watch }: Pick<JobSpec, "watch" | "agentName"> & { owner: string }) {
    if (agentName === null || (watch as WatchSpec).target.command === undefined) return [];
    const { agents } = this.#parts.agent.store;
    return (await findAgent(agents, owner, { model: AGENT, agentName }))?.policy ?? [];
  }

  async #look(job: DueJob, open: Parameters<Planner>[1]["open"]): Promise<WatchVerdict> {
    const { platform } = this.#parts.agent;
    const watch = job.watch as WatchSpec;
    const target: WatchTarget = watch.target;
    const named = JSON.stringify(watch.target);
    const of = named.length > NAMED_LENGTH ? await digestOf(named) : named;
    let look: Look | { error: string };
    try {
      look = await lookAt(
        this.#checks,
        target,
        { ...job, rules: await this.#rulesOf(job) },
        memoryOf(job, of)?.kept ?? null,
      );
    } catch (error) {
      if (error instanceof AppError) look = { error: error.message };
      else {
        look = { error: "Something failed inside the service. The log has more under the watchdog's id." };
        const cause = String((error as Error)?.stack ?? error);
        platform.log("error", "a watchdog could not look", { job_id: job.id, error: cause });
      }
    }
    return planWatch({ ...job, watch }, of, look, { now: platform.now(), open, createRunId });
  }
}

const TARGET = ["directory", "pattern", "url", "command", "expect"] as const;

function targetOf(fields: WatchTarget): WatchTarget {
  return Object.fromEntries(
    TARGET.flatMap((name) => (fields[name] === undefined ? [] : [[name, fields[name]]])),
  );
}

function debounceOf({ directory }: WatchTarget): number {
  return directory === undefined ? 0 : DIRECTORY_DEBOUNCE;
}

/** null where the change says nothing of it. A target of another kind takes the place of the one before. */
function changedWatch(job: Job, change: WatchChange): WatchSpec | null {
  const { interval_seconds, debounce_seconds, cooldown_seconds } = change;
  const said = TARGET.filter((name) => change[name] !== undefined);
  const times = [interval_seconds, debounce_seconds, cooldown_seconds];
  if (said.length === 0 && times.every((each) => each === undefined)) return null;
  const before = job.watch as WatchSpec;
  const isOther = (["directory", "url", "command"] as const).some(
    (kind) => (change[kind] ?? null) !== null && before.target[kind] === undefined,
  );
  const kept: WatchTarget = isOther ? {} : before.target;
  const target = targetOf({
    ...kept,
    ...Object.fromEntries(said.map((name) => [name, change[name] ?? undefined])),
  });
  const ms = (wished: number | null | undefined, fallback: number, old: number) =>
    wished === undefined ? old : (wished ?? fallback) * 1_000;
  // What nobody has said goes with the kind of target.
  const isUnsaid = isOther && before.debounceMs === debounceOf(before.target) * 1_000;
  const debounce = isUnsaid ? (debounce_seconds ?? null) : debounce_seconds;
  return {
    target: target as Record<string, unknown>,
    intervalMs: ms(interval_seconds, INTERVAL, before.intervalMs),
    debounceMs: ms(debounce, debounceOf(target), before.debounceMs),
    cooldownMs: ms(cooldown_seconds, 0, before.cooldownMs),
  };
}

/** Whether it looks again, and when: at once where it is told to look elsewhere, or goes on. */
function stateOf(
  job: Job,
  { maxRuns }: Pick<JobSpec, "maxRuns">,
  wish: "active" | "paused" | undefined,
  isNew: boolean,
  now: Date,
): JobChange {
  if (wish === "paused") return { status: "paused", reason: null };
  const mayGoOn = maxRuns !== job.maxRuns;
  const status = wish ?? (job.status === "done" && mayGoOn ? "active" : job.status);
  if (status !== "active") return {};
  if (maxRuns !== null && job.runsMade >= maxRuns) {
    if (job.status === "active" && wish === undefined)
      return { status: "done", reason: ranEnough(maxRuns), nextAt: null };
    throw new AppError(
      "conflict",
      `The watchdog has run ${job.runsMade} times, and max_runs is ${maxRuns}. Raise max_runs with the same change.`,
      { param: "max_runs" },
    );
  }
  if (job.status === "active") return isNew ? { nextAt: now } : {};
  return { status: "active", reason: null, nextAt: now, failures: 0 };
}

function isOver({ status, maxRuns, runsMade }: Pick<Job, "status" | "maxRuns" | "runsMade">): boolean {
  return status === "done" || (maxRuns !== null && runsMade >= maxRuns);
}

function noWatchdog(): AppError {
  return new AppError("not_found", "There is no watchdog with this id.");
}
