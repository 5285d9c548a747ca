/** `POST /api/chat` and `POST /api/chat/approve`: runs that go on without their client, and the decisions they wait for. */
import { type Context, Hono } from "hono";
import { type Decision, decideByCode, decideCalls } from "../agent/approvals.ts";
import type { Frame } from "../agent/journal.ts";
import { AGENT, agentIds, resolveTarget } from "../agent/target.ts";
import type { Ask } from "../agent/turn.ts";
import { createRunId, startTurn } from "../agent/turns.ts";
import { AppError, fromFault } from "../errors.ts";
import { type ChatAsk, decodeApprove, decodeChat } from "../protocols/native-chat-request.ts";
import { approveRequest, chatRequest } from "../protocols/native-chat-schema.ts";
import type { Services } from "../services.ts";
import type { AppEnv } from "./env.ts";
import { headerValue } from "./header-value.ts";
import type { Quota } from "./quota.ts";
import { collectRun, eventOf, type Frames, streamRun } from "./run-stream.ts";
import { readBody } from "./validate.ts";

export function chatRoutes(services: Services, quota: Quota): Hono<AppEnv> {
  const { config, agent } = services;
  const { timeoutMs, v1Limit, apiLimit } = config.body;
  return (
    new Hono<AppEnv>()
      // Attachments come in the body.
      .post("/", async (c) => {
        const wire = await readBody(c, chatRequest, { limit: v1Limit, timeoutMs });
        const wish = decodeChat(wire, config.run);
        const decision = await decideByCode(agent, c.get("owner"), wish.request.messages);
        return decision
          ? goOn(c, services, decision, wish.stream)
          : start(c, services, await askOf(c, services, wish), wish.stream, quota);
      })
      .post("/approve", async (c) => {
        const wire = await readBody(c, approveRequest, { limit: apiLimit, timeoutMs });
        const { sessionId, calls, approved, scope, stream } = decodeApprove(wire);
        const wish = { sessionId, selected: calls, approved, scope };
        return goOn(c, services, await decideCalls(agent, c.get("owner"), wish), stream);
      })
  );
}

async function askOf(c: Context<AppEnv>, services: Services, wish: ChatAsk): Promise<Ask> {
  const { config, models } = services;
  checkAgent(wish);
  if (wish.autoApprove && !config.allowAutoApprove)
    throw new AppError(
      "forbidden",
      "auto_approve: the operator of this service does not allow it (ALLOW_AUTO_APPROVE). Leave it out and approve the calls, or set APPROVAL rules on the server.",
      { param: "auto_approve" },
    );
  const callersKey = wish.key ?? c.get("providerKey");
  const credentials = models.choose({
    key: callersKey,
    provider: wish.provider,
    param: "provider",
    where: "the field api_key",
  });
  const { provider, key } = credentials;
  const word = wish.request.model || AGENT;
  return {
    runId: createRunId(),
    owner: c.get("owner"),
    door: "chat",
    adapter: await models.adapter(credentials),
    key,
    callersKey: callersKey !== undefined,
    target: resolveTarget(word, config.providers[provider].model, config.models.aliases),
    request: wish.request,
    selection: wish.allowedTools ?? "all",
    session: wish.sessionId ?? "new",
    carriesSeals: false,
    asking: wish.autoApprove ? "allow" : "person",
    maxSteps: wish.maxSteps,
    client: c.req.raw.signal,
  };
}

function checkAgent({ agentName, useSwarm, sessionId }: ChatAsk): void {
  if (agentName !== undefined && agentName !== AGENT)
    throw new AppError(
      "not_found",
      `agent_name: there is no agent '${agentName.slice(0, 100)}'. The agents are: ${agentIds().join(", ")}.`,
      { param: "agent_name" },
    );
  if (useSwarm)
    throw new AppError(
      "not_implemented",
      "use_swarm: several agents at once are not there yet. Leave it out, and one agent does the work.",
      { param: "use_swarm" },
    );
  // Labels make sessions when they are first used; here an unknown session is told.
  if (sessionId !== undefined && !sessionId.startsWith("ses_"))
    throw new AppError("not_found", "There is no session with this id. Leave session_id out for a new one.", {
      param: "session_id",
    });
}

async function start(
  c: Context<AppEnv>,
  services: Services,
  ask: Ask,
  stream: boolean,
  quota: Quota,
): Promise<Response> {
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
  c.set("runId", runId);
  const headers = {
    "x-run-id": runId,
    "x-session-id": sessionId ?? "",
    "x-upstream-model": headerValue(ask.target.model),
  };
  const frames: Frames = (signal) => runs.read(owner, runId, 0, signal);
  // Until the upstream's first word a fault can still become a status.
  const close = await live.begun;
  if (close?.fault && (close.outcome === "failed" || close.outcome === "stopped")) {
    c.set("retryable", true);
    throw fromFault(close.fault);
  }
  return stream
    ? streamRun(frames, headers, services)
    : Response.json(await collectRun(frames, c.req.raw.signal), { headers });
}

/** The run goes on with what has been decided, here or wherever somebody else has seen to it. */
async function goOn(
  c: Context<AppEnv>,
  services: Services,
  decision: Decision,
  stream: boolean,
): Promise<Response> {
  const { runs, store } = services;
  const owner = c.get("owner");
  const { runId } = decision;
  c.set("runId", runId);
  const parked = await store.runs.get(owner, runId);
  const resumed = parked?.status === "paused" && (await runs.goOn(owner, runId));
  const callIds = new Set(decision.calls.map((call) => call.callId));
  const frames: Frames = resumed
    ? (signal) => runs.read(owner, runId, parked.lastEvent, signal)
    : await begun(c.req.raw.signal, (signal) => partWith(services, owner, runId, callIds, signal));
  const headers = { "x-run-id": runId, "x-session-id": parked?.sessionId ?? "" };
  return stream
    ? streamRun(frames, headers, services)
    : Response.json(await collectRun(frames, c.req.raw.signal), { headers });
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
  { runs, store }: Services,
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
