/** The events of a run -> one Message body: the same message that an SDK puts together from the event stream. */
import type { AgentEvent, ModelEvent, PartStart } from "../core/event.ts";
import type { Extra, ProviderName } from "../core/message.ts";
import { type Fault, toFault } from "../errors.ts";
import { inputOf } from "./anthropic-messages-args.ts";
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
import type { Collector, ReplyMeta } from "./codec.ts";

interface Block {
  part: PartStart;
  text: string;
  seal: string | undefined;
  /** What the part carries besides its text, once it has closed. */
  extra: Extra | undefined;
  /** Citations that came as deltas. */
  citations: unknown[];
}

export class MessagesCollector implements Collector {
  readonly #meta: ReplyMeta;
  readonly #hideThinking: boolean;
  #provider: ProviderName = "anthropic";
  #runId = "";
  #begun = false;
  /** What the first upstream call said when it began. */
  #start: Extra | undefined;
  #close: RunClose | undefined;
  #shown = { calls: false, refusal: false };
  /** All blocks of the run in order, and those of the step under way by part index. */
  #blocks: Block[] = [];
  #step: (Block | undefined)[] = [];

  constructor(meta: ReplyMeta) {
    this.#meta = meta;
    this.#hideThinking = (meta.echo as MessagesEcho | undefined)?.hideThinking === true;
  }

  push(event: AgentEvent): void {
    switch (event.type) {
      case "run-open":
        this.#provider = event.provider;
        this.#runId = event.runId;
        break;
      case "model":
        this.#model(event.event, event.server === true);
        break;
      case "run-close":
        this.#close = event;
    }
  }

  #model(event: Exclude<ModelEvent, { type: "failed" }>, server: boolean): void {
    switch (event.type) {
      case "open":
        if (!this.#begun) this.#start = event.extra;
        this.#begun = true;
        break;
      case "part-open":
        this.#open(event.index, event.part, server);
        break;
      case "part-delta": {
        const block = this.#step[event.index];
        if (!block) break;
        block.text += event.delta;
        const fields = fieldsOf(event.extra);
        if (fields?.type === "citations_delta") block.citations.push(fields.citation);
        break;
      }
      case "part-close": {
        const block = this.#step[event.index];
        if (!block) break;
        block.seal = event.seal;
        block.extra = event.extra;
        if (event.block && block.part.kind === "raw") block.part = { ...block.part, block: event.block };
        break;
      }
      case "done":
        this.#step = [];
    }
  }

  #open(index: number, part: PartStart, server: boolean): void {
    this.#step[index] = undefined;
    if (!isShown(part, server)) return;
    const block: Block = { part, text: "", seal: undefined, extra: undefined, citations: [] };
    this.#step[index] = block;
    this.#blocks.push(block);
    if (part.kind === "call") this.#shown.calls = true;
    if (part.kind === "refusal") this.#shown.refusal = true;
  }

  /** A message; the door's error body when the run failed, or has not ended. */
  body(): Json {
    const close = this.#close;
    const fault = close ? faultOf(close) : toFault(undefined);
    if (!close || fault) return errorBody(fault as Fault, this.#meta.requestId);
    const { inDelta, beside } = replyFields(close);
    const message = startMessage(this.#runId, this.#meta.model, this.#start);
    return {
      ...message,
      content: this.#blocks.flatMap((block) => this.#content(block) ?? []),
      stop_reason: stopReason(close, this.#shown),
      stop_sequence: close.stopSequence ?? null,
      usage: { ...(message.usage as Json), ...wireUsage(close.usage) },
      ...inDelta,
      ...beside,
    };
  }

  #content(block: Block): Json | null {
    const { part, text } = block;
    switch (part.kind) {
      case "text":
      case "refusal": {
        const whole = citationsOf(block.extra);
        const citations = whole.length > block.citations.length ? whole : block.citations;
        return { type: "text", text, ...(citations.length > 0 ? { citations } : {}) };
      }
      case "call":
        return { ...fieldsOf(block.extra), ...callBlock(part, inputOf(text)) };
      case "raw":
        return part.block;
      case "reasoning": {
        const sealed = block.seal === undefined ? undefined : writeSeal(this.#provider, block.seal);
        if (part.redacted) return sealed === undefined ? null : { type: "redacted_thinking", data: sealed };
        const hidden = this.#hideThinking && this.#provider !== "anthropic";
        if (hidden && sealed === undefined) return null;
        return { type: "thinking", thinking: hidden ? "" : text, signature: sealed ?? "" };
      }
    }
  }
}
