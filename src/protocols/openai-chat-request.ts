/** A chat completions request -> the core's request. What the core does not model rides along in `extra`. */
import type { ModelRequest, ResponseFormat, Settings } from "../core/model.ts";
import type { Decoded } from "./codec.ts";
import { decodeHistory } from "./openai-chat-history.ts";
import { extraOf, FAMILY } from "./openai-chat-parts.ts";
import type { ChatRequest } from "./openai-chat-schema.ts";
import { decodeTooling, refuseUnsupported } from "./openai-chat-tools.ts";
import { invalid } from "./problem.ts";

/** What the reply has to know of its request. */
export interface Echo {
  /** `stream_options.include_usage`. */
  includeUsage: boolean;
  /** The client speaks the deprecated `functions`: calls are shown as `function_call`. */
  legacyFunctions: boolean;
}

/** Takes what the schema has accepted. Throws AppError with the field at fault in `param`. */
export function decodeChat(body: ChatRequest, context: { headers: Headers }): Decoded {
  refuseUnsupported(body);
  const { legacy, ...tooling } = decodeTooling(body);
  const history = decodeHistory(body.messages, context.headers.has("x-session-id"));
  const request: ModelRequest = {
    model: body.model,
    ...history,
    ...tooling,
    settings: decodeSettings(body),
  };
  const format = decodeFormat(body.response_format);
  if (format) request.format = format;
  if (body.reasoning_effort) request.reasoning = { effort: body.reasoning_effort };
  const user = body.user ?? body.safety_identifier;
  if (user) request.user = user;
  const extra = extraOf(body, MODELLED);
  if (extra) request.extra = extra;
  keepFormatFields(body, request);
  const echo: Echo = {
    includeUsage: body.stream_options?.include_usage === true,
    legacyFunctions: legacy,
  };
  return { request, stream: body.stream === true, choices: body.n ?? 1, carriesSeals: false, echo };
}

/**
 * Fields that have a place in {@link ModelRequest}. `safety_identifier` and `max_completion_tokens` go along besides:
 * an upstream of the same family learns from them which word its client uses.
 */
const MODELLED = {
  model: true,
  messages: true,
  stream: true,
  stream_options: true,
  n: true,
  max_tokens: true,
  temperature: true,
  top_p: true,
  top_k: true,
  stop: true,
  seed: true,
  presence_penalty: true,
  frequency_penalty: true,
  logit_bias: true,
  logprobs: true,
  top_logprobs: true,
  response_format: true,
  reasoning_effort: true,
  tools: true,
  tool_choice: true,
  parallel_tool_calls: true,
  functions: true,
  function_call: true,
  user: true,
} as const;

function decodeSettings(body: ChatRequest): Settings {
  const settings: Settings = {};
  const { max_tokens, max_completion_tokens, stop, top_logprobs } = body;
  if (typeof max_tokens === "number" && typeof max_completion_tokens === "number")
    if (max_tokens !== max_completion_tokens)
      throw invalid(
        "max_tokens",
        "max_tokens and max_completion_tokens differ. Send max_completion_tokens alone.",
      );
  const maxTokens = max_completion_tokens ?? max_tokens;
  if (typeof maxTokens === "number") settings.maxTokens = maxTokens;
  if (typeof body.temperature === "number") settings.temperature = body.temperature;
  if (typeof body.top_p === "number") settings.topP = body.top_p;
  if (typeof body.top_k === "number") settings.topK = body.top_k;
  if (typeof stop === "string") settings.stop = [stop];
  else if (stop && stop.length > 0) settings.stop = stop;
  if (typeof body.seed === "number") settings.seed = body.seed;
  if (typeof body.presence_penalty === "number") settings.presencePenalty = body.presence_penalty;
  if (typeof body.frequency_penalty === "number") settings.frequencyPenalty = body.frequency_penalty;
  if (body.logit_bias) settings.logitBias = body.logit_bias;
  if (body.logprobs) settings.logprobs = typeof top_logprobs === "number" ? { top: top_logprobs } : {};
  else if (top_logprobs)
    throw invalid("top_logprobs", "top_logprobs needs logprobs to be true in the same request.");
  return settings;
}

function decodeFormat(wire: ChatRequest["response_format"]): ResponseFormat | undefined {
  if (!wire) return undefined;
  if (wire.type === "text") return { type: "text" };
  if (wire.type === "json_object") return { type: "json" };
  const { name, schema, strict, description } = wire.json_schema;
  const format: ResponseFormat = { type: "schema", name, schema: schema ?? {} };
  if (typeof strict === "boolean") format.strict = strict;
  if (typeof description === "string") format.description = description;
  return format;
}

const FORMAT = { type: true, json_schema: true } as const;
const JSON_SCHEMA = { name: true, schema: true, strict: true, description: true } as const;

/** llama.cpp, for one, takes a `schema` beside `json_object`: such a format goes along whole. */
function keepFormatFields(body: ChatRequest, request: ModelRequest): void {
  const wire = body.response_format;
  if (!wire) return;
  const own =
    "json_schema" in wire ? extraOf(wire, FORMAT, "json_schema", JSON_SCHEMA) : extraOf(wire, FORMAT);
  if (!own) return;
  request.extra ??= { family: FAMILY, fields: {} };
  request.extra.fields.response_format = wire;
}
