/**
 * The body of a chat completions request. Loose everywhere: what is newer than this file passes, and null stands for
 * absent wherever a field is optional. The OpenAPI document is made from it, so it holds plain JSON Schema only.
 */
import * as z from "zod";

const text = z.string().nullish();
const number = z.number().nullish();
const flag = z.boolean().nullish();

/** A word that is none of the known ones: entries that only some servers understand keep their whole form. */
function otherThan(...known: string[]) {
  return z.string().regex(new RegExp(`^(?!(?:${known.join("|")})$)`), { abort: true });
}

const textPart = z.looseObject({ type: z.literal("text"), text: z.string() });
const imagePart = z.looseObject({
  type: z.literal("image_url"),
  image_url: z.looseObject({
    url: z.string().min(1).describe("A data URL (PNG, JPEG, GIF, WebP in base64) or an http(s) URL."),
    detail: text,
  }),
});
const audioPart = z.looseObject({
  type: z.literal("input_audio"),
  input_audio: z.looseObject({ data: z.string().describe("Base64."), format: z.string().min(1) }),
});
const filePart = z.looseObject({
  type: z.literal("file"),
  file: z.looseObject({
    file_data: text.describe("A data URL, base64 or an http(s) URL."),
    file_id: text,
    filename: text,
  }),
});
const refusalPart = z.looseObject({ type: z.literal("refusal"), refusal: z.string() });

const userPart = z.union([
  z.discriminatedUnion("type", [textPart, imagePart, audioPart, filePart]),
  z.looseObject({ type: otherThan("text", "image_url", "input_audio", "file") }),
]);
const assistantPart = z.union([
  z.discriminatedUnion("type", [textPart, refusalPart, imagePart, audioPart, filePart]),
  z.looseObject({ type: otherThan("text", "refusal", "image_url", "input_audio", "file") }),
]);

const toolCall = z.discriminatedUnion("type", [
  z.looseObject({
    type: z.literal("function"),
    id: z.string().min(1),
    function: z.looseObject({ name: z.string().min(1), arguments: z.string() }),
  }),
  z.looseObject({
    type: z.literal("custom"),
    id: z.string().min(1),
    custom: z.looseObject({ name: z.string().min(1), input: z.string() }),
  }),
]);

const message = z.discriminatedUnion("role", [
  z.looseObject({
    role: z.literal(["system", "developer"]),
    content: z.union([z.string(), z.array(textPart).min(1)]),
    name: text,
  }),
  z.looseObject({
    role: z.literal("user"),
    content: z.union([z.string(), z.array(userPart).min(1)]),
    name: text,
  }),
  z.looseObject({
    role: z.literal("assistant"),
    content: z.union([z.string(), z.array(assistantPart), z.null()]).optional(),
    name: text,
    refusal: text,
    reasoning_content: text,
    tool_calls: z.array(toolCall).nullish(),
    function_call: z.looseObject({ name: z.string().min(1), arguments: z.string() }).nullish(),
    audio: z.looseObject({ id: z.string() }).nullish(),
  }),
  z.looseObject({
    role: z.literal("tool"),
    content: z.union([z.string(), z.array(userPart)]),
    tool_call_id: z.string().min(1),
    name: text,
  }),
  z.looseObject({
    role: z.literal("function").describe("Deprecated: the result of an assistant message's function_call."),
    content: z.string().nullish(),
    name: z.string().min(1),
  }),
]);

const functionDefinition = z.looseObject({
  name: z.string(),
  description: text,
  parameters: z.record(z.string(), z.unknown()).nullish(),
  strict: flag,
});

const tool = z.union([
  z.discriminatedUnion("type", [
    z.looseObject({ type: z.literal("function"), function: functionDefinition }),
    z.looseObject({
      type: z.literal("custom"),
      custom: z.looseObject({ name: z.string(), description: text, format: z.unknown().optional() }),
    }),
  ]),
  z.looseObject({ type: otherThan("function", "custom") }),
]);

const named = z.looseObject({ name: z.string().min(1) });

const toolChoice = z.union([
  z.literal(["auto", "none", "required"]),
  z.discriminatedUnion("type", [
    z.looseObject({ type: z.literal("function"), function: named }),
    z.looseObject({ type: z.literal("custom"), custom: named }),
    z.looseObject({
      type: z.literal("allowed_tools"),
      allowed_tools: z.looseObject({
        mode: z.literal(["auto", "required"]),
        tools: z.array(z.looseObject({ type: z.string() })),
      }),
    }),
  ]),
]);

const responseFormat = z.discriminatedUnion("type", [
  z.looseObject({ type: z.literal("text") }),
  z.looseObject({ type: z.literal("json_object") }),
  z.looseObject({
    type: z.literal("json_schema"),
    json_schema: z.looseObject({
      name: z.string().min(1),
      description: text,
      schema: z.record(z.string(), z.unknown()).nullish(),
      strict: flag,
    }),
  }),
]);

/** Independent replies that one request may ask for. */
export const CHOICES_LIMIT = 128;

export const chatRequest = z.looseObject({
  model: z.string().min(1),
  messages: z.array(message).min(1),
  stream: flag,
  stream_options: z.looseObject({ include_usage: flag, include_obfuscation: flag }).nullish(),
  n: z.int().min(1).max(CHOICES_LIMIT).nullish(),
  max_completion_tokens: number,
  max_tokens: number.describe("Deprecated in favour of max_completion_tokens."),
  temperature: number,
  top_p: number,
  top_k: number.describe("Not of the original interface; honoured where the provider has it."),
  stop: z.union([z.string(), z.array(z.string()), z.null()]).optional(),
  seed: number,
  presence_penalty: number,
  frequency_penalty: number,
  logit_bias: z.record(z.string(), z.number()).nullish(),
  logprobs: flag,
  top_logprobs: z.int().min(0).nullish(),
  response_format: responseFormat.nullish(),
  reasoning_effort: text,
  tools: z.array(tool).nullish(),
  tool_choice: toolChoice.nullish(),
  parallel_tool_calls: flag,
  functions: z.array(functionDefinition).nullish().describe("Deprecated in favour of tools."),
  function_call: z
    .union([z.literal(["none", "auto"]), named, z.null()])
    .optional()
    .describe("Deprecated in favour of tool_choice."),
  modalities: z.array(z.string()).nullish(),
  user: text,
  safety_identifier: text,
});

export type ChatRequest = z.infer<typeof chatRequest>;
export type WireMessage = ChatRequest["messages"][number];
export type WireTool = NonNullable<ChatRequest["tools"]>[number];
export type WireFunction = z.infer<typeof functionDefinition>;
