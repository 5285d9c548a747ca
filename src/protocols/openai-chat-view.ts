/**
 * What of a run a chat completions client sees, apart from how it is written: the stream and the whole reply are made
 * from the same pieces, so that they cannot differ.
 */
import type { AgentEvent, ModelEvent } from "../core/event.ts";
import type { Extra, Usage } from "../core/message.ts";
import { FAMILY } from "./openai-chat-parts.ts";
import { StepJoin } from "./step-join.ts";

export type Piece =
  | { kind: "text" | "reasoning" | "refusal"; text: string; marks?: Marks | undefined }
  /** `index` counts the client's calls from 0. */
  | { kind: "call"; index: number; id: string; name: string; freeform: boolean }
  | { kind: "args"; index: number; freeform: boolean; text: string };

/** What an upstream of the same family says about a piece of text. */
export interface Marks {
  logprobs?: unknown;
  annotations?: unknown;
}

export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter" | "function_call";
export type RunClose = Extract<AgentEvent, { type: "run-close" }>;
type ModelStep = Extract<AgentEvent, { type: "model" }>;

/** A part of the step under way; null where the client does not see it. */
type Open =
  | { kind: "text" | "reasoning" | "refusal" }
  | { kind: "call"; index: number; freeform: boolean; empty: boolean }
  | null;

type Voice = "text" | "reasoning" | "refusal";

/** The reply of one choice. */
export class ChoiceView {
  readonly #legacy: boolean;
  #step = -1;
  #open: Open[] = [];
  #calls = 0;
  readonly #voices: Record<Voice, StepJoin> = {
    text: new StepJoin(),
    reasoning: new StepJoin(),
    refusal: new StepJoin(),
  };

  /** `legacy`: the client speaks the deprecated functions, whose replies have room for one call. */
  constructor(legacy: boolean) {
    this.#legacy = legacy;
  }

  /** null: nothing that the client sees. */
  push({ step, event, server }: ModelStep): Piece | null {
    if (step !== this.#step) {
      this.#step = step;
      this.#open = [];
    }
    switch (event.type) {
      case "part-open":
        return this.#opened(event, server === true);
      case "part-delta":
        return this.#delta(event);
      case "part-close":
        return this.#closed(event.index);
      default:
        return null;
    }
  }

  #opened({ index, part }: Extract<ModelEvent, { type: "part-open" }>, server: boolean): Piece | null {
    if (part.kind === "raw" || server) {
      this.#open[index] = null;
      return null;
    }
    if (part.kind !== "call") {
      this.#open[index] = { kind: part.kind };
      return null;
    }
    const call = this.#calls++;
    if (this.#legacy && call > 0) {
      this.#open[index] = null;
      return null;
    }
    const freeform = part.freeform === true;
    this.#open[index] = { kind: "call", index: call, freeform, empty: true };
    return { kind: "call", index: call, id: part.id, name: part.name, freeform };
  }

  #delta({ index, delta, extra }: Extract<ModelEvent, { type: "part-delta" }>): Piece | null {
    const part = this.#open[index];
    if (!part) return null;
    if (part.kind === "call") {
      if (delta === "") return null;
      part.empty = false;
      return { kind: "args", index: part.index, freeform: part.freeform, text: delta };
    }
    if (extra && extra.family === FAMILY)
      return { kind: part.kind, text: this.#joined(part.kind, delta), marks: extra.fields };
    return delta === "" ? null : { kind: part.kind, text: this.#joined(part.kind, delta) };
  }

  #joined(voice: Voice, delta: string): string {
    return this.#voices[voice].push(this.#step, delta);
  }

  /** A call without arguments gets the empty object, since clients parse what they get. */
  #closed(index: number): Piece | null {
    const part = this.#open[index];
    this.#open[index] = null;
    if (part?.kind !== "call" || !part.empty || part.freeform) return null;
    return { kind: "args", index: part.index, freeform: false, text: "{}" };
  }

  finishReason({ outcome, stop }: RunClose): FinishReason {
    const called = this.#legacy ? "function_call" : "tool_calls";
    if (outcome === "handed-back") return called;
    switch (stop) {
      case "length":
      case "context-window":
        return "length";
      case "content-filter":
        return "content_filter";
      case "refusal":
        // Where the provider gives no words of refusal, the reason is all that tells of it.
        return !this.#voices.refusal.spoke ? "content_filter" : "stop";
      case "tool-calls":
        return this.#calls > 0 ? called : "stop";
      default:
        return "stop";
    }
  }
}

/** `system_fingerprint` and `service_tier`, as far as an upstream of the same family gave them. */
export interface Service {
  system_fingerprint: unknown;
  service_tier?: unknown;
}

/** Whether there was news. */
export function noteService(service: Service, extra: Extra | undefined): boolean {
  if (!extra || extra.family !== FAMILY) return false;
  const { system_fingerprint = null, service_tier } = extra.fields;
  if (system_fingerprint === null && service_tier === undefined) return false;
  if (system_fingerprint !== null) service.system_fingerprint = system_fingerprint;
  if (service_tier !== undefined) service.service_tier = service_tier;
  return true;
}

type Counters = Record<string, unknown>;

export function usageBody(usage: Usage): Counters {
  const own: Counters = usage.extra && usage.extra.family === FAMILY ? usage.extra.fields : {};
  const { prompt_tokens_details, completion_tokens_details, ...others } = own;
  const cacheWrite = usage.cacheWrite === undefined ? {} : { cache_write_tokens: usage.cacheWrite };
  const trimmed = usage.trimmedMessages === undefined ? {} : { trimmed_messages: usage.trimmedMessages };
  return {
    ...others,
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    prompt_tokens_details: {
      audio_tokens: 0,
      ...(prompt_tokens_details as Counters | undefined),
      cached_tokens: usage.cacheRead ?? 0,
      ...cacheWrite,
    },
    completion_tokens_details: {
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
      ...(completion_tokens_details as Counters | undefined),
      reasoning_tokens: usage.reasoning ?? 0,
    },
    ...trimmed,
  };
}
