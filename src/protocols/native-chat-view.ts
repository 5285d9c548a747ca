/** What of a run a native client sees: agent events -> the door's own events, apart from how they are written. */
import type { AgentEvent, ModelEvent, PendingCall } from "../core/event.ts";
import type { ResultPart, StopReason, Usage } from "../core/message.ts";
import { previewOf } from "../core/preview.ts";
import type { Fault } from "../errors.ts";
import { shownArgs } from "./native-chat-args.ts";
import {
  type ChatEvent,
  type StopReasonWord,
  snake,
  type WirePendingCall,
  type WireUsage,
} from "./native-chat-events.ts";
import { StepJoin } from "./step-join.ts";

export interface ViewOptions {
  runId: string;
  sessionId: string;
  /** Names that were asked for and are not there. */
  unavailableTools?: readonly string[] | undefined;
  /** The assistant's last message, where its id is known beforehand; see {@link NativeView.messageId}. */
  messageId?: string | undefined;
  /** What earlier parts of the run have said: their reply. The whole reply goes on from it. */
  before?: string | undefined;
  /** Calls that earlier parts of the run have shown and whose results are to come. */
  calls?: readonly PendingCall[] | undefined;
  /** What earlier parts of the run have shown of its swarm. */
  members?: ShownMembers | undefined;
  /** false: readers have had the `session` event, since the run goes on in mid-stream (after a crash). */
  announce?: boolean | undefined;
}

/** Members of a swarm, as readers have been shown them. */
export interface ShownMembers {
  /** Ids of first runs that have started, and those that have ended. */
  started: Set<string>;
  ended: Set<string>;
  /** Calls that a member has been said to wait with. */
  asked: Set<string>;
  /** What each has said, by its name. */
  said: Map<string, string>;
}

export function noMembers(): ShownMembers {
  return { started: new Set(), ended: new Set(), asked: new Set(), said: new Map() };
}

/** What is shown of a member's run. Its approvals are the lead's to ask for, and its end has an event of its own. */
const OF_MEMBERS: ReadonlySet<ChatEvent["type"]> = new Set([
  ...(["content", "reasoning", "tool_call", "tool_progress", "tool_result", "compaction", "agent"] as const),
]);

/** A part of the step under way that a client sees. */
type Open = "text" | "reasoning" | { id: string; name: string; args: string };

type RunClose = Extract<AgentEvent, { type: "run-close" }>;

const NOTHING: readonly ChatEvent[] = [];

/**
 * One stream of a run: from its start, or from a decision, to its end or to the next pause. `session` is the first event,
 * exactly one of `done` and `error` is the last.
 */
export class NativeView {
  /** What `done` names as the assistant's last message; may be set until the run closes. */
  messageId: string | null;
  readonly #options: ViewOptions;
  readonly #text: StepJoin;
  readonly #reasoning = new StepJoin();
  #reply: string;
  #announced: boolean;
  #closed = false;
  #step = -1;
  #open: (Open | undefined)[] = [];
  /** Arguments of the calls whose results are to come, by id. */
  readonly #args = new Map<string, Record<string, unknown>>();
  readonly #shown: ShownMembers;
  /** Of the runs of members that are under way. */
  readonly #members = new Map<string, NativeView>();

  constructor(options: ViewOptions) {
    this.#options = options;
    this.messageId = options.messageId ?? null;
    this.#reply = options.before ?? "";
    this.#text = new StepJoin(this.#reply);
    this.#announced = options.announce === false;
    this.#shown = options.members ?? noMembers();
    for (const { id, args } of options.calls ?? []) this.#args.set(id, shownArgs(args));
  }

  push(event: AgentEvent): readonly ChatEvent[] {
    if (this.#closed) return NOTHING;
    const seen = this.#see(event);
    if (this.#announced) return seen ? [seen] : NOTHING;
    this.#announced = true;
    return seen ? [this.#session(), seen] : [this.#session()];
  }

  #session(): ChatEvent {
    const { sessionId, runId, unavailableTools } = this.#options;
    const event: ChatEvent = { type: "session", session_id: sessionId, run_id: runId };
    if (unavailableTools && unavailableTools.length > 0) event.unavailable_tools = [...unavailableTools];
    return event;
  }

  #see(event: AgentEvent): ChatEvent | null {
    switch (event.type) {
      case "run-open":
        return null;
      case "model":
        return this.#model(event);
      case "tool-start":
        if (!this.#args.has(event.callId)) this.#args.set(event.callId, shownArgs(event.args));
        return null;
      case "tool-progress":
        return { type: "tool_progress", id: event.callId, content: event.delta };
      case "tool-end":
        return this.#result(event);
      case "approval-needed":
        return { type: "auth_required", pending_calls: event.calls.map(pendingCallBody) };
      case "agent":
        return this.#agent(event);
      case "member":
        return this.#member(event);
      case "compacted":
        return {
          type: "compaction",
          messages: event.messages,
          tokens_before: event.tokensBefore,
          tokens_after: event.tokensAfter,
        };
      case "run-close":
        return this.#close(event);
    }
  }

  #model({ step, event, server }: Extract<AgentEvent, { type: "model" }>): ChatEvent | null {
    if (step !== this.#step) {
      this.#step = step;
      this.#open = [];
    }
    switch (event.type) {
      case "part-open":
        this.#open[event.index] = opened(event, server === true);
        return null;
      case "part-delta":
        return this.#delta(event);
      case "part-close":
        return this.#called(event.index);
      default:
        return null;
    }
  }

  #delta({ index, delta }: Extract<ModelEvent, { type: "part-delta" }>): ChatEvent | null {
    const part = this.#open[index];
    if (part === undefined || delta === "") return null;
    if (part === "reasoning") return { type: "reasoning", content: this.#reasoning.push(this.#step, delta) };
    if (part !== "text") {
      part.args += delta;
      return null;
    }
    const content = this.#text.push(this.#step, delta);
    this.#reply += content;
    return { type: "content", content };
  }

  /** A call is shown when its arguments are complete. */
  #called(index: number): ChatEvent | null {
    const part = this.#open[index];
    this.#open[index] = undefined;
    if (typeof part !== "object") return null;
    const args = shownArgs(part.args);
    this.#args.set(part.id, args);
    return { type: "tool_call", id: part.id, name: part.name, args };
  }

  #result({ callId, name, output, failed }: Extract<AgentEvent, { type: "tool-end" }>): ChatEvent {
    const args = this.#args.get(callId) ?? {};
    this.#args.delete(callId);
    return { type: "tool_result", id: callId, name, args, output: outputText(output), is_error: failed };
  }

  /** Once each, however often a run that goes on says it again. */
  #agent({ member, status, calls = [] }: Extract<AgentEvent, { type: "agent" }>): ChatEvent | null {
    const { runId, name, task, parent } = member;
    if (status === "waiting") {
      const asked = calls.filter(({ id }) => !this.#shown.asked.has(id));
      for (const { id } of asked) this.#shown.asked.add(id);
      if (asked.length === 0) return null;
      const pending_calls = asked.map(pendingCallBody);
      return { type: "agent", agent: name, run_id: runId, task, status, parent, pending_calls };
    }
    const before = status === "started" ? this.#shown.started : this.#shown.ended;
    if (before.has(runId)) return null;
    before.add(runId);
    return { type: "agent", agent: name, run_id: runId, task, status, parent };
  }

  /** Those of a member's own members have their names already. */
  #member({ member, event }: Extract<AgentEvent, { type: "member" }>): ChatEvent | null {
    const { name } = member;
    const { runId, sessionId, calls } = this.#options;
    const view =
      this.#members.get(name) ??
      new NativeView({
        ...{ runId, sessionId, calls, members: this.#shown, announce: false },
        before: this.#shown.said.get(name),
      });
    if (event.type === "run-close") {
      this.#shown.said.set(name, view.#reply);
      this.#members.delete(name);
      return null;
    }
    this.#members.set(name, view);
    const [seen] = view.push(event);
    if (!seen || !OF_MEMBERS.has(seen.type)) return null;
    return "agent" in seen && seen.agent !== undefined ? seen : ({ ...seen, agent: name } as ChatEvent);
  }

  #close(event: RunClose): ChatEvent {
    this.#closed = true;
    const { outcome, stop, usage, fault } = event;
    if (outcome === "failed" || outcome === "stopped") return errorBody(fault ?? STOPPED);
    return {
      type: "done",
      reply: this.#reply,
      session_id: this.#options.sessionId,
      run_id: this.#options.runId,
      message_id: this.messageId,
      auth_required: outcome === "paused",
      usage: usageBody(usage),
      stop_reason: stopWord(stop, fault),
    };
  }
}

const STOPPED: Fault = { code: "cancelled", message: "The run was stopped.", status: 499 };

/** Client tools do not exist in this door, nor do blocks of one family; a refusal is what the agent says. */
function opened({ part }: Extract<ModelEvent, { type: "part-open" }>, server: boolean): Open | undefined {
  switch (part.kind) {
    case "text":
    case "refusal":
      return "text";
    case "reasoning":
      return "reasoning";
    case "call":
      return server ? { id: part.id, name: part.name, args: "" } : undefined;
    case "raw":
      return undefined;
  }
}

function errorBody({ message, code, status, param, retryAfter }: Fault): ChatEvent {
  const event: ChatEvent = { type: "error", error: message, code, status };
  if (param !== undefined) event.param = param;
  if (retryAfter !== undefined) event.retry_after = retryAfter;
  return event;
}

/** A run that met one of its own limits says so; to the model's words it looks like an ordinary end. */
export function stopWord(stop: StopReason, fault: Fault | undefined): StopReasonWord {
  return fault?.code === "limit_reached" ? "limit_reached" : snake(stop);
}

export function usageBody(usage: Usage): WireUsage {
  const body: WireUsage = { input_tokens: usage.input, output_tokens: usage.output };
  if (usage.cacheRead !== undefined) body.cache_read_tokens = usage.cacheRead;
  if (usage.cacheWrite !== undefined) body.cache_write_tokens = usage.cacheWrite;
  if (usage.reasoning !== undefined) body.reasoning_tokens = usage.reasoning;
  if (usage.trimmedMessages !== undefined) body.trimmed_messages = usage.trimmedMessages;
  return body;
}

export function pendingCallBody(call: PendingCall): WirePendingCall {
  const { id, name, args, preview, risk, expiresAt, agent } = call;
  return {
    id,
    name,
    args: shownArgs(args),
    preview: preview ?? previewOf(name, args),
    risk: risk ?? null,
    expires_at: expiresAt ?? null,
    ...(agent === undefined ? {} : { agent }),
  };
}

/** Texts as they are, a line each for what is none. */
export function outputText(output: readonly ResultPart[]): string {
  return output
    .map((part) => {
      if (part.type === "text") return part.text;
      if (part.type === "image") return "[image]";
      return part.type === "file" ? `[file${part.name ? ` ${part.name}` : ""}]` : "[data]";
    })
    .join("\n");
}
