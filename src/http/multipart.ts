/** Forms with files (RFC 7578), from a body that has arrived whole. Its parts are views of it: nothing is copied. */
import { AppError } from "../errors.ts";

export interface FormPart {
  name: string;
  /** Absent: a field of text. */
  filename?: string | undefined;
  bytes: Uint8Array;
}

/** A form with more of them is not for us. */
const PARTS_LIMIT = 20;
/** Bytes of the headers of a part. */
const HEADERS_LIMIT = 8 * 1024;
/** RFC 2046 has 70 characters; some clients write more. */
const BOUNDARY_LIMIT = 200;

const CR = 13;
const LF = 10;
const DASH = 45;

/** The boundary that a content type names. Throws AppError 415 for another type. */
export function boundaryOf(contentType: string | null): string {
  const [essence = ""] = (contentType ?? "").split(";", 1);
  if (essence.trim().toLowerCase() !== "multipart/form-data")
    throw new AppError(
      "unsupported_media_type",
      `The content type has to be multipart/form-data with the image in the field 'file', ${contentType === null ? "and the request has none" : `not '${contentType.slice(0, 100)}'`}.`,
    );
  const boundary = /;\s*boundary\s*=\s*(?:"([^"]+)"|([^\s";]+))/i.exec(contentType ?? "");
  const value = boundary?.[1] ?? boundary?.[2];
  if (value !== undefined && value.length <= BOUNDARY_LIMIT && /^[\x20-\x7e]+$/.test(value)) return value;
  throw malformed("the content type names no boundary");
}

/** Throws AppError `invalid_request` for what is no form. */
export function parseForm(body: Uint8Array, boundary: string): FormPart[] {
  const mark = new TextEncoder().encode(`--${boundary}`);
  const parts: FormPart[] = [];
  let at = delimiter(body, mark, 0);
  if (at === -1) throw malformed("its boundary is not in it");
  for (;;) {
    at += mark.length;
    if (body[at] === DASH && body[at + 1] === DASH) return parts;
    at = lineEnd(body, at);
    const end = delimiter(body, mark, at);
    if (end === -1) throw malformed("it ends before its last boundary");
    if (parts.length === PARTS_LIMIT) throw malformed(`it has more than ${PARTS_LIMIT} parts`);
    parts.push(partOf(body.subarray(at, end - 2)));
    at = end;
  }
}

/** Where the next boundary stands at the beginning of a line, from `from` on; -1 for nowhere. */
function delimiter(body: Uint8Array, mark: Uint8Array, from: number): number {
  for (let at = from; at < body.length; at += 1) {
    if (body[at] !== DASH) at = body.indexOf(DASH, at);
    if (at === -1) return -1;
    const starts = at === 0 || (at >= from + 2 && body[at - 2] === CR && body[at - 1] === LF);
    if (starts && mark.every((byte, i) => body[at + i] === byte) && ends(body, at + mark.length)) return at;
  }
  return -1;
}

/** Behind a boundary there is `--`, or white space and a line end: it is not the beginning of a longer one. */
function ends(body: Uint8Array, at: number): boolean {
  return (body[at] === DASH && body[at + 1] === DASH) || body[skipBlanks(body, at)] === CR;
}

function skipBlanks(body: Uint8Array, from: number): number {
  let at = from;
  while (body[at] === 32 || body[at] === 9) at += 1;
  return at;
}

function lineEnd(body: Uint8Array, from: number): number {
  const at = skipBlanks(body, from);
  if (body[at] === CR && body[at + 1] === LF) return at + 2;
  throw malformed("a boundary has no line end behind it");
}

function partOf(part: Uint8Array): FormPart {
  const head = part.subarray(0, HEADERS_LIMIT);
  const end = endOfHeaders(head);
  if (end === -1) throw malformed("a part has no headers, or too many");
  const text = new TextDecoder().decode(head.subarray(0, end));
  const disposition = /^content-disposition:\s*form-data\s*(;.*)$/im.exec(text)?.[1];
  const name = disposition === undefined ? undefined : parameter(disposition, "name");
  if (disposition === undefined || name === undefined) throw malformed("a part does not say its name");
  return { name, filename: parameter(disposition, "filename"), bytes: part.subarray(end + 4) };
}

function endOfHeaders(bytes: Uint8Array): number {
  for (let at = bytes.indexOf(CR); at !== -1; at = bytes.indexOf(CR, at + 1))
    if (bytes[at + 1] === LF && bytes[at + 2] === CR && bytes[at + 3] === LF) return at;
  return -1;
}

function parameter(disposition: string, name: string): string | undefined {
  const found = new RegExp(`;\\s*${name}\\s*=\\s*(?:"((?:[^"\\\\]|\\\\.)*)"|([^;\\s]*))`, "i").exec(
    disposition,
  );
  return found?.[1] ?? found?.[2];
}

function malformed(why: string): AppError {
  return new AppError(
    "invalid_request",
    `The body is not a form as multipart/form-data has it: ${why}. Let your HTTP client write it, for example curl -F file=@picture.png.`,
  );
}
