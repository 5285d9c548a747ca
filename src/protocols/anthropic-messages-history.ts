/** The `messages` of a Messages request -> messages of the core. */
import type {
  AssistantMessage,
  AssistantPart,
  CallPart,
  Message,
  ProviderName,
  ReasoningPart,
  SystemMessage,
  TextPart,
  ToolResultMessage,
  UserPart,
} from "../core/message.ts";
import { argsOf } from "./anthropic-messages-args.ts";
import {
  type Block,
  blockAt,
  contentPart,
  extraOf,
  got,
  invalid,
  isObject,
  nameAt,
  stringAt,
  textPart,
  withExtra,
} from "./anthropic-messages-blocks.ts";
import { readSeal } from "./anthropic-messages-seal.ts";

const MESSAGE_KEYS = new Set(["role", "content"]);
const CALL_KEYS = new Set(["type", "id", "name", "input"]);
const RESULT_KEYS = new Set(["type", "tool_use_id", "content", "is_error"]);
const THINKING_KEYS = new Set(["type", "thinking", "signature"]);

export interface History {
  messages: Message[];
  /** Where each core message, or within it each call, stands on the wire: for sentences about pairing. */
  paths: string[];
}

export function decodeHistory(wire: readonly unknown[]): History {
  const history: History = { messages: [], paths: [] };
  for (let i = 0; i < wire.length; i++) {
    const at = `messages.${i}`;
    const message = wire[i];
    if (!isObject(message))
      throw invalid(at, `A message is an object with \`role\` and \`content\`${got(message)}.`);
    switch (message.role) {
      case "user":
        userMessage(message, at, history);
        break;
      case "assistant":
        add(history, at, assistantMessage(message, at));
        break;
      case "system":
        add(history, at, systemMessage(message, at));
        break;
      default:
        throw invalid(
          `${at}.role`,
          `The role is \`user\`, \`assistant\` or \`system\`, not ${JSON.stringify(message.role) ?? "absent"}.`,
        );
    }
  }
  return history;
}

function add(history: History, path: string, message: Message): void {
  history.messages.push(message);
  history.paths.push(path);
}

/** The blocks of a message; null where the content is a string. */
function blocksOf(message: Block, at: string): readonly unknown[] | null {
  const { content } = message;
  if (typeof content === "string") return null;
  if (Array.isArray(content)) return content;
  throw invalid(`${at}.content`, `A string or an array of content blocks is required${got(content)}.`);
}

function misplaced(path: string, type: string, role: string): Error {
  return invalid(`${path}.type`, `A \`${type}\` block cannot stand in ${role}.`);
}

/** Tool results become messages of their own, in front of what else the user said. */
function userMessage(message: Block, at: string, history: History): void {
  const blocks = blocksOf(message, at);
  const content: UserPart[] = [];
  let results = 0;
  if (blocks === null) content.push({ type: "text", text: message.content as string });
  else
    for (let j = 0; j < blocks.length; j++) {
      const path = `${at}.content.${j}`;
      const block = blockAt(blocks[j], path);
      if (block.type === "tool_result") {
        add(history, path, toolResult(block, path));
        results++;
      } else if (isAssistantOnly(block.type)) throw misplaced(path, block.type, "a user message");
      else content.push(contentPart(block, path));
    }
  if (content.length > 0 || results === 0)
    add(history, at, withExtra<Message>({ role: "user", content }, extraOf(message, MESSAGE_KEYS)));
}

function isAssistantOnly(type: string): boolean {
  return type === "tool_use" || type === "thinking" || type === "redacted_thinking";
}

function toolResult(block: Block, path: string): ToolResultMessage {
  const result: ToolResultMessage = { role: "tool", callId: nameAt(block, "tool_use_id", path), content: [] };
  const { content, is_error } = block;
  if (typeof content === "string") result.content.push({ type: "text", text: content });
  else if (Array.isArray(content))
    for (let k = 0; k < content.length; k++) {
      const at = `${path}.content.${k}`;
      const part = blockAt(content[k], at);
      if (part.type === "tool_result" || isAssistantOnly(part.type))
        throw misplaced(at, part.type, "a tool result");
      result.content.push(contentPart(part, at));
    }
  else if (content !== undefined && content !== null)
    throw invalid(`${path}.content`, `A string or an array of content blocks is required${got(content)}.`);
  if (is_error !== undefined && is_error !== null) {
    if (typeof is_error !== "boolean")
      throw invalid(`${path}.is_error`, `A boolean is required${got(is_error)}.`);
    if (is_error) result.failed = true;
  }
  return withExtra(result, extraOf(block, RESULT_KEYS));
}

function assistantMessage(message: Block, at: string): AssistantMessage {
  const blocks = blocksOf(message, at);
  const out: AssistantMessage = { role: "assistant", content: [] };
  if (blocks === null) out.content.push({ type: "text", text: message.content as string });
  else
    for (let j = 0; j < blocks.length; j++) {
      const path = `${at}.content.${j}`;
      const part = assistantPart(blockAt(blocks[j], path), path, out);
      if (part) out.content.push(part);
    }
  return withExtra(out, extraOf(message, MESSAGE_KEYS));
}

function assistantPart(
  block: Block & { type: string },
  path: string,
  message: AssistantMessage,
): AssistantPart | null {
  switch (block.type) {
    case "tool_use":
      return callPart(block, path);
    case "thinking":
      return thinkingPart(block, path, message);
    case "redacted_thinking": {
      const seal = ownSeal(nameAt(block, "data", path), message);
      return seal === null ? null : { type: "reasoning", text: "", redacted: true, seal };
    }
    case "tool_result":
      throw misplaced(path, block.type, "an assistant message");
    default:
      return contentPart(block, path);
  }
}

function thinkingPart(block: Block, path: string, message: AssistantMessage): ReasoningPart {
  const part: ReasoningPart = { type: "reasoning", text: stringAt(block, "thinking", path) };
  const { signature } = block;
  if (typeof signature === "string") {
    const seal = signature === "" ? null : ownSeal(signature, message);
    if (seal !== null) part.seal = seal;
  } else if (signature !== undefined && signature !== null)
    throw invalid(`${path}.signature`, `A string is required${got(signature)}.`);
  return withExtra(part, extraOf(block, THINKING_KEYS));
}

/** A message has one origin, which its first seal tells; a seal of any other provider is of no use and null. */
function ownSeal(value: string, message: AssistantMessage): string | null {
  const { provider, seal } = readSeal(value);
  message.origin ??= originOf(provider);
  return message.origin.provider === provider ? seal : null;
}

function originOf(provider: ProviderName): { provider: ProviderName } {
  return { provider };
}

function callPart(block: Block, path: string): CallPart {
  const id = nameAt(block, "id", path);
  const name = nameAt(block, "name", path);
  const { input } = block;
  // Clients that rebuild a call from its stream write "" where the model gave no arguments.
  const empty = input === undefined || input === null || input === "";
  if (!empty && !isObject(input)) throw invalid(`${path}.input`, `An object is required${got(input)}.`);
  const args = empty ? "{}" : argsOf(input as Block);
  return withExtra<CallPart>({ type: "call", id, name, args }, extraOf(block, CALL_KEYS));
}

/** What a system message in mid-conversation has besides text (tools that come and go) is for the same family only. */
function systemMessage(message: Block, at: string): SystemMessage {
  const extra = extraOf(message, MESSAGE_KEYS);
  const { content } = message;
  if (typeof content === "string")
    return withExtra<SystemMessage>({ role: "system", content: [{ type: "text", text: content }] }, extra);
  const system: SystemMessage = { role: "system", content: [] };
  if (content === undefined || content === null) return withExtra(system, extra);
  if (!Array.isArray(content))
    throw invalid(`${at}.content`, `A string or an array of text blocks is required${got(content)}.`);
  let whole = true;
  for (let j = 0; j < content.length; j++) {
    const path = `${at}.content.${j}`;
    const block = blockAt(content[j], path);
    if (block.type === "text") system.content.push(textPart(block, path));
    else if (isAssistantOnly(block.type) || block.type === "tool_result")
      throw misplaced(path, block.type, "a system message");
    else whole = false;
  }
  if (whole) return withExtra(system, extra);
  return { ...system, extra: { family: "anthropic-messages", fields: { ...extra?.fields, content } } };
}

/** The top-level `system`: a string or text blocks. */
export function decodeSystem(system: unknown): TextPart[] {
  if (system === undefined || system === null || system === "") return [];
  if (typeof system === "string") return [{ type: "text", text: system }];
  if (!Array.isArray(system))
    throw invalid("system", `A string or an array of text blocks is required${got(system)}.`);
  return system.map((value, i) => {
    const path = `system.${i}`;
    const block = blockAt(value, path);
    if (block.type !== "text") throw invalid(`${path}.type`, "System blocks are of type `text`.");
    return textPart(block, path);
  });
}
