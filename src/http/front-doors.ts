/** Mounts a codec: request in the door's words -> a run -> the reply in the door's words, whole or streamed. */
import type { Context, Handler } from "hono";
import { decideByCode } from "../agent/approvals.ts";
import type { Passed } from "../agent/journal.ts";
import type { RunInput } from "../agent/run.ts";
import type { ToolSelection } from "../agent/select-tools.ts";
import type { Ask, Turn, TurnWatch } from "../agent/turn.ts";
import { endAbandoned } from "../agent/turn-ending.ts";
import { continueTurn, startTurn } from "../agent/turns.ts";
import type { AgentEvent } from "../core/event.ts";
import { createId } from "../core/id.ts";
import type { RunRecord } from "../core/run.ts";
import { AppError, type Fault, fromFault } from "../errors.ts";
import type { Codec, Decoded, ReplyMeta } from "../protocols/codec.ts";
import { parseWire } from "../protocols/problem.ts";
import type { Services } from "../services.ts";
import { readJson } from "./body.ts";
import { providerWishOf } from "./credentials.ts";
import type { AppEnv } from "./env.ts";
import { headerValue } from "./header-value.ts";
import type { Quota } from "./quota.ts";
import { STREAM_HEADERS, streamBody } from "./sse.ts";
import { swarmFor, whoAnswers } from "./who-answers.ts";

export function frontDoor<Wire>(codec: Codec<Wire>, services: Services, quota: Quota): Handler<AppEnv> {
  const { config } = services;
  return async (c) => {
    const body = await readJson(c.req.raw, { limit: config.body.v1Limit, timeoutMs: config.body.timeoutMs });
    const decoded = codec.decode(parseWire(codec.request, body), {
      headers: c.req.raw.headers,
      query: new URLSearchParams(c.req.url.split("?")[1] ?? ""),
    });
    const hold = c.req.header("x-on-disconnect") === "continue";
    const client = clientOf(c.req.raw.signal, hold);
    const parked = await decidedHere(services, c.get("owner"), decoded);
    const ask = parked ? null : await askOf(c, codec.door, decoded, services);
    const runId = parked?.id ?? ask?.runId ?? "";
    const turns = parked
      ? [continued(services, parked, askingOf(c), client)]
      : started(services, ask as Ask, decoded.choices, client, quota);
    const each = await opened(turns, client, () => c.set("runId", runId));
    // Given to the response at once: Hono's own way of setting them one by one costs a Headers object more.
    const headers: Record<string, string> = {
      "x-run-id": runId,
      "x-upstream-model": headerValue(parked?.spec.request.model ?? (ask as Ask).target.model),
    };
    const sessionId = each[0]?.turn.sessionId;
    if (ask?.session !== undefined && sessionId !== undefined) headers["x-session-id"] = sessionId;
    const meta: ReplyMeta = {
      model: decoded.request.model,
      requestId: c.get("requestId"),
      createdAt: services.platform.now(),
      choices: decoded.choices,
      agentEvents: c.req.header("x-agent-events") === "1",
      echo: decoded.echo,
    };
    return decoded.stream
      ? streamed(codec, meta, each, client, headers, services)
      : whole(codec, meta, each, client, headers);
  };
}

/** Who asks what of whom. */
async function askOf(c: Context<AppEnv>, door: string, decoded: Decoded, services: Services): Promise<Ask> {
  const { models } = services;
  const owner = c.get("owner");
  const { agent, credentials, target } = await whoAnswers(
    services,
    owner,
    decoded.request,
    providerWishOf(c),
  );
  const { provider, key } = credentials;
  const several = decoded.choices > 1;
  const session = c.req.header("x-session-id");
  if (several && (provider !== "openai" || session !== undefined))
    throw new AppError(
      "unsupported_field",
      session === undefined
        ? `n: ${provider} gives one reply a request. Leave n out, or send the request several times.`
        : "n: a session takes one reply a turn. Leave n out, or leave out x-session-id.",
      { param: "n" },
    );
  return {
    runId: createId("run"),
    owner,
    door,
    adapter: await models.adapter(credentials),
    key,
    callersKey: c.get("providerKey") !== undefined,
    target,
    agent: agent ?? undefined,
    swarm: await swarmFor(services, owner, agent),
    request: decoded.request,
    // Several agents side by side in one workspace would undo each other's work.
    selection: several ? "none" : selectionOf(c.req.header("x-agent-tools")),
    session,
    carriesSeals: decoded.carriesSeals,
    asking: askingOf(c),
  };
}

function selectionOf(header: string | undefined): ToolSelection {
  if (header === undefined) return "default";
  const names = header.split(",").map((name) => name.trim());
  const [first] = names;
  if (names.length === 1 && (first === "all" || first === "none")) return first;
  return names.filter((name) => name !== "");
}

/** These doors have no way to ask but the reply itself. */
function askingOf(c: Context<AppEnv>): RunInput["asking"] {
  return c.req.header("x-approval") === "deny" ? "nobody" : "text";
}

/** Where the last message is `approve CODE` or `deny CODE`: the run that it decides about, to be gone on with here. */
async function decidedHere(services: Services, owner: string, decoded: Decoded): Promise<RunRecord | null> {
  if (decoded.choices > 1) return null;
  const { agent, store, platform } = services;
  const decision = await decideByCode(agent, owner, decoded.request.messages);
  if (!decision) return null;
  const leaseUntil = new Date(platform.now().getTime() + agent.leaseMs);
  const record = await store.runs.resume(owner, decision.runId, agent.holder, leaseUntil);
  if (record) return record;
  throw new AppError(
    "conflict",
    `Your decision is taken, and run ${decision.runId} goes on elsewhere: see GET /api/runs/${decision.runId}/events.`,
  );
}

/** What ends the runs of a request: its client goes, unless they are to go on without it. */
interface Client {
  controller: AbortController;
  hold: boolean;
}

function clientOf(signal: AbortSignal, hold: boolean): Client {
  const controller = new AbortController();
  if (!hold) {
    if (signal.aborted) controller.abort();
    else signal.addEventListener("abort", () => controller.abort(), { once: true });
  }
  return { controller, hold };
}

/** Keeps the lease of a run for as long as its events are read, if it ever has one. */
function leaseOf(services: Services, owner: string, runId: string, client: Client): Required<TurnWatch> {
  let release = () => {};
  return {
    onRow() {
      release = services.runs.hold(runId, client.controller);
    },
    onEnd(unstored) {
      release();
      if (unstored !== undefined) services.runs.retryEnd(owner, runId, unstored);
    },
  };
}

function started(
  services: Services,
  ask: Ask,
  choices: number,
  client: Client,
  quota: Quota,
): Promise<Turn>[] {
  return Array.from({ length: choices }, async (_, choice) => {
    const asked = choice === 0 ? ask : { ...ask, runId: createId("run") };
    const lease = leaseOf(services, ask.owner, asked.runId, client);
    const leave = quota.run(ask.owner);
    const onEnd = (unstored: unknown) => {
      leave();
      lease.onEnd(unstored);
    };
    try {
      return await startTurn(services.agent, asked, client.controller.signal, { ...lease, onEnd });
    } catch (error) {
      onEnd(undefined);
      throw error;
    }
  });
}

async function continued(
  services: Services,
  record: RunRecord,
  asking: RunInput["asking"],
  client: Client,
): Promise<Turn> {
  const lease = leaseOf(services, record.owner, record.id, client);
  lease.onRow();
  try {
    const after = { after: "decided", asking } as const;
    return await continueTurn(services.agent, record, after, client.controller.signal, lease);
  } catch (error) {
    lease.onEnd(undefined);
    await endAbandoned(services.agent, record, error);
    throw error;
  }
}

/** A run whose first event has been seen, so that a fault could still become a status. */
interface Reply {
  turn: Turn;
  head: AgentEvent[];
}

/** Throws what the first of them has failed with; the others are cancelled then. */
async function opened(turns: Promise<Turn>[], client: Client, begun: () => void): Promise<Reply[]> {
  try {
    return await Promise.all(
      turns.map(async (beginning) => {
        const turn = await beginning;
        begun();
        return peek(turn);
      }),
    );
  } catch (error) {
    client.controller.abort();
    for (const turn of turns)
      turn.then(
        ({ events }) => drain(events),
        () => {},
      );
    throw error;
  }
}

/** Reads to the upstream's first event. Throws the run's fault when there is none. */
async function peek(turn: Turn): Promise<Reply> {
  const head: AgentEvent[] = [];
  for (;;) {
    const { value: passed, done } = await turn.events.next();
    if (done) return { turn, head };
    const { event } = passed;
    const fault = faultOf(event);
    if (fault) throw fromFault(fault);
    head.push(event);
    if (event.type === "model") return { turn, head };
  }
}

/** Why a run failed; a limit that it met is an end like others. */
function faultOf(event: AgentEvent): Fault | undefined {
  return event.type === "run-close" && event.outcome !== "completed" ? event.fault : undefined;
}

async function whole<Wire>(
  codec: Codec<Wire>,
  meta: ReplyMeta,
  replies: Reply[],
  client: Client,
  headers: Record<string, string>,
): Promise<Response> {
  const collector = codec.collector(meta);
  const collect = async ({ head, turn }: Reply, choice: number) => {
    for (const event of head) collector.push(event, choice);
    let fault: Fault | undefined;
    for await (const { event } of turn.events) {
      fault = faultOf(event);
      if (!fault) collector.push(event, choice);
    }
    if (fault) throw fromFault(fault);
  };
  try {
    await Promise.all(replies.map(collect));
  } catch (error) {
    client.controller.abort();
    throw error;
  }
  headers["content-type"] = "application/json";
  return new Response(JSON.stringify(collector.body()), { headers });
}

function streamed<Wire>(
  codec: Codec<Wire>,
  meta: ReplyMeta,
  replies: Reply[],
  client: Client,
  headers: Record<string, string>,
  { platform }: Services,
): Response {
  const encoder = codec.encoder(meta);
  const frames = replies.length === 1 ? framesOf(replies[0] as Reply, encoder) : merged(replies, encoder);
  const body = streamBody(frames, {
    heartbeat: codec.heartbeat,
    onClose: (delivered) => {
      if (delivered) return;
      if (!client.hold) client.controller.abort();
      platform.background(drain(frames));
    },
    // A run has to be read to its end, or it would be left without one.
    hold: true,
    log: platform.log,
  });
  return new Response(body, { headers: { ...headers, ...STREAM_HEADERS } });
}

type Encode = { push(event: AgentEvent, choice?: number): string };

async function* framesOf({ head, turn }: Reply, encoder: Encode): AsyncGenerator<string, void, void> {
  let first = "";
  for (const event of head) first += encoder.push(event);
  yield first;
  for await (const { event } of turn.events) {
    const frame = encoder.push(event);
    if (frame !== "") yield frame;
  }
}

/** Several runs at once, each event as it comes. */
async function* merged(replies: Reply[], encoder: Encode): AsyncGenerator<string, void, void> {
  for (const [choice, { head }] of replies.entries())
    for (const event of head) yield encoder.push(event, choice);
  const next = (choice: number) =>
    (replies[choice] as Reply).turn.events.next().then((result) => ({ choice, result }));
  const waiting = new Map(replies.map((_, choice) => [choice, next(choice)]));
  while (waiting.size > 0) {
    const { choice, result } = await Promise.race(waiting.values());
    if (result.done) waiting.delete(choice);
    else {
      waiting.set(choice, next(choice));
      yield encoder.push(result.value.event, choice);
    }
  }
}

async function drain(events: AsyncGenerator<Passed | string, void, void>): Promise<void> {
  for await (const _ of events);
}
