/** How runs end that do not end by themselves: given up while they waited for a decision, or left by their process. */
import type { Message } from "../core/message.ts";
import type { CallRecord, RunRecord } from "../core/run.ts";
import { toFault } from "../errors.ts";
import { notRun, REFUSALS } from "./judge.ts";
import { membersBelow } from "./members.ts";
import type { AgentServices } from "./turn.ts";

/**
 * Numbers left out when a run goes on in mid-stream: more than the events that readers may have had and that were not
 * stored. What comes then is behind all that anybody has seen.
 */
export const UNSTORED_EVENTS = 100_000;

/** Why a run that waits for a decision is ended without one. */
const ENDINGS = {
  superseded: "The run waited for an approval, and the conversation went on without one.",
  expired: "The run waited for an approval, and nobody gave one in time.",
  stopped: "The run was stopped.",
} as const;

/** Ends a run that waits for a decision. Its calls will never run; the history stays whole. false: it does not wait. */
export async function cancelPaused(
  services: AgentServices,
  owner: string,
  runId: string,
  reason: keyof typeof ENDINGS,
): Promise<boolean> {
  const ended = await cancelOne(services, owner, runId, reason);
  // The calls that it waited for may be those of members, which wait with it.
  if (ended) await cancelBelow(services, owner, runId, reason);
  return ended;
}

/** Ends the members of a run that wait for a decision; of a run that was stopped also what the others have left behind. */
export async function cancelBelow(
  services: AgentServices,
  owner: string,
  runId: string,
  reason: keyof typeof ENDINGS,
): Promise<void> {
  const { runs } = services.store;
  const record = await runs.get(owner, runId);
  for (const { id, status } of record ? await membersBelow(runs, owner, record) : []) {
    if (reason === "stopped") services.onStop?.(owner, id);
    if (status === "paused") await cancelOne(services, owner, id, reason);
  }
}

function cancelOne(
  services: AgentServices,
  owner: string,
  runId: string,
  reason: keyof typeof ENDINGS,
): Promise<boolean> {
  const expiredAt = services.platform.now();
  const refusal = (call: CallRecord) => {
    const late = call.state === "expired" || (call.expiresAt !== null && call.expiresAt <= expiredAt);
    return (late ? REFUSALS.expired : (REFUSALS[call.state] ?? REFUSALS.cancelled)) as string;
  };
  return services.store.runs.cancelPaused(owner, runId, (call) => notRun(call, refusal(call)), {
    code: "cancelled",
    message: ENDINGS[reason],
    status: 499,
  });
}

/** Ends a run that nobody can go on with: what was under way has no outcome, and the history stays whole. */
export async function endAbandoned(
  services: AgentServices,
  record: RunRecord,
  reason: unknown,
): Promise<void> {
  const { store } = services;
  const { owner, sessionId, id } = record;
  const newest = await store.sessions.page(owner, sessionId, { limit: 1 });
  const calls = await openCalls(
    services,
    record,
    newest.map((stored) => stored.message),
  );
  for (const call of calls) {
    if (call.result !== null) continue;
    if (call.state === "allowed" || call.state === "pending") call.state = "cancelled";
    call.result = notRun(call, REFUSALS[call.state] ?? REFUSALS.cancelled ?? "");
  }
  const encoder = services.encoder({
    ...{ runId: id, sessionId, after: record.lastEvent + (record.lastEvent > 0 ? UNSTORED_EVENTS : 0) },
    ...{ earlier: [], interrupted: record.lastEvent > 0, messageId: null, unavailableTools: [] },
  });
  const fault = toFault(reason);
  const frames = encoder.failed(fault);
  const first = frames[0]?.seq ?? 0;
  await store.runs.commit(owner, id, services.holder, {
    calls,
    messages: calls.flatMap((call) => (call.result ? [call.result] : [])),
    frames: { first, last: frames.at(-1)?.seq ?? first, text: frames.map((frame) => frame.text).join("") },
    end: { status: fault.code === "cancelled" ? "stopped" : "failed", stop: "stop", fault },
  });
}

/** The calls of the last message that have no result in the history yet, as they stand. */
export async function openCalls(
  services: AgentServices,
  record: RunRecord,
  messages: Message[],
): Promise<CallRecord[]> {
  const last = messages.at(-1);
  if (last?.role !== "assistant") return [];
  const ids = new Set(last.content.flatMap((part) => (part.type === "call" ? [part.id] : [])));
  if (ids.size === 0) return [];
  const calls = (await services.store.runs.calls(record.owner, record.id)).filter((call) =>
    ids.has(call.callId),
  );
  for (const call of calls) {
    // A read is repeated; what may have had effects is not.
    if (call.state === "started") call.state = call.risk === "read" ? "allowed" : "unknown";
  }
  return calls;
}
