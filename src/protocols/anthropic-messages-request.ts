/** The request of the Messages API: its schema, and how it becomes a request in the core's words. */
import * as z from "zod";
import type { Extra } from "../core/message.ts";
import type { ModelRequest, Settings } from "../core/model.ts";
import { findPairingFault, type PairingFault } from "../core/pairing.ts";
import { AppError } from "../errors.ts";
import { type Block, extraOf, invalid } from "./anthropic-messages-blocks.ts";
import { decodeHistory, decodeSystem, type History } from "./anthropic-messages-history.ts";
import {
  decodeFormat,
  decodeReasoning,
  decodeToolChoice,
  decodeTools,
} from "./anthropic-messages-settings.ts";
import type { Decoded } from "./codec.ts";

const BLOCK_DOC = {
  type: "object",
  required: ["type"],
  properties: {
    type: {
      type: "string",
      description:
        "`text`, `image`, `document`, `search_result`, `tool_use`, `tool_result`, `thinking`, `redacted_thinking`, or a block of a hosted tool, which only an Anthropic upstream understands",
    },
  },
} as const;

const MESSAGE_DOC = {
  type: "object",
  required: ["role"],
  properties: {
    role: { type: "string", enum: ["user", "assistant", "system"] },
    content: { anyOf: [{ type: "string" }, { type: "array", items: BLOCK_DOC }] },
  },
} as const;

const TOOL_DOC = {
  type: "object",
  description:
    "A tool of the client's (`type` absent or `custom`), or one that Anthropic defines, by its `type`",
  properties: {
    type: { type: ["string", "null"] },
    name: { type: "string" },
    description: { type: "string" },
    input_schema: { type: "object" },
    strict: { type: "boolean" },
  },
} as const;

/** Fields that a count and a message have in common. Blocks are checked by the decoder, which knows better sentences. */
const SHARED = {
  model: z.string().min(1),
  messages: z.array(z.unknown().meta(MESSAGE_DOC)).min(1),
  system: z
    .union([z.string(), z.array(z.unknown().meta(BLOCK_DOC))])
    .nullish()
    .describe("Instructions: a string or text blocks"),
  tools: z.array(z.unknown().meta(TOOL_DOC)).nullish(),
  tool_choice: z
    .looseObject({
      type: z.enum(["auto", "any", "tool", "none"]),
      name: z.string().min(1).optional(),
      disable_parallel_tool_use: z.boolean().nullish(),
    })
    .nullish(),
  thinking: z
    .looseObject({
      type: z.string().describe("`enabled`, `adaptive`, `disabled` or `between_tools`"),
      budget_tokens: z.int().nullish(),
      display: z.string().nullish().describe("`summarized` or `omitted`"),
    })
    .nullish(),
  output_config: z
    .looseObject({
      effort: z.string().nullish(),
      format: z.looseObject({ type: z.string() }).nullish(),
    })
    .nullish(),
  output_format: z
    .looseObject({ type: z.string() })
    .nullish()
    .describe("The older place of `output_config.format`"),
  thread: z
    .unknown()
    .optional()
    .describe("Refused with `thread_unsupported_request`: send the whole history"),
};

export const messagesRequest = z.looseObject({
  ...SHARED,
  max_tokens: z.int().min(1).describe("Most tokens to generate"),
  stream: z.boolean().nullish(),
  stop_sequences: z.array(z.string()).nullish(),
  temperature: z.number().nullish(),
  top_p: z.number().nullish(),
  top_k: z.int().nullish(),
  metadata: z.looseObject({ user_id: z.string().nullish() }).nullish(),
});
export type MessagesRequest = z.infer<typeof messagesRequest>;

export const countTokensRequest = z.looseObject(SHARED);
export type CountTokensRequest = z.infer<typeof countTokensRequest>;

/** What a door tells its decoder about the request besides its body. */
interface Context {
  headers: Headers;
  query: URLSearchParams;
}

/** What the encoder needs to know of the request. */
export interface MessagesEcho {
  /** The client wants no thinking text, or no thinking at all: of foreign reasoning only the seals are shown. */
  hideThinking: boolean;
}

/** Top-level fields that the core models. All others go to an upstream of the same family as they came. */
const MODELLED = new Set([
  "model",
  "messages",
  "system",
  "tools",
  "tool_choice",
  "thinking",
  "output_config",
  "output_format",
  "max_tokens",
  "stream",
  "stop_sequences",
  "temperature",
  "top_p",
  "top_k",
]);

/** Throws AppError `invalid_request`. */
export function decodeMessages(wire: MessagesRequest, context: Context): Decoded {
  const request = decodeShared(wire, context);
  const { settings } = request;
  settings.maxTokens = wire.max_tokens;
  if (typeof wire.temperature === "number") settings.temperature = wire.temperature;
  if (typeof wire.top_p === "number") settings.topP = wire.top_p;
  if (typeof wire.top_k === "number") settings.topK = wire.top_k;
  if (wire.stop_sequences && wire.stop_sequences.length > 0) settings.stop = wire.stop_sequences;
  if (wire.metadata?.user_id) request.user = wire.metadata.user_id;
  return decoded(request, wire, wire.stream === true);
}

/** `POST /v1/messages/count_tokens`. Throws AppError `invalid_request`. */
export function decodeCountTokens(wire: CountTokensRequest, context: Context): Decoded {
  return decoded(decodeShared(wire, context), wire, false);
}

function decoded(request: ModelRequest, wire: CountTokensRequest, stream: boolean): Decoded {
  const { thinking } = wire;
  const echo: MessagesEcho = {
    hideThinking: thinking?.type === "disabled" || thinking?.display === "omitted",
  };
  return { request, stream, choices: 1, carriesSeals: true, echo };
}

function decodeShared(wire: CountTokensRequest, { headers, query }: Context): ModelRequest {
  if (wire.thread !== undefined && wire.thread !== null) throw threadRefused();
  if (wire.messages.length === 0) throw invalid("messages", "At least one message is required.");
  const history = decodeHistory(wire.messages);
  checkPairing(history, headers.has("x-session-id"));
  const settings: Settings = {};
  const request: ModelRequest = {
    model: wire.model,
    system: decodeSystem(wire.system),
    messages: history.messages,
    tools: decodeTools(wire.tools ?? []),
    settings,
  };
  decodeToolChoice(wire, request);
  const lossy: Block = {};
  const reasoning = decodeReasoning(wire, lossy);
  if (reasoning) request.reasoning = reasoning;
  const format = decodeFormat(wire, lossy);
  if (format) request.format = format;
  const extra = requestExtra(wire, lossy);
  if (extra) request.extra = extra;
  request.headers = { family: "anthropic-messages", fields: passedHeaders(headers, query) };
  return request;
}

/** The SDK's tool runner reads `details` and goes on with the whole history in each request. */
function threadRefused(): AppError {
  return new AppError(
    "unsupported_field",
    "thread: Threads are not kept here. Send the full conversation without `thread`.",
    { param: "thread", details: { error_code: "thread_unsupported_request", unsupported: ["thread"] } },
  );
}

const PAIRING: Record<PairingFault["kind"], (id: string) => string> = {
  "result-without-call": (id) =>
    `The \`tool_result\` answers ${id}, but no \`tool_use\` before it has that id.`,
  "call-without-result": (id) =>
    `The \`tool_use\` ${id} has no \`tool_result\`: the user message directly after it has to bring one.`,
  "duplicate-call": (id) => `The \`tool_use\` id ${id} is used more than once. Ids have to be unique.`,
  "duplicate-result": (id) => `The \`tool_use\` ${id} has a \`tool_result\` already.`,
};

function checkPairing(history: History, continues: boolean): void {
  const fault = findPairingFault(history.messages, { continues });
  if (fault)
    throw invalid(
      history.paths[fault.index] ?? "messages",
      PAIRING[fault.kind](JSON.stringify(fault.callId)),
    );
}

function requestExtra(wire: Block, lossy: Block): Extra | undefined {
  const extra = extraOf(wire, MODELLED);
  if (Object.keys(lossy).length === 0) return extra;
  return { family: "anthropic-messages", fields: { ...extra?.fields, ...lossy } };
}

/**
 * Always present, since it tells that the request speaks the family's own language. `?beta=true` without a beta is an
 * empty `anthropic-beta`, so that an Anthropic upstream's beta endpoint is asked.
 */
function passedHeaders(headers: Headers, query: URLSearchParams): Record<string, string> {
  const beta = headers.get("anthropic-beta") ?? (query.get("beta") === "true" ? "" : null);
  const version = headers.get("anthropic-version");
  const fields: Record<string, string> = {};
  if (beta !== null) fields["anthropic-beta"] = beta;
  if (version !== null) fields["anthropic-version"] = version;
  return fields;
}
