/**
 * The history -> Gemini's `contents`.
 *
 * Neighbours of the same role become one content. The results of one turn's calls stay a content of their own, since
 * Gemini counts them against the calls before it.
 */
import type { Content, FunctionResponsePart, Part } from "@google/genai/web";
import type {
  AssistantMessage,
  CallPart,
  FilePart,
  ImagePart,
  Message,
  Source,
  SystemMessage,
  TextPart,
  ToolResultMessage,
  UserMessage,
} from "../core/message.ts";
import { textOf } from "../core/message.ts";
import { AppError } from "../errors.ts";
import { isThirdGeneration } from "./gemini-model.ts";

/**
 * From the third generation on, the first call of a step must be signed. This one stands in for calls that another
 * provider made; Gemini documents it for that use.
 */
const STAND_IN_SIGNATURE = "skip_thought_signature_validator";
/** Gemini wants a conversation to begin with the user. */
const BEGINNING = "Continue.";
/** Media that a function response may hold itself, in the third generation. */
const RESPONSE_MEDIA = new Set(["image/png", "image/jpeg", "image/webp", "application/pdf"]);
/** Media types of addresses, by extension: Gemini reads an address by the type that the request gives. */
const MEDIA_TYPES: Record<string, string> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  webp: "image/webp",
  gif: "image/gif",
  heic: "image/heic",
};

export function toContents(model: string, messages: readonly Message[]): Content[] {
  return new Writer(isThirdGeneration(model)).write(messages);
}

type Neighbours = "user" | "model" | "results";

class Writer {
  readonly #third: boolean;
  readonly #contents: Content[] = [];
  /** The parts of the last content, and what it is. */
  #parts: Part[] = [];
  #last: Neighbours | null = null;
  /** Function responses are matched by name too, which not every door repeats in the result. */
  readonly #names = new Map<string, string>();

  constructor(third: boolean) {
    this.#third = third;
  }

  write(messages: readonly Message[]): Content[] {
    for (const message of messages) {
      if (message.role === "user") this.#user(message);
      else if (message.role === "assistant") this.#assistant(message);
      else if (message.role === "tool") this.#result(message);
      else this.#system(message);
    }
    if (this.#contents[0]?.role === "model")
      this.#contents.unshift({ role: "user", parts: [{ text: BEGINNING }] });
    if (this.#third) for (const content of this.#contents) signFirstCall(content);
    return this.#contents;
  }

  #add(kind: Neighbours, parts: Part[]): void {
    if (parts.length === 0) return;
    if (this.#last !== kind) {
      this.#last = kind;
      this.#parts = [];
      this.#contents.push({ role: kind === "model" ? "model" : "user", parts: this.#parts });
    }
    for (const part of parts) this.#parts.push(part);
  }

  /** Gemini has one system instruction and no system turn: it stays at its place, marked as what it is. */
  #system(message: SystemMessage): void {
    const text = textOf(message);
    if (text !== "") this.#add("user", [{ text: `<system>\n${text}\n</system>` }]);
  }

  #user(message: UserMessage): void {
    const parts: Part[] = [];
    for (const part of message.content) {
      if (part.type === "text") pushText(parts, part);
      else if (part.type !== "raw") parts.push(toMedia(part));
      else if (part.family === "gemini") parts.push(part.block);
    }
    this.#add("user", parts);
  }

  #assistant(message: AssistantMessage): void {
    const parts: Part[] = [];
    for (const part of message.content) {
      switch (part.type) {
        case "text":
          pushText(parts, part);
          break;
        case "reasoning":
          // Without its signature a thought is of no use to Gemini.
          if (part.seal !== undefined)
            parts.push({ text: part.text, thought: true, thoughtSignature: part.seal });
          break;
        case "call":
          parts.push(this.#call(part));
          break;
        case "refusal":
          if (part.text !== "") parts.push({ text: part.text });
          break;
        case "raw":
          if (part.family === "gemini") parts.push(part.block);
          break;
        default:
          parts.push(toMedia(part));
      }
    }
    this.#add("model", parts);
  }

  #call(part: CallPart): Part {
    this.#names.set(part.id, part.name);
    const functionCall = { id: part.id, name: part.name, args: toArguments(part) };
    return part.seal === undefined ? { functionCall } : { functionCall, thoughtSignature: part.seal };
  }

  #result(message: ToolResultMessage): void {
    const inside: FunctionResponsePart[] = [];
    const beside: Part[] = [];
    for (const part of message.content) {
      if (part.type === "image" || part.type === "file") {
        const media = toMedia(part);
        const inline = media.inlineData;
        if (this.#third && inline && RESPONSE_MEDIA.has(inline.mimeType ?? ""))
          inside.push({ inlineData: inline });
        else beside.push(media);
      } else if (part.type === "raw" && part.family === "gemini") beside.push(part.block);
    }
    const text = textOf(message);
    const functionResponse: NonNullable<Part["functionResponse"]> = {
      id: message.callId,
      name: message.name ?? this.#names.get(message.callId) ?? message.callId,
      response: message.failed ? { error: text } : { output: text },
    };
    if (inside.length > 0) functionResponse.parts = inside;
    this.#add("results", [{ functionResponse }, ...beside]);
  }
}

function signFirstCall(content: Content): void {
  const first = content.parts?.find((part) => part.functionCall);
  if (first && first.thoughtSignature === undefined) first.thoughtSignature = STAND_IN_SIGNATURE;
}

/** Gemini refuses empty text, unless it is there to carry a signature. */
function pushText(parts: Part[], part: TextPart): void {
  if (part.seal !== undefined) parts.push({ text: part.text, thoughtSignature: part.seal });
  else if (part.text !== "") parts.push({ text: part.text });
}

/** Arguments have to be an object. Anything else the model wrote is shown to it under a name, so that it can see what it did. */
function toArguments(part: CallPart): Record<string, unknown> {
  if (part.freeform) return { input: part.args };
  if (part.args.trim() === "") return {};
  let value: unknown = part.args;
  try {
    value = JSON.parse(part.args);
  } catch {
    // Not JSON: kept as text.
  }
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : { arguments: value };
}

function toMedia(part: ImagePart | FilePart): Part {
  const source: Source = part.source;
  switch (source.kind) {
    case "data": {
      const mimeType = part.type === "file" ? part.mediaType : source.mediaType;
      return { inlineData: { mimeType: readable(mimeType), data: source.data } };
    }
    case "url": {
      const mimeType = part.type === "file" ? readable(part.mediaType) : mediaTypeOf(source.url);
      return { fileData: mimeType ? { fileUri: source.url, mimeType } : { fileUri: source.url } };
    }
    case "id":
      if (source.family === "gemini") return { fileData: { fileUri: source.id } };
      throw new AppError(
        "unsupported_field",
        `The file id ${source.id} belongs to another provider, and Gemini cannot read it. Send the file's bytes or a public https URL.`,
        { param: "messages" },
      );
  }
}

/** Gemini reads plain text and refuses most of its special kinds. */
function readable(mediaType: string): string {
  const bare = mediaType.split(";", 1)[0]?.trim().toLowerCase() ?? "";
  return bare.startsWith("text/") || bare === "application/json" || bare === "application/xml"
    ? "text/plain"
    : bare;
}

function mediaTypeOf(url: string): string | undefined {
  const path = url.split(/[?#]/, 1)[0] ?? "";
  return MEDIA_TYPES[path.slice(path.lastIndexOf(".") + 1).toLowerCase()];
}
