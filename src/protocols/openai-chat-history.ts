/** Messages of chat completions -> messages of the core. One wire message is one message, so positions agree. */
import type {
  AssistantMessage,
  AssistantPart,
  CallPart,
  Message,
  SystemMessage,
  TextPart,
  ToolResultMessage,
  UserMessage,
  UserPart,
} from "../core/message.ts";
import { findPairingFault, type PairingFault } from "../core/pairing.ts";
import { decodePart, extraOf } from "./openai-chat-parts.ts";
import type { WireMessage } from "./openai-chat-schema.ts";
import { invalid } from "./problem.ts";

/** The messages whose role may be this one. */
type WireOf<Role extends string> = WireMessage extends infer Each
  ? Each extends { role: infer R }
    ? Role extends R
      ? Each
      : never
    : never
  : never;
type WireCall = NonNullable<WireOf<"assistant">["tool_calls"]>[number];
type Wire = Record<string, unknown>;

export interface History {
  /** System and developer messages at the start. */
  system: TextPart[];
  messages: Message[];
}

/**
 * `continues`: the server has the messages before these. Throws AppError `invalid_request` for what no provider
 * would take: parts that are none, calls without results, results without calls.
 */
export function decodeHistory(wire: WireMessage[], continues: boolean): History {
  const system: TextPart[] = [];
  const messages: Message[] = [];
  const legacy = new LegacyCalls();
  for (let index = 0; index < wire.length; index++) {
    const message = decodeMessage(wire[index]!, `messages[${index}]`, legacy);
    // What carries fields of its own stays a message: a bare text part has no place for them.
    if (message.role === "system" && messages.length === 0 && !message.extra) system.push(...message.content);
    else messages.push(message);
  }
  const fault = findPairingFault(messages, { continues });
  if (fault) {
    const index = fault.index + wire.length - messages.length;
    throw pairingError(fault, index, wire[index]!);
  }
  return { system, messages };
}

/**
 * Calls of before there were ids: `function_call`, answered by the next message of role `function`. The id is made
 * from the position, so that the same history always has the same ids.
 */
class LegacyCalls {
  #last = "";
  #count = 0;

  open(): string {
    this.#last = `call_function_${this.#count++}`;
    return this.#last;
  }

  answer(): string {
    return this.#last || "call_function";
  }
}

function decodeMessage(wire: WireMessage, at: string, legacy: LegacyCalls): Message {
  switch (wire.role) {
    case "system":
    case "developer":
      return decodeSystem(wire, at);
    case "user":
      return decodeUser(wire, at);
    case "assistant":
      return decodeAssistant(wire, at, legacy);
    case "tool":
      return decodeTool(wire, at);
    case "function":
      return {
        role: "tool",
        callId: legacy.answer(),
        name: wire.name,
        content: [{ type: "text", text: wire.content ?? "" }],
      };
  }
}

const SYSTEM = { role: true, content: true } as const;
const USER = { role: true, content: true, name: true } as const;
const TOOL = { role: true, content: true, name: true, tool_call_id: true } as const;
/** `annotations` and `parsed` are written by the service and by its SDK into replies, and come back with them. */
const ASSISTANT = {
  role: true,
  content: true,
  name: true,
  refusal: true,
  reasoning_content: true,
  reasoning: true,
  tool_calls: true,
  function_call: true,
  annotations: true,
  parsed: true,
} as const;

function decodeSystem(wire: WireOf<"system">, at: string): SystemMessage {
  const message: SystemMessage = { role: "system", content: contentOf(wire.content, at) as TextPart[] };
  if (wire.role === "developer") message.developer = true;
  const extra = extraOf(wire, SYSTEM);
  if (extra) message.extra = extra;
  return message;
}

function decodeUser(wire: WireOf<"user">, at: string): UserMessage {
  const message: UserMessage = { role: "user", content: contentOf(wire.content, at) };
  if (typeof wire.name === "string") message.name = wire.name;
  const extra = extraOf(wire, USER);
  if (extra) message.extra = extra;
  return message;
}

function decodeTool(wire: WireOf<"tool">, at: string): ToolResultMessage {
  const message: ToolResultMessage = {
    role: "tool",
    callId: wire.tool_call_id,
    content: contentOf(wire.content, at),
  };
  if (typeof wire.name === "string") message.name = wire.name;
  const extra = extraOf(wire, TOOL);
  if (extra) message.extra = extra;
  return message;
}

function contentOf(content: string | Wire[], at: string): UserPart[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return content.map((part, index) => decodePart(part, `${at}.content[${index}]`));
}

function decodeAssistant(wire: WireOf<"assistant">, at: string, legacy: LegacyCalls): AssistantMessage {
  const content: AssistantPart[] = [];
  const reasoning =
    wire.reasoning_content ?? (typeof wire.reasoning === "string" ? wire.reasoning : undefined);
  if (reasoning) content.push({ type: "reasoning", text: reasoning });
  if (typeof wire.content === "string") {
    // Beside calls or a refusal an empty text says nothing, and some providers refuse empty texts.
    if (wire.content !== "" || !hasOther(wire)) content.push({ type: "text", text: wire.content });
  } else if (wire.content) {
    wire.content.forEach((part, index) => {
      content.push(decodeAssistantPart(part, `${at}.content[${index}]`));
    });
  } else if (!hasOther(wire) && !reasoning) {
    throw invalid(
      `${at}.content`,
      `${at}.content is missing; it has to be a string or an array unless the message has tool_calls or a refusal.`,
    );
  }
  if (wire.refusal) content.push({ type: "refusal", text: wire.refusal });
  if (wire.tool_calls) for (const call of wire.tool_calls) content.push(decodeCall(call));
  if (wire.function_call)
    content.push({
      type: "call",
      id: legacy.open(),
      name: wire.function_call.name,
      args: wire.function_call.arguments,
    });
  const message: AssistantMessage = { role: "assistant", content };
  if (typeof wire.name === "string") message.name = wire.name;
  const extra = extraOf(wire, ASSISTANT);
  if (extra) message.extra = extra;
  return message;
}

function hasOther(wire: WireOf<"assistant">): boolean {
  return Boolean(
    (wire.tool_calls && wire.tool_calls.length > 0) || wire.function_call || wire.refusal || wire.audio,
  );
}

function decodeAssistantPart(part: Wire, at: string): AssistantPart {
  if (part.type === "refusal") return { type: "refusal", text: part.refusal as string };
  return decodePart(part, at);
}

/** `index` is left over from stream deltas, `parsed_arguments` from the service's SDK. */
const CALL = { type: true, id: true, index: true, function: true, custom: true } as const;
const FUNCTION = { name: true, arguments: true, parsed_arguments: true } as const;
const CUSTOM = { name: true, input: true } as const;

function decodeCall(wire: WireCall): CallPart {
  if (wire.type === "custom") {
    const { name, input } = wire.custom;
    const extra = extraOf(wire, CALL, "custom", CUSTOM);
    return { type: "call", id: wire.id, name, args: input, freeform: true, ...(extra && { extra }) };
  }
  const extra = extraOf(wire, CALL, "function", FUNCTION);
  const call: CallPart = {
    type: "call",
    id: wire.id,
    name: wire.function.name,
    args: wire.function.arguments,
  };
  if (extra) call.extra = extra;
  return call;
}

function pairingError(fault: PairingFault, index: number, wire: WireMessage) {
  const at = `messages[${index}]`;
  const id = JSON.stringify(fault.callId);
  if (wire.role === "function")
    return invalid(
      at,
      `${at} is a function's result, but no function_call directly before it waits for one.`,
    );
  if (wire.role === "assistant" && wire.function_call && fault.kind === "call-without-result")
    return invalid(
      `${at}.function_call`,
      `${at}.function_call has no result. Put a message with role "function" directly after it.`,
    );
  switch (fault.kind) {
    case "result-without-call":
      return invalid(
        `${at}.tool_call_id`,
        `${at}.tool_call_id is ${id}, but no assistant message directly before it has a call with that id.`,
      );
    case "duplicate-result":
      return invalid(
        `${at}.tool_call_id`,
        `${at}.tool_call_id is ${id}, but that call has its result already. Send one tool message for each call.`,
      );
    case "duplicate-call":
      return invalid(
        `${at}.tool_calls`,
        `${at}.tool_calls uses the id ${id} a second time. Every call needs an id of its own.`,
      );
    case "call-without-result":
      return invalid(
        `${at}.tool_calls`,
        `${at}.tool_calls has the call ${id}, which has no result. Put one tool message for each call directly after the assistant message that makes them.`,
      );
  }
}
