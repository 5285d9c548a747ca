/** Request bodies: JSON from bytes that nobody has looked at yet (A3). Counted, timed and measured while they arrive. */
import { AppError } from "../errors.ts";
import { jsonFault } from "./json-fault.ts";

export interface BodyLimits {
  /** Bytes. */
  limit: number;
  /** Milliseconds of head start; after it the body has to have come at {@link SLOWEST} on average. */
  timeoutMs: number;
}

/** The least speed of a body, so that a client that drips bytes does not hold a connection for ever. Bytes per millisecond. */
const SLOWEST = 16;
/** Arrays and objects inside one another. */
const DEPTH_LIMIT = 64;
/** A body that announces at most this many bytes is read in one piece. */
const ONE_PIECE = 256 * 1024;

/**
 * The JSON value of a request's body, without any `__proto__` member. Throws AppError: 415 for another content type,
 * 413, 408, and 400 for nothing, broken UTF-8, too deep nesting or broken JSON. An oversized or slow body is not read on.
 */
export async function readJson(request: Request, limits: BodyLimits): Promise<unknown> {
  checkHeaders(request.headers);
  const announced = announcedLength(request.headers);
  if (announced !== null && announced > limits.limit) throw tooLarge(limits.limit);
  // The HTTP parser sees to it that no more than the announced bytes arrive.
  const bytes =
    announced !== null && announced <= ONE_PIECE
      ? await readWhole(request, announced, limits)
      : await readJsonPieces(request, limits);
  if (bytes.length === 0) throw new AppError("invalid_request", "The body is empty: send a JSON object.");
  return parse(bytes);
}

/**
 * The bytes of a body of another kind, uncompressed. Throws AppError 415, 413 and 408 as {@link readJson} does; the content
 * type is the caller's to look at.
 */
export function readBytes(request: Request, limits: BodyLimits): Promise<Uint8Array> {
  return readPieces(request, limits, () => {});
}

function checkHeaders(headers: Headers): void {
  const type = headers.get("content-type");
  if (type !== "application/json" && !isJson(type))
    throw new AppError(
      "unsupported_media_type",
      `The content type has to be application/json in UTF-8, ${type === null ? "and the request has none" : `not '${type.slice(0, 100)}'`}.`,
    );
  checkEncoding(headers);
}

function checkEncoding(headers: Headers): void {
  const encoding = headers.get("content-encoding");
  if (encoding !== null && encoding.toLowerCase() !== "identity")
    throw new AppError(
      "unsupported_media_type",
      `A body with content-encoding '${encoding.slice(0, 40)}' is not read: send it uncompressed.`,
    );
}

function isJson(type: string | null): boolean {
  const [essence = "", ...parameters] = (type ?? "").toLowerCase().split(";");
  const name = essence.trim();
  if (name !== "application/json" && !(name.startsWith("application/") && name.endsWith("+json")))
    return false;
  return parameters.every((parameter) => {
    const [key, value] = parameter.split("=");
    return key?.trim() !== "charset" || /^"?utf-?8"?$/.test(value?.trim() ?? "");
  });
}

function announcedLength(headers: Headers): number | null {
  const length = headers.get("content-length");
  return length !== null && /^\d{1,15}$/.test(length) ? Number(length) : null;
}

async function readWhole(request: Request, announced: number, limits: BodyLimits): Promise<Uint8Array> {
  if (announced === 0) return new Uint8Array(0);
  const body = request.arrayBuffer();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(tooSlow()), limits.timeoutMs + announced / SLOWEST);
  });
  try {
    const bytes = new Uint8Array(await Promise.race([body, late]));
    if (bytes.length > limits.limit) throw tooLarge(limits.limit);
    new DepthCheck().push(bytes);
    return bytes;
  } catch (error) {
    // The loser of the race ends when the connection does.
    body.catch(() => {});
    throw ended(error);
  } finally {
    clearTimeout(timer);
  }
}

function readJsonPieces(request: Request, limits: BodyLimits): Promise<Uint8Array> {
  const depth = new DepthCheck();
  return readPieces(request, limits, (bytes) => depth.push(bytes));
}

async function readPieces(
  request: Request,
  limits: BodyLimits,
  look: (bytes: Uint8Array) => void,
): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of streamBytes(request, limits)) {
    look(piece);
    length += piece.length;
    pieces.push(piece);
  }
  return join(pieces, length);
}

/** The pieces of a body as they arrive, for bodies that are never whole. Throws AppError 415, 413 and 408 as {@link readJson} does. */
export async function* streamBytes(
  request: Request,
  limits: BodyLimits,
): AsyncGenerator<Uint8Array, void, void> {
  checkEncoding(request.headers);
  const announced = announcedLength(request.headers);
  if (announced !== null && announced > limits.limit) throw tooLarge(limits.limit);
  if (request.body === null) return;
  const reader: ReadableStreamDefaultReader<Uint8Array> = request.body.getReader();
  const clock = new BodyClock(limits.timeoutMs);
  let whole = false;
  try {
    for (;;) {
      const { done, value } = await Promise.race([reader.read(), clock.late]);
      whole = done;
      if (done) return;
      clock.received += value.length;
      if (clock.received > limits.limit) throw tooLarge(limits.limit);
      yield value;
    }
  } catch (error) {
    throw ended(error);
  } finally {
    clock.stop();
    // Nobody wants the rest of it.
    if (!whole) reader.cancel().catch(() => {});
  }
}

function join(pieces: Uint8Array[], length: number): Uint8Array {
  if (pieces.length === 1) return pieces[0] as Uint8Array;
  const out = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    out.set(piece, at);
    at += piece.length;
  }
  return out;
}

/** Rejects `late` when the bytes received fall behind the least speed. One timer, set anew only when it fires too early. */
class BodyClock {
  received = 0;
  readonly late: Promise<never>;
  readonly #start = performance.now();
  readonly #headStart: number;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(headStartMs: number) {
    this.#headStart = headStartMs;
    this.late = new Promise((_, reject) => this.#arm(reject));
    this.late.catch(() => {});
  }

  #arm(reject: (error: AppError) => void): void {
    const left = this.#start + this.#headStart + this.received / SLOWEST - performance.now();
    if (left <= 0) reject(tooSlow());
    else this.#timer = setTimeout(() => this.#arm(reject), left);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}

/** Nesting, counted on bytes as they come: brackets inside strings do not count, and UTF-8 has no other bytes like them. */
class DepthCheck {
  #depth = 0;
  #inString = false;
  #escaped = false;

  push(bytes: Uint8Array): void {
    let i = 0;
    while (i < bytes.length) {
      if (this.#inString) {
        i = this.#string(bytes, i);
        continue;
      }
      const c = bytes[i++];
      if (c === 0x22 /* " */) this.#inString = true;
      else if (c === 0x7b /* { */ || c === 0x5b /* [ */) {
        this.#depth += 1;
        if (this.#depth > DEPTH_LIMIT)
          throw new AppError("invalid_request", `The body is nested deeper than ${DEPTH_LIMIT} levels.`);
      } else if (c === 0x7d /* } */ || c === 0x5d /* ] */) this.#depth -= 1;
    }
  }

  /** Jumps from quote to quote, since strings are most of a large body. Returns where to go on. */
  #string(bytes: Uint8Array, from: number): number {
    if (this.#escaped) {
      this.#escaped = false;
      return from + 1;
    }
    const quote = bytes.indexOf(0x22, from);
    const end = quote === -1 ? bytes.length : quote;
    let slashes = 0;
    while (end - slashes > from && bytes[end - slashes - 1] === 0x5c) slashes += 1;
    const escaped = slashes % 2 === 1;
    if (quote === -1) this.#escaped = escaped;
    else this.#inString = escaped;
    return end + 1;
  }
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

function parse(bytes: Uint8Array): unknown {
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch (cause) {
    throw new AppError("invalid_request", "The body is not valid UTF-8.", { cause });
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The engines' own messages quote the body, which may hold a key.
    throw new AppError("invalid_request", `The body is not valid JSON: ${jsonFault(text)}.`);
  }
  // Written with an escape the name is as dangerous as without.
  if (text.includes(PROTO) || text.includes("\\u005")) dropProto(value);
  return value;
}

const PROTO = "__proto__";

function dropProto(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  if (Object.hasOwn(value, PROTO)) Reflect.deleteProperty(value, PROTO);
  for (const inner of Object.values(value)) dropProto(inner);
}

function tooLarge(limit: number): AppError {
  const size = limit >= 1024 * 1024 ? `${+(limit / 1024 / 1024).toFixed(1)} MiB` : `${limit} bytes`;
  return new AppError("payload_too_large", `The body is larger than ${size}, the limit of this route.`);
}

function tooSlow(): AppError {
  return new AppError("request_timeout", "The body came too slowly. Send the request again.");
}

/** A body that breaks off is the client going away. */
function ended(error: unknown): AppError {
  if (error instanceof AppError) return error;
  return new AppError("cancelled", "The connection was closed before the body was complete.", {
    cause: error,
  });
}
