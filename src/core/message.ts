/**
 * The one vocabulary of conversation. Every door decodes to it and every upstream is written from it.
 *
 * Pure data, JSON-serialisable. What a family of protocols has and this vocabulary has not rides along in
 * {@link Extra}, and is written back only to the same family.
 */

export const PROVIDERS = ["anthropic", "groq", "openai", "gemini"] as const;
export type ProviderName = (typeof PROVIDERS)[number];

/** A wire dialect. Fields that the core does not model are replayed within one family only. */
export type Family = "openai-chat" | "anthropic-messages" | "gemini";

export const FAMILY: Record<ProviderName, Family> = {
  anthropic: "anthropic-messages",
  groq: "openai-chat",
  openai: "openai-chat",
  gemini: "gemini",
};

/** Wire fields kept as they came, for an upstream of the same family. */
export interface Extra {
  family: Family;
  fields: Record<string, unknown>;
}

/** Bytes by value (base64, no data-URL prefix), by address, or by an id that only one provider knows. */
export type Source =
  | { kind: "data"; mediaType: string; data: string }
  | { kind: "url"; url: string }
  | { kind: "id"; family: Family; id: string };

export interface TextPart {
  type: "text";
  text: string;
  /** Gemini signs answer text too; see {@link ReasoningPart.seal}. */
  seal?: string | undefined;
  extra?: Extra | undefined;
}

export interface ImagePart {
  type: "image";
  source: Source;
  /** OpenAI's `detail`: `low`, `high`, `auto`. */
  detail?: string | undefined;
  extra?: Extra | undefined;
}

/** A document or a sound. `mediaType` decides: `application/pdf`, `text/plain`, `audio/wav`, `audio/mpeg`, … */
export interface FilePart {
  type: "file";
  source: Source;
  mediaType: string;
  name?: string | undefined;
  extra?: Extra | undefined;
}

export interface ReasoningPart {
  type: "reasoning";
  text: string;
  /** Opaque provider state (a thinking signature, redacted thinking): kept byte for byte, replayed to its origin only. */
  seal?: string | undefined;
  /** The text was withheld by the provider: `seal` is all there is. */
  redacted?: boolean | undefined;
  extra?: Extra | undefined;
}

export interface CallPart {
  type: "call";
  id: string;
  name: string;
  /** The arguments as the model wrote them: JSON text, or free text when `freeform`. Not necessarily valid. */
  args: string;
  /** An OpenAI custom tool: `args` is not JSON. */
  freeform?: boolean | undefined;
  seal?: string | undefined;
  extra?: Extra | undefined;
}

export interface RefusalPart {
  type: "refusal";
  text: string;
}

/** A block that only its own family understands (a hosted web search and its result). Replayed there, dropped elsewhere. */
export interface RawPart {
  type: "raw";
  family: Family;
  block: Record<string, unknown>;
}

export type UserPart = TextPart | ImagePart | FilePart | RawPart;
export type AssistantPart =
  | TextPart
  | ReasoningPart
  | CallPart
  | RefusalPart
  | RawPart
  | ImagePart
  | FilePart;
export type ResultPart = TextPart | ImagePart | FilePart | RawPart;
export type Part = UserPart | AssistantPart | ResultPart;

/** Who made an assistant message. Seals go back only to the provider named here. */
export interface Origin {
  provider: ProviderName;
  model?: string | undefined;
}

export const STOP_REASONS = [
  /** The model had said all. */
  "stop",
  "stop-sequence",
  /** The output limit of the request or of the model. */
  "length",
  "tool-calls",
  "refusal",
  "content-filter",
  /** The provider interrupted a long turn of its own hosted tools; sending the history again continues it. */
  "pause",
  /** The model's context window is full. */
  "context-window",
] as const;
export type StopReason = (typeof STOP_REASONS)[number];

/** Token counts of one model call or, added up, of a run. */
export interface Usage {
  /** All input tokens, those read from and written to a cache included. */
  input: number;
  /** All output tokens, reasoning included. */
  output: number;
  cacheRead?: number | undefined;
  cacheWrite?: number | undefined;
  reasoning?: number | undefined;
  /** Messages left out at the start of the history because it would not have fitted the model's window. */
  trimmedMessages?: number | undefined;
  /** Counters that only one family has. */
  extra?: Extra | undefined;
}

export interface SystemMessage {
  role: "system";
  content: TextPart[];
  /** OpenAI's `developer` role, kept for upstreams that know the difference. */
  developer?: boolean | undefined;
  extra?: Extra | undefined;
}

export interface UserMessage {
  role: "user";
  content: UserPart[];
  name?: string | undefined;
  extra?: Extra | undefined;
}

export interface AssistantMessage {
  role: "assistant";
  /** The named agent that has made it; absent for the default one, and for what a client sent. */
  agent?: string | undefined;
  content: AssistantPart[];
  name?: string | undefined;
  origin?: Origin | undefined;
  stop?: StopReason | undefined;
  usage?: Usage | undefined;
  extra?: Extra | undefined;
}

export interface ToolResultMessage {
  role: "tool";
  callId: string;
  /** The tool's name where the door gives it, or once history repair has found it. */
  name?: string | undefined;
  content: ResultPart[];
  failed?: boolean | undefined;
  /** Content from outside; see {@link Tool.outside}. Models get it marked as data. */
  outside?: boolean | undefined;
  extra?: Extra | undefined;
}

export type Message = SystemMessage | UserMessage | AssistantMessage | ToolResultMessage;

export function text(value: string): TextPart {
  return { type: "text", text: value };
}

/** The text parts of a message, joined without a separator. */
export function textOf(message: { content: readonly Part[] }): string {
  let out = "";
  for (const part of message.content) if (part.type === "text") out += part.text;
  return out;
}

export function callsOf(message: AssistantMessage): CallPart[] {
  return message.content.filter((part) => part.type === "call");
}

/** Adds two counts. `trimmedMessages` is of the run, not of the call, so the larger one stays. */
export function addUsage(a: Usage, b: Usage): Usage {
  const sum = (x?: number, y?: number) =>
    x === undefined && y === undefined ? undefined : (x ?? 0) + (y ?? 0);
  return {
    input: a.input + b.input,
    output: a.output + b.output,
    cacheRead: sum(a.cacheRead, b.cacheRead),
    cacheWrite: sum(a.cacheWrite, b.cacheWrite),
    reasoning: sum(a.reasoning, b.reasoning),
    trimmedMessages:
      a.trimmedMessages === undefined && b.trimmedMessages === undefined
        ? undefined
        : Math.max(a.trimmedMessages ?? 0, b.trimmedMessages ?? 0),
    extra: b.extra ?? a.extra,
  };
}
