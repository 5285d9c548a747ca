/** Mounts a codec: request in the door's words -> a run -> the reply in the door's words, whole or streamed. */
import type { Context, Handler } from "hono";
import type { ToolSelection } from "../agent/select-tools.ts";
import { type Ask, startRun } from "../agent/start.ts";
import { resolveTarget } from "../agent/target.ts";
import type { AgentEvent } from "../core/event.ts";
import { createId } from "../core/id.ts";
import { AppError, fromFault } from "../errors.ts";
import type { Codec, Decoded, ReplyMeta } from "../protocols/codec.ts";
import { parseWire } from "../protocols/problem.ts";
import type { Services } from "../services.ts";
import { readJson } from "./body.ts";
import { credentialsOf } from "./credentials.ts";
import type { AppEnv } from "./env.ts";
import { streamBody } from "./sse.ts";

export function frontDoor<Wire>(codec: Codec<Wire>, services: Services): Handler<AppEnv> {
  const { config } = services;
  return async (c) => {
    const body = await readJson(c.req.raw, { limit: config.body.v1Limit, timeoutMs: config.body.timeoutMs });
    const decoded = codec.decode(parseWire(codec.request, body), {
      headers: c.req.raw.headers,
      query: new URLSearchParams(c.req.url.split("?")[1] ?? ""),
    });
    const ask = await askOf(c, codec.door, decoded, services);
    const hold = c.req.header("x-on-disconnect") === "continue";
    const replies = await openReplies(c, ask, decoded, services, hold);
    // Given to the response at once: Hono's own way of setting them one by one costs a Headers object more.
    const headers: Record<string, string> = { "x-run-id": ask.runId, "x-upstream-model": ask.target.model };
    if (replies.sessionId !== undefined) headers["x-session-id"] = replies.sessionId;
    const meta: ReplyMeta = {
      model: decoded.request.model,
      requestId: c.get("requestId"),
      createdAt: services.platform.now(),
      choices: decoded.choices,
      agentEvents: c.req.header("x-agent-events") === "1",
      echo: decoded.echo,
    };
    c.set("runId", ask.runId);
    return decoded.stream
      ? streamed(codec, meta, replies, headers, hold, services)
      : whole(codec, meta, replies, headers);
  };
}

/** Who asks what of whom. */
async function askOf(c: Context<AppEnv>, door: string, decoded: Decoded, services: Services): Promise<Ask> {
  const { config, models } = services;
  const credentials = credentialsOf(c, models);
  const { provider } = credentials;
  const target = resolveTarget(
    decoded.request.model,
    config.providers[provider].model,
    config.models.aliases,
  );
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
    owner: c.get("owner"),
    door,
    adapter: await models.adapter(credentials),
    target,
    request: decoded.request,
    // Several agents side by side in one workspace would undo each other's work.
    selection: several ? "none" : selectionOf(c.req.header("x-agent-tools")),
    session,
    carriesSeals: decoded.carriesSeals,
  };
}

function selectionOf(header: string | undefined): ToolSelection {
  if (header === undefined) return "default";
  const names = header.split(",").map((name) => name.trim());
  const [first] = names;
  if (names.length === 1 && (first === "all" || first === "none")) return first;
  return names.filter((name) => name !== "");
}

/** A run whose first event has been seen, so that a fault could still become a status. */
interface Reply {
  head: AgentEvent[];
  rest: AsyncGenerator<AgentEvent, void, void>;
}

interface Replies {
  each: Reply[];
  sessionId: string | undefined;
  /** Ends the runs: the client has gone. */
  cancel(): void;
}

async function openReplies(
  c: Context<AppEnv>,
  ask: Ask,
  decoded: Decoded,
  services: Services,
  hold: boolean,
): Promise<Replies> {
  const controller = new AbortController();
  const cancel = () => controller.abort();
  if (!hold) {
    const client = c.req.raw.signal;
    if (client.aborted) cancel();
    else client.addEventListener("abort", cancel, { once: true });
  }
  let sessionId: string | undefined;
  const starts = Array.from({ length: decoded.choices }, async (_, choice) => {
    const asked = choice === 0 ? ask : { ...ask, runId: createId("run") };
    const started = await startRun(services.agent, asked, controller.signal);
    sessionId = started.sessionId;
    return peek(started.events);
  });
  try {
    const each = await Promise.all(starts);
    return { each, sessionId, cancel };
  } catch (error) {
    cancel();
    throw error;
  }
}

/** Reads to the upstream's first event. Throws the run's fault when there is none. */
async function peek(events: AsyncGenerator<AgentEvent, void, void>): Promise<Reply> {
  const head: AgentEvent[] = [];
  for (;;) {
    const { value: event, done } = await events.next();
    if (done) return { head, rest: events };
    if (event.type === "run-close" && event.fault && event.outcome !== "completed")
      throw fromFault(event.fault);
    head.push(event);
    if (event.type === "model") return { head, rest: events };
  }
}

async function whole<Wire>(
  codec: Codec<Wire>,
  meta: ReplyMeta,
  replies: Replies,
  headers: Record<string, string>,
): Promise<Response> {
  const collector = codec.collector(meta);
  const collect = async ({ head, rest }: Reply, choice: number) => {
    const push = (event: AgentEvent) => {
      if (event.type === "run-close" && event.fault && event.outcome !== "completed")
        throw fromFault(event.fault);
      collector.push(event, choice);
    };
    head.forEach(push);
    for await (const event of rest) push(event);
  };
  try {
    await Promise.all(replies.each.map(collect));
  } catch (error) {
    replies.cancel();
    throw error;
  }
  headers["content-type"] = "application/json";
  return new Response(JSON.stringify(collector.body()), { headers });
}

function streamed<Wire>(
  codec: Codec<Wire>,
  meta: ReplyMeta,
  replies: Replies,
  headers: Record<string, string>,
  hold: boolean,
  { platform }: Services,
): Response {
  const encoder = codec.encoder(meta);
  const frames =
    replies.each.length === 1 ? framesOf(replies.each[0] as Reply, encoder) : merged(replies.each, encoder);
  const body = streamBody(frames, {
    heartbeat: codec.heartbeat,
    onClose: (delivered) => {
      if (delivered) return;
      if (hold) platform.background(drain(frames));
      else replies.cancel();
    },
    hold,
    log: platform.log,
  });
  headers["content-type"] = "text/event-stream; charset=utf-8";
  headers["cache-control"] = "no-cache";
  headers["x-accel-buffering"] = "no";
  return new Response(body, { headers });
}

type Encode = { push(event: AgentEvent, choice?: number): string };

async function* framesOf({ head, rest }: Reply, encoder: Encode): AsyncGenerator<string, void, void> {
  let first = "";
  for (const event of head) first += encoder.push(event);
  yield first;
  for await (const event of rest) {
    const frame = encoder.push(event);
    if (frame !== "") yield frame;
  }
}

/** Several runs at once, each event as it comes. */
async function* merged(replies: Reply[], encoder: Encode): AsyncGenerator<string, void, void> {
  for (const [choice, { head }] of replies.entries())
    for (const event of head) yield encoder.push(event, choice);
  const next = (choice: number) =>
    (replies[choice] as Reply).rest.next().then((result) => ({ choice, result }));
  const waiting = new Map(replies.map((_, choice) => [choice, next(choice)]));
  while (waiting.size > 0) {
    const { choice, result } = await Promise.race(waiting.values());
    if (result.done) waiting.delete(choice);
    else {
      waiting.set(choice, next(choice));
      yield encoder.push(result.value, choice);
    }
  }
}

async function drain(frames: AsyncGenerator<string, void, void>): Promise<void> {
  for await (const _ of frames);
}
