/** Parts of a representation: `range`, `if-range` and `if-none-match` as RFC 9110 says (sections 13 and 14). */
import { AppError } from "../errors.ts";

/** `end` is behind the last byte. */
export interface ByteRange {
  start: number;
  end: number;
}

export interface Representation {
  /** Bytes. */
  size: number;
  /** With its quotes. */
  etag: string;
  headers: Record<string, string>;
  /** The bytes of a range; asked for once, and only when the response is read. */
  body(range: ByteRange): ReadableStream<Uint8Array>;
}

/** 200, 206 or 304. Throws AppError 416 for a range that lies behind the end. */
export function respond(request: Request, representation: Representation): Response {
  const { size, etag } = representation;
  const headers: Record<string, string> = { ...representation.headers, etag, "accept-ranges": "bytes" };
  if (matches(request.headers.get("if-none-match"), etag))
    return new Response(null, { status: 304, headers });
  const range = rangeOf(request.headers, size, etag);
  const { start, end } = range ?? { start: 0, end: size };
  headers["content-length"] = String(end - start);
  if (range) headers["content-range"] = `bytes ${start}-${end - 1}/${size}`;
  const body = request.method === "HEAD" || start === end ? null : representation.body({ start, end });
  return new Response(body, { status: range ? 206 : 200, headers });
}

/** Whether a list of tags, or `*`, names this one. Weak tags compare as strong ones do: for reading that is enough. */
export function matches(list: string | null, etag: string): boolean {
  if (list === null) return false;
  return list.split(",").some((tag) => tag.trim() === "*" || tag.trim().replace(/^W\//, "") === etag);
}

/** undefined: the whole. Several ranges, other units and malformed ones are ignored, as the RFC permits. */
function rangeOf(headers: Headers, size: number, etag: string): ByteRange | undefined {
  const range = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(headers.get("range")?.trim() ?? "");
  if (!range || (range[1] === "" && range[2] === "")) return undefined;
  const condition = headers.get("if-range");
  if (condition !== null && condition.trim() !== etag) return undefined;
  const [, first = "", last = ""] = range;
  if (first !== "" && last !== "" && Number(last) < Number(first)) return undefined;
  const start = first === "" ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === "" || last === "" ? size : Math.min(size, Number(last) + 1);
  if (start < end) return { start, end };
  throw new AppError(
    "invalid_request",
    `range: it has ${size} bytes, and '${headers.get("range")?.slice(0, 60)}' asks for others.`,
    { status: 416, param: "range", details: { size } },
  );
}
