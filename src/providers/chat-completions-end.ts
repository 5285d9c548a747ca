/** How a chat completion ends: its stop reason, its usage, or the error that stands in its stream. */
import { FAMILY, type StopReason, type Usage } from "../core/message.ts";
import { AppError } from "../errors.ts";

export function stopOf(finish: string | undefined, calls: boolean, refused: boolean): StopReason {
  switch (finish) {
    case "length":
    case "max_tokens":
      return "length";
    case "content_filter":
      return "content-filter";
    default:
      // Several servers say `stop`, and some `tool_calls`, whatever they have sent.
      return calls ? "tool-calls" : refused ? "refusal" : "stop";
  }
}

/** The total is the sum of the others and is not kept; the details are taken apart below. */
const READ = new Set(["prompt_tokens", "completion_tokens", "total_tokens"]);
const DETAILS: Record<string, readonly string[]> = {
  prompt_tokens_details: ["cached_tokens", "cache_write_tokens"],
  completion_tokens_details: ["reasoning_tokens"],
};

/** Zeros where the server does not count. */
export function readUsage(wire: unknown): Usage {
  if (typeof wire !== "object" || wire === null) return { input: 0, output: 0 };
  const said = wire as Record<string, unknown>;
  const input = (said.prompt_tokens_details ?? {}) as Record<string, unknown>;
  const output = (said.completion_tokens_details ?? {}) as Record<string, unknown>;
  const usage: Usage = { input: count(said.prompt_tokens) ?? 0, output: count(said.completion_tokens) ?? 0 };
  usage.cacheRead = count(input.cached_tokens) ?? count(said.prompt_cache_hit_tokens);
  usage.cacheWrite = count(input.cache_write_tokens);
  usage.reasoning = count(output.reasoning_tokens) ?? count(said.reasoning_tokens);
  const fields = otherCounts(said);
  if (fields) usage.extra = { family: FAMILY.openai, fields };
  return usage;
}

function otherCounts(said: Record<string, unknown>): Record<string, unknown> | undefined {
  const fields: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(said)) {
    if (READ.has(name) || value === null) continue;
    const known = DETAILS[name];
    if (!known) fields[name] = value;
    else {
      const rest = Object.entries(value as object).filter(
        ([key, item]) => !known.includes(key) && item !== null,
      );
      if (rest.length > 0) fields[name] = Object.fromEntries(rest);
    }
  }
  return Object.keys(fields).length > 0 ? fields : undefined;
}

function count(value: unknown): number | undefined {
  return typeof value === "number" && value >= 0 ? value : undefined;
}

/** Statuses of the words that stand where a status line can no longer be sent. */
const STATUS_OF_WORD = new Map<string, number>([
  ["invalid_request_error", 400],
  ["context_length_exceeded", 400],
  ["tool_use_failed", 400],
  ["authentication_error", 401],
  ["invalid_api_key", 401],
  ["permission_error", 403],
  ["not_found_error", 404],
  ["request_too_large", 413],
  ["rate_limit_error", 429],
  ["rate_limit_exceeded", 429],
  ["tokens", 429],
  ["requests", 429],
  ["insufficient_quota", 429],
  ["api_error", 500],
  ["server_error", 500],
  ["internal_server_error", 500],
  ["service_unavailable", 503],
  ["overloaded_error", 529],
  ["timeout", 504],
]);

/** `{"error": {message, type, code, param}}` or `{"error": "a sentence"}`, and the same without its wrapper. */
export function chunkError(chunk: { error?: unknown }): AppError {
  const inner = chunk.error ?? chunk;
  const error = (typeof inner === "object" ? inner : { message: inner }) as Record<string, unknown>;
  const message = typeof error.message === "string" ? error.message : JSON.stringify(inner);
  const word = (value: unknown) => (typeof value === "string" && value !== "" ? value : undefined);
  const type = word(error.type);
  const code = word(error.code);
  return new AppError("upstream_error", message || "The upstream failed in the middle of its reply.", {
    status:
      statusIn(error.status_code) ??
      statusIn(error.code) ??
      statusIn(error.status) ??
      statusOf(code) ??
      statusOf(type) ??
      502,
    upstreamType: type,
    upstreamCode: code,
    param: word(error.param),
  });
}

function statusOf(word: string | undefined): number | undefined {
  return word === undefined ? undefined : STATUS_OF_WORD.get(word);
}

function statusIn(value: unknown): number | undefined {
  const status = typeof value === "string" ? Number(value) : value;
  return typeof status === "number" && status >= 400 && status <= 599 ? status : undefined;
}
