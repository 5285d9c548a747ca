/** A core request as the body of Anthropic's `POST /v1/messages`. Pure. */
import { transformJSONSchema } from "@anthropic-ai/sdk/lib/transform-json-schema";
import type {
  MessageCountTokensParams,
  MessageCreateParamsStreaming,
  OutputConfig,
  ToolUnion,
} from "@anthropic-ai/sdk/resources/messages";
import type { JsonSchema, ModelRequest, ResponseFormat, Settings, ToolSpec } from "../core/model.ts";
import { AppError } from "../errors.ts";
import { limitBreakpoints, markForCaching } from "./anthropic-cache.ts";
import { writeConversation } from "./anthropic-content.ts";
import { FAMILY, own } from "./anthropic-media.ts";
import { type ModelTraits, planThinking, traitsOf } from "./anthropic-model.ts";
import { rememberTools } from "./sdk-post.ts";

/** The Messages API, with the sampling that its newest version has no longer. */
export type Body = MessageCreateParamsStreaming & {
  temperature?: number;
  top_p?: number;
  top_k?: number;
};

/**
 * Fields of `request.extra` that the core does not model lie under those that it does. Throws AppError
 * `unsupported_field` for what the API has no word for. `seed` is a wish by its own definition and is left out.
 */
export function writeRequest(request: ModelRequest): Body {
  refuseUnsupported(request.settings);
  const native = request.headers?.family === FAMILY || request.extra?.family === FAMILY;
  const traits = traitsOf(request.model);
  const { system, messages } = writeConversation(request.system, request.messages, traits, native);
  const plan = planThinking(request, traits, native);
  const extra = own(request.extra) ?? {};
  const body: Body = {
    ...extra,
    model: request.model,
    max_tokens: plan.maxTokens,
    messages,
    stream: true,
  };
  const format = extra.output_format ? {} : writeFormat(request.format, traits, native);
  if (format.instruction !== undefined) system.push({ type: "text", text: format.instruction });
  if (system.length > 0) body.system = system;
  if (request.tools.length > 0) {
    body.tools = request.tools.map((tool) => remembered(tool, () => writeTool(tool, traits, native)));
    const choice = writeToolChoice(request);
    if (choice) body.tool_choice = choice;
  }
  // What these two hold beyond the core's words came whole in `extra`.
  if (plan.thinking && !extra.thinking) body.thinking = plan.thinking;
  if ((plan.effort !== undefined || format.config) && !extra.output_config) {
    body.output_config = {
      ...(plan.effort !== undefined ? { effort: plan.effort } : {}),
      ...(format.config ? { format: format.config } : {}),
    };
  }
  writeSettings(body, request.settings, native);
  if (request.user !== undefined && body.metadata === undefined) body.metadata = { user_id: request.user };
  if (native) limitBreakpoints(body);
  else markForCaching(body);
  return body;
}

/** The same request for the token counter, which knows only what decides the count. */
export function writeCountRequest(request: ModelRequest): MessageCountTokensParams {
  const body = writeRequest(request) as unknown as Record<string, unknown>;
  const out: Record<string, unknown> = {};
  for (const field of COUNTED) if (body[field] !== undefined) out[field] = body[field];
  return out as unknown as MessageCountTokensParams;
}
const COUNTED = [
  "model",
  "messages",
  "system",
  "tools",
  "tool_choice",
  "thinking",
  "output_config",
  "cache_control",
  "context_management",
  "mcp_servers",
  "speed",
];

function refuseUnsupported(settings: Settings): void {
  const param = settings.logprobs
    ? "logprobs"
    : settings.logitBias && Object.keys(settings.logitBias).length > 0
      ? "logit_bias"
      : settings.presencePenalty
        ? "presence_penalty"
        : settings.frequencyPenalty
          ? "frequency_penalty"
          : undefined;
  if (param === undefined) return;
  throw new AppError(
    "unsupported_field",
    `Anthropic's models have no ${param}. Leave it out, or choose another provider.`,
    { param },
  );
}

function writeSettings(body: Body, settings: Settings, native: boolean): void {
  const { temperature, topP, topK, stop } = settings;
  // Many chat-completions clients spell out the defaults, and the API refuses the two together: 1 says nothing.
  if (temperature !== undefined && (native || temperature !== 1)) body.temperature = temperature;
  if (topP !== undefined && (native || topP !== 1)) body.top_p = topP;
  if (topK !== undefined) body.top_k = topK;
  if (stop && stop.length > 0) body.stop_sequences = stop;
}

/** The agent's own tools are not strict, so neither the model nor the door matters to how they are written. */
const remembered = rememberTools<ToolUnion>();

function writeTool(tool: ToolSpec, traits: ModelTraits, native: boolean): ToolUnion {
  if (tool.kind === "builtin" && tool.family === FAMILY) return tool.entry as unknown as ToolUnion;
  if (tool.kind !== "function") {
    throw new AppError(
      "unsupported_field",
      `The tool ${tool.name} is of a kind that Anthropic's models do not know. Declare it as a function with a JSON schema.`,
      { param: "tools" },
    );
  }
  const out = { ...own(tool.extra), name: tool.name } as Record<string, unknown>;
  if (tool.description !== undefined) out.description = tool.description;
  out.input_schema = objectSchema(tool.parameters);
  if (tool.strict && (native || traits.structured)) out.strict = true;
  return out as unknown as ToolUnion;
}

/** `input_schema` has to say that it is an object. */
function objectSchema(schema: JsonSchema | undefined): JsonSchema {
  if (schema === undefined) return { type: "object", properties: {} };
  return schema.type === "object" ? schema : { ...schema, type: "object" };
}

function writeToolChoice(request: ModelRequest): MessageCreateParamsStreaming["tool_choice"] {
  const single = request.parallelTools === false ? { disable_parallel_tool_use: true } : {};
  switch (request.toolChoice?.type) {
    case "none":
      return { type: "none" };
    case "required":
      return { type: "any", ...single };
    case "tool":
      return { type: "tool", name: request.toolChoice.name, ...single };
    case "auto":
      return { type: "auto", ...single };
    default:
      return request.parallelTools === false ? { type: "auto", ...single } : undefined;
  }
}

interface Format {
  config?: OutputConfig["format"];
  instruction?: string;
}

/**
 * A schema goes to `output_config.format`. The API's schemas know no open objects and no ranges: one from another door is
 * rewritten by the SDK's own rules, and where that would lose meaning, or the model has no structured outputs, it becomes
 * an instruction. So does plain JSON mode, which the API has not.
 */
function writeFormat(format: ResponseFormat | undefined, traits: ModelTraits, native: boolean): Format {
  if (format === undefined || format.type === "text") return {};
  if (format.type === "json")
    return {
      instruction: "Answer with one valid JSON value and nothing else: no explanation, no code fence.",
    };
  if (native) return { config: { type: "json_schema", schema: format.schema } };
  if (traits.structured && !isOpen(format.schema)) {
    try {
      return {
        config: {
          type: "json_schema",
          schema: transformJSONSchema(format.schema as never) as JsonSchema,
        },
      };
    } catch {
      // A schema without a type is beyond the SDK's rules: the instruction below carries it.
    }
  }
  return {
    instruction: `Answer with one JSON value that is valid against this JSON Schema, and nothing else: no explanation, no code fence.\n${JSON.stringify(format.schema)}`,
  };
}

/** Whether the schema has a map in it: an object whose further properties are described or expressly allowed. */
function isOpen(schema: unknown): boolean {
  if (typeof schema !== "object" || schema === null) return false;
  if (Array.isArray(schema)) return schema.some(isOpen);
  const rest = (schema as JsonSchema).additionalProperties;
  if (rest === true || (typeof rest === "object" && rest !== null)) return true;
  return Object.values(schema).some(isOpen);
}
