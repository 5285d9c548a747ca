/** What the streamed and the whole reply of the messages door have in common: stop reasons, usage, errors, activity. */
import type { AgentEvent, PartStart } from "../core/event.ts";
import type { Extra, StopReason, Usage } from "../core/message.ts";
import { type Fault, toFault } from "../errors.ts";
import type { ErrorReply } from "./codec.ts";

export type Json = Record<string, unknown>;
export type RunClose = Extract<AgentEvent, { type: "run-close" }>;

const STOP: Record<StopReason, string> = {
  stop: "end_turn",
  "stop-sequence": "stop_sequence",
  length: "max_tokens",
  "tool-calls": "tool_use",
  refusal: "refusal",
  "content-filter": "refusal",
  pause: "pause_turn",
  "context-window": "model_context_window_exceeded",
};

/** What was shown of a run, as far as the stop reason depends on it. */
export interface Shown {
  calls: boolean;
  refusal: boolean;
}

export function stopReason(close: RunClose, shown: Shown): string {
  if (close.outcome === "handed-back") return "tool_use";
  const own = fieldsOf(close.extra)?.stop_reason;
  if (typeof own === "string") return own;
  if (shown.refusal && close.stop === "stop") return "refusal";
  // Clients run the calls of a `tool_use` turn: without one there is nothing to go on with.
  if (close.stop === "tool-calls" && !shown.calls) return "end_turn";
  return STOP[close.stop];
}

/** Wire fields of our own family, if there are any. */
export function fieldsOf(extra: Extra | undefined): Json | undefined {
  return extra?.family === "anthropic-messages" ? extra.fields : undefined;
}

/** The core counts cached tokens as input; this protocol counts them beside it. */
export function wireUsage(usage: Usage): Json {
  const { input, output, cacheRead = 0, cacheWrite = 0, reasoning, trimmedMessages } = usage;
  return {
    ...fieldsOf(usage.extra),
    input_tokens: Math.max(0, input - cacheRead - cacheWrite),
    cache_creation_input_tokens: cacheWrite,
    cache_read_input_tokens: cacheRead,
    output_tokens: output,
    ...(reasoning === undefined ? {} : { output_tokens_details: { thinking_tokens: reasoning } }),
    ...(trimmedMessages === undefined ? {} : { trimmed_messages: trimmedMessages }),
  };
}

/** Whether the client sees the part: not the agent's own calls, and not the raw blocks of another family. */
export function isShown(part: PartStart, server: boolean): boolean {
  if (part.kind === "raw") return part.family === "anthropic-messages";
  return !(part.kind === "call" && server);
}

/** Messages are named after their run, so that the id in a client's hands finds the run in the log. */
export function messageId(runId: string): string {
  return `msg_${runId.startsWith("run_") ? runId.slice(4) : runId}`;
}

/** What the reply says itself, and a same-family upstream's copy must not overwrite. */
const OWN = new Set([
  "type",
  "id",
  "role",
  "model",
  "content",
  "stop_reason",
  "stop_sequence",
  "usage",
  "delta",
]);

/** A message before anything of it is known but what a same-family upstream says when it begins. */
export function startMessage(runId: string, model: string, extra: Extra | undefined): Json {
  const fields = fieldsOf(extra) ?? {};
  const message: Json = {
    id: messageId(runId),
    type: "message",
    role: "assistant",
    model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: {
      input_tokens: 0,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
      output_tokens: 0,
      ...(typeof fields.usage === "object" ? fields.usage : {}),
    },
  };
  for (const key in fields) if (!OWN.has(key)) message[key] = fields[key];
  return message;
}

/** Fields of the message that its stream carries inside `message_delta.delta`; others stand beside it. */
const IN_DELTA = new Set(["container", "stop_details"]);
/** What a same-family upstream said at its end beyond the core's words (`container`, `context_management`, …). */
export function replyFields(close: RunClose): { inDelta: Json; beside: Json } {
  const inDelta: Json = {};
  const beside: Json = {};
  const fields = fieldsOf(close.extra) ?? {};
  for (const key in fields) if (!OWN.has(key)) (IN_DELTA.has(key) ? inDelta : beside)[key] = fields[key];
  return { inDelta, beside };
}

const ERROR_TYPES: Record<number, string> = {
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  408: "timeout_error",
  409: "conflict_error",
  413: "request_too_large",
  429: "rate_limit_error",
  499: "api_error",
  504: "timeout_error",
  529: "overloaded_error",
};

export function errorBody(fault: Fault, requestId: string): Json {
  const type = ERROR_TYPES[fault.status] ?? (fault.status < 500 ? "invalid_request_error" : "api_error");
  return {
    type: "error",
    error: { type, message: fault.message, ...(fault.details ? { details: fault.details } : {}) },
    request_id: requestId,
  };
}

export function errorReply(fault: Fault, requestId: string): ErrorReply {
  const headers: Record<string, string> = { "request-id": requestId };
  if (fault.retryAfter !== undefined) headers["retry-after"] = String(Math.ceil(fault.retryAfter));
  return { status: fault.status, body: errorBody(fault, requestId), headers };
}

/** The fault that a run ended with; null when it ended as a message. */
export function faultOf(close: RunClose): Fault | null {
  if (close.outcome === "failed") return close.fault ?? toFault(undefined);
  if (close.outcome === "stopped") return close.fault ?? STOPPED;
  return null;
}
const STOPPED: Fault = { code: "cancelled", message: "The run was stopped.", status: 499 };

/** The citations of a text part that has closed. */
export function citationsOf(extra: Extra | undefined): readonly unknown[] {
  const citations = fieldsOf(extra)?.citations;
  return Array.isArray(citations) ? citations : [];
}

/** The call's block as its stream begins it. */
export function callBlock(part: Extract<PartStart, { kind: "call" }>, input: Json): Json {
  return { ...fieldsOf(part.extra), type: "tool_use", id: part.id, name: part.name, input };
}
