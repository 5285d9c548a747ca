/** What has become of a job's run -> the end of its occurrence, and what is told of it. */
import { membersBelow } from "../agent/members.ts";
import type { Job } from "../core/jobs.ts";
import { textOf } from "../core/message.ts";
import type { NewDelivery, Occurrence, Outcome } from "../core/occurrences.ts";
import type { RunRecord } from "../core/run.ts";
import type { Store } from "../core/store.ts";
import type { AppError } from "../errors.ts";
import { type ModelPrice, priceOf, spentBy } from "./budget.ts";

/** Characters. */
const REPLY_LIMIT = 100_000;
const REASON_LIMIT = 1_000;
/** Messages looked through for the last reply. */
const MESSAGES_AT_ONCE = 10;

type Found = Pick<Store, "runs" | "sessions">;

/** null: it has not ended. */
export async function outcomeOf(
  { runs, sessions }: Found,
  { late }: Occurrence,
  record: RunRecord,
  prices: readonly ModelPrice[],
  at: Date,
): Promise<(Outcome & { reply: string }) | null> {
  const { status, fault, sessionId, usage } = record;
  if (status === "running" || status === "paused") return null;
  const reply = await replyOf(sessions, record);
  const denied = await deniedIn(runs, record);
  const spent = spentBy(usage, priceOf(prices, record.spec.request.model));
  const end = { sessionId, spent, denied, at, reply };
  if (status === "failed" || status === "stopped") {
    const reason = fault?.message ?? "The run has ended without a result.";
    return { ...end, fate: "failed", reason, counts: status === "failed" ? "failure" : "neither" };
  }
  const cut = record.stop === "length" ? reply.slice(0, REASON_LIMIT) || "It ended at a limit." : null;
  return { ...end, fate: late ? "late" : "ran", reason: cut, counts: "success" };
}

/** An occurrence whose run never began. */
export function withoutRun(
  fate: "blocked" | "failed" | "skipped",
  reason: string,
  at: Date,
  counts: Outcome["counts"],
  pause?: string,
): Outcome {
  const nothing = { sessionId: null, spent: { tokens: 0, money: 0 }, denied: [] };
  return { fate, reason: reason.slice(0, REASON_LIMIT), ...nothing, at, counts, pause };
}

/** Whether the same may go better later: nothing has been asked of a model yet. */
export function mayBeRetried({ code }: AppError): boolean {
  return ["conflict", "unavailable", "storage_full", "rate_limited", "internal"].includes(code);
}

async function replyOf(sessions: Found["sessions"], { owner, sessionId, historySeq }: RunRecord) {
  const page = await sessions.page(owner, sessionId, { limit: MESSAGES_AT_ONCE });
  const last = page.find(({ seq, message }) => seq > historySeq && message.role === "assistant");
  return last ? textOf(last.message) : "";
}

/** Of its swarm too. */
async function deniedIn(runs: Found["runs"], record: RunRecord): Promise<string[]> {
  const { owner, spec } = record;
  const denied: string[] = [];
  for (const { id } of [record, ...(spec.swarm ? await membersBelow(runs, owner, record) : [])])
    for (const { name, state } of await runs.calls(owner, id)) if (state === "denied") denied.push(name);
  return denied;
}

/** What a webhook is told; null where the job has none, or has left a time out by its own rules. */
export function deliveryOf(
  job: Job,
  occurrence: Occurrence,
  { fate, reason, sessionId, spent, denied, at }: Outcome,
  reply: string,
): NewDelivery | null {
  if (job.webhookUrl === null || job.sealedWebhookSecret === null || fate === "skipped") return null;
  const body = {
    type: `${job.kind === "cron" ? "job" : "watchdog"}.${fate}`,
    timestamp: at.toISOString(),
    data: {
      ...{ job_id: job.id, name: job.name, scheduled_at: occurrence.scheduledAt.toISOString() },
      ...{ trigger: occurrence.trigger, fate, reason, run_id: occurrence.runId },
      ...{ session_id: sessionId ?? occurrence.sessionId, reply: reply.slice(0, REPLY_LIMIT) },
      denied_tools: denied,
      usage: spent,
    },
  };
  return { url: job.webhookUrl, sealedSecret: job.sealedWebhookSecret, body: JSON.stringify(body) };
}
