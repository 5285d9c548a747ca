/** What an address answers with, as text for a model: pages as Markdown, documents as their text, other text as it is. */

import { cleanText } from "../../core/clean-text.ts";
import { imageType } from "../../core/image-format.ts";
import type { ReadHtml, ReadPdf } from "../../core/platform.ts";
import { AppError } from "../../errors.ts";
import { count, isBinary } from "../result.ts";
import { decodeText } from "./charset.ts";

export interface WebText {
  /** Where it came from, redirects followed. */
  url: string;
  title: string;
  byline: string;
  site: string;
  date: string;
  text: string;
  /** What a reader has to know of it, in square brackets. */
  notes: string[];
}

export interface WebImage {
  url: string;
  mediaType: string;
  bytes: Uint8Array;
}

export interface Raw {
  url: string;
  /** The header as it came. */
  contentType: string;
  bytes: Uint8Array;
}

/** Characters of a text that are kept. */
const MAX_TEXT_CHARS = 3_000_000;
const MAX_PDF_PAGES = 500;
const TEXT_TYPES =
  /^(?:text\/.+|application\/(?:json|xml|javascript|ecmascript|x-?javascript|yaml|x-yaml|toml|x-sh|sql|graphql|x-ndjson|rtf)|.+\+(?:json|xml|yaml))$/;
const HTML_TYPES = /^(?:text\/html|application\/xhtml\+xml)$/;
const HTML_START = /^<(?:!doctype\s+html|html|head|body)\b/i;
/** Characters in which comments may stand before the first tag. */
const START_CHARS = 16_384;
/** Types that servers give to what they do not know. */
const UNKNOWN_TYPES = /^(?:|application\/octet-stream|binary\/octet-stream)$/;

/** What the platform reads; each is absent where it cannot be. */
export interface Readers {
  html?: ReadHtml | undefined;
  pdf?: ReadPdf | undefined;
  signal: AbortSignal;
}

/** Throws AppError `invalid_request` for content that has no text, with a sentence that says what it is. */
export async function readContent(raw: Raw, readers: Readers): Promise<WebText | WebImage> {
  const { url, bytes, contentType } = raw;
  const mediaType = (contentType.split(";")[0] ?? "").trim().toLowerCase();
  const image = imageType(bytes);
  if (image !== null) return { url, mediaType: image, bytes };
  if (startsWith(bytes, "%PDF-")) return await readDocument(raw, readers);
  if (mediaType === "application/pdf")
    throw new AppError("invalid_request", `${url} says that it is a PDF, but its bytes are none.`);
  if (HTML_TYPES.test(mediaType)) return await readHtml(url, decodeText(bytes, contentType), readers);
  const isUnknown = UNKNOWN_TYPES.test(mediaType);
  if ((isUnknown || TEXT_TYPES.test(mediaType)) && isText(bytes, contentType)) {
    const text = decodeText(bytes, contentType);
    return isUnknown && beginsAsHtml(text) ? await readHtml(url, text, readers) : plain(url, text);
  }
  throw new AppError(
    "invalid_request",
    `${url} is no text: ${mediaType || "an unknown type"}, ${count(bytes.length, "byte")}. This tool reads pages, text, PDFs and images.`,
  );
}

function startsWith(bytes: Uint8Array, ascii: string): boolean {
  return [...ascii].every((character, i) => bytes[i] === character.charCodeAt(0));
}

/** Only UTF-16 has zeros in its text. */
function isText(bytes: Uint8Array, contentType: string): boolean {
  const [first = 0, second = 0] = bytes;
  return !isBinary(bytes) || first + second === 0xff + 0xfe || /charset\s*=\s*"?utf-?16/i.test(contentType);
}

/** By its first tag, comments before it aside. */
function beginsAsHtml(text: string): boolean {
  let start = text.slice(0, START_CHARS).trimStart();
  while (start.startsWith("<!--")) {
    const end = start.indexOf("-->");
    if (end === -1) return false;
    start = start.slice(end + 3).trimStart();
  }
  return HTML_START.test(start.slice(0, 100));
}

function plain(url: string, text: string): WebText {
  return { url, title: "", byline: "", site: "", date: "", ...cutText(cleanText(text), []) };
}

function cutText(text: string, notes: string[]): Pick<WebText, "text" | "notes"> {
  if (text.length <= MAX_TEXT_CHARS) return { text, notes };
  return {
    text: text.slice(0, MAX_TEXT_CHARS),
    notes: [...notes, `[only the first ${count(MAX_TEXT_CHARS, "character")} are here]`],
  };
}

async function readHtml(url: string, html: string, { html: read, signal }: Readers): Promise<WebText> {
  if (read === undefined)
    throw new AppError(
      "invalid_request",
      `${url} is a web page, and none can be read where this service runs.`,
    );
  const { text, cut, ...facts } = await read(html, { url, signal });
  const notes: string[] = [];
  if (cut) notes.push("[the page is larger than what is read at once: its end is not here]");
  if (text === "") notes.push("[the page has no text: it may need a browser that runs its scripts]");
  return { url, ...facts, ...cutText(text, notes) };
}

async function readDocument(raw: Raw, { pdf: readPdf, signal }: Readers): Promise<WebText> {
  const { url, bytes } = raw;
  if (readPdf === undefined) {
    throw new AppError(
      "invalid_request",
      `${url} is a PDF of ${count(bytes.length, "byte")}, and PDFs cannot be read where this service runs. Look for the same content as a web page.`,
    );
  }
  const { pages, texts, title } = await readPdf(bytes, {
    maxPages: MAX_PDF_PAGES,
    maxChars: MAX_TEXT_CHARS,
    signal,
  });
  const text = texts
    .map((page, i) => `[PDF page ${i + 1} of ${pages}]\n\n${cleanText(page).trim()}`)
    .join("\n\n");
  const notes: string[] = [];
  if (texts.length < pages) notes.push(`[only the first ${texts.length} of ${pages} PDF pages are here]`);
  if (texts.every((page) => page.trim() === ""))
    notes.push("[no text in it: its pages are probably scanned pictures]");
  return {
    url,
    title: cleanText(title).slice(0, 300),
    byline: "",
    site: "",
    date: "",
    ...cutText(text, notes),
  };
}
