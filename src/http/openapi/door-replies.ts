/**
 * What the `/v1` doors answer with. Loose: fields that an upstream of the same family sends beyond these pass through.
 */
import * as z from "zod";

const tokens = z.int().min(0);

export const chatUsage = z
  .looseObject({
    prompt_tokens: tokens,
    completion_tokens: tokens,
    total_tokens: tokens,
    prompt_tokens_details: z.looseObject({ cached_tokens: tokens }),
    completion_tokens_details: z.looseObject({ reasoning_tokens: tokens }),
  })
  .meta({ id: "ChatCompletionUsage", description: "Over all model calls of the run." });

const finishReason = z.enum(["stop", "length", "tool_calls", "content_filter", "function_call"]);

const called = z.looseObject({ name: z.string(), arguments: z.string().describe("JSON as text.") });
const customCalled = z.looseObject({ name: z.string(), input: z.string() });

export const chatCompletion = z
  .looseObject({
    id: z.string(),
    object: z.literal("chat.completion"),
    created: z.int().describe("Seconds since 1970."),
    model: z.string().describe("The word that the request said."),
    choices: z.array(
      z.looseObject({
        index: z.int(),
        message: z.looseObject({
          role: z.literal("assistant"),
          content: z.string().nullable(),
          refusal: z.string().nullable(),
          reasoning_content: z
            .string()
            .optional()
            .describe("The model's thinking, where the upstream gives it."),
          tool_calls: z
            .array(
              z.looseObject({
                id: z.string(),
                type: z.enum(["function", "custom"]),
                function: called.optional(),
                custom: customCalled.optional(),
              }),
            )
            .optional()
            .describe("Calls of the client's own tools, for it to run. The agent's tools run on the server."),
        }),
        logprobs: z.unknown(),
        finish_reason: finishReason,
      }),
    ),
    usage: chatUsage,
    system_fingerprint: z.string().nullable(),
  })
  .meta({ id: "ChatCompletion" });

export const chatChunk = z
  .looseObject({
    id: z.string(),
    object: z.literal("chat.completion.chunk"),
    created: z.int(),
    model: z.string(),
    choices: z.array(
      z.looseObject({
        index: z.int(),
        delta: z.looseObject({
          role: z.literal("assistant").optional(),
          content: z.string().nullish(),
          reasoning_content: z.string().optional(),
          refusal: z.string().nullish(),
          tool_calls: z
            .array(
              z.looseObject({
                index: z.int(),
                id: z.string().optional(),
                type: z.enum(["function", "custom"]).optional(),
                function: called.partial().optional(),
                custom: customCalled.partial().optional(),
              }),
            )
            .optional(),
        }),
        logprobs: z.unknown(),
        finish_reason: finishReason.nullable(),
      }),
    ),
    usage: chatUsage
      .nullish()
      .describe("In a last chunk without choices, with `stream_options.include_usage`."),
    agent_event: z
      .looseObject({ type: z.string() })
      .optional()
      .describe("With `x-agent-events: 1`: what the agent's tools do, on a chunk with an empty delta."),
  })
  .meta({
    id: "ChatCompletionChunk",
    description: "The JSON in a `data:` line. `[DONE]` follows the last one.",
  });

export const messageUsage = z
  .looseObject({
    input_tokens: tokens.describe("Without those from and to the cache."),
    output_tokens: tokens,
    cache_creation_input_tokens: tokens,
    cache_read_input_tokens: tokens,
  })
  .meta({ id: "MessageUsage", description: "Over all model calls of the run." });

const block = z.discriminatedUnion("type", [
  z.looseObject({ type: z.literal("text"), text: z.string() }),
  z
    .looseObject({ type: z.literal("tool_use"), id: z.string(), name: z.string(), input: z.unknown() })
    .describe("A call of one of the client's own tools, for it to run."),
  z.looseObject({ type: z.literal("thinking"), thinking: z.string(), signature: z.string() }),
  z.looseObject({ type: z.literal("redacted_thinking"), data: z.string() }),
]);

const stopReason = z
  .string()
  .describe("`end_turn`, `max_tokens`, `stop_sequence`, `tool_use`, `pause_turn`, `refusal`, …");

const messageFields = {
  id: z.string(),
  type: z.literal("message"),
  role: z.literal("assistant"),
  model: z.string().describe("The word that the request said."),
  content: z.array(block),
  stop_sequence: z.string().nullable(),
  usage: messageUsage,
};

export const messageReply = z
  .looseObject({ ...messageFields, stop_reason: stopReason })
  .meta({ id: "MessageReply" });

const index = z.int().min(0);
export const messageEvent = z
  .discriminatedUnion("type", [
    z.looseObject({
      type: z.literal("message_start"),
      message: z.looseObject({ ...messageFields, stop_reason: stopReason.nullable() }),
    }),
    z.looseObject({ type: z.literal("content_block_start"), index, content_block: block }),
    z.looseObject({
      type: z.literal("content_block_delta"),
      index,
      delta: z.discriminatedUnion("type", [
        z.looseObject({ type: z.literal("text_delta"), text: z.string() }),
        z.looseObject({ type: z.literal("input_json_delta"), partial_json: z.string() }),
        z.looseObject({ type: z.literal("thinking_delta"), thinking: z.string() }),
        z.looseObject({ type: z.literal("signature_delta"), signature: z.string() }),
        z.looseObject({ type: z.literal("citations_delta"), citation: z.unknown() }),
      ]),
    }),
    z.looseObject({ type: z.literal("content_block_stop"), index }),
    z.looseObject({
      type: z.literal("message_delta"),
      delta: z.looseObject({ stop_reason: stopReason, stop_sequence: z.string().nullable() }),
      usage: messageUsage,
    }),
    z.looseObject({ type: z.literal("message_stop") }),
    z.looseObject({
      type: z.literal("ping"),
      agent_event: z
        .looseObject({ type: z.string() })
        .optional()
        .describe("With `x-agent-events: 1`: what the agent's tools do."),
    }),
    z.looseObject({
      type: z.literal("error"),
      error: z.looseObject({ type: z.string(), message: z.string() }),
    }),
  ])
  .meta({
    id: "MessageEvent",
    description: "The JSON in a `data:` line; the `event:` line before it has its type.",
  });

const openaiModel = z.object({
  id: z.string(),
  object: z.literal("model"),
  created: z.int().describe("Seconds since 1970, 0 where nobody says."),
  owned_by: z.string(),
});
const anthropicModel = z.object({
  type: z.literal("model"),
  id: z.string(),
  display_name: z.string(),
  created_at: z.iso.datetime(),
});

export const model = z.union([openaiModel, anthropicModel]).meta({
  id: "Model",
  description: "OpenAI's shape; with `anthropic-version` in the request, Anthropic's.",
});

export const modelList = z
  .union([
    z.object({ object: z.literal("list"), data: z.array(openaiModel) }),
    z.object({
      data: z.array(anthropicModel),
      has_more: z.boolean(),
      first_id: z.string().nullable(),
      last_id: z.string().nullable(),
    }),
  ])
  .meta({
    id: "ModelList",
    description: "OpenAI's shape; with `anthropic-version` in the request, Anthropic's.",
  });

export const tokenCount = z.object({ input_tokens: tokens }).meta({ id: "TokenCount" });
