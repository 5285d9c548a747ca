/** Runs of the native door, from their request on or from a decision on, for whoever shows them: chat.ts and mcp-server.ts. */
import type { Decision } from "../agent/approvals.ts";
import type { Frame } from "../agent/journal.ts";
import { JUDGE } from "../agent/member-words.ts";
import { AGENT } from "../agent/target.ts";
import type { Ask } from "../agent/turn.ts";
import { createRunId, startTurn } from "../agent/turns.ts";
import { text } from "../core/message.ts";
import { AppError, fromFault } from "../errors.ts";
import type { ChatAsk } from "../protocols/native-chat-request.ts";
import type { Services } from "../services.ts";
import type { Quota } from "./quota.ts";
import { eventOf, type Frames, toWaiting } from "./run-stream.ts";
import { swarmFor, whoAnswers } from "./who-answers.ts";

/** Who asks, and with what. */
export interface Caller {
  owner: string;
  /** The key that came in a header. */
  providerKey: string | undefined;
  /** Where a key may come in, for the sentence that says that there is none. */
  where: string;
  /** Aborted when nobody waits any more. */
  client: AbortSignal;
}

export interface Begun {
  sessionId: string;
  frames: Frames;
  /** It failed before the upstream's first word: nothing has been done, and the same request may be sent again. */
  fault?: AppError | undefined;
}

export async function askOf(services: Services, caller: Caller, wish: ChatAsk): Promise<Ask> {
  const { config, models } = services;
  const { owner } = caller;
  checkSession(wish);
  if (wish.autoApprove && !config.allowAutoApprove)
    throw new AppError(
      "forbidden",
      "auto_approve: the operator of this service does not allow it (ALLOW_AUTO_APPROVE). Leave it out and approve the calls, or set APPROVAL rules on the server.",
      { param: "auto_approve" },
    );
  const callersKey = wish.key ?? caller.providerKey;
  const model = wish.request.model || AGENT;
  const { agent, credentials, target } = await whoAnswers(
    services,
    owner,
    { model, agentName: wish.agentName },
    { key: callersKey, provider: wish.provider, param: "provider", where: caller.where },
  );
  const { key } = credentials;
  const { debate } = wish;
  const swarm = wish.useSwarm || debate ? { rounds: debate?.rounds } : undefined;
  const { request } = wish;
  return {
    runId: createRunId(),
    owner,
    door: "chat",
    adapter: await models.adapter(credentials),
    key,
    callersKey: callersKey !== undefined,
    target,
    agent: agent ?? undefined,
    swarm: await swarmFor(services, owner, agent, swarm),
    request: debate ? { ...request, system: [...request.system, text(JUDGE)] } : request,
    selection: wish.allowedTools ?? "all",
    session: wish.sessionId ?? "new",
    carriesSeals: false,
    asking: wish.autoApprove ? "allow" : "person",
    maxSteps: wish.maxSteps,
    client: caller.client,
  };
}

function checkSession({ sessionId }: ChatAsk): void {
  // Labels make sessions when they are first used; here an unknown session is told.
  if (sessionId !== undefined && !sessionId.startsWith("ses_"))
    throw new AppError("not_found", "There is no session with this id. Leave session_id out for a new one.", {
      param: "session_id",
    });
}

/** Throws AppError when the run cannot begin. */
export async function beginRun(services: Services, ask: Ask, quota: Quota): Promise<Begun> {
  const { agent, runs } = services;
  const { owner, runId } = ask;
  const controller = new AbortController();
  const leave = quota.run(owner);
  let live: ReturnType<typeof runs.drive>;
  let sessionId: string | undefined;
  try {
    const turn = await startTurn(agent, ask, controller.signal, { onEnd: leave });
    sessionId = turn.sessionId;
    live = runs.drive(owner, turn, controller);
  } catch (error) {
    leave();
    throw error;
  }
  const begun = {
    sessionId: sessionId ?? "",
    frames: (signal: AbortSignal) => runs.read(owner, runId, 0, signal),
  };
  // Until the upstream's first word a fault can still become a status.
  const close = await live.begun;
  if (close?.fault && (close.outcome === "failed" || close.outcome === "stopped"))
    return { ...begun, fault: toWaiting(fromFault(close.fault)) };
  return begun;
}

/** The run goes on with what has been decided, here or wherever somebody else has seen to it. */
export async function goOn(
  { runs, store }: Services,
  owner: string,
  { runId, calls }: Decision,
  client: AbortSignal,
): Promise<Begun> {
  const parked = await store.runs.get(owner, runId);
  const resumed = parked?.status === "paused" && (await runs.goOn(owner, runId));
  const callIds = new Set(calls.map((call) => call.callId));
  const frames: Frames = resumed
    ? (signal) => runs.read(owner, runId, parked.lastEvent, signal)
    : await begun(client, (signal) => partWith({ runs, store }, owner, runId, callIds, signal));
  return { sessionId: parked?.sessionId ?? "", frames };
}

/** Waits for the first frame, so that what is thrown before it can still become a status. */
async function begun(client: AbortSignal, frames: Frames): Promise<Frames> {
  const reader = new AbortController();
  const abort = () => reader.abort();
  client.addEventListener("abort", abort, { once: true });
  const rest = frames(reader.signal);
  const first = await rest.next();
  return async function* (signal) {
    signal.addEventListener("abort", abort, { once: true });
    if (first.done) return;
    yield first.value;
    yield* rest;
  };
}

/** How long a decision that somebody else acts on is left alone before it is looked for again. Milliseconds. */
const LOOK_AGAIN_MS = 200;

/**
 * The part of a run's stream, between two pauses, that shows the first result of these calls. Throws AppError `conflict`
 * when the run has ended without one.
 */
async function* partWith(
  { runs, store }: Pick<Services, "runs" | "store">,
  owner: string,
  runId: string,
  callIds: ReadonlySet<string>,
  signal: AbortSignal,
): AsyncGenerator<Frame, void, void> {
  let seen = 0;
  let part: Frame[] = [];
  let found = false;
  while (!signal.aborted) {
    for await (const frame of runs.read(owner, runId, seen, signal)) {
      seen = frame.seq;
      const event = eventOf(frame);
      if (event.type === "session") {
        if (found) return;
        part = [];
      }
      if (found) {
        yield frame;
        continue;
      }
      part.push(frame);
      if (event.type !== "tool_result" || !callIds.has(event.id)) continue;
      found = true;
      yield* part;
    }
    const record = await store.runs.get(owner, runId);
    if (found || !record || (record.status !== "paused" && record.status !== "running")) break;
    if (!(await runs.goOn(owner, runId))) await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
  }
  if (!found)
    throw new AppError(
      "conflict",
      "The run has ended before the decision was acted on: it was stopped, or the conversation went on without it.",
    );
}
