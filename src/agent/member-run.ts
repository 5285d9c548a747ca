/**
 * One turn of a swarm's member: an ordinary run with a row, a journal and a session of its own, whose id follows from the
 * call that delegated it. Whoever asks for the turn again, after a decision or a crash, gets its result where there is one,
 * and goes on with it where there is none.
 */
import type { NamedAgent } from "../core/agents.ts";
import type { AgentEvent, PendingCall } from "../core/event.ts";
import { type Message, textOf, type Usage } from "../core/message.ts";
import type { ModelAdapter } from "../core/model.ts";
import type { PolicyRule } from "../core/policy.ts";
import type { RunRecord } from "../core/run.ts";
import type { MemberName, SwarmSpec, Task } from "../core/swarm.ts";
import type { ToolContext } from "../core/tool.ts";
import { AppError } from "../errors.ts";
import { pause } from "./pause.ts";
import type { RunInput } from "./run-input.ts";
import type { ToolSelection } from "./select-tools.ts";
import type { SwarmShare } from "./swarm-share.ts";
import type { AgentServices, Ask, Turn } from "./turn.ts";
import { endAbandoned } from "./turn-ending.ts";
import { continueTurn, RECOVERIES, startTurn } from "./turns.ts";

/** How often a run that somebody else is still at is looked at again. Milliseconds. */
const LOOK_AGAIN_MS = 100;

/** The run that delegates. */
export interface Lead {
  owner: string;
  runId: string;
  /** The run that all of the swarm hangs from: this one, or one above it. */
  root: string;
  /** The name that it has in events. */
  name: string;
  adapter: ModelAdapter;
  key: string;
  callersKey: boolean;
  model: string;
  /** Names of its own tools. */
  tools: string[];
  rules: PolicyRule[];
  /** Those of the agents above it. */
  above: PolicyRule[][];
  swarm: SwarmSpec;
  asking: RunInput["asking"];
  unattended: Ask["unattended"];
  maxSteps: number | undefined;
  share: SwarmShare;
}

export interface Member {
  name: MemberName;
  /** Its place in the call. */
  index: number;
  task: Task;
  /** null: it has a role. */
  agent: NamedAgent | null;
  /** Whose model it has. */
  model: Pick<Ask, "adapter" | "key" | "callersKey"> & { id: string };
  /** What it may delegate in its turn. */
  swarm: SwarmSpec | undefined;
  selection: ToolSelection;
  rules: PolicyRule[];
  above: PolicyRule[][];
}

export interface Ended {
  status: "completed" | "failed" | "stopped";
  /** What it has said at last, or why it has failed. */
  text: string;
  /** It met a limit before it was ready. */
  cut?: boolean;
}

export type TurnOutcome = Ended | { status: "parked"; calls: PendingCall[] };

/** What all members of a call share. */
export interface MemberBench {
  services: AgentServices;
  lead: Lead;
  context: Pick<ToolContext, "callId" | "signal"> & { show(event: AgentEvent): Promise<void> };
  /** What a member is told in its turn may come from outside. */
  outside(turn: number): boolean;
  hold(runId: string, controller: AbortController): () => void;
  /** The end of a run could not be stored. */
  retryEnd(owner: string, runId: string, reason: unknown): void;
  /** Of a turn that has ended; said again when it is asked for again. */
  spent(runId: string, usage: Usage): void;
  /** A member has read content from outside. */
  foundOutside(): void;
}

/** Throws what `startTurn` throws. */
export async function memberTurn(
  bench: MemberBench,
  member: Member,
  turn: number,
  prompt: string,
): Promise<TurnOutcome> {
  const { services, lead, context } = bench;
  const { runs } = services.store;
  const runId = await turnId(bench, member, turn);
  for (;;) {
    const record = await runs.get(lead.owner, runId);
    lead.share.join(runId, record?.usage);
    if (record && record.status !== "running" && record.status !== "paused")
      return endOf(bench, member, turn, record);
    if (context.signal.aborted) return { status: "stopped", text: "The run was stopped." };
    const controller = new AbortController();
    const stop = () => controller.abort();
    context.signal.addEventListener("abort", stop, { once: true });
    if (context.signal.aborted) stop();
    try {
      const begun = record
        ? await goOn(bench, record, controller)
        : await begin(bench, member, turn, prompt, controller);
      if (!begun) {
        await pause(LOOK_AGAIN_MS, context.signal);
        continue;
      }
      const outcome = await follow(bench, member, begun);
      if (outcome) return outcome;
    } finally {
      context.signal.removeEventListener("abort", stop);
    }
  }
}

async function begin(
  bench: MemberBench,
  member: Member,
  turn: number,
  prompt: string,
  controller: AbortController,
): Promise<Turn> {
  const { services, lead } = bench;
  const { model, name, agent, above } = member;
  const runId = await turnId(bench, member, turn);
  const first = turn === 0 ? null : await services.store.runs.get(lead.owner, name.runId);
  let release = () => {};
  const watch = {
    onRow() {
      release = bench.hold(runId, controller);
    },
    onEnd: () => release(),
  };
  const ask: Ask = {
    ...{ runId, owner: lead.owner, door: "swarm", adapter: model.adapter, key: model.key },
    callersKey: model.callersKey,
    target: { agent: agent?.name ?? "dragoman", named: true, model: model.id },
    agent: agent ?? undefined,
    rules: member.rules,
    request: {
      model: model.id,
      system: [{ type: "text", text: introduction(lead, member) }],
      messages: [{ role: "user", content: [{ type: "text", text: prompt }] }],
      tools: [],
      settings: {},
    },
    selection: member.selection,
    session: first?.sessionId ?? "new",
    carriesSeals: false,
    asking: lead.asking,
    maxSteps: lead.maxSteps,
    unattended: lead.unattended,
    member: {
      ...{ root: lead.root, lead: lead.runId, name: name.name, outside: bench.outside(turn) },
      ...(above.length > 0 ? { above } : {}),
    },
    swarm: member.swarm,
    share: lead.share,
  };
  try {
    return await startTurn(services, ask, controller.signal, watch);
  } catch (error) {
    release();
    throw error;
  }
}

/** null: somebody else is at it. */
async function goOn(
  bench: MemberBench,
  { owner, id, status }: RunRecord,
  controller: AbortController,
): Promise<Turn | null> {
  const { services, lead } = bench;
  const { holder, leaseMs, platform, store } = services;
  const now = platform.now();
  const leaseUntil = new Date(now.getTime() + leaseMs);
  const record =
    status === "paused"
      ? await store.runs.resume(owner, id, holder, leaseUntil)
      : await store.runs.takeOver(id, holder, now, leaseUntil);
  if (!record) return null;
  const release = bench.hold(id, controller);
  try {
    if (record.recoveries > RECOVERIES)
      throw new AppError(
        "internal",
        `The run was interrupted ${record.recoveries} times and is not tried again.`,
      );
    const after = status === "paused" ? "decided" : "interrupted";
    const continuation = { after, asking: lead.asking, share: lead.share } as const;
    return await continueTurn(services, record, continuation, controller.signal, { onEnd: release });
  } catch (error) {
    release();
    await endAbandoned(services, record, error);
    return null;
  }
}

/** Reads a turn to its end. null: its row says how it has ended. */
async function follow(bench: MemberBench, member: Member, turn: Turn): Promise<TurnOutcome | null> {
  const { lead, context } = bench;
  const { callId } = context;
  let calls: PendingCall[] = [];
  let outcome: TurnOutcome | null = null;
  for await (const { event, unstored } of turn.events) {
    if (event.type === "approval-needed")
      calls = event.calls.map((call) => ({ ...call, agent: call.agent ?? member.name.name }));
    if (event.type === "run-close" && event.outcome === "paused") outcome = { status: "parked", calls };
    if (unstored !== undefined) {
      bench.retryEnd(lead.owner, turn.runId, unstored);
      outcome = { status: "failed", text: "The end of its run could not be stored." };
    }
    await context.show({ type: "member", callId, member: member.name, event });
  }
  return outcome;
}

async function endOf(bench: MemberBench, member: Member, turn: number, record: RunRecord): Promise<Ended> {
  const { sessions, runs } = bench.services.store;
  const { owner, sessionId } = record;
  bench.spent(record.id, record.usage);
  const next = await runs.get(owner, await turnId(bench, member, turn + 1));
  const before = next ? { before: next.historySeq } : {};
  const said = (await sessions.page(owner, sessionId, { ...before, limit: SEEN_MESSAGES })).map(
    ({ message }) => message,
  );
  // Of more than is looked at, nobody knows.
  if (said.length === SEEN_MESSAGES || said.some(isOutside)) bench.foundOutside();
  if (record.status === "completed") {
    const last = said[0];
    const text = last?.role === "assistant" ? textOf(last) : "";
    if (text.trim() === "") return { status: "failed", text: "It ended without saying anything." };
    return { status: "completed", text, ...(record.stop === "length" ? { cut: true } : {}) };
  }
  const status = record.status === "stopped" ? "stopped" : "failed";
  return { status, text: record.fault?.message ?? "It ended without a result." };
}

/** Newest messages of a member that are looked through for content from outside. */
const SEEN_MESSAGES = 200;

function isOutside(message: Message): boolean {
  return message.role === "tool" && message.outside === true;
}

/** The run of a member's turn has always the same id: it is found again, and never made twice. */
export async function turnId(
  { lead, context }: MemberBench,
  { index }: Pick<Member, "index">,
  turn: number,
): Promise<string> {
  return memberRunId(lead.runId, context.callId, index, turn);
}

const LETTERS = "234567abcdefghijklmnopqrstuvwxyz";
const ID_LENGTH = 32;

/** As random as the lead's own id. */
export async function memberRunId(
  leadId: string,
  callId: string,
  index: number,
  turn: number,
): Promise<string> {
  const text = JSON.stringify([leadId, callId, index, turn]);
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  // 256 bits, of which each byte gives five.
  const letters = Array.from(new Uint8Array(digest), (byte) => LETTERS[byte & 31]);
  return `run_${letters.slice(0, ID_LENGTH).join("")}`;
}

function introduction(lead: Lead, { name, task, agent }: Member): string {
  const lines = [
    `You are ${JSON.stringify(name.name)}, one of several agents at work for the agent ${JSON.stringify(lead.name)}, which has written the task below. It sees nothing of what you do but your last message: put your whole result there. Nobody answers questions; where something is missing, say so in your result.`,
  ];
  if (!agent && task.role) lines.push(`Your role: ${task.role}`);
  if (task.schema)
    lines.push(
      `Your last message has to be JSON alone, without words or a code fence around it, that fits this JSON schema: ${JSON.stringify(task.schema)}`,
    );
  return lines.join("\n\n");
}
