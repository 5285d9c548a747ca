/**
 * Gemini's stream -> model events.
 *
 * Every event is a whole `GenerateContentResponse` with some more parts. Text comes in fragments, calls come whole, a
 * thought signature comes on the part that it signs or, for streamed text, in an empty text part after it. There is no
 * end marker: the stream is complete when its body ends and a `finishReason` (or a block reason) was seen.
 */
import type { Candidate, Part } from "@google/genai/web";
import type { ModelEvent } from "../core/event.ts";
import { createId } from "../core/id.ts";
import type { StopReason, Usage } from "../core/message.ts";
import { AppError } from "../errors.ts";
import { statusError, statusOf } from "./gemini-error.ts";
import type { SseEvent } from "./sse.ts";
import type { UpstreamDecoder } from "./upstream.ts";
import { parseEvent } from "./upstream-error.ts";

interface UsageMetadata {
  promptTokenCount?: number;
  toolUsePromptTokenCount?: number;
  candidatesTokenCount?: number;
  thoughtsTokenCount?: number;
  cachedContentTokenCount?: number;
}

interface Chunk {
  candidates?: Candidate[];
  promptFeedback?: { blockReason?: string };
  usageMetadata?: UsageMetadata;
  modelVersion?: string;
  responseId?: string;
  error?: unknown;
}

const STOPS: Record<string, StopReason> = {
  STOP: "stop",
  MAX_TOKENS: "length",
  CONTINUATION: "length",
  SAFETY: "content-filter",
  RECITATION: "content-filter",
  BLOCKLIST: "content-filter",
  PROHIBITED_CONTENT: "content-filter",
  SPII: "content-filter",
  LANGUAGE: "content-filter",
  OTHER: "content-filter",
  IMAGE_SAFETY: "content-filter",
  IMAGE_PROHIBITED_CONTENT: "content-filter",
  IMAGE_RECITATION: "content-filter",
  IMAGE_OTHER: "content-filter",
};

/** The model wrote something that Gemini itself could not read. Asking again helps more often than not. */
const BROKEN = new Set([
  "MALFORMED_FUNCTION_CALL",
  "MALFORMED_RESPONSE",
  "UNEXPECTED_TOOL_CALL",
  "TOO_MANY_TOOL_CALLS",
  "MISSING_THOUGHT_SIGNATURE",
  "NO_IMAGE",
]);

type Kind = "text" | "reasoning" | "call";

export interface GeminiDecoderOptions {
  /** The model asked for, shown until Gemini says what answers. */
  model: string;
  /** Gemini has no such switch, so calls after the first are left out; the first is the one that is signed. */
  oneCall: boolean;
}

export class GeminiDecoder implements UpstreamDecoder {
  readonly #options: GeminiDecoderOptions;
  #started = false;
  /** Of the last part opened. */
  #index = -1;
  /** Of the part still open; null when none is. */
  #kind: Kind | null = null;
  readonly #callIds = new Set<string>();
  #stop: StopReason | null = null;
  #usage: UsageMetadata = {};

  constructor(options: GeminiDecoderOptions) {
    this.#options = options;
  }

  push(event: SseEvent, out: ModelEvent[]): void {
    this.#read(parseEvent<Chunk | null>(event.data, "gemini"), out);
  }

  /** Without `alt=sse`, which a gateway may lose, the API answers with an array of what would have been its events. */
  whole(body: unknown, out: ModelEvent[]): void {
    for (const chunk of Array.isArray(body) ? body : [body]) this.#read(chunk as Chunk, out);
    this.end(out);
  }

  #read(chunk: Chunk | null, out: ModelEvent[]): void {
    const status = statusOf(chunk);
    if (status) throw statusError(status);
    if (typeof chunk !== "object" || chunk === null)
      throw new AppError("upstream_unreachable", "Gemini sent an event that is not a reply.");
    const candidate = chunk.candidates?.[0];
    const finish: string | undefined = candidate?.finishReason;
    // Before anything is let out, so that a reply that is broken from the start can be asked for again.
    if (finish !== undefined && BROKEN.has(finish)) throw broken(finish, candidate?.finishMessage);
    if (!this.#started) {
      this.#started = true;
      out.push({ type: "open", model: chunk.modelVersion ?? this.#options.model, id: chunk.responseId });
    }
    const parts = candidate?.content?.parts;
    if (parts) for (const part of parts) this.#part(part, out);
    if (chunk.usageMetadata) this.#usage = chunk.usageMetadata;
    if (finish) this.#stop = STOPS[finish] ?? "stop";
    else if (chunk.promptFeedback?.blockReason) this.#stop = "content-filter";
  }

  end(out: ModelEvent[]): void {
    if (this.#stop === null) return;
    this.#close(out);
    const stop = this.#stop === "stop" && this.#callIds.size > 0 ? "tool-calls" : this.#stop;
    out.push({ type: "done", stop, usage: toUsage(this.#usage) });
  }

  #part(part: Part, out: ModelEvent[]): void {
    if (typeof part.text === "string") this.#text(part, part.text, out);
    else if (part.functionCall) this.#call(part, part.functionCall, out);
    else if (isBareSignature(part)) {
      if (this.#kind === null) this.#open("text", { kind: "text" }, out);
      this.#close(out, part.thoughtSignature);
    } else {
      this.#close(out);
      this.#index++;
      const block = part as Record<string, unknown>;
      out.push({ type: "part-open", index: this.#index, part: { kind: "raw", family: "gemini", block } });
      out.push({ type: "part-close", index: this.#index });
    }
  }

  /**
   * Fragments make one part. A fragment with a signature is a part of its own, since signed and unsigned parts must
   * not be merged in a replay; an empty one signs the fragments before it, as the unstreamed reply has it.
   */
  #text(part: Part, text: string, out: ModelEvent[]): void {
    const kind = part.thought ? "reasoning" : "text";
    const seal = part.thoughtSignature || undefined;
    if (text === "" && seal === undefined) return;
    if (this.#kind !== kind || (seal !== undefined && text !== "")) this.#open(kind, { kind }, out);
    if (text !== "") out.push({ type: "part-delta", index: this.#index, delta: text });
    if (seal !== undefined) this.#close(out, seal);
  }

  #call(part: Part, call: NonNullable<Part["functionCall"]>, out: ModelEvent[]): void {
    if (this.#options.oneCall && this.#callIds.size > 0) return;
    const id = call.id && !this.#callIds.has(call.id) ? call.id : createId("call");
    this.#callIds.add(id);
    this.#open("call", { kind: "call", id, name: call.name ?? "" }, out);
    out.push({ type: "part-delta", index: this.#index, delta: JSON.stringify(call.args ?? {}) });
    // Left open without a signature: it may follow in a part of its own.
    if (part.thoughtSignature) this.#close(out, part.thoughtSignature);
  }

  #open(kind: Kind, part: Extract<ModelEvent, { type: "part-open" }>["part"], out: ModelEvent[]): void {
    this.#close(out);
    this.#kind = kind;
    this.#index++;
    out.push({ type: "part-open", index: this.#index, part });
  }

  #close(out: ModelEvent[], seal?: string): void {
    if (this.#kind === null) return;
    this.#kind = null;
    out.push(
      seal === undefined
        ? { type: "part-close", index: this.#index }
        : { type: "part-close", index: this.#index, seal },
    );
  }
}

function isBareSignature(part: Part): boolean {
  if (!part.thoughtSignature) return false;
  for (const key in part) if (key !== "thoughtSignature" && key !== "thought") return false;
  return true;
}

function toUsage(usage: UsageMetadata): Usage {
  const reasoning = usage.thoughtsTokenCount;
  return {
    input: (usage.promptTokenCount ?? 0) + (usage.toolUsePromptTokenCount ?? 0),
    output: (usage.candidatesTokenCount ?? 0) + (reasoning ?? 0),
    cacheRead: usage.cachedContentTokenCount,
    reasoning,
  };
}

function broken(reason: string, message: string | undefined): AppError {
  return new AppError(
    "upstream_error",
    `Gemini gave up its reply with ${reason}${message ? ` (${message})` : ""}. Send the request again.`,
    { upstreamType: reason },
  );
}
