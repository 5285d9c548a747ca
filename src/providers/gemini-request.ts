/** A model request in the core's words -> the parameters of `generateContent`. */
import type { Content, FunctionCallingConfigMode, GenerateContentConfig, Tool } from "@google/genai/web";
import { type TextPart, text } from "../core/message.ts";
import type { ModelRequest, ResponseFormat, ToolSpec } from "../core/model.ts";
import { AppError } from "../errors.ts";
import { toContents } from "./gemini-contents.ts";
import { generationOf, isThirdGeneration, toThinkingConfig } from "./gemini-model.ts";
import { toGeminiParameters, toGeminiSchema } from "./gemini-schema.ts";

export interface GeminiParameters {
  model: string;
  contents: Content[];
  config: GenerateContentConfig;
}

/** Throws AppError `unsupported_field` for what Gemini cannot do, `invalid_request` for a model id that is none. */
export function toParameters(request: ModelRequest): GeminiParameters {
  checkModel(request.model);
  refuseUnsupported(request);
  const tools = toTools(request.tools);
  const config: GenerateContentConfig = { ...toSettings(request), ...toToolConfig(request, tools) };
  let contents = toContents(request.model, request.messages);
  let system = request.system;
  if (contents.length === 0) {
    // Instructions alone are a prompt too, though not to Gemini, which wants somebody to have spoken.
    contents = toContents(request.model, [{ role: "user", content: system }]);
    system = [];
    if (contents.length === 0)
      throw new AppError(
        "invalid_request",
        "The conversation has no content. Send at least one message with text, an image or a file.",
        { param: "messages" },
      );
  }
  const format = toFormat(request, config);
  const instruction = toInstruction(format ? [...system, text(format)] : system);
  if (instruction) config.systemInstruction = instruction;
  return { model: request.model, contents, config };
}

/** The id becomes part of the path: it must not reach out of it. */
function checkModel(model: string): void {
  if (model.length > 0 && !/[\s?&#%\\]|\.\./.test(model)) return;
  throw new AppError(
    "invalid_request",
    `"${model}" is not the id of a Gemini model. Ask the models list for those that there are.`,
    { param: "model" },
  );
}

function refuseUnsupported(request: ModelRequest): void {
  const { logitBias, logprobs } = request.settings;
  if (logitBias && Object.keys(logitBias).length > 0) throw unsupported("logit_bias", "logit_bias");
  if (logprobs) throw unsupported("logprobs", "logprobs");
}

function unsupported(what: string, param: string): AppError {
  return new AppError(
    "unsupported_field",
    `Gemini does not support ${what}. Leave it out, or choose another provider.`,
    {
      param,
    },
  );
}

function toInstruction(system: readonly TextPart[]): Content | undefined {
  const parts = system.filter((part) => part.text !== "").map((part) => ({ text: part.text }));
  return parts.length > 0 ? { parts } : undefined;
}

function toSettings(request: ModelRequest): GenerateContentConfig {
  const { settings } = request;
  const config: GenerateContentConfig = {};
  if (settings.maxTokens !== undefined) config.maxOutputTokens = settings.maxTokens;
  if (settings.temperature !== undefined) config.temperature = settings.temperature;
  if (settings.topP !== undefined) config.topP = settings.topP;
  if (settings.topK !== undefined) config.topK = settings.topK;
  if (settings.stop && settings.stop.length > 0) config.stopSequences = settings.stop;
  if (settings.seed !== undefined) config.seed = settings.seed;
  if (settings.presencePenalty !== undefined) config.presencePenalty = settings.presencePenalty;
  if (settings.frequencyPenalty !== undefined) config.frequencyPenalty = settings.frequencyPenalty;
  const thinking = toThinkingConfig(request.model, request.reasoning);
  if (thinking) config.thinkingConfig = thinking;
  return config;
}

function toTools(specs: readonly ToolSpec[]): Tool[] {
  const functions: NonNullable<Tool["functionDeclarations"]> = [];
  const tools: Tool[] = [];
  for (const spec of specs) {
    if (spec.kind === "function")
      functions.push({
        name: spec.name,
        ...(spec.description ? { description: spec.description } : {}),
        ...(spec.parameters ? { parametersJsonSchema: toGeminiParameters(spec.parameters) } : {}),
      });
    else if (spec.kind === "builtin" && spec.family === "gemini") tools.push(spec.entry);
    else
      throw new AppError(
        "unsupported_field",
        spec.kind === "freeform"
          ? `The tool ${spec.name} takes free text, and Gemini calls tools with JSON arguments only. Define it as a function.`
          : `The tool ${spec.name} is hosted by another provider, and Gemini does not have it. Leave it out, or define it as a function.`,
        { param: "tools" },
      );
  }
  if (functions.length > 0) tools.unshift({ functionDeclarations: functions });
  return tools;
}

function toToolConfig(request: ModelRequest, tools: Tool[]): GenerateContentConfig {
  if (tools.length === 0) return {};
  const choice = request.toolChoice ?? { type: "auto" };
  let mode: string | undefined;
  if (choice.type === "none") mode = "NONE";
  else if (choice.type === "required" || choice.type === "tool") mode = "ANY";
  // What `strict` promises, arguments that fit their schema, is a mode of the whole request here.
  else if (request.tools.some((tool) => tool.kind === "function" && tool.strict)) mode = "VALIDATED";
  if (mode === undefined) return { tools };
  const names = choice.type === "tool" ? { allowedFunctionNames: [choice.name] } : {};
  return {
    tools,
    toolConfig: { functionCallingConfig: { mode: mode as FunctionCallingConfigMode, ...names } },
  };
}

/**
 * Sets the format. Models before the third generation refuse JSON output beside functions: for them the format becomes
 * words, which are returned and belong into the system instruction.
 */
function toFormat(request: ModelRequest, config: GenerateContentConfig): string | undefined {
  const format = request.format;
  if (!format || format.type === "text") return undefined;
  const schema = format.type === "schema" ? toGeminiSchema(format.schema) : undefined;
  const withFunctions = request.tools.some((tool) => tool.kind === "function");
  if (withFunctions && generationOf(request.model) !== undefined && !isThirdGeneration(request.model))
    return inWords(format, schema);
  config.responseMimeType = "application/json";
  if (schema) config.responseJsonSchema = schema;
  return undefined;
}

function inWords(format: ResponseFormat, schema: object | undefined): string {
  const about = format.type === "schema" && format.description ? ` ${format.description}` : "";
  return schema
    ? `Your final answer must be one JSON value that fits this JSON Schema, and nothing else: no prose and no code fence.${about}\n${JSON.stringify(schema)}`
    : "Your final answer must be one JSON object and nothing else: no prose and no code fence.";
}
