/**
 * Makes a history valid for the provider that is to read it: written by other providers, cut off by a crash, edited by
 * a client. What adapters may rely on afterwards stands at ModelRequest. Pure; a history that is in order is returned
 * as it is.
 */
import {
  type AssistantMessage,
  type AssistantPart,
  FAMILY,
  type Message,
  type ProviderName,
  type ToolResultMessage,
  text,
} from "../core/message.ts";

/** What every provider accepts as a call id. OpenAI's limit is 40 characters, Anthropic's alphabet is this one. */
const PORTABLE_ID = /^[a-zA-Z0-9_-]{1,40}$/;

export function repairHistory(messages: Message[], provider: ProviderName): Message[] {
  const cleaned = messages.map((message) =>
    message.role === "assistant" ? clean(message, provider) : message,
  );
  return pair(cleaned.filter((message) => message.role !== "assistant" || message.content.length > 0));
}

/** Seals, reasoning and raw blocks go back only to where they came from; empty text goes nowhere. */
function clean(message: AssistantMessage, provider: ProviderName): AssistantMessage {
  const own = message.origin?.provider === provider;
  let changed = false;
  const content: AssistantPart[] = [];
  for (const part of message.content) {
    const kept = cleanPart(part, own, message.origin === undefined, provider);
    if (kept !== part) changed = true;
    if (kept) content.push(kept);
  }
  return changed ? { ...message, content } : message;
}

function cleanPart(
  part: AssistantPart,
  own: boolean,
  unknown: boolean,
  provider: ProviderName,
): AssistantPart | undefined {
  switch (part.type) {
    case "text":
      if (part.text === "" && !(own && part.seal !== undefined)) return undefined;
      return part.seal === undefined || own ? part : { ...part, seal: undefined };
    case "call":
      return part.seal === undefined || own ? part : { ...part, seal: undefined };
    case "reasoning":
      if (own) return part;
      // A client's `reasoning_content`: compatible servers want it back, and it carries no seal.
      return unknown && part.seal === undefined && FAMILY[provider] === "openai-chat" ? part : undefined;
    case "refusal":
      return FAMILY[provider] === "openai-chat" ? part : text(part.text);
    case "raw":
      return part.family === FAMILY[provider] ? part : undefined;
    default:
      return part;
  }
}

/** Every call gets exactly one result, directly behind its message; ids become unique and portable. */
function pair(messages: Message[]): Message[] {
  if (!messages.some((m) => m.role === "tool" || (m.role === "assistant" && hasCall(m)))) return messages;
  const out: Message[] = [];
  const taken = new Set<string>();
  for (let i = 0; i < messages.length; i++) {
    const message = messages[i] as Message;
    // A result is placed with its call; one that has none would be refused everywhere.
    if (message.role === "tool") continue;
    if (message.role !== "assistant" || !hasCall(message)) {
      out.push(message);
      continue;
    }
    const renamed = rename(message, taken);
    out.push(renamed.message);
    const results = resultsUntilNextCalls(messages, i + 1);
    for (const [id, { asked, name }] of renamed.calls) {
      const result = results.get(asked);
      out.push(result ? { ...result, callId: id, name } : missing(id, name));
    }
  }
  return out;
}

function hasCall(message: AssistantMessage): boolean {
  return message.content.some((part) => part.type === "call");
}

/** The first result for each id, up to the next message that calls one of the same ids again. */
function resultsUntilNextCalls(messages: Message[], from: number): Map<string, ToolResultMessage> {
  const found = new Map<string, ToolResultMessage>();
  for (let i = from; i < messages.length; i++) {
    const message = messages[i] as Message;
    if (message.role === "assistant" && hasCall(message)) break;
    if (message.role === "tool" && !found.has(message.callId)) found.set(message.callId, message);
  }
  return found;
}

function rename(message: AssistantMessage, taken: Set<string>) {
  /** New id -> the one it had, in the order of the calls. */
  const calls = new Map<string, { asked: string; name: string }>();
  const seen = new Set<string>();
  let changed = false;
  const content: AssistantPart[] = [];
  for (const part of message.content) {
    if (part.type !== "call") {
      content.push(part);
      continue;
    }
    // The same id twice in one message is one call, written twice.
    if (seen.has(part.id)) {
      changed = true;
      continue;
    }
    const id = freeId(part.id, taken);
    taken.add(id);
    seen.add(part.id);
    calls.set(id, { asked: part.id, name: part.name });
    if (id !== part.id) changed = true;
    content.push(id === part.id ? part : { ...part, id });
  }
  return { message: changed ? { ...message, content } : message, calls };
}

/** The id itself, or a stable substitute: the same history gives the same ids, so that provider caches hit. */
function freeId(id: string, taken: Set<string>): string {
  const base = PORTABLE_ID.test(id)
    ? id
    : `call_${[...id]
        .map((c) => (/[a-zA-Z0-9]/.test(c) ? c : ""))
        .join("")
        .slice(-24)}`;
  if (!taken.has(base) && base !== "call_") return base;
  for (let n = 2; ; n++) {
    const next = `${base.slice(0, 34)}_${n}`;
    if (!taken.has(next)) return next;
  }
}

function missing(callId: string, name: string): ToolResultMessage {
  return {
    role: "tool",
    callId,
    name,
    content: [text("Interrupted: there is no result, and whether the call had an effect is unknown.")],
    failed: true,
  };
}
