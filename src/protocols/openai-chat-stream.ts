/** A run -> `chat.completion.chunk` events. Runs for every delta: all that is constant in a chunk is built once. */
import type { AgentEvent } from "../core/event.ts";
import { createId } from "../core/id.ts";
import { addUsage, type Usage } from "../core/message.ts";
import type { Fault } from "../errors.ts";
import { activityOf } from "./activity.ts";
import type { Encoder, ReplyMeta } from "./codec.ts";
import { errorBody } from "./openai-chat-error.ts";
import type { Echo } from "./openai-chat-request.ts";
import {
  ChoiceView,
  noteService,
  type Piece,
  type RunClose,
  type Service,
  usageBody,
} from "./openai-chat-view.ts";

export const STOPPED: Fault = { code: "cancelled", message: "The run was stopped.", status: 499 };

type ModelStep = Extract<AgentEvent, { type: "model" }>;

interface Choice {
  view: ChoiceView;
  /** Everything up to the delta. */
  prefix: string;
  begun: boolean;
  closed: boolean;
}

const FIRST_DELTA = '{"role":"assistant","content":""}';

export class ChatEncoder implements Encoder {
  readonly #meta: ReplyMeta;
  readonly #includeUsage: boolean;
  readonly #legacy: boolean;
  readonly #choices: Choice[];
  readonly #id = createId("chatcmpl");
  readonly #service: Service = { system_fingerprint: null };
  /** A chunk up to its choices; what the upstream's `open` says of itself is in it. */
  #head = "";
  /** What follows a delta. */
  readonly #suffix: string;
  #usage: Usage | undefined;
  #ended = false;

  constructor(meta: ReplyMeta) {
    const echo = (meta.echo ?? {}) as Partial<Echo>;
    this.#meta = meta;
    this.#includeUsage = echo.includeUsage === true;
    this.#legacy = echo.legacyFunctions === true;
    this.#suffix = this.#suffixOf("null");
    this.#choices = Array.from({ length: meta.choices }, () => ({
      view: new ChoiceView(this.#legacy),
      prefix: "",
      begun: false,
      closed: false,
    }));
  }

  push(event: AgentEvent, choice = 0): string {
    const state = this.#choices[choice];
    if (this.#ended || !state || state.closed) return "";
    switch (event.type) {
      case "model":
        return this.#model(state, choice, event);
      case "run-open":
        return "";
      case "run-close":
        return this.#close(state, choice, event);
      default: {
        const activity = this.#meta.agentEvents ? activityOf(event) : null;
        if (!activity) return "";
        return this.#first(state, choice) + this.#activity(state, activity);
      }
    }
  }

  #model(state: Choice, index: number, step: ModelStep): string {
    const { event } = step;
    if (event.type === "open" || event.type === "done") {
      // A new step may run on another tier, and some upstreams tell the tier at the end only.
      if (noteService(this.#service, event.extra)) this.#renew(state, index);
    }
    const first = this.#first(state, index);
    if (event.type === "open")
      return first + this.#activity(state, { type: "model-step", step: step.step, model: event.model });
    const piece = state.view.push(step);
    return piece ? first + this.#piece(state, piece) : first;
  }

  #renew(state: Choice, index: number): void {
    const fields = {
      id: this.#id,
      object: "chat.completion.chunk",
      created: Math.floor(this.#meta.createdAt.getTime() / 1000),
      model: this.#meta.model,
      ...this.#service,
    };
    this.#head = `data: ${JSON.stringify(fields).slice(0, -1)},"choices":[`;
    state.prefix = `${this.#head}{"index":${index},"delta":`;
  }

  /** The chunk that opens a choice; the empty string when it is open already. */
  #first(state: Choice, index: number): string {
    if (state.begun) return "";
    state.begun = true;
    if (state.prefix === "") this.#renew(state, index);
    return state.prefix + FIRST_DELTA + this.#suffix;
  }

  #suffixOf(finishReason: string, logprobs = "null"): string {
    const usage = this.#includeUsage ? ',"usage":null' : "";
    return `,"logprobs":${logprobs},"finish_reason":${finishReason}}]${usage}}\n\n`;
  }

  #piece(state: Choice, piece: Piece): string {
    const delta = this.#delta(piece);
    if (!("marks" in piece && piece.marks)) return state.prefix + delta + this.#suffix;
    const { logprobs = null, annotations } = piece.marks;
    const noted = annotations ? `${delta.slice(0, -1)},"annotations":${JSON.stringify(annotations)}}` : delta;
    return state.prefix + noted + this.#suffixOf("null", JSON.stringify(logprobs));
  }

  #delta(piece: Piece): string {
    switch (piece.kind) {
      case "text":
        return `{"content":${JSON.stringify(piece.text)}}`;
      case "reasoning":
        return `{"reasoning_content":${JSON.stringify(piece.text)}}`;
      case "refusal":
        return `{"refusal":${JSON.stringify(piece.text)}}`;
      case "call": {
        const name = JSON.stringify(piece.name);
        if (this.#legacy) return `{"function_call":{"name":${name},"arguments":""}}`;
        const body = piece.freeform
          ? `"type":"custom","custom":{"name":${name},"input":""}`
          : `"type":"function","function":{"name":${name},"arguments":""}`;
        return `{"tool_calls":[{"index":${piece.index},"id":${JSON.stringify(piece.id)},${body}}]}`;
      }
      case "args": {
        const args = JSON.stringify(piece.text);
        if (this.#legacy) return `{"function_call":{"arguments":${args}}}`;
        const body = piece.freeform ? `"custom":{"input":${args}}` : `"function":{"arguments":${args}}`;
        return `{"tool_calls":[{"index":${piece.index},${body}}]}`;
      }
    }
  }

  /** What the server does, where the client has asked to see it: a field that no client of the door reads. */
  #activity(state: Choice, activity: Record<string, unknown>): string {
    if (!this.#meta.agentEvents) return "";
    const rest = this.#suffix.slice(0, -3);
    return `${state.prefix}{}${rest},"agent_event":${JSON.stringify(activity)}}\n\n`;
  }

  #close(state: Choice, index: number, event: RunClose): string {
    state.closed = true;
    if (event.outcome === "failed" || event.outcome === "stopped") {
      this.#ended = true;
      return `data: ${JSON.stringify(errorBody(event.fault ?? STOPPED))}\n\n`;
    }
    let out = this.#first(state, index);
    out += `${state.prefix}{}${this.#suffixOf(`"${state.view.finishReason(event)}"`)}`;
    this.#usage = this.#usage ? addUsage(this.#usage, event.usage) : event.usage;
    if (!this.#choices.every((choice) => choice.closed)) return out;
    this.#ended = true;
    if (this.#includeUsage) out += `${this.#head}],"usage":${JSON.stringify(usageBody(this.#usage))}}\n\n`;
    return `${out}data: [DONE]\n\n`;
  }
}
