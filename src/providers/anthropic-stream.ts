/** Anthropic's event stream as model events. */
import type { ModelEvent } from "../core/event.ts";
import type { StopReason, Usage } from "../core/message.ts";
import { AppError } from "../errors.ts";
import { type Block, extraOf, type Fields, openBlock, putPresent } from "./anthropic-block.ts";
import type { SseEvent } from "./sse.ts";
import type { UpstreamDecoder } from "./upstream.ts";
import { parseEvent } from "./upstream-error.ts";

/** As far as it is read here; the SDK's types promise fields that older servers and stand-ins leave out. */
interface WireEvent {
  type?: string;
  index?: number;
  message?: Fields & { id?: string; model?: string; usage?: Fields };
  content_block?: Fields;
  delta?: Fields;
  usage?: Fields;
  error?: { type?: string; message?: string; details?: Fields };
}

const STOPS: Record<string, StopReason> = {
  end_turn: "stop",
  max_tokens: "length",
  stop_sequence: "stop-sequence",
  tool_use: "tool-calls",
  pause_turn: "pause",
  compaction: "pause",
  refusal: "refusal",
  model_context_window_exceeded: "context-window",
};

/** The status that an error would have had as a response: https://platform.claude.com/docs/en/api/errors */
const STATUSES: Record<string, number> = {
  invalid_request_error: 400,
  authentication_error: 401,
  billing_error: 402,
  permission_error: 403,
  not_found_error: 404,
  request_too_large: 413,
  rate_limit_error: 429,
  api_error: 500,
  timeout_error: 504,
  overloaded_error: 529,
};

export class AnthropicDecoder implements UpstreamDecoder {
  readonly #open = new Map<number, Block>();
  #parts = 0;
  #begun = false;
  #ended = false;
  #usage: Fields = {};
  #stop: string | undefined;
  #stopSequence: string | undefined;
  #end: Fields = {};

  push(event: SseEvent, out: ModelEvent[]): void {
    const wire = parseEvent<WireEvent | null>(event.data, "anthropic");
    if (typeof wire !== "object" || wire === null || this.#ended) return;
    switch (wire.type) {
      case "content_block_delta":
        if (wire.delta) this.#open.get(wire.index ?? 0)?.delta(wire.delta, out);
        break;
      case "content_block_start":
        this.#blockStart(wire.index ?? 0, wire.content_block ?? {}, out);
        break;
      case "content_block_stop":
        this.#blockStop(wire.index ?? 0, out);
        break;
      case "message_start":
        this.#start(wire.message ?? {}, out);
        break;
      case "message_delta":
        this.#messageDelta(wire);
        break;
      case "message_stop":
        this.#finish(out);
        break;
      case "error":
        throw streamError(wire.error);
    }
  }

  /** Some servers close without `message_stop`: with a stop reason the reply is whole all the same. */
  end(out: ModelEvent[]): void {
    if (this.#stop !== undefined) this.#finish(out);
  }

  whole(body: unknown, out: ModelEvent[]): void {
    const wire = (body ?? {}) as WireEvent & { content?: unknown };
    if (wire.type === "error") throw streamError(wire.error);
    if (!Array.isArray(wire.content)) return;
    const { content, stop_reason, stop_sequence, stop_details, container, ...message } = wire as Fields;
    this.#start(message, out);
    (content as Fields[]).forEach((block, index) => {
      this.#blockStart(index, block, out);
      this.#blockStop(index, out);
    });
    this.#messageDelta({ delta: { stop_reason, stop_sequence, stop_details, container } });
    this.#finish(out);
  }

  #start(message: NonNullable<WireEvent["message"]>, out: ModelEvent[]): void {
    if (this.#begun) return;
    this.#begun = true;
    const { id, model, usage, type: _, role, content, stop_reason, stop_sequence, ...rest } = message;
    if (usage) this.#usage = { ...usage };
    out.push({ type: "open", model: model ?? "", id, extra: extraOf(usage ? { ...rest, usage } : rest) });
  }

  #blockStart(wireIndex: number, start: Fields, out: ModelEvent[]): void {
    if (!this.#begun) this.#start({}, out);
    this.#blockStop(wireIndex, out);
    this.#open.set(wireIndex, openBlock(this.#parts++, start, out));
  }

  #blockStop(wireIndex: number, out: ModelEvent[]): void {
    this.#open.get(wireIndex)?.close(out);
    this.#open.delete(wireIndex);
  }

  #messageDelta(wire: WireEvent): void {
    const { stop_reason, stop_sequence, ...rest } = wire.delta ?? {};
    if (typeof stop_reason === "string") this.#stop = stop_reason;
    if (typeof stop_sequence === "string") this.#stopSequence = stop_sequence;
    putPresent(this.#end, rest);
    const { type: _, index, delta, usage, ...beside } = wire as Fields;
    putPresent(this.#end, beside);
    // Counters are totals, and those that are absent or null stay as they were.
    if (wire.usage) putPresent(this.#usage, wire.usage);
  }

  #finish(out: ModelEvent[]): void {
    // Without a beginning nothing was said: the connection counts as cut.
    if (!this.#begun || this.#ended) return;
    for (const wireIndex of [...this.#open.keys()]) this.#blockStop(wireIndex, out);
    this.#ended = true;
    const reason = this.#stop ?? "end_turn";
    const stop = STOPS[reason] ?? "stop";
    // `compaction`, and reasons that are newer than this list, are told by their own word.
    if (stop !== "stop" ? reason === "compaction" : reason !== "end_turn") this.#end.stop_reason = reason;
    out.push({
      type: "done",
      stop,
      usage: usageOf(this.#usage),
      stopSequence: this.#stopSequence,
      extra: extraOf(this.#end),
    });
  }
}

/** The API counts what it read from and wrote to the cache beside the input, not in it. */
function usageOf(wire: Fields): Usage {
  const {
    input_tokens,
    output_tokens,
    cache_read_input_tokens: read,
    cache_creation_input_tokens: written,
    output_tokens_details: details,
    ...rest
  } = wire;
  const usage: Usage = {
    input: count(input_tokens) + count(read) + count(written),
    output: count(output_tokens),
  };
  if (typeof read === "number") usage.cacheRead = read;
  if (typeof written === "number") usage.cacheWrite = written;
  const thinking = (details as Fields | undefined | null)?.thinking_tokens;
  if (typeof thinking === "number") usage.reasoning = thinking;
  const extra = extraOf(rest);
  if (extra) usage.extra = extra;
  return usage;
}

function count(value: unknown): number {
  return typeof value === "number" ? value : 0;
}

function streamError(error: WireEvent["error"]): AppError {
  const type = error?.type ?? "api_error";
  return new AppError("upstream_error", error?.message ?? "Anthropic ended its stream with an error.", {
    status: STATUSES[type] ?? 500,
    upstreamType: type,
    details: error?.details,
  });
}
