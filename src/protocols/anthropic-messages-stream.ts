/**
 * The events of a run -> the event stream of the Messages API.
 *
 * The protocol has one block open at a time. Parts that open while another is still open (parallel calls of chat
 * completions) wait: the first is written live, the others when it has closed, in their order.
 */

import type { AgentEvent, ModelEvent, PartStart } from "../core/event.ts";
import type { Extra, ProviderName } from "../core/message.ts";
import { activityOf } from "./activity.ts";
import type { MessagesEcho } from "./anthropic-messages-request.ts";
import { writeSeal } from "./anthropic-messages-seal.ts";
import {
  callBlock,
  citationsOf,
  errorBody,
  faultOf,
  fieldsOf,
  isShown,
  type Json,
  type RunClose,
  replyFields,
  startMessage,
  stopReason,
  wireUsage,
} from "./anthropic-messages-wire.ts";
import type { Encoder, ReplyMeta } from "./codec.ts";

/** Also what keeps a quiet stream alive. */
export const PING = 'event: ping\ndata: {"type":"ping"}\n\n';
const STOP = 'event: message_stop\ndata: {"type":"message_stop"}\n\n';
const END = "}}\n\n";

function frame(type: string, fields: Json): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
}

/** The delta type of each kind of block, and the field that holds what is new. */
const DELTA = {
  text: ["text_delta", "text"],
  refusal: ["text_delta", "text"],
  reasoning: ["thinking_delta", "thinking"],
  call: ["input_json_delta", "partial_json"],
  raw: ["", ""],
} as const satisfies Record<PartStart["kind"], readonly [string, string]>;

/** A part on its way to being a block. */
interface Slot {
  part: PartStart;
  /** Written as a whole when it closes, or not at all: what it is shows only then. */
  whole: boolean;
  closed: boolean;
  seal: string | undefined;
  /** All citations of a text as its close tells them, and how many have been written. */
  citations: readonly unknown[];
  cited: number;
  /** What came before its turn. */
  waiting: { delta: string; extra: Extra | undefined }[];
  /** Position among the blocks, once its turn has come. */
  index: number;
  /** Everything of a delta's frame that stands before the JSON of the new piece. */
  head: string;
}

export class MessagesEncoder implements Encoder {
  readonly #meta: ReplyMeta;
  readonly #hideThinking: boolean;
  #provider: ProviderName = "anthropic";
  #runId = "";
  #started = false;
  #blocks = 0;
  #shown = { calls: false, refusal: false };
  /** By part index of the step under way; undefined where the part is not shown. */
  #slots: (Slot | undefined)[] = [];
  /** Open parts in their order; the first is being written. */
  #queue: Slot[] = [];

  constructor(meta: ReplyMeta) {
    this.#meta = meta;
    this.#hideThinking = (meta.echo as MessagesEcho | undefined)?.hideThinking === true;
  }

  push(event: AgentEvent): string {
    switch (event.type) {
      case "model":
        return this.#model(event.event, event.server === true);
      case "run-open":
        this.#provider = event.provider;
        this.#runId = event.runId;
        return "";
      case "run-close":
        return this.#close(event);
      default: {
        const shown = this.#meta.agentEvents ? activityOf(event) : null;
        return shown ? this.#start(undefined) + frame("ping", { agent_event: shown }) : "";
      }
    }
  }

  #model(event: Exclude<ModelEvent, { type: "failed" }>, server: boolean): string {
    switch (event.type) {
      case "part-delta": {
        const slot = this.#slots[event.index];
        if (slot === undefined) return "";
        if (slot !== this.#queue[0] || slot.whole) {
          slot.waiting.push({ delta: event.delta, extra: event.extra });
          return "";
        }
        if (event.extra === undefined) return slot.head + JSON.stringify(event.delta) + END;
        return this.#delta(slot, event.delta, event.extra);
      }
      case "part-open":
        return this.#open(event.index, event.part, server);
      case "part-close": {
        const slot = this.#slots[event.index];
        if (slot === undefined) return "";
        slot.closed = true;
        slot.seal = event.seal;
        slot.citations = citationsOf(event.extra);
        return slot === this.#queue[0] ? this.#advance() : "";
      }
      case "open":
        return this.#start(event.extra);
      case "done": {
        const rest = this.#flush();
        this.#slots = [];
        return rest;
      }
    }
  }

  /** `message_start`, once; later steps of the run go on in the same message. */
  #start(extra: Extra | undefined): string {
    if (this.#started) return "";
    this.#started = true;
    return frame("message_start", { message: startMessage(this.#runId, this.#meta.model, extra) }) + PING;
  }

  #open(index: number, part: PartStart, server: boolean): string {
    if (!isShown(part, server)) {
      this.#slots[index] = undefined;
      return "";
    }
    if (part.kind === "call") this.#shown.calls = true;
    else if (part.kind === "refusal") this.#shown.refusal = true;
    const hidden = this.#hideThinking && this.#provider !== "anthropic";
    const slot: Slot = {
      part,
      whole: part.kind === "reasoning" && (part.redacted === true || hidden),
      closed: false,
      seal: undefined,
      citations: [],
      cited: 0,
      waiting: [],
      index: -1,
      head: "",
    };
    this.#slots[index] = slot;
    this.#queue.push(slot);
    return slot === this.#queue[0] ? this.#start(undefined) + this.#begin(slot) : "";
  }

  /** The slot's turn has come: its start, and what has waited. */
  #begin(slot: Slot): string {
    if (slot.whole) return "";
    slot.index = this.#blocks++;
    const [type, field] = DELTA[slot.part.kind];
    slot.head = `event: content_block_delta\ndata: {"type":"content_block_delta","index":${slot.index},"delta":{"type":"${type}","${field}":`;
    let out = this.#startBlock(slot.index, emptyBlock(slot.part));
    for (const { delta, extra } of slot.waiting) out += this.#delta(slot, delta, extra);
    slot.waiting = [];
    return out;
  }

  #startBlock(index: number, block: Json): string {
    return `event: content_block_start\ndata: {"type":"content_block_start","index":${index},"content_block":${JSON.stringify(block)}}\n\n`;
  }

  #stopBlock(index: number): string {
    return `event: content_block_stop\ndata: {"type":"content_block_stop","index":${index}}\n\n`;
  }

  /** What the family's own deltas have beyond the text is written as it came: a citation, pieces of a hosted call. */
  #delta(slot: Slot, delta: string, extra: Extra | undefined): string {
    const fields = fieldsOf(extra);
    const [type, field] = DELTA[slot.part.kind];
    let out = "";
    if (fields?.type === "citations_delta") slot.cited++;
    if (fields && typeof fields.type === "string" && fields.type !== type)
      out = frame("content_block_delta", { index: slot.index, delta: fields });
    else if (fields && type !== "")
      return frame("content_block_delta", { index: slot.index, delta: { ...fields, type, [field]: delta } });
    return delta === "" || type === "" ? out : slot.head + JSON.stringify(delta) + END + out;
  }

  /** Ends the first slot if it has closed, and begins the next, as often as that goes. */
  #advance(): string {
    let out = "";
    for (let slot = this.#queue[0]; slot?.closed; slot = this.#queue[0]) {
      out += this.#end(slot);
      this.#queue.shift();
      const next = this.#queue[0];
      if (next) out += this.#begin(next);
    }
    return out;
  }

  #end(slot: Slot): string {
    const { part, seal } = slot;
    const sealed = seal === undefined ? undefined : writeSeal(this.#provider, seal);
    if (slot.whole) {
      if (sealed === undefined) return "";
      const index = this.#blocks++;
      const block =
        part.kind === "reasoning" && part.redacted
          ? { type: "redacted_thinking", data: sealed }
          : { type: "thinking", thinking: "", signature: "" };
      const signed = block.type === "thinking" ? signature(index, sealed) : "";
      return this.#startBlock(index, block) + signed + this.#stopBlock(index);
    }
    const signed = part.kind === "reasoning" && sealed !== undefined ? signature(slot.index, sealed) : "";
    return this.#uncited(slot) + signed + this.#stopBlock(slot.index);
  }

  /** Citations that came with the text instead of as deltas: an upstream may have answered in one piece. */
  #uncited({ index, citations, cited }: Slot): string {
    let out = "";
    for (const citation of citations.slice(cited))
      out += frame("content_block_delta", { index, delta: { type: "citations_delta", citation } });
    return out;
  }

  /** Ends what is still open: a run may be stopped in the middle of a part. */
  #flush(): string {
    for (const slot of this.#queue) slot.closed = true;
    return this.#advance();
  }

  #close(close: RunClose): string {
    const fault = faultOf(close);
    if (fault) return `event: error\ndata: ${JSON.stringify(errorBody(fault, this.#meta.requestId))}\n\n`;
    const { inDelta, beside } = replyFields(close);
    const delta = {
      stop_reason: stopReason(close, this.#shown),
      stop_sequence: close.stopSequence ?? null,
      ...inDelta,
    };
    return (
      this.#start(undefined) +
      this.#flush() +
      frame("message_delta", { delta, usage: wireUsage(close.usage), ...beside }) +
      STOP
    );
  }
}

function signature(index: number, value: string): string {
  return frame("content_block_delta", { index, delta: { type: "signature_delta", signature: value } });
}

function emptyBlock(part: PartStart): Json {
  switch (part.kind) {
    case "text":
    case "refusal":
      return { type: "text", text: "" };
    case "reasoning":
      return { type: "thinking", thinking: "", signature: "" };
    case "call":
      return callBlock(part, {});
    case "raw":
      return part.block;
  }
}
