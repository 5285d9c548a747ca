/** A run -> one `chat.completion` body. */
import type { AgentEvent } from "../core/event.ts";
import { createId } from "../core/id.ts";
import { addUsage, type Usage } from "../core/message.ts";
import { fromFault } from "../errors.ts";
import type { Collector, ReplyMeta } from "./codec.ts";
import type { Echo } from "./openai-chat-request.ts";
import { STOPPED } from "./openai-chat-stream.ts";
import {
  ChoiceView,
  type FinishReason,
  noteService,
  type Piece,
  type RunClose,
  type Service,
  usageBody,
} from "./openai-chat-view.ts";

type Tokens = unknown[] | null;

interface Call {
  id: string;
  name: string;
  freeform: boolean;
  args: string;
}

class Reply {
  readonly view: ChoiceView;
  readonly #legacy: boolean;
  #text = "";
  #reasoning = "";
  #refusal = "";
  readonly #calls: Call[] = [];
  readonly #annotations: unknown[] = [];
  #logprobs: { content: Tokens; refusal: Tokens } | null = null;
  finish: FinishReason | null = null;

  constructor(legacy: boolean) {
    this.#legacy = legacy;
    this.view = new ChoiceView(legacy);
  }

  add(piece: Piece): void {
    switch (piece.kind) {
      case "call":
        this.#calls[piece.index] = { id: piece.id, name: piece.name, freeform: piece.freeform, args: "" };
        return;
      case "args":
        this.#calls[piece.index]!.args += piece.text;
        return;
      case "text":
        this.#text += piece.text;
        break;
      case "reasoning":
        this.#reasoning += piece.text;
        break;
      case "refusal":
        this.#refusal += piece.text;
        break;
    }
    if (!piece.marks) return;
    const { logprobs, annotations } = piece.marks;
    if (logprobs) this.#addLogprobs(logprobs as { content?: Tokens; refusal?: Tokens });
    if (Array.isArray(annotations)) this.#annotations.push(...annotations);
  }

  #addLogprobs({ content, refusal }: { content?: Tokens; refusal?: Tokens }): void {
    this.#logprobs ??= { content: null, refusal: null };
    const all = this.#logprobs;
    if (content) all.content = all.content ? all.content.concat(content) : content;
    if (refusal) all.refusal = all.refusal ? all.refusal.concat(refusal) : refusal;
  }

  body(index: number): Record<string, unknown> {
    const silent = this.#text === "" && (this.#calls.length > 0 || this.#refusal !== "");
    const message: Record<string, unknown> = {
      role: "assistant",
      content: silent ? null : this.#text,
      refusal: this.#refusal === "" ? null : this.#refusal,
      annotations: this.#annotations,
    };
    if (this.#reasoning !== "") message.reasoning_content = this.#reasoning;
    const [first] = this.#calls;
    if (first && this.#legacy) message.function_call = { name: first.name, arguments: first.args };
    else if (first) message.tool_calls = this.#calls.map(callBody);
    return { index, message, logprobs: this.#logprobs, finish_reason: this.finish };
  }
}

function callBody({ id, name, freeform, args }: Call): Record<string, unknown> {
  return freeform
    ? { id, type: "custom", custom: { name, input: args } }
    : { id, type: "function", function: { name, arguments: args } };
}

export class ChatCollector implements Collector {
  readonly #meta: ReplyMeta;
  readonly #id = createId("chatcmpl");
  readonly #replies: Reply[];
  readonly #service: Service = { system_fingerprint: null };
  #usage: Usage | undefined;
  #failure: RunClose | undefined;

  constructor(meta: ReplyMeta) {
    const echo = (meta.echo ?? {}) as Partial<Echo>;
    this.#meta = meta;
    this.#replies = Array.from({ length: meta.choices }, () => new Reply(echo.legacyFunctions === true));
  }

  push(event: AgentEvent, choice = 0): void {
    const reply = this.#replies[choice];
    if (!reply) return;
    if (event.type === "model") {
      if (event.event.type === "open" || event.event.type === "done")
        noteService(this.#service, event.event.extra);
      const piece = reply.view.push(event);
      if (piece) reply.add(piece);
    } else if (event.type === "run-close") {
      if (event.outcome === "failed" || event.outcome === "stopped") this.#failure ??= event;
      reply.finish = reply.view.finishReason(event);
      this.#usage = this.#usage ? addUsage(this.#usage, event.usage) : event.usage;
    }
  }

  /** Throws the fault of a run that failed: such a reply has no body. */
  body(): Record<string, unknown> {
    if (this.#failure) throw fromFault(this.#failure.fault ?? STOPPED);
    if (!this.#usage || this.#replies.some((reply) => reply.finish === null))
      throw new Error("the reply was asked for before all of its runs had closed");
    const { system_fingerprint, ...tier } = this.#service;
    return {
      id: this.#id,
      object: "chat.completion",
      created: Math.floor(this.#meta.createdAt.getTime() / 1000),
      model: this.#meta.model,
      choices: this.#replies.map((reply, index) => reply.body(index)),
      usage: usageBody(this.#usage),
      ...tier,
      system_fingerprint,
    };
  }
}
