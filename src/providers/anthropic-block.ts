/** One content block of Anthropic's stream, from its start to its stop, as the events of one part. */
import type { ModelEvent } from "../core/event.ts";
import { createId } from "../core/id.ts";
import type { Extra } from "../core/message.ts";
import { FAMILY } from "./anthropic-media.ts";

export type Fields = Record<string, unknown>;

export interface Block {
  delta(delta: Fields, out: ModelEvent[]): void;
  close(out: ModelEvent[]): void;
}

/** Appends the opening of part `index`; what the start brings with it follows at once. */
export function openBlock(index: number, start: Fields, out: ModelEvent[]): Block {
  switch (start.type) {
    case "text":
      return new TextBlock(index, start, out);
    case "thinking":
      return new ThinkingBlock(index, start, out);
    case "redacted_thinking":
      return new RedactedBlock(index, start, out);
    case "tool_use":
      return new CallBlock(index, start, out);
    default:
      return new RawBlock(index, start, out);
  }
}

class TextBlock implements Block {
  readonly #index: number;
  readonly #citations: unknown[] = [];

  constructor(index: number, start: Fields, out: ModelEvent[]) {
    this.#index = index;
    out.push({ type: "part-open", index, part: { kind: "text" } });
    if (start.text) out.push({ type: "part-delta", index, delta: start.text as string });
    if (Array.isArray(start.citations)) this.#citations.push(...start.citations);
  }

  delta(delta: Fields, out: ModelEvent[]): void {
    if (delta.type === "text_delta") {
      if (delta.text) out.push({ type: "part-delta", index: this.#index, delta: delta.text as string });
      return;
    }
    if (delta.type === "citations_delta") this.#citations.push(delta.citation);
    out.push(asItCame(this.#index, delta));
  }

  close(out: ModelEvent[]): void {
    const citations = this.#citations;
    out.push({
      type: "part-close",
      index: this.#index,
      extra: citations.length > 0 ? extraOf({ citations }) : undefined,
    });
  }
}

class ThinkingBlock implements Block {
  readonly #index: number;
  #signature: string;

  constructor(index: number, start: Fields, out: ModelEvent[]) {
    this.#index = index;
    this.#signature = typeof start.signature === "string" ? start.signature : "";
    out.push({ type: "part-open", index, part: { kind: "reasoning" } });
    if (start.thinking) out.push({ type: "part-delta", index, delta: start.thinking as string });
  }

  delta(delta: Fields, out: ModelEvent[]): void {
    const index = this.#index;
    if (delta.type === "signature_delta") this.#signature += delta.signature ?? "";
    else if (delta.type !== "thinking_delta") out.push(asItCame(index, delta));
    // An estimate of the tokens spent stands in for thinking that is not shown.
    else if (typeof delta.estimated_tokens === "number")
      out.push({ ...asItCame(index, delta), delta: String(delta.thinking ?? "") });
    else if (delta.thinking) out.push({ type: "part-delta", index, delta: delta.thinking as string });
  }

  close(out: ModelEvent[]): void {
    out.push({ type: "part-close", index: this.#index, seal: this.#signature || undefined });
  }
}

class RedactedBlock implements Block {
  readonly #index: number;
  readonly #seal: string | undefined;

  constructor(index: number, start: Fields, out: ModelEvent[]) {
    this.#index = index;
    this.#seal = typeof start.data === "string" ? start.data : undefined;
    out.push({ type: "part-open", index, part: { kind: "reasoning", redacted: true } });
  }

  delta(delta: Fields, out: ModelEvent[]): void {
    out.push(asItCame(this.#index, delta));
  }

  close(out: ModelEvent[]): void {
    out.push({ type: "part-close", index: this.#index, seal: this.#seal });
  }
}

class CallBlock implements Block {
  readonly #index: number;
  readonly #start: Fields;
  #begun = false;

  constructor(index: number, start: Fields, out: ModelEvent[]) {
    this.#index = index;
    this.#start = start;
    const id = typeof start.id === "string" && start.id !== "" ? start.id : createId("call");
    out.push({ type: "part-open", index, part: { kind: "call", id, name: String(start.name) } });
  }

  delta(delta: Fields, out: ModelEvent[]): void {
    if (delta.type !== "input_json_delta") out.push(asItCame(this.#index, delta));
    else if (delta.partial_json) {
      this.#begun = true;
      out.push({ type: "part-delta", index: this.#index, delta: delta.partial_json as string });
    }
  }

  close(out: ModelEvent[]): void {
    const { type: _, id, name, input, caller, ...rest } = this.#start;
    const index = this.#index;
    // Arguments that came with the start, or none at all.
    if (!this.#begun) out.push({ type: "part-delta", index, delta: JSON.stringify(input ?? {}) });
    // The API wants to hear again which code called the tool, and of which toolset it is.
    const direct = (caller as Fields | null | undefined)?.type === "direct";
    out.push({ type: "part-close", index, extra: extraOf(direct ? rest : { ...rest, caller }) });
  }
}

/** Hosted tools, their results, and whatever is newer than this file. */
class RawBlock implements Block {
  readonly #index: number;
  /** A copy, since the opening event keeps the block as it came. */
  readonly #block: Fields;
  #input = "";

  constructor(index: number, start: Fields, out: ModelEvent[]) {
    this.#index = index;
    this.#block = { ...start };
    out.push({ type: "part-open", index, part: { kind: "raw", family: FAMILY, block: start } });
  }

  delta(delta: Fields, out: ModelEvent[]): void {
    if (delta.type === "input_json_delta") this.#input += delta.partial_json ?? "";
    else this.#put(delta);
    out.push(asItCame(this.#index, delta));
  }

  /** Text grows, anything else replaces: so deltas of unknown blocks make sense, too. */
  #put(delta: Fields): void {
    for (const [field, value] of Object.entries(delta)) {
      if (field === "type" || value === null || value === undefined) continue;
      const before = this.#block[field];
      const grows = typeof before === "string" && typeof value === "string";
      this.#block[field] = grows ? before + value : value;
    }
  }

  close(out: ModelEvent[]): void {
    if (this.#input !== "") this.#block.input = parsed(this.#input);
    out.push({ type: "part-close", index: this.#index, block: this.#block });
  }
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return json;
  }
}

function asItCame(index: number, delta: Fields): Extract<ModelEvent, { type: "part-delta" }> {
  return { type: "part-delta", index, delta: "", extra: { family: FAMILY, fields: delta } };
}

/** null where there is nothing to keep. */
export function extraOf(fields: Fields): Extra | undefined {
  const kept: Fields = {};
  putPresent(kept, fields);
  return Object.keys(kept).length > 0 ? { family: FAMILY, fields: kept } : undefined;
}

export function putPresent(target: Fields, from: Fields): void {
  for (const [field, value] of Object.entries(from))
    if (value !== null && value !== undefined) target[field] = value;
}
