/** Tools, thinking and output format of a Messages request -> the core's words. */
import type { ModelRequest, ReasoningSettings, ResponseFormat, ToolChoice, ToolSpec } from "../core/model.ts";
import { type Block, extraOf, got, invalid, isObject, nameAt } from "./anthropic-messages-blocks.ts";
import type { CountTokensRequest } from "./anthropic-messages-request.ts";

const TOOL_KEYS = new Set(["type", "name", "description", "input_schema", "strict"]);

export function decodeTools(wire: readonly unknown[]): ToolSpec[] {
  const names = new Set<string>();
  const tools: ToolSpec[] = [];
  for (let i = 0; i < wire.length; i++) {
    const tool = decodeTool(wire[i], `tools.${i}`);
    if (tool.kind === "function" || "name" in (wire[i] as Block)) {
      if (names.has(tool.name))
        throw invalid(`tools.${i}.name`, `Another tool is called ${JSON.stringify(tool.name)} already.`);
      names.add(tool.name);
    }
    tools.push(tool);
  }
  return tools;
}

function decodeTool(wire: unknown, path: string): ToolSpec {
  if (!isObject(wire)) throw invalid(path, `A tool is an object with a \`name\`${got(wire)}.`);
  const { type, description, input_schema: parameters, strict } = wire;
  if (typeof type === "string" && type !== "custom")
    return {
      kind: "builtin",
      family: "anthropic-messages",
      name: typeof wire.name === "string" ? wire.name : type,
      entry: wire,
    };
  if (type !== undefined && type !== null && type !== "custom")
    throw invalid(`${path}.type`, `A string is required${got(type)}.`);
  const tool: ToolSpec & { kind: "function" } = { kind: "function", name: nameAt(wire, "name", path) };
  if (!isObject(parameters))
    throw invalid(`${path}.input_schema`, `A JSON Schema object is required${got(parameters)}.`);
  tool.parameters = parameters;
  if (typeof description === "string") tool.description = description;
  else if (description !== undefined && description !== null)
    throw invalid(`${path}.description`, `A string is required${got(description)}.`);
  if (typeof strict === "boolean") tool.strict = strict;
  const extra = extraOf(wire, TOOL_KEYS);
  if (extra) tool.extra = extra;
  return tool;
}

export function decodeToolChoice(wire: CountTokensRequest, request: ModelRequest): void {
  const choice = wire.tool_choice;
  if (!choice) return;
  request.toolChoice = toolChoice(choice);
  if (choice.disable_parallel_tool_use === true) request.parallelTools = false;
}

function toolChoice(choice: NonNullable<CountTokensRequest["tool_choice"]>): ToolChoice {
  if (choice.type === "any") return { type: "required" };
  if (choice.type !== "tool") return { type: choice.type };
  if (choice.name === undefined) throw invalid("tool_choice.name", "The name of the tool is required.");
  return { type: "tool", name: choice.name };
}

const THINKING_KEYS = new Set(["type", "budget_tokens", "display"]);

/** `lossy` takes the wire object as it came where the core's words do not say all of it. */
export function decodeReasoning(wire: CountTokensRequest, lossy: Block): ReasoningSettings | undefined {
  const out: ReasoningSettings = {};
  const { thinking, output_config: config } = wire;
  if (thinking) {
    const { type, display } = thinking;
    if (type === "enabled") {
      if (typeof thinking.budget_tokens !== "number")
        throw invalid("thinking.budget_tokens", "A whole number is required when thinking is `enabled`.");
      out.budget = thinking.budget_tokens;
    } else if (type === "adaptive") out.adaptive = true;
    else if (type === "disabled") out.budget = 0;
    const known = type === "enabled" || type === "adaptive" || type === "disabled";
    if (display === "summarized" || display === "omitted") out.display = display;
    if (!known || (display && !out.display) || extraOf(thinking, THINKING_KEYS)) lossy.thinking = thinking;
  }
  if (config?.effort) out.effort = config.effort;
  return Object.keys(out).length > 0 ? out : undefined;
}

const CONFIG_KEYS = new Set(["effort", "format"]);
const FORMAT_KEYS = new Set(["type", "schema"]);

export function decodeFormat(wire: CountTokensRequest, lossy: Block): ResponseFormat | undefined {
  const { output_config: config, output_format: older } = wire;
  const format = config?.format ?? older;
  if (config && extraOf(config, CONFIG_KEYS)) lossy.output_config = config;
  if (!format) return undefined;
  const [field, whole, path] = config?.format
    ? (["output_config", config, "output_config.format"] as const)
    : (["output_format", older, "output_format"] as const);
  if (format.type !== "json_schema") {
    lossy[field] = whole;
    return undefined;
  }
  if (!isObject(format.schema))
    throw invalid(`${path}.schema`, `A JSON Schema object is required${got(format.schema)}.`);
  if (extraOf(format, FORMAT_KEYS) || (field === "output_format" && lossy.output_config))
    lossy[field] = whole;
  return { type: "schema", name: "response", schema: format.schema };
}
