/**
 * Chunks of a streamed chat completion -> model events. Reads what OpenAI and Groq send, and what the servers that
 * imitate them make of it: late or missing ids and indexes, reasoning under three names, one JSON reply for a stream.
 */
import type { ModelEvent } from "../core/event.ts";
import { type Extra, FAMILY } from "../core/message.ts";
import { AppError } from "../errors.ts";
import { CallAssembler, type WireCallDelta } from "./chat-completions-calls.ts";
import { chunkError, readUsage, stopOf } from "./chat-completions-end.ts";
import { mergeDetails, type ReasoningDetail } from "./chat-completions-reasoning.ts";
import type { SseEvent } from "./sse.ts";
import type { UpstreamDecoder } from "./upstream.ts";
import { parseEvent } from "./upstream-error.ts";

/** What is read of a chunk. Nothing of it can be relied on before it has been looked at. */
export interface WireChunk {
  id?: unknown;
  model?: unknown;
  object?: unknown;
  choices?: unknown;
  usage?: unknown;
  error?: unknown;
  x_groq?: { usage?: unknown; error?: unknown } | null;
  system_fingerprint?: unknown;
  service_tier?: unknown;
}

interface WireChoice {
  index?: unknown;
  delta?: WireDelta | null;
  message?: WireDelta | null;
  finish_reason?: unknown;
  logprobs?: unknown;
  /** vLLM: the stop sequence that matched. */
  stop_reason?: unknown;
}

interface WireDelta {
  content?: unknown;
  refusal?: unknown;
  reasoning_content?: unknown;
  reasoning?: unknown;
  reasoning_details?: unknown;
  tool_calls?: unknown;
  function_call?: unknown;
  annotations?: unknown;
}

type Flow = "text" | "refusal" | "reasoning";

export class ChatDecoder implements UpstreamDecoder {
  readonly #provider: "openai" | "groq";
  readonly #model: string;
  #opened = false;
  #ended = false;
  #parts = 0;
  /** The text-like part that is open, and where. Calls are open beside it. */
  #flow: Flow | null = null;
  #flowIndex = -1;
  #refused = false;
  readonly #calls: CallAssembler;
  #reasoningField: "reasoning" | "reasoning_content" | undefined;
  #details: ReasoningDetail[] = [];
  #finish: string | undefined;
  #stopSequence: string | undefined;
  #usage: unknown;
  #serviceTier: unknown;

  constructor(provider: "openai" | "groq", model: string) {
    this.#provider = provider;
    this.#model = model;
    this.#calls = new CallAssembler(provider, () => this.#parts++);
  }

  push(event: SseEvent, out: ModelEvent[]): void {
    if (this.#ended) return;
    const { data } = event;
    if (data === "[DONE]") {
      if (this.#opened) this.#end(out);
      return;
    }
    const chunk = parseEvent<WireChunk | null>(data, this.#provider);
    if (typeof chunk === "object" && chunk !== null) this.#chunk(chunk, event.event === "error", out);
  }

  end(out: ModelEvent[]): void {
    if (!this.#ended && this.#finish !== undefined) this.#end(out);
  }

  whole(body: unknown, out: ModelEvent[]): void {
    const chunk = (typeof body === "object" && body !== null ? body : {}) as WireChunk;
    this.#chunk(chunk, false, out);
    if (!this.#opened)
      throw new AppError(
        "upstream_unreachable",
        "The upstream answered with JSON that is no chat completion. Check the base URL configured for it.",
      );
    this.#end(out);
  }

  #chunk(chunk: WireChunk, isError: boolean, out: ModelEvent[]): void {
    if (chunk.error || isError || chunk.object === "error") throw chunkError(chunk);
    if (chunk.usage) this.#usage = chunk.usage;
    const groq = chunk.x_groq;
    if (groq) {
      if (groq.usage) this.#usage = groq.usage;
      if (groq.error) throw chunkError(groq);
    }
    const { choices } = chunk;
    if (!Array.isArray(choices) || choices.length === 0) return;
    if (!this.#opened) this.#open(chunk, out);
    else if (chunk.service_tier) this.#serviceTier = chunk.service_tier;
    // Several replies to one request are several requests here, so every other index is noise.
    for (const choice of choices as (WireChoice | null)[])
      if (choice && typeof choice === "object" && !(choice.index as number)) this.#choice(choice, out);
  }

  /** Some servers send bare chunks before the first that has a choice; those say nothing of the reply. */
  #open(chunk: WireChunk, out: ModelEvent[]): void {
    this.#opened = true;
    const model = typeof chunk.model === "string" && chunk.model !== "" ? chunk.model : this.#model;
    const open: ModelEvent = { type: "open", model };
    if (typeof chunk.id === "string" && chunk.id !== "") open.id = chunk.id;
    const fields: Record<string, unknown> = {};
    if (chunk.system_fingerprint) fields.system_fingerprint = chunk.system_fingerprint;
    if (chunk.service_tier) fields.service_tier = chunk.service_tier;
    if (chunk.system_fingerprint || chunk.service_tier) open.extra = extra(fields);
    out.push(open);
  }

  #choice(choice: WireChoice, out: ModelEvent[]): void {
    const delta = choice.delta ?? choice.message;
    if (delta && typeof delta === "object") this.#delta(delta, choice.logprobs, out);
    const finish = choice.finish_reason;
    if (typeof finish !== "string" || finish === "") return;
    if (finish === "error")
      throw new AppError(
        "upstream_error",
        "The upstream failed in the middle of its reply. Send the request again.",
      );
    this.#finish = finish;
    if (typeof choice.stop_reason === "string") this.#stopSequence = choice.stop_reason;
  }

  #delta(delta: WireDelta, logprobs: unknown, out: ModelEvent[]): void {
    if (delta.reasoning_content || delta.reasoning || delta.reasoning_details) this.#reasoning(delta, out);
    const { content } = delta;
    if (typeof content === "string") {
      if (content !== "" || logprobs || delta.annotations)
        this.#text(
          "text",
          content,
          out,
          logprobs || delta.annotations ? marks(logprobs, delta.annotations) : undefined,
        );
    } else if (Array.isArray(content)) this.#contentParts(content, out);
    if (typeof delta.refusal === "string" && delta.refusal !== "") {
      this.#refused = true;
      this.#text("refusal", delta.refusal, out, logprobs ? marks(logprobs, undefined) : undefined);
    }
    if (Array.isArray(delta.tool_calls) && delta.tool_calls.length > 0) {
      this.#closeFlow(out);
      for (const call of delta.tool_calls as (WireCallDelta | null)[])
        if (call && typeof call === "object") this.#calls.push(call, out);
    } else if (delta.function_call && typeof delta.function_call === "object") {
      this.#closeFlow(out);
      this.#calls.push({ index: 0, function: delta.function_call }, out);
    }
  }

  /** Mistral's form: `content` as blocks of text and thinking. */
  #contentParts(content: unknown[], out: ModelEvent[]): void {
    for (const part of content as { type?: unknown; text?: unknown; thinking?: unknown }[]) {
      if (typeof part?.text === "string") this.#text("text", part.text, out);
      else if (Array.isArray(part?.thinking))
        for (const piece of part.thinking as { text?: unknown }[])
          if (typeof piece?.text === "string") this.#text("reasoning", piece.text, out);
    }
  }

  #reasoning(delta: WireDelta, out: ModelEvent[]): void {
    let words = "";
    if (typeof delta.reasoning_content === "string" && delta.reasoning_content !== "") {
      words = delta.reasoning_content;
      this.#reasoningField = "reasoning_content";
    } else if (typeof delta.reasoning === "string" && delta.reasoning !== "") {
      words = delta.reasoning;
      this.#reasoningField = "reasoning";
    }
    if (Array.isArray(delta.reasoning_details) && delta.reasoning_details.length > 0) {
      const said = mergeDetails(this.#details, delta.reasoning_details);
      if (words === "") words = said;
    }
    this.#text("reasoning", words, out);
  }

  #text(flow: Flow, delta: string, out: ModelEvent[], mark?: Extra): void {
    if (delta === "" && mark === undefined) return;
    if (this.#flow !== flow) this.#startFlow(flow, out);
    const event: ModelEvent = { type: "part-delta", index: this.#flowIndex, delta };
    if (mark) event.extra = mark;
    out.push(event);
  }

  #startFlow(flow: Flow, out: ModelEvent[]): void {
    // Details before the first word belong to the thinking that begins here.
    if (flow !== "reasoning" || this.#flow !== null) this.#closeFlow(out);
    this.#flow = flow;
    this.#flowIndex = this.#parts++;
    out.push({ type: "part-open", index: this.#flowIndex, part: { kind: flow } });
  }

  #closeFlow(out: ModelEvent[]): void {
    const flow = this.#flow;
    this.#flow = null;
    if (flow !== null && flow !== "reasoning") out.push({ type: "part-close", index: this.#flowIndex });
    const seal = this.#details.length > 0 ? JSON.stringify(this.#details) : undefined;
    this.#details = [];
    if (flow === "reasoning")
      out.push({ type: "part-close", index: this.#flowIndex, seal: seal ?? this.#reasoningField });
    else if (seal !== undefined) {
      // Details without any words: thinking that was withheld, or signatures that came after it.
      const index = this.#parts++;
      out.push({ type: "part-open", index, part: { kind: "reasoning", redacted: true } });
      out.push({ type: "part-close", index, seal });
    }
  }

  #end(out: ModelEvent[]): void {
    this.#ended = true;
    this.#closeFlow(out);
    const calls = this.#calls.end(out);
    const done: ModelEvent = {
      type: "done",
      stop: stopOf(this.#finish, calls > 0, this.#refused),
      usage: readUsage(this.#usage),
    };
    if (this.#stopSequence !== undefined && done.stop === "stop") {
      done.stop = "stop-sequence";
      done.stopSequence = this.#stopSequence;
    }
    if (this.#serviceTier) done.extra = extra({ service_tier: this.#serviceTier });
    out.push(done);
  }
}

function extra(fields: Record<string, unknown>): Extra {
  return { family: FAMILY.openai, fields };
}

function marks(logprobs: unknown, annotations: unknown): Extra {
  const fields: Record<string, unknown> = {};
  if (logprobs) fields.logprobs = logprobs;
  if (annotations) fields.annotations = annotations;
  return extra(fields);
}
