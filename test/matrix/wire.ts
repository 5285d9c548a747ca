/** The order that each door's stream keeps, checked on the bare text. Both checks throw for a breach, and return how it ended. */

interface Frame {
  event: string | undefined;
  data: string;
}

function framesOf(sse: string): Frame[] {
  if (!sse.endsWith("\n\n")) throw new Error("The body does not end with a whole event.");
  return sse
    .slice(0, -2)
    .split("\n\n")
    .map((frame) => {
      const lines = frame.split("\n");
      const event = lines.find((line) => line.startsWith("event: "))?.slice(7);
      const rest = lines.filter((line) => !line.startsWith("event: "));
      if (rest.length !== 1 || !rest[0]!.startsWith("data: ")) throw new Error(`Not an event: ${frame}`);
      return { event, data: rest[0]!.slice(6) };
    });
}

function must(holds: unknown, sentence: string): asserts holds {
  if (!holds) throw new Error(sentence);
}

interface WireChunk {
  object?: string;
  error?: unknown;
  usage?: unknown;
  choices: { delta: { role?: string; tool_calls?: { index?: number }[] }; finish_reason: string | null }[];
}

/** Role first, one finish reason, then usage with empty choices, then [DONE]; an error takes the place of all that is left. */
export function checkChunks(sse: string): "end" | "error" {
  const frames = framesOf(sse);
  must(
    frames.every(({ event }) => event === undefined),
    "A named event stands in the stream.",
  );
  const last = frames.pop()!;
  if (last.data !== "[DONE]") {
    must((JSON.parse(last.data) as WireChunk).error, `The last event ends nothing: ${last.data}`);
    must(!sse.includes('"finish_reason":"'), "A finish reason comes before an error.");
    return "error";
  }
  const chunks = frames.map(({ data }) => JSON.parse(data) as WireChunk);
  must(
    chunks.every((c) => c.object === "chat.completion.chunk" && c.error === undefined),
    "Something is no chunk.",
  );
  must(chunks[0]?.choices[0]?.delta.role === "assistant", "The first delta has no role.");
  must(chunks.filter((c) => c.choices[0]?.delta.role).length === 1, "The role is said again.");
  for (const { choices } of chunks)
    for (const call of choices[0]?.delta.tool_calls ?? [])
      must(typeof call.index === "number", "A call has no index.");
  const usage = chunks.pop()!;
  must(usage.usage && usage.choices.length === 0, "No usage comes before [DONE].");
  must(
    chunks.every((c) => c.choices.length === 1 && !c.usage),
    "A chunk has no choice, or usage before its time.",
  );
  const finished = chunks.filter((c) => c.choices[0]?.finish_reason);
  must(finished.length === 1 && finished[0] === chunks.at(-1), "There is not one finish reason, at the end.");
  return "end";
}

interface WireEvent {
  type: string;
  index: number;
  content_block: { type: string };
  delta: { type: string };
}

const DELTAS: Record<string, string[]> = {
  text: ["text_delta", "citations_delta"],
  thinking: ["thinking_delta", "signature_delta"],
  tool_use: ["input_json_delta"],
};

/** message_start, blocks one after the other with deltas of their kind, message_delta, message_stop; an error ends it anywhere. */
export function checkEvents(sse: string): "end" | "error" {
  const events = framesOf(sse).map(({ event, data }) => {
    const value = JSON.parse(data) as WireEvent;
    must(event === value.type, `The event ${event} says that it is ${value.type}.`);
    return value;
  });
  must(events[0]?.type === "message_start", `The first event is ${events[0]?.type}.`);
  let open: string | null = null;
  let blocks = 0;
  let ended = false;
  for (const [at, event] of events.entries()) {
    const last = at === events.length - 1;
    switch (event.type) {
      case "message_start":
        must(at === 0, "The message starts again.");
        break;
      case "ping":
        break;
      case "content_block_start":
        must(open === null && event.index === blocks && !ended, "A block starts out of turn.");
        open = event.content_block.type;
        break;
      case "content_block_delta":
        must(open && event.index === blocks, "A delta belongs to no open block.");
        must(DELTAS[open]?.includes(event.delta.type), `A ${event.delta.type} stands in a ${open}.`);
        break;
      case "content_block_stop":
        must(open && event.index === blocks, "A block stops that is not open.");
        open = null;
        blocks++;
        break;
      case "message_delta":
        must(open === null && !ended, "The message's delta comes out of turn.");
        ended = true;
        break;
      case "message_stop":
        must(last && ended, "The message stops out of turn.");
        return "end";
      case "error":
        must(last && !ended, "An error is followed by something, or follows the end.");
        return "error";
      default:
        throw new Error(`There is no event ${event.type} in this protocol.`);
    }
  }
  throw new Error("The stream just stops.");
}
