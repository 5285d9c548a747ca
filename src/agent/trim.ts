/**
 * Leaves out the oldest part of a history that would not fit the model's window. A tool call never loses its result,
 * nor a result its call; what is left begins with a user message; the last turn keeps its question.
 */
import type { Message } from "../core/message.ts";
import type { ModelRequest } from "../core/model.ts";
import { messageTokens, messageWeight, promptTokens } from "./estimate.ts";

/** Room kept for the reply when the request does not say how long it may be. Tokens. */
const DEFAULT_REPLY = 8192;
/** Of the window at most this much is kept for the reply. */
const REPLY_SHARE = 0.5;

export interface Trimmed {
  messages: Message[];
  /** How many were left out. */
  dropped: number;
}

/**
 * `window`: tokens of input and output together; undefined where the model is not known, and nothing is left out.
 * `reserved`: tokens of it that something else needs.
 */
export function trimHistory(request: ModelRequest, window: number | undefined, reserved = 0): Trimmed {
  const { messages } = request;
  if (window === undefined) return { messages, dropped: 0 };
  const budget = inputBudget(request, window) - reserved;
  let weight = 0;
  for (const message of messages) weight += messageWeight(message);
  if (weight < budget / 2 && systemWeight(request) < budget / 2) return { messages, dropped: 0 };
  return cut(messages, budget - promptTokens(request));
}

function inputBudget(request: ModelRequest, window: number): number {
  return window - Math.min(request.settings.maxTokens ?? DEFAULT_REPLY, window * REPLY_SHARE);
}

/** Tokens that a request has for its messages: the window without the prompt, the tools and the reply. */
export function messageBudget(request: ModelRequest, window: number): number {
  return inputBudget(request, window) - promptTokens(request);
}

function systemWeight(request: ModelRequest): number {
  let sum = 0;
  for (const part of request.system) sum += part.text.length;
  for (const tool of request.tools)
    sum += 400 + (tool.kind === "builtin" ? 0 : (tool.description?.length ?? 0));
  return sum;
}

function cut(messages: Message[], budget: number): Trimmed {
  const tokens = messages.map(messageTokens);
  let total = tokens.reduce((sum, n) => sum + n, 0);
  if (total <= budget) return { messages, dropped: 0 };
  const question = messages.findLastIndex((message) => message.role === "user");
  // Whole turns first: from one user message to the next.
  let start = 0;
  while (total > budget && start < question) {
    let next = start + 1;
    while (next < question && messages[next]?.role !== "user") next++;
    for (let i = start; i < next; i++) total -= tokens[i] as number;
    start = next;
  }
  if (total <= budget || question === -1) return { messages: messages.slice(start), dropped: start };
  // One long turn: its question stays, its oldest rounds of calls and results go; the last round stays.
  let from = question + 1;
  while (total > budget) {
    let next = from + 1;
    while (next < messages.length && messages[next]?.role === "tool") next++;
    if (next >= messages.length) break;
    for (let i = from; i < next; i++) total -= tokens[i] as number;
    from = next;
  }
  return {
    messages: [messages[question] as Message, ...messages.slice(from)],
    dropped: start + from - question - 1,
  };
}
