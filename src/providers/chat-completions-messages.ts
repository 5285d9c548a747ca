/** Messages of the core -> messages of chat completions, in the dialect of the server that is to read them. */
import type {
  AssistantMessage,
  CallPart,
  Extra,
  FilePart,
  ImagePart,
  Message,
  Part,
  TextPart,
  ToolResultMessage,
} from "../core/message.ts";
import { AppError } from "../errors.ts";

export type Wire = Record<string, unknown>;

/** In what the servers that speak chat completions differ. */
export interface ChatDialect {
  provider: "openai" | "groq";
  /** For error sentences. */
  name: string;
  /** The vendor's own service, and not a compatible server behind a configured base URL. */
  official: boolean;
  /** Knows the `developer` role and the `refusal` field. */
  developer: boolean;
  /** Takes free-text tools. */
  customTools: boolean;
  /** Takes `file` and `input_audio` parts. */
  files: boolean;
  /** The field in which reasoning without a seal goes back; null where the server takes none. */
  reasoningField: "reasoning" | "reasoning_content" | null;
  /** The output limit's field. */
  maxTokensField: "max_tokens" | "max_completion_tokens";
  /** Takes `top_k`. */
  topK: boolean;
}

/** Stands between the parts of one system prompt. */
const SYSTEM_JOINT = "\n\n";
const JOINT = "\n";

export function writeMessages(system: TextPart[], messages: Message[], dialect: ChatDialect): Wire[] {
  const out: Wire[] = [];
  if (system.length > 0) out.push({ role: "system", content: systemContent(system) });
  const turn = messages.findLastIndex((message) => message.role === "user");
  /** Parts that a tool returned and a tool message cannot hold: they wait for the turn's last result. */
  let media: Wire[] = [];
  messages.forEach((message, index) => {
    const at = `messages[${index}]`;
    if (media.length > 0 && message.role !== "tool" && message.role !== "user") {
      out.push({ role: "user", content: media });
      media = [];
    }
    switch (message.role) {
      case "system": {
        const role = message.developer && dialect.developer ? "developer" : "system";
        out.push(merge({ role, content: systemContent(message.content) }, message.extra));
        break;
      }
      case "user": {
        let content = writeContent(message.content, at, dialect, JOINT);
        if (media.length > 0) {
          // Some chat templates refuse two user messages in a row.
          content = [
            ...media,
            ...(typeof content === "string" ? [{ type: "text", text: content }] : content),
          ];
          media = [];
        }
        const wire: Wire = { role: "user", content };
        if (message.name !== undefined) wire.name = message.name;
        out.push(merge(wire, message.extra));
        break;
      }
      case "assistant":
        out.push(writeAssistant(message, dialect, index > turn));
        break;
      case "tool":
        out.push(writeResult(message, at, dialect, media));
        break;
    }
  });
  if (media.length > 0) out.push({ role: "user", content: media });
  return out;
}

/** Own fields of the family, over what the core wrote: they stand at the level of the wire object itself. */
export function merge(wire: Wire, extra: Extra | undefined): Wire {
  return extra?.family === "openai-chat" ? Object.assign(wire, extra.fields) : wire;
}

function systemContent(parts: TextPart[]): string | Wire[] {
  if (parts.some((part) => part.extra?.family === "openai-chat")) return parts.map(writeText);
  return parts.map((part) => part.text).join(SYSTEM_JOINT);
}

/** One string where that can say it all: the form that every compatible server reads. */
function writeContent(
  parts: readonly Part[],
  at: string,
  dialect: ChatDialect,
  joint: string,
): string | Wire[] {
  const plain = (part: Part) => part.type === "text" && part.extra?.family !== "openai-chat";
  if (parts.every(plain)) return parts.map((part) => (part as TextPart).text).join(joint);
  const out: Wire[] = [];
  parts.forEach((part, index) => {
    const wire = writePart(part, `${at}.content[${index}]`, dialect);
    if (wire) out.push(wire);
  });
  return out;
}

function writeText(part: TextPart): Wire {
  return merge({ type: "text", text: part.text }, part.extra);
}

function writePart(part: Part, at: string, dialect: ChatDialect): Wire | undefined {
  switch (part.type) {
    case "text":
      return writeText(part);
    case "image":
      return writeImage(part, at, dialect);
    case "file":
      return writeFile(part, at, dialect);
    case "raw":
      return part.family === "openai-chat" ? part.block : undefined;
    default:
      return undefined;
  }
}

function writeImage(part: ImagePart, at: string, dialect: ChatDialect): Wire {
  const { source } = part;
  if (source.kind === "id")
    throw unsupported(
      at,
      `${dialect.name} takes no image by file id here. Send the image itself or its URL.`,
    );
  const url = source.kind === "url" ? source.url : `data:${source.mediaType};base64,${source.data}`;
  const image: Wire = { url };
  if (part.detail !== undefined) image.detail = part.detail;
  return merge({ type: "image_url", image_url: image }, part.extra);
}

const AUDIO_FORMATS: Record<string, string> = {
  "audio/mpeg": "mp3",
  "audio/x-wav": "wav",
  "audio/wave": "wav",
  "audio/vnd.wave": "wav",
  "audio/mp4": "m4a",
  "audio/pcm": "pcm16",
};

function writeFile(part: FilePart, at: string, dialect: ChatDialect): Wire {
  const { source, mediaType } = part;
  if (source.kind === "data" && isText(mediaType)) return { type: "text", text: fileText(part, source.data) };
  if (!dialect.files)
    throw unsupported(at, `${dialect.name} takes no files (${mediaType}). Send their text instead.`);
  if (source.kind === "url")
    throw unsupported(
      at,
      `${dialect.name} takes no file by URL on this interface. Send its bytes in base64.`,
    );
  if (source.kind === "id") {
    if (source.family !== "openai-chat")
      throw unsupported(
        at,
        `${dialect.name} does not know the file ${source.id}: it was given to another provider.`,
      );
    return merge({ type: "file", file: { file_id: source.id } }, part.extra);
  }
  if (mediaType.startsWith("audio/")) {
    const format = AUDIO_FORMATS[mediaType] ?? mediaType.slice(6);
    return merge({ type: "input_audio", input_audio: { data: source.data, format } }, part.extra);
  }
  const file = {
    filename: part.name ?? (mediaType === "application/pdf" ? "document.pdf" : "file"),
    file_data: `data:${mediaType};base64,${source.data}`,
  };
  return merge({ type: "file", file }, part.extra);
}

function isText(mediaType: string): boolean {
  return mediaType.startsWith("text/") || mediaType === "application/json";
}

/** Every model reads text, while only some servers open a text file. */
function fileText(part: FilePart, data: string): string {
  const bytes = Uint8Array.from(atob(data), (char) => char.charCodeAt(0));
  const content = new TextDecoder().decode(bytes);
  return part.name === undefined ? content : `${part.name}:\n${content}`;
}

/** `current`: the message belongs to the tool turn that is still going on. */
function writeAssistant(message: AssistantMessage, dialect: ChatDialect, current: boolean): Wire {
  let content = "";
  let refusal = "";
  let reasoning = "";
  let reasoningField: string | null = dialect.reasoningField;
  const details: unknown[] = [];
  const calls: Wire[] = [];
  for (const part of message.content) {
    switch (part.type) {
      case "text":
        content += part.text;
        break;
      case "refusal":
        refusal += part.text;
        break;
      case "call":
        calls.push(writeCall(part, dialect));
        break;
      case "reasoning": {
        reasoning += part.text;
        const seal = readSeal(part.seal);
        if (typeof seal === "string") reasoningField = seal;
        else if (seal) details.push(...seal);
        break;
      }
      case "image":
      case "file":
        // No assistant message holds one here, and without any word of it the history would not make sense.
        content += `[${part.type}]`;
        break;
    }
  }
  const wire: Wire = { role: "assistant", content: content === "" && calls.length > 0 ? null : content };
  if (refusal !== "" && dialect.developer) {
    wire.refusal = refusal;
    if (content === "") wire.content = null;
  } else if (refusal !== "") wire.content = content + refusal;
  if (message.name !== undefined) wire.name = message.name;
  if (calls.length > 0) wire.tool_calls = calls;
  if (details.length > 0) wire.reasoning_details = details;
  // Models that think between calls need their thoughts of this turn; those of turns before are dropped by all.
  else if (current && reasoning !== "" && dialect.reasoningField !== null && reasoningField !== null)
    wire[reasoningField] = reasoning;
  return merge(wire, message.extra);
}

/**
 * A seal of this dialect: the JSON of the `reasoning_details` that came (OpenRouter's form), or the name of the field
 * in which plain reasoning came and goes back.
 */
function readSeal(seal: string | undefined): unknown[] | string | undefined {
  if (seal === "reasoning" || seal === "reasoning_content") return seal;
  if (seal?.startsWith("[") !== true) return undefined;
  try {
    const details: unknown = JSON.parse(seal);
    return Array.isArray(details) ? details : undefined;
  } catch {
    return undefined;
  }
}

function writeCall(part: CallPart, dialect: ChatDialect): Wire {
  if (part.freeform && dialect.customTools)
    return merge({ id: part.id, type: "custom", custom: { name: part.name, input: part.args } }, part.extra);
  const args = part.freeform ? JSON.stringify({ input: part.args }) : safeArgs(part.args, dialect);
  return merge({ id: part.id, type: "function", function: { name: part.name, arguments: args } }, part.extra);
}

/** Servers other than OpenAI's parse the arguments of the history, and refuse the whole request where they are broken. */
function safeArgs(args: string, dialect: ChatDialect): string {
  if (args === "") return "{}";
  if (dialect.official && dialect.provider === "openai") return args;
  try {
    const value: unknown = JSON.parse(args);
    if (typeof value === "object" && value !== null) return args;
  } catch {}
  return JSON.stringify({ invalid_arguments: args });
}

function writeResult(message: ToolResultMessage, at: string, dialect: ChatDialect, media: Wire[]): Wire {
  const texts: TextPart[] = [];
  const others: Wire[] = [];
  for (const [index, part] of message.content.entries()) {
    const wire = part.type === "text" ? part : writePart(part, `${at}.content[${index}]`, dialect);
    if (wire?.type === "text") texts.push(wire as TextPart);
    else if (wire) others.push(wire as Wire);
  }
  if (others.length > 0) {
    const call = message.name === undefined ? message.callId : `${message.name} (${message.callId})`;
    media.push({ type: "text", text: `The result of the call ${call} also holds:` }, ...others);
    if (texts.length === 0) texts.push({ type: "text", text: "The result is in the next user message." });
  }
  const content = writeContent(texts, at, dialect, JOINT);
  return merge({ role: "tool", tool_call_id: message.callId, content }, message.extra);
}

export function unsupported(param: string, message: string): AppError {
  return new AppError("unsupported_field", message, { param });
}
