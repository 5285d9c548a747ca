/** What a server's tool answered, as the model reads it: text and pictures in bounded size, the rest named. */
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { type ResultPart, text } from "../core/message.ts";
import type { ToolOutput } from "../core/tool.ts";
import { cut, plainText } from "./plain-text.ts";

/** Characters of text in one result: a part of any model's window. */
const TEXT_LIMIT = 100_000;
/** Pictures in one result, and characters of one's base64: what providers take. */
const IMAGES_LIMIT = 20;
const IMAGE_LIMIT = 7_000_000;
/** The kinds of picture that every provider shows its models. */
const IMAGE_TYPES = new Set(["image/png", "image/jpeg", "image/webp", "image/gif"]);
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
/** Parts of one result. */
const PARTS_LIMIT = 1_000;

/** Characters of what a server calls a resource. */
const LABEL_LIMIT = 500;

type Block = CallToolResult["content"][number];
type Picture = { mediaType: string; data: string };

export function toOutput(result: CallToolResult): ToolOutput {
  const writer = new Writer();
  for (const block of result.content.slice(0, PARTS_LIMIT)) writer.add(pieceOf(block));
  if (result.content.length > PARTS_LIMIT)
    writer.add(note(`${result.content.length - PARTS_LIMIT} more parts are left out`));
  // Servers send structured content as text, too; where one does not, this is all there is.
  if (writer.isEmpty && result.structuredContent !== undefined)
    writer.add(JSON.stringify(result.structuredContent));
  if (writer.isEmpty) writer.add(note("the tool answered with nothing"));
  return { content: writer.end(), ...(result.isError ? { failed: true } : {}) };
}

/** The result with a sentence of ours behind it: it counts as a failure. */
export function withProblem(output: ToolOutput, sentence: string): ToolOutput {
  return { content: [...output.content, text(note(sentence))], failed: true };
}

function pieceOf(block: Block): string | Picture {
  switch (block.type) {
    case "text":
      return block.text;
    case "image":
      return pictureOf(block.mimeType, block.data);
    case "audio":
      return unshown("audio", block.mimeType, block.data);
    case "resource_link": {
      const { uri, mimeType, description } = block;
      const more = [mimeType, description].filter((part) => part !== undefined).map(label);
      return note([`link to ${label(block.title ?? block.name)}: ${label(uri)}`, ...more].join(", "));
    }
    case "resource": {
      const { resource } = block;
      if ("text" in resource) return `[${label(resource.uri)}]\n${resource.text}`;
      const mediaType = resource.mimeType ?? "of unknown type";
      return IMAGE_TYPES.has(mediaType)
        ? pictureOf(mediaType, resource.blob)
        : unshown(label(resource.uri), mediaType, resource.blob);
    }
  }
}

function pictureOf(mediaType: string, data: string): string | Picture {
  const fits = data !== "" && data.length <= IMAGE_LIMIT && BASE64.test(data);
  return fits && IMAGE_TYPES.has(mediaType) ? { mediaType, data } : unshown("image", mediaType, data);
}

function unshown(what: string, mediaType: string, base64: string): string {
  const size = Math.ceil((base64.length * 3) / 4 / 1024);
  return note(`${what}, ${label(mediaType)}, ${size} KiB: it cannot be shown here`);
}

function note(sentence: string): string {
  return `[${sentence}]`;
}

function label(value: string): string {
  return plainText(value, LABEL_LIMIT);
}

class Writer {
  readonly #parts: ResultPart[] = [];
  #room = TEXT_LIMIT;
  #left = 0;
  #pictures = 0;

  get isEmpty(): boolean {
    return this.#parts.length === 0 && this.#left === 0;
  }

  add(piece: string | Picture): void {
    if (typeof piece === "string") this.#text(piece);
    else if (this.#pictures === IMAGES_LIMIT) this.#text(note("one picture too many is left out"));
    else {
      this.#pictures += 1;
      this.#parts.push({ type: "image", source: { kind: "data", ...piece } });
    }
  }

  end(): ResultPart[] {
    if (this.#left > 0) this.#parts.push(text(note(`${this.#left} more characters are left out`)));
    return this.#parts;
  }

  #text(value: string): void {
    // NUL ends a text column in the database and is refused by some model APIs.
    const shown = cut(value.includes("\0") ? value.replaceAll("\0", "\ufffd") : value, this.#room);
    this.#left += value.length - shown.length;
    this.#room -= shown.length;
    if (shown !== "") this.#parts.push(text(shown));
  }
}
