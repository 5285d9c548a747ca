/** Decisions on parked calls: what may be decided, by whom, once. What runs is the stored call; a client's copy only selects. */
import { toArgs } from "../core/args.ts";
import { type Message, textOf } from "../core/message.ts";
import type { PolicyRule } from "../core/policy.ts";
import type { CallRecord } from "../core/run.ts";
import type { Store } from "../core/store.ts";
import { AppError } from "../errors.ts";
import { hashCode, parseDecision } from "./approval-code.ts";
import { parseArgv } from "./command.ts";
import { pendingOf, sessionOfRoot } from "./members.ts";
import type { AgentServices } from "./turn.ts";
import { cancelPaused } from "./turn-ending.ts";

/** A call as a client names it: by id, or as the object that it was shown. */
export interface SelectedCall {
  id: string;
  name?: string | undefined;
  /** Parsed; compared with the stored ones. */
  args?: unknown;
}

export interface Decision {
  runId: string;
  calls: CallRecord[];
  /** Nothing was left to decide: all of it had been decided before, in the same way. */
  repeated: boolean;
}

export interface DecisionWish {
  sessionId: string;
  /** Empty: all pending calls of the session. */
  selected: SelectedCall[];
  approved: boolean;
  scope: "once" | "session";
}

/**
 * Decides. Throws AppError: `not_found` for an unknown session or call, `conflict` for a call that differs from the stored
 * one or was decided otherwise, `gone` for one that has expired. Then nothing is decided.
 */
export async function decideCalls(
  services: AgentServices,
  owner: string,
  asked: DecisionWish,
): Promise<Decision> {
  const { store, platform } = services;
  const now = platform.now();
  await store.sessions.get(owner, asked.sessionId);
  const { wish, pending } = await whereAsked(store, owner, asked, now);
  const calls = await selectCalls(services, owner, wish, pending);
  const decision = wish.approved ? "allowed" : "denied";
  const [first] = calls;
  if (!first) throw new AppError("not_found", "No call of this session waits for a decision.");
  // Nobody can go on with a run whose calls came too late; it would stand in the list for ever.
  const runIds = [...new Set(calls.map((call) => call.runId))];
  const roots = new Set(await Promise.all(runIds.map((runId) => rootOf(services, owner, runId))));
  const [runId = first.runId] = roots;
  if (calls.some((call) => call.state === "expired")) await cancelPaused(services, owner, runId, "expired");
  for (const call of calls) refuseUnlessOpen(call, decision);
  if (roots.size > 1)
    throw new AppError(
      "conflict",
      "These calls belong to different runs. Decide on those of one run at a time.",
    );
  const open = calls.filter((call) => call.state === "pending");
  if (open.length === 0) return { runId, calls, repeated: true };
  const after: CallRecord[] = [];
  let decided = 0;
  for (const [id, each] of Map.groupBy(open, (call) => call.runId)) {
    const ids = each.map((call) => call.callId);
    const result = await store.runs.decide(owner, id, ids, decision, now);
    for (const call of result.calls)
      if (!result.decided.includes(call.callId)) refuseUnlessOpen(call, decision);
    after.push(...result.calls);
    decided += result.decided.length;
  }
  if (wish.approved && wish.scope === "session")
    await store.sessions.grant(
      owner,
      wish.sessionId,
      (await grantable(services, owner, calls)).flatMap(grantFor),
    );
  return { runId, calls: after, repeated: decided === 0 };
}

/** A member's calls are decided in the session of its swarm: who names the member's own means those. */
async function whereAsked(
  store: Store,
  owner: string,
  wish: DecisionWish,
  now: Date,
): Promise<{ wish: DecisionWish; pending: CallRecord[] }> {
  const { runs } = store;
  const pending = await runs.pending(owner, wish.sessionId, now);
  const [run] =
    pending.length > 0 ? [] : (await runs.list(owner, { sessionId: wish.sessionId, limit: 1 })).runs;
  const sessionId = run?.root === undefined ? undefined : await sessionOfRoot(runs, owner, run.root);
  if (!run || sessionId === undefined) return { wish, pending };
  return { wish: { ...wish, sessionId }, pending: await pendingOf(store, run, now) };
}

/** The run that goes on when something is decided about a run's calls: of a member's, the one that it hangs from. */
async function rootOf({ store }: AgentServices, owner: string, runId: string): Promise<string> {
  return (await store.runs.get(owner, runId))?.root ?? runId;
}

/** The calls of a run and of its members. */
export async function callsOfSwarm(
  { store }: AgentServices,
  owner: string,
  runId: string,
): Promise<CallRecord[]> {
  const calls = await store.runs.calls(owner, runId);
  for (const member of await store.runs.members(owner, runId))
    calls.push(...(await store.runs.calls(owner, member.id)));
  return calls;
}

/** The call that a chat message decides by its code, decided; null when the message is no decision of this owner's. */
export async function decideByCode(
  services: AgentServices,
  owner: string,
  messages: readonly Message[],
): Promise<Decision | null> {
  const last = messages.at(-1);
  if (last?.role !== "user" || last.content.some((part) => part.type !== "text")) return null;
  const wish = parseDecision(textOf(last));
  if (!wish) return null;
  const calls = await services.store.runs.byCode(owner, await hashCode(wish.code));
  const [first] = calls;
  if (!first) return null;
  for (const call of calls) {
    if (call.state !== "pending")
      throw new AppError("conflict", "This code has been used already, or its call was decided otherwise.");
    if (isExpired(call, services.platform.now())) throw expired(call);
  }
  const ids = calls.map((call) => call.callId);
  const after = await services.store.runs.decide(
    owner,
    first.runId,
    ids,
    wish.decision,
    services.platform.now(),
  );
  if (after.decided.length === 0) throw new AppError("conflict", "This code has been used already.");
  return { runId: await rootOf(services, owner, first.runId), calls: after.calls, repeated: false };
}

async function selectCalls(
  services: AgentServices,
  owner: string,
  wish: DecisionWish,
  pending: CallRecord[],
): Promise<CallRecord[]> {
  if (wish.selected.length === 0)
    return pending.length > 0 ? pending : latestDecision(services, owner, wish.sessionId);
  const ids = [...new Set(wish.selected.map((call) => call.id))];
  const found = await services.store.runs.callsById(owner, wish.sessionId, ids);
  return wish.selected.map((selected) => {
    const call = found.find((record) => record.callId === selected.id);
    if (!call)
      throw new AppError("not_found", `No call '${selected.id}' of this session waits for a decision.`);
    if (differs(selected, call))
      throw new AppError(
        "conflict",
        `The call '${selected.id}' is not the one that is stored: its name or its arguments differ. Nothing was run. Decide on what GET /api/sessions/${wish.sessionId}/messages shows.`,
      );
    return call;
  });
}

/** What a request that names no calls meant before, when it is sent again: the calls that were decided last, or expired. */
async function latestDecision(
  services: AgentServices,
  owner: string,
  sessionId: string,
): Promise<CallRecord[]> {
  const { runs } = await services.store.runs.list(owner, { sessionId, limit: 1 });
  const calls = runs[0] ? await callsOfSwarm(services, owner, runs[0].id) : [];
  const late = calls.filter((call) => call.state === "expired");
  if (late.length > 0) return late;
  const latest = Math.max(...calls.map((call) => call.decidedAt?.getTime() ?? 0));
  return latest > 0 ? calls.filter((call) => call.decidedAt?.getTime() === latest) : [];
}

function differs(selected: SelectedCall, call: CallRecord): boolean {
  if (selected.name !== undefined && selected.name !== call.name) return true;
  return selected.args !== undefined && canonical(selected.args) !== canonical(argsOf(call.args));
}

/** As clients are shown them. */
function argsOf(args: string): Record<string, unknown> {
  return toArgs(args) ?? { _raw: args };
}

/** JSON with sorted keys. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([key, entry]) => `${JSON.stringify(key)}:${canonical(entry)}`).join()}}`;
}

/** Passes what is pending, and what was decided in the same way. */
function refuseUnlessOpen(call: CallRecord, decision: "allowed" | "denied"): void {
  if (call.state === "pending") return;
  if (call.state === "expired") throw expired(call);
  if (call.state === "cancelled")
    throw new AppError(
      "conflict",
      `The call '${call.callId}' was cancelled: the conversation has gone on without it.`,
    );
  const allowed = call.state !== "denied";
  if (allowed === (decision === "allowed")) return;
  throw new AppError(
    "conflict",
    `The call '${call.callId}' was ${allowed ? "approved" : "denied"} already; that cannot be taken back.`,
  );
}

function isExpired(call: CallRecord, now: Date): boolean {
  return call.expiresAt !== null && call.expiresAt <= now;
}

function expired(call: CallRecord): AppError {
  return new AppError("gone", `The time to decide on the call '${call.callId}' is over. Ask for it again.`);
}

/** What needs consent whatever its arguments is asked about each time: the model may have read anything meanwhile (E4). */
async function grantable(services: AgentServices, owner: string, calls: CallRecord[]): Promise<CallRecord[]> {
  const tools = new Map((await services.tools.of(owner)).map((tool) => [tool.name, tool]));
  return calls.filter(({ name }) => tools.get(name)?.consent === undefined);
}

/** `scope: session`: the same tool with the same kind of arguments. A command that is no plain argv is asked each time (P3). */
function grantFor(call: CallRecord): PolicyRule[] {
  const args = argsOf(call.args);
  if (call.risk === "execute") {
    const command = typeof args.command === "string" ? args.command : "";
    const argv = parseArgv(command);
    if (!argv || argv.some((word) => /[\s*?]/.test(word))) return [];
    return [{ tool: call.name, args: { command: argv.join(" ") }, decision: "allow" }];
  }
  const { path } = args;
  if (typeof path !== "string") return [{ tool: call.name, decision: "allow" }];
  if (/[*?]/.test(path)) return [];
  const folder = path.slice(0, path.lastIndexOf("/") + 1);
  return [{ tool: call.name, args: { path: folder === "" ? path : `${folder}*` }, decision: "allow" }];
}
