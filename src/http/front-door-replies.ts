/** Runs -> the reply of a front door, whole or streamed, once they have shown that there will be one. */
import type { Passed } from "../agent/journal.ts";
import type { Turn } from "../agent/turn.ts";
import type { AgentEvent } from "../core/event.ts";
import { type Fault, fromFault } from "../errors.ts";
import type { Codec, ReplyMeta } from "../protocols/codec.ts";
import type { Services } from "../services.ts";
import type { Client } from "./front-door-runs.ts";
import { STREAM_HEADERS, streamBody } from "./sse.ts";

/** A run whose first event has been seen, so that a fault could still become a status. */
export interface Reply {
  turn: Turn;
  head: AgentEvent[];
}

/** Throws what the first of them has failed with; the others are cancelled then. */
export async function opened(turns: Promise<Turn>[], client: Client, begun: () => void): Promise<Reply[]> {
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

export async function whole<Wire>(
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

export function streamed<Wire>(
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
