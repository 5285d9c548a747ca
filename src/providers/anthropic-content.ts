/**
 * A conversation as Anthropic's `system` and `messages`: turns alternate, tool results open the user turn after their
 * calls, and what the API refuses (blank text, thinking without its signature) is left out.
 */
import type {
  ContentBlockParam,
  MessageParam,
  TextBlockParam,
  ToolResultBlockParam,
} from "@anthropic-ai/sdk/resources/messages";
import type {
  AssistantMessage,
  Message,
  ResultPart,
  TextPart,
  ToolResultMessage,
  UserPart,
} from "../core/message.ts";
import { FAMILY, fileBlock, imageBlock, own } from "./anthropic-media.ts";
import { isOwn, type ModelTraits } from "./anthropic-model.ts";

export interface Conversation {
  system: TextBlockParam[];
  messages: MessageParam[];
}

/**
 * `native`: the request came through the messages door, so a `system` message stands where the client put it. From
 * elsewhere it goes to the end of its user turn, the one place where the API takes it, or, where the model knows no such
 * message or there is no user turn, to the top-level `system`: it never becomes a user's words.
 */
export function writeConversation(
  system: TextPart[],
  history: Message[],
  traits: ModelTraits,
  native: boolean,
): Conversation {
  const writer = new Writer(system, traits.systemMessages, native);
  for (const message of history) writer.add(message);
  return writer.finish();
}

class Writer {
  readonly #system: TextBlockParam[];
  readonly #messages: MessageParam[] = [];
  readonly #takesSystem: boolean;
  readonly #native: boolean;
  /** The user turn under way. */
  #results: ToolResultBlockParam[] = [];
  #content: ContentBlockParam[] = [];
  #instructions: TextBlockParam[] = [];

  constructor(system: TextPart[], takesSystem: boolean, native: boolean) {
    this.#system = textBlocks(system);
    this.#takesSystem = takesSystem;
    this.#native = native;
  }

  add(message: Message): void {
    switch (message.role) {
      case "user":
        for (const part of message.content) pushBlock(this.#content, part);
        break;
      case "tool":
        this.#results.push(toolResult(message));
        break;
      case "assistant": {
        const content = assistantBlocks(message);
        if (content.length === 0) break;
        this.#closeTurn();
        this.#messages.push({ role: "assistant", content });
        break;
      }
      case "system": {
        const blocks = textBlocks(message.content);
        if (this.#native) {
          this.#closeTurn();
          const written = { role: "system" as const, content: blocks, ...own(message.extra) };
          if (written.content.length > 0) this.#messages.push(written);
        } else if (this.#takesSystem && (this.#content.length > 0 || this.#results.length > 0)) {
          this.#instructions.push(...blocks);
        } else {
          this.#system.push(...blocks);
        }
      }
    }
  }

  finish(): Conversation {
    this.#closeTurn();
    const last = this.#messages.at(-1);
    if (last?.role === "assistant") trimEnd(last.content as ContentBlockParam[]);
    return { system: this.#system, messages: this.#messages };
  }

  #closeTurn(): void {
    if (this.#results.length > 0 || this.#content.length > 0) {
      this.#messages.push({ role: "user", content: [...this.#results, ...this.#content] });
      this.#results = [];
      this.#content = [];
    }
    if (this.#instructions.length > 0) {
      this.#messages.push({ role: "system", content: this.#instructions });
      this.#instructions = [];
    }
  }
}

function textBlocks(parts: TextPart[]): TextBlockParam[] {
  const out: TextBlockParam[] = [];
  for (const part of parts) if (!isBlank(part.text)) out.push(textBlock(part));
  return out;
}

function textBlock(part: TextPart): TextBlockParam {
  return { type: "text", text: part.text, ...own(part.extra) };
}

function pushBlock(out: ContentBlockParam[], part: UserPart | ResultPart): void {
  switch (part.type) {
    case "text":
      if (!isBlank(part.text)) out.push(textBlock(part));
      break;
    case "image":
      out.push(imageBlock(part));
      break;
    case "file":
      out.push(fileBlock(part));
      break;
    case "raw":
      if (part.family === FAMILY) out.push(part.block as unknown as ContentBlockParam);
  }
}

function assistantBlocks(message: AssistantMessage): ContentBlockParam[] {
  const out: ContentBlockParam[] = [];
  for (const part of message.content) {
    switch (part.type) {
      case "text":
        if (!isBlank(part.text)) out.push(textBlock(part));
        break;
      case "refusal":
        if (!isBlank(part.text)) out.push({ type: "text", text: part.text });
        break;
      case "reasoning":
        if (part.seal === undefined || !isOwn(message)) break;
        out.push(
          part.redacted
            ? { type: "redacted_thinking", data: part.seal, ...own(part.extra) }
            : { type: "thinking", thinking: part.text, signature: part.seal, ...own(part.extra) },
        );
        break;
      case "call":
        out.push({
          type: "tool_use",
          id: part.id,
          name: part.name,
          input: inputOf(part.args),
          ...own(part.extra),
        });
        break;
      case "raw":
        if (part.family === FAMILY) out.push(part.block as unknown as ContentBlockParam);
        break;
      default:
        // The API takes no pictures and documents from an assistant; that there was one is worth a word.
        out.push({ type: "text", text: `[${part.type}]` });
    }
  }
  return out;
}

/** The API wants an object. Argument text that is none (a model's slip, a free-text tool) is kept under `_raw`. */
function inputOf(args: string): Record<string, unknown> {
  if (args === "" || args === "{}") return {};
  try {
    const value: unknown = JSON.parse(args);
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>;
  } catch {
    // Falls through: not JSON.
  }
  return { _raw: args };
}

function toolResult(message: ToolResultMessage): ToolResultBlockParam {
  const content: ContentBlockParam[] = [];
  for (const part of message.content) pushBlock(content, part);
  // A failure without a word is refused.
  if (message.failed && content.length === 0) content.push({ type: "text", text: "The tool failed." });
  return {
    type: "tool_result",
    tool_use_id: message.callId,
    ...(content.length > 0 ? { content: content as ToolResultBlockParam["content"] } : {}),
    ...(message.failed ? { is_error: true } : {}),
    ...own(message.extra),
  };
}

/** The API refuses an assistant's last words with white space behind them. */
function trimEnd(content: ContentBlockParam[]): void {
  const last = content.at(-1);
  if (last?.type === "text") content[content.length - 1] = { ...last, text: last.text.trimEnd() };
}

/** Text blocks of nothing but white space are refused. */
function isBlank(value: string): boolean {
  return value.length === 0 || (value.charCodeAt(0) <= 32 && value.trim().length === 0);
}
