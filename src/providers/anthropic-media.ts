/** Pictures and documents as Anthropic's content blocks. */
import type {
  ContentBlockParam,
  DocumentBlockParam,
  ImageBlockParam,
} from "@anthropic-ai/sdk/resources/messages";
import type { Extra, Family, FilePart, ImagePart, Source } from "../core/message.ts";
import { AppError } from "../errors.ts";

export const FAMILY: Family = "anthropic-messages";

/** What a client of the same family sent and the core has no words for; where both have one, it is the whole of it. */
export function own(extra: Extra | undefined): Record<string, unknown> | undefined {
  return extra?.family === FAMILY ? extra.fields : undefined;
}

export function imageBlock(part: ImagePart): ImageBlockParam {
  return {
    type: "image",
    source: sourceOf(part.source) as unknown as ImageBlockParam["source"],
    ...own(part.extra),
  };
}

export function fileBlock(part: FilePart): ContentBlockParam {
  const { mediaType, source } = part;
  if (mediaType.startsWith("image/")) return imageBlock({ type: "image", source, extra: part.extra });
  if (mediaType.startsWith("audio/") || mediaType.startsWith("video/")) {
    throw new AppError(
      "unsupported_field",
      `Anthropic's models take no ${mediaType} input. Send text, images or documents, or choose another provider.`,
      { param: "messages" },
    );
  }
  const head = part.name === undefined ? {} : { title: part.name };
  const written: DocumentBlockParam["source"] =
    source.kind === "data" && isText(mediaType)
      ? { type: "text", media_type: "text/plain", data: decodeText(source.data) }
      : (sourceOf(source) as unknown as DocumentBlockParam["source"]);
  return { type: "document", source: written, ...head, ...own(part.extra) };
}

function sourceOf(source: Source): Record<string, unknown> {
  switch (source.kind) {
    case "data":
      return { type: "base64", media_type: source.mediaType, data: source.data };
    case "url":
      return { type: "url", url: source.url };
    case "id":
      if (source.family === FAMILY) return { type: "file", file_id: source.id };
      throw new AppError(
        "unsupported_field",
        `The file id ${source.id} belongs to another provider, and Anthropic cannot read it. Send the file's bytes.`,
        { param: "messages" },
      );
  }
}

/** Media types whose bytes are text, so that they go as a plain-text document. */
function isText(mediaType: string): boolean {
  return (
    mediaType.startsWith("text/") ||
    mediaType.endsWith("+json") ||
    mediaType.endsWith("+xml") ||
    TEXT_TYPES.has(mediaType)
  );
}
const TEXT_TYPES = new Set([
  "application/json",
  "application/xml",
  "application/yaml",
  "application/javascript",
  "application/x-yaml",
]);

function decodeText(base64: string): string {
  let binary: string;
  try {
    binary = atob(base64);
  } catch (cause) {
    throw new AppError("invalid_request", "A text file in the messages is not valid base64.", {
      param: "messages",
      cause,
    });
  }
  return new TextDecoder().decode(Uint8Array.from(binary, (c) => c.charCodeAt(0)));
}
