/** What an upstream, its SDK or the network says went wrong, in our words: its own status and sentence, without the key. */
import type { ProviderName } from "../core/message.ts";
import { AppError } from "../errors.ts";

export const VENDOR_NAMES: Record<ProviderName, string> = {
  anthropic: "Anthropic",
  groq: "Groq",
  openai: "OpenAI",
  gemini: "Gemini",
};

/** Characters of an upstream's own words that go into a message. */
export const QUOTE_LIMIT = 500;

/** The shape that the errors of all four SDKs share as far as they have it. */
interface SdkError {
  status?: number;
  message?: string;
  headers?: { get?(name: string): string | null } | Record<string, string>;
  error?: unknown;
  name?: string;
}

/**
 * What an SDK threw, or an upstream said in its stream, as our error: the upstream's own status and sentence, without
 * the key. Own errors (AppError) pass unchanged but for the key.
 */
export function upstreamError(error: unknown, provider: ProviderName, key: string): AppError {
  // Our own, in the SDK's wrapping for what its `fetch` throws.
  if (error instanceof Error && error.cause instanceof AppError && !(error instanceof AppError))
    return upstreamError(error.cause, provider, key);
  if (error instanceof AppError)
    return new AppError(error.code, redact(error.message, key), {
      ...error,
      upstreamType: redactWord(error.upstreamType, key),
      upstreamCode: redactWord(error.upstreamCode, key),
      param: redactWord(error.param, key),
      details: redactDetails(error.details, key),
      cause: error,
    });
  const sdk = (error ?? {}) as SdkError;
  if (typeof sdk.status === "number" && sdk.status >= 300) {
    const body = bodyOf(sdk.error);
    const said = body.message ?? sdk.message ?? `status ${sdk.status}`;
    return new AppError("upstream_error", shorten(redact(said, key)), {
      status: sdk.status >= 400 && sdk.status <= 599 ? sdk.status : 502,
      // Providers and gateways quote a key that they refuse, and not always in the sentence alone.
      upstreamType: redactWord(body.type, key),
      upstreamCode: redactWord(body.code, key),
      param: redactWord(body.param, key),
      retryAfter: retryAfterOf(sdk.headers),
      cause: error,
    });
  }
  const reason = causeOf(error);
  return new AppError(
    "upstream_unreachable",
    redact(
      `${VENDOR_NAMES[provider]} could not be reached${reason ? ` (${reason})` : ""}. Check the network and the base URL configured for it.`,
      key,
    ),
    { cause: error },
  );
}

/** The innermost error object of a JSON error body: `{error: {message, type, code, param}}`, with or without its wrapper. */
function bodyOf(body: unknown): { message?: string; type?: string; code?: string; param?: string } {
  if (typeof body === "string") return { message: body };
  if (typeof body !== "object" || body === null) return {};
  const outer = body as Record<string, unknown>;
  const inner =
    typeof outer.error === "object" && outer.error !== null
      ? (outer.error as Record<string, unknown>)
      : outer;
  const word = (value: unknown) => (typeof value === "string" && value.length > 0 ? value : undefined);
  return {
    message: word(inner.message) ?? word(outer.error),
    type: word(inner.type) ?? word(inner.status),
    code: word(inner.code),
    param: word(inner.param),
  };
}

/** Seconds from `retry-after-ms` or `retry-after` (a number or an HTTP date); undefined when there is none. */
export function retryAfterOf(headers: SdkError["headers"], now = Date.now()): number | undefined {
  const get = (name: string): string | null | undefined =>
    headers && typeof headers.get === "function"
      ? headers.get(name)
      : (headers as Record<string, string> | undefined)?.[name];
  const ms = Number.parseFloat(get("retry-after-ms") ?? "");
  if (Number.isFinite(ms) && ms >= 0) return ms / 1000;
  const value = get("retry-after");
  if (!value) return undefined;
  const seconds = Number.parseFloat(value);
  if (Number.isFinite(seconds) && seconds >= 0) return seconds;
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, (date - now) / 1000);
}

function causeOf(error: unknown): string | undefined {
  for (let e = error as { code?: unknown; cause?: unknown } | undefined, depth = 0; e && depth < 5; depth++) {
    if (typeof e.code === "string") return e.code;
    e = e.cause as typeof e;
  }
  return undefined;
}

export function redact(message: string, key: string): string {
  return key.length >= 4 ? message.replaceAll(key, "[key]") : message;
}

function redactWord(word: string | undefined, key: string): string | undefined {
  return word === undefined ? undefined : redact(word, key);
}

function redactDetails(details: AppError["details"], key: string): AppError["details"] {
  const text = details === undefined ? "" : JSON.stringify(details);
  return text.includes(key) ? JSON.parse(redact(text, key)) : details;
}

/** An error page is not a sentence: its start is enough to know it by. */
function shorten(message: string): string {
  return message.length > 4 * QUOTE_LIMIT ? `${message.slice(0, QUOTE_LIMIT)}…` : message;
}

/** Parses one event's JSON. Throws AppError when it is none: the stream is then beyond repair. */
export function parseEvent<T>(data: string, provider: ProviderName): T {
  try {
    return JSON.parse(data) as T;
  } catch (cause) {
    throw new AppError("upstream_unreachable", `${VENDOR_NAMES[provider]} sent an event that is not JSON.`, {
      cause,
    });
  }
}
