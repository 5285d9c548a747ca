/** Content blocks of the Messages API -> parts of the core. Written by hand: it runs over every block of every request. */
import type { Extra, FilePart, ImagePart, RawPart, ResultPart, TextPart } from "../core/message.ts";
import { AppError } from "../errors.ts";
import { checkBase64, checkImage } from "./image-bytes.ts";

export type Block = Record<string, unknown>;

const FAMILY = "anthropic-messages";

/** Bytes put into one String.fromCharCode call. */
const CHUNK = 8192;

/** The real service writes paths with dots and puts them in front of the sentence. */
export function invalid(path: string, sentence: string): AppError {
  return new AppError("invalid_request", `${path}: ${sentence}`, { param: path });
}

export function isObject(value: unknown): value is Block {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What a wire object has beyond the keys that the core models. Absent and null are the same to this protocol. */
export function extraOf(wire: Block, known: ReadonlySet<string>): Extra | undefined {
  let fields: Block | undefined;
  for (const key in wire) {
    const value = wire[key];
    if (value === null || value === undefined || known.has(key)) continue;
    fields ??= {};
    fields[key] = value;
  }
  return fields && { family: FAMILY, fields };
}

/** Adds what is beyond the core to a part, and no empty key where there is nothing. */
export function withExtra<Part extends { extra?: Extra | undefined }>(
  part: Part,
  extra: Extra | undefined,
): Part {
  if (extra) part.extra = extra;
  return part;
}

export function stringAt(wire: Block, key: string, path: string): string {
  const value = wire[key];
  if (typeof value !== "string") throw invalid(`${path}.${key}`, `A string is required${got(value)}.`);
  return value;
}

export function nameAt(wire: Block, key: string, path: string): string {
  const value = stringAt(wire, key, path);
  if (value === "") throw invalid(`${path}.${key}`, "It must not be empty.");
  return value;
}

/** `, got null`, for the end of a sentence. */
export function got(value: unknown): string {
  if (value === undefined) return "";
  if (value === null) return ", got null";
  return `, got ${Array.isArray(value) ? "an array" : typeof value === "object" ? "an object" : typeof value}`;
}

export function blockAt(value: unknown, path: string): Block & { type: string } {
  if (!isObject(value)) throw invalid(path, `A content block is an object with a \`type\`${got(value)}.`);
  if (typeof value.type !== "string" || value.type === "")
    throw invalid(`${path}.type`, "Every content block needs a type, such as `text`.");
  return value as Block & { type: string };
}

const TEXT_KEYS = new Set(["type", "text"]);
const IMAGE_KEYS = new Set(["type", "source"]);
const DOCUMENT_KEYS = new Set(["type", "source", "title"]);

export function textPart(block: Block, path: string): TextPart {
  return withExtra<TextPart>(
    { type: "text", text: stringAt(block, "text", path) },
    extraOf(block, TEXT_KEYS),
  );
}

export function rawPart(block: Block): RawPart {
  return { type: "raw", family: FAMILY, block };
}

/**
 * A block that may stand in a user message, in an assistant message and in a tool result alike. Types that are newer
 * than this file come back as {@link RawPart}; only the caller knows which types are misplaced.
 */
export function contentPart(block: Block & { type: string }, path: string): ResultPart {
  switch (block.type) {
    case "text":
      return textPart(block, path);
    case "image":
      return imagePart(block, path);
    case "document":
      return documentPart(block, path);
    default:
      return rawPart(block);
  }
}

function sourceAt(block: Block, path: string): Block {
  const source = block.source;
  if (!isObject(source))
    throw invalid(`${path}.source`, `An object with a \`type\` is required${got(source)}.`);
  return source;
}

function urlAt(source: Block, path: string): string {
  const url = stringAt(source, "url", path);
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url))
    throw invalid(`${path}.url`, "An http or https URL is required.");
  return url;
}

function imagePart(block: Block, path: string): ImagePart {
  const source = sourceAt(block, path);
  const at = `${path}.source`;
  const extra = extraOf(block, IMAGE_KEYS);
  switch (source.type) {
    case "base64": {
      const mediaType = stringAt(source, "media_type", at);
      const data = stringAt(source, "data", at);
      const problem = checkImage(mediaType, data);
      if (problem) throw invalid(`${at}.data`, problem);
      return withExtra<ImagePart>({ type: "image", source: { kind: "data", mediaType, data } }, extra);
    }
    case "url":
      return withExtra<ImagePart>({ type: "image", source: { kind: "url", url: urlAt(source, at) } }, extra);
    case "file":
      return withExtra<ImagePart>(
        { type: "image", source: { kind: "id", family: FAMILY, id: nameAt(source, "file_id", at) } },
        extra,
      );
    default:
      throw invalid(`${at}.type`, "The source of an image is `base64`, `url` or `file`.");
  }
}

/** `content` sources with pictures inside are kept whole: no other family has them. */
function documentPart(block: Block, path: string): FilePart | RawPart {
  const source = sourceAt(block, path);
  const at = `${path}.source`;
  const extra = extraOf(block, DOCUMENT_KEYS);
  const file = (kind: FilePart["source"], mediaType: string): FilePart => {
    const part: FilePart = { type: "file", source: kind, mediaType };
    if (typeof block.title === "string") part.name = block.title;
    return withExtra(part, extra);
  };
  switch (source.type) {
    case "base64": {
      const mediaType = stringAt(source, "media_type", at);
      const data = stringAt(source, "data", at);
      const problem = checkBase64(data);
      if (problem) throw invalid(`${at}.data`, problem);
      return file({ kind: "data", mediaType, data }, mediaType);
    }
    case "text":
      return file(plainText(stringAt(source, "data", at)), "text/plain");
    case "url":
      return file({ kind: "url", url: urlAt(source, at) }, "application/pdf");
    case "file":
      return file({ kind: "id", family: FAMILY, id: nameAt(source, "file_id", at) }, "application/pdf");
    case "content": {
      const text = contentText(source.content, at);
      if (text === null) return rawPart(block);
      const part = file(plainText(text), "text/plain");
      // The family gets the source as it came: its blocks are what citations count.
      part.extra = { family: FAMILY, fields: { ...part.extra?.fields, source } };
      return part;
    }
    default:
      throw invalid(
        `${at}.type`,
        "The source of a document is `base64`, `text`, `url`, `content` or `file`.",
      );
  }
}

/** The text of a `content` source; null when it holds more than text. */
function contentText(content: unknown, path: string): string | null {
  if (typeof content === "string") return content;
  if (!Array.isArray(content))
    throw invalid(`${path}.content`, `A string or an array of blocks is required${got(content)}.`);
  let out = "";
  let whole = true;
  for (let i = 0; i < content.length; i++) {
    const at = `${path}.content.${i}`;
    const part = contentPart(blockAt(content[i], at), at);
    if (part.type === "text") out += i === 0 ? part.text : `\n\n${part.text}`;
    else whole = false;
  }
  return whole ? out : null;
}

function plainText(text: string): FilePart["source"] {
  const bytes = new TextEncoder().encode(text);
  let binary = "";
  for (let i = 0; i < bytes.length; i += CHUNK)
    binary += String.fromCharCode.apply(null, bytes.subarray(i, i + CHUNK) as unknown as number[]);
  return { kind: "data", mediaType: "text/plain", data: btoa(binary) };
}
