/** A request of the core -> the body of a streamed chat completion. */
import type { ModelRequest, ReasoningSettings, ResponseFormat, ToolSpec } from "../core/model.ts";
import {
  type ChatDialect,
  merge,
  unsupported,
  type Wire,
  writeMessages,
} from "./chat-completions-messages.ts";
import { rememberTools } from "./sdk-post.ts";

/** A function, and the agent's own tools are nothing else, is written alike in every dialect. */
const remembered = rememberTools<Wire>();

/** OpenAI refuses longer ids of end users. Characters. */
const USER_LIMIT = 64;

/**
 * Throws AppError `unsupported_field` for a setting that the server cannot honour and that would change the result.
 * Unknown top-level fields of the family stand under the modelled ones.
 */
export function writeRequest(request: ModelRequest, dialect: ChatDialect): Wire {
  const own = request.extra?.family === "openai-chat" ? request.extra.fields : undefined;
  const { settings } = request;
  const body: Wire = { ...own, model: request.model };
  body.messages = writeMessages(request.system, request.messages, dialect);
  body.stream = true;
  body.stream_options = { ...(own?.stream_options as Wire | undefined), include_usage: true };

  if (request.tools.length > 0) {
    body.tools = request.tools.map((tool, index) =>
      remembered(tool, () => writeTool(tool, `tools[${index}]`, dialect)),
    );
    if (request.toolChoice) body.tool_choice = writeToolChoice(request, dialect);
    if (request.parallelTools !== undefined) body.parallel_tool_calls = request.parallelTools;
  }
  if (request.format && request.format.type !== "text") body.response_format = writeFormat(request.format);

  const effort = request.reasoning && effortOf(request.reasoning, request.model, dialect);
  if (effort !== undefined) body.reasoning_effort = effort;

  if (settings.maxTokens !== undefined)
    body[own?.max_completion_tokens !== undefined ? "max_completion_tokens" : dialect.maxTokensField] =
      settings.maxTokens;
  if (settings.temperature !== undefined) body.temperature = settings.temperature;
  if (settings.topP !== undefined) body.top_p = settings.topP;
  if (settings.topK !== undefined) {
    if (!dialect.topK)
      throw unsupported("top_k", `${dialect.name} has no top_k. Leave it out, or use top_p.`);
    body.top_k = settings.topK;
  }
  if (settings.stop !== undefined && settings.stop.length > 0) body.stop = settings.stop;
  if (settings.seed !== undefined) body.seed = settings.seed;
  if (settings.presencePenalty !== undefined) body.presence_penalty = settings.presencePenalty;
  if (settings.frequencyPenalty !== undefined) body.frequency_penalty = settings.frequencyPenalty;
  if (settings.logitBias !== undefined) body.logit_bias = settings.logitBias;
  if (settings.logprobs !== undefined) {
    body.logprobs = true;
    if (settings.logprobs.top !== undefined) body.top_logprobs = settings.logprobs.top;
  }
  if (request.user !== undefined) body.user = request.user.slice(0, USER_LIMIT);
  return body;
}

function writeTool(tool: ToolSpec, at: string, dialect: ChatDialect): Wire {
  switch (tool.kind) {
    case "function": {
      const body: Wire = { name: tool.name };
      if (tool.description !== undefined) body.description = tool.description;
      if (tool.parameters !== undefined) body.parameters = tool.parameters;
      if (tool.strict !== undefined) body.strict = tool.strict;
      return merge({ type: "function", function: body }, tool.extra);
    }
    case "freeform": {
      if (!dialect.customTools)
        throw unsupported(at, `${dialect.name} has no custom tools (${tool.name}). Send it as a function.`);
      const body: Wire = { name: tool.name };
      if (tool.description !== undefined) body.description = tool.description;
      if (tool.format !== undefined) body.format = tool.format;
      return merge({ type: "custom", custom: body }, tool.extra);
    }
    case "builtin":
      if (tool.family !== "openai-chat")
        throw unsupported(
          at,
          `${dialect.name} does not know the tool ${tool.name}, which another provider defines.`,
        );
      return tool.entry;
  }
}

function writeToolChoice(request: ModelRequest, dialect: ChatDialect): unknown {
  const choice = request.toolChoice;
  if (choice?.type !== "tool") return choice?.type;
  const { name } = choice;
  const tool = request.tools.find((spec) => spec.name === name);
  if (tool?.kind === "freeform" && dialect.customTools) return { type: "custom", custom: { name } };
  return { type: "function", function: { name } };
}

function writeFormat(format: Exclude<ResponseFormat, { type: "text" }>): Wire {
  if (format.type === "json") return { type: "json_object" };
  const body: Wire = { name: format.name };
  if (format.description !== undefined) body.description = format.description;
  body.schema = format.schema;
  if (format.strict !== undefined) body.strict = format.strict;
  return { type: "json_schema", json_schema: body };
}

/** Thinking tokens from which a budget stands for more than `low` and more than `medium`. */
const MEDIUM_BUDGET = 4_096;
const HIGH_BUDGET = 16_384;

/**
 * The word for `reasoning_effort`. What was asked for as an effort goes out, and the provider may refuse it. A budget
 * or `adaptive` comes from another family's door, whose clients send it without regard to the model: it becomes a word
 * only for models that are known to reason, since others refuse the field.
 */
function effortOf(reasoning: ReasoningSettings, model: string, dialect: ChatDialect): string | undefined {
  const { effort, budget } = reasoning;
  if (budget === undefined && !reasoning.adaptive) return effort;
  const kind = reasonerOf(model);
  if (kind === undefined) return undefined;
  const word = effort ?? (budget === undefined ? undefined : wordOf(budget));
  if (word === undefined) return undefined;
  if (kind === "qwen") return dialect.official ? (word === "none" ? "none" : "default") : word;
  if (word === "none" || word === "minimal")
    return kind === "gpt-5.1" ? "none" : kind === "gpt-5" ? "minimal" : "low";
  if (word === "xhigh" || word === "max") return kind === "gpt-5.1" ? "xhigh" : "high";
  return word;
}

function wordOf(budget: number): string {
  if (budget <= 0) return "none";
  return budget < MEDIUM_BUDGET ? "low" : budget < HIGH_BUDGET ? "medium" : "high";
}

/** By which words a model can be told how long to think; undefined for one that is not known to take any. */
function reasonerOf(model: string): "o" | "gpt-5" | "gpt-5.1" | "gpt-oss" | "qwen" | undefined {
  const name = model.slice(model.lastIndexOf("/") + 1);
  if (/^o\d/.test(name)) return "o";
  if (/^gpt-oss/.test(name)) return "gpt-oss";
  if (/^gpt-5(-|$)/.test(name)) return name.startsWith("gpt-5-chat") ? undefined : "gpt-5";
  if (/^gpt-([6-9]|5\.)/.test(name)) return "gpt-5.1";
  return /^qwen-?3/i.test(name) ? "qwen" : undefined;
}
