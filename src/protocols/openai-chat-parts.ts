/** Content parts of chat completions -> parts of the core. Runs over every part of every request. */
import type { Extra, FilePart, ImagePart, Source, UserPart } from "../core/message.ts";
import { checkBase64, sniff } from "./image-bytes.ts";
import { invalid } from "./problem.ts";

export const FAMILY = "openai-chat";

type Wire = Record<string, unknown>;
type Known = Record<string, true>;

/**
 * What a wire object has beyond its known keys; undefined, and nothing allocated, for the usual one that has nothing.
 * The fields stand at the level of the wire object itself, so that whoever writes it again merges them over it.
 */
export function extraOf(wire: Wire, known: Known, nested?: string, nestedKnown?: Known): Extra | undefined {
  let fields: Wire | undefined;
  for (const key in wire) {
    const value = wire[key];
    if (value === null || value === undefined || Object.hasOwn(known, key)) continue;
    fields ??= {};
    fields[key] = value;
  }
  if (nested !== undefined && nestedKnown !== undefined) {
    const inner = wire[nested] as Wire;
    // A nested object with a field of its own goes along whole: it replaces the one that is written from the core.
    if (extraOf(inner, nestedKnown)) {
      fields ??= {};
      fields[nested] = inner;
    }
  }
  return fields && { family: FAMILY, fields };
}

const TEXT: Known = { type: true, text: true };
const IMAGE: Known = { type: true, image_url: true };
const IMAGE_URL: Known = { url: true, detail: true };
const AUDIO: Known = { type: true, input_audio: true };
const INPUT_AUDIO: Known = { data: true, format: true };
const FILE: Known = { type: true, file: true };
const FILE_BODY: Known = { file_data: true, file_id: true, filename: true };

/** A part that the schema has accepted; types that only some servers understand come back raw. */
export function decodePart(part: Wire, at: string): UserPart {
  switch (part.type) {
    case "text": {
      const extra = extraOf(part, TEXT);
      const value = part.text as string;
      return extra ? { type: "text", text: value, extra } : { type: "text", text: value };
    }
    case "image_url":
      return decodeImage(part as never, at);
    case "input_audio":
      return decodeAudio(part as never, at);
    case "file":
      return decodeFile(part as never, at);
    default:
      return { type: "raw", family: FAMILY, block: part };
  }
}

function decodeImage(part: Wire & { image_url: { url: string; detail?: string | null } }, at: string) {
  const { url, detail } = part.image_url;
  const source = imageSource(url, `${at}.image_url.url`);
  const extra = extraOf(part, IMAGE, "image_url", IMAGE_URL);
  const image: ImagePart = { type: "image", source };
  if (typeof detail === "string") image.detail = detail;
  if (extra) image.extra = extra;
  return image;
}

/** Images that a provider may take and whose first bytes are not looked at here. */
const UNCHECKED_IMAGES = ["image/heic", "image/heif", "image/avif", "image/bmp", "image/tiff"];

function imageSource(url: string, param: string): Source {
  if (!isDataUrl(url)) return urlSource(url, param);
  const parsed = parseDataUrl(url);
  if (!parsed?.base64)
    throw invalid(param, `${param} has to be an image as data:image/png;base64,… or an http(s) URL.`);
  if (!parsed.mediaType.startsWith("image/"))
    throw invalid(
      param,
      `${param} has to be an image, but its media type is ${JSON.stringify(parsed.mediaType)}.`,
    );
  const data = base64Of(parsed.data, param);
  // The bytes decide: clients label JPEG as PNG, and some providers refuse what other providers overlook.
  const mediaType =
    sniff(data) ?? (UNCHECKED_IMAGES.includes(parsed.mediaType) ? parsed.mediaType : undefined);
  if (!mediaType) throw invalid(param, `${param} is not an image: send PNG, JPEG, GIF or WebP.`);
  return { kind: "data", mediaType, data };
}

/** Media types of the formats that are not called after theirs. */
const AUDIO_TYPES: Record<string, string> = { mp3: "audio/mpeg", pcm16: "audio/pcm", m4a: "audio/mp4" };

function decodeAudio(part: Wire & { input_audio: { data: string; format: string } }, at: string) {
  const { data, format } = part.input_audio;
  const param = `${at}.input_audio.data`;
  const mediaType = AUDIO_TYPES[format] ?? `audio/${format}`;
  const sound: FilePart = {
    type: "file",
    source: { kind: "data", mediaType, data: base64Of(data, param) },
    mediaType,
  };
  const extra = extraOf(part, AUDIO, "input_audio", INPUT_AUDIO);
  if (extra) sound.extra = extra;
  return sound;
}

interface WireFile {
  file_data?: string | null;
  file_id?: string | null;
  filename?: string | null;
}

const UNKNOWN_TYPE = "application/octet-stream";

/** Media types by file name, for clients that send none. */
const FILE_TYPES: Record<string, string> = {
  pdf: "application/pdf",
  txt: "text/plain",
  md: "text/markdown",
  csv: "text/csv",
  html: "text/html",
  json: "application/json",
  docx: "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
  xlsx: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
  pptx: "application/vnd.openxmlformats-officedocument.presentationml.presentation",
};

function typeByName(name: string | null | undefined): string {
  return FILE_TYPES[name?.slice(name.lastIndexOf(".") + 1).toLowerCase() ?? ""] ?? UNKNOWN_TYPE;
}

function decodeFile(part: Wire & { file: WireFile }, at: string): FilePart {
  const { file_data, file_id, filename } = part.file;
  const source = fileSource(part.file, `${at}.file`);
  const mediaType = source.kind === "data" ? source.mediaType : typeByName(filename ?? file_data ?? file_id);
  const file: FilePart = { type: "file", source, mediaType };
  if (typeof filename === "string") file.name = filename;
  const extra = extraOf(part, FILE, "file", FILE_BODY);
  if (extra) file.extra = extra;
  return file;
}

function fileSource(file: WireFile, at: string): Source {
  const { file_data, file_id, filename } = file;
  if (typeof file_data !== "string") {
    if (typeof file_id === "string" && file_id !== "") return { kind: "id", family: FAMILY, id: file_id };
    throw invalid(at, `${at} has to hold file_data (a data URL) or file_id.`);
  }
  const param = `${at}.file_data`;
  if (/^https?:/i.test(file_data)) return urlSource(file_data, param);
  if (!isDataUrl(file_data))
    return { kind: "data", mediaType: typeByName(filename), data: base64Of(file_data, param) };
  const parsed = parseDataUrl(file_data);
  const data = parsed && (parsed.base64 ? base64Of(parsed.data, param) : percentToBase64(parsed.data));
  if (!parsed || data === null)
    throw invalid(param, `${param} is not a well-formed data URL, such as data:application/pdf;base64,….`);
  return { kind: "data", mediaType: parsed.mediaType || typeByName(filename), data };
}

function urlSource(url: string, param: string): Source {
  if (/^https?:\/\//i.test(url) && URL.canParse(url)) return { kind: "url", url };
  throw invalid(param, `${param} has to be a data URL in base64 or an http(s) URL.`);
}

function isDataUrl(url: string): boolean {
  return url.charCodeAt(4) === 58 /* : */ && url.slice(0, 5).toLowerCase() === "data:";
}

/** Characters in front of the comma: a media type with its parameters is never longer. */
const DATA_HEADER_LIMIT = 512;

/** RFC 2397. `mediaType` in lower case without parameters, or empty; null without a comma. */
function parseDataUrl(url: string): { mediaType: string; base64: boolean; data: string } | null {
  const comma = url.slice(0, DATA_HEADER_LIMIT).indexOf(",");
  if (comma === -1) return null;
  const words = url.slice(5, comma).split(";");
  return {
    mediaType: words[0]!.trim().toLowerCase(),
    base64: words.length > 1 && words.at(-1)!.trim().toLowerCase() === "base64",
    data: url.slice(comma + 1),
  };
}

/** Plain base64, as every provider takes it: without the line breaks and the URL alphabet that some clients use. */
export function base64Of(data: string, param: string): string {
  if (checkBase64(data) !== null)
    throw invalid(param, `${param} ${data === "" ? "is empty; it has to be" : "is not valid"} base64.`);
  let plain = data;
  if (plain.includes("\n") || plain.includes("\r")) plain = plain.replace(/[\r\n]/g, "");
  if (plain.includes("-") || plain.includes("_")) plain = plain.replaceAll("-", "+").replaceAll("_", "/");
  const short = plain.length & 3;
  return short === 0 ? plain : plain + "=".repeat(4 - short);
}

/** null when the escapes are broken. */
function percentToBase64(text: string): string | null {
  try {
    let bytes = "";
    for (const byte of new TextEncoder().encode(decodeURIComponent(text))) bytes += String.fromCharCode(byte);
    return btoa(bytes);
  } catch {
    return null;
  }
}
