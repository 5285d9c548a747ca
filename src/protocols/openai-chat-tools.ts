/** Tools and tool choice of chat completions, the deprecated functions included -> those of the core. */
import type { ToolChoice, ToolSpec } from "../core/model.ts";
import { AppError } from "../errors.ts";
import { extraOf, FAMILY } from "./openai-chat-parts.ts";
import type { ChatRequest, WireFunction, WireTool } from "./openai-chat-schema.ts";
import { invalid } from "./problem.ts";

export interface Tooling {
  tools: ToolSpec[];
  toolChoice?: ToolChoice | undefined;
  parallelTools?: boolean | undefined;
  /** The request used `functions`, so that the reply has `function_call`. */
  legacy: boolean;
}

export function decodeTooling(body: ChatRequest): Tooling {
  if (body.functions && body.tools)
    throw invalid(
      "functions",
      "functions and tools cannot stand in one request. Put all of them into tools.",
    );
  if (body.functions) {
    const tools = body.functions.map((wire) => functionSpec(wire, undefined));
    checkNames(tools, (index) => `functions[${index}].name`);
    // The legacy reply has room for one call.
    return { tools, toolChoice: legacyChoice(body, tools), parallelTools: false, legacy: true };
  }
  const tools = body.tools ? body.tools.map(decodeTool) : [];
  checkNames(tools, (index) => `tools[${index}].${body.tools?.[index]?.type}.name`);
  const parallelTools = body.parallel_tool_calls ?? undefined;
  return { ...choose(body.tool_choice, tools), parallelTools, legacy: false };
}

const TOOL = { type: true, function: true, custom: true } as const;
const FUNCTION = { name: true, description: true, parameters: true, strict: true } as const;
const CUSTOM = { name: true, description: true, format: true } as const;

function decodeTool(wire: WireTool): ToolSpec {
  if (wire.type === "function") return functionSpec((wire as { function: WireFunction }).function, wire);
  if (wire.type !== "custom") {
    const name = typeof wire.name === "string" && wire.name !== "" ? wire.name : wire.type;
    return { kind: "builtin", family: FAMILY, name, entry: wire };
  }
  const { name, description, format } = wire.custom as {
    name: string;
    description?: string | null;
    format?: unknown;
  };
  const spec: ToolSpec = { kind: "freeform", name };
  if (typeof description === "string") spec.description = description;
  if (format !== null && format !== undefined) spec.format = format;
  const extra = extraOf(wire, TOOL, "custom", CUSTOM);
  if (extra) spec.extra = extra;
  return spec;
}

/** `wire` is the tool around the function; the deprecated functions have none. */
function functionSpec(definition: WireFunction, wire: Record<string, unknown> | undefined): ToolSpec {
  const spec: ToolSpec = { kind: "function", name: definition.name };
  if (typeof definition.description === "string") spec.description = definition.description;
  if (definition.parameters) spec.parameters = definition.parameters;
  if (typeof definition.strict === "boolean") spec.strict = definition.strict;
  const extra = extraOf(wire ?? { function: definition }, TOOL, "function", FUNCTION);
  if (extra) spec.extra = extra;
  return spec;
}

/** Characters that a tool's name may have. */
const NAME = /^[a-zA-Z0-9_-]{1,64}$/;

function checkNames(tools: ToolSpec[], field: (index: number) => string): void {
  const seen = new Set<string>();
  for (let index = 0; index < tools.length; index++) {
    const tool = tools[index]!;
    if (tool.kind === "builtin") continue;
    const { name } = tool;
    if (!NAME.test(name)) {
      const at = field(index);
      throw invalid(
        at,
        `${at} has to be 1 to 64 letters, digits, underscores or hyphens, but it is ${JSON.stringify(name.slice(0, 80))}.`,
      );
    }
    if (seen.has(name)) {
      const at = field(index);
      throw invalid(at, `${at} is "${name}", the name of another tool. Every tool needs a name of its own.`);
    }
    seen.add(name);
  }
}

function choose(wire: ChatRequest["tool_choice"], tools: ToolSpec[]): Pick<Tooling, "tools" | "toolChoice"> {
  if (!wire) return { tools };
  if (wire === "required" && tools.length === 0)
    throw invalid("tool_choice", 'tool_choice is "required", but the request has no tools.');
  if (typeof wire === "string") return { tools, toolChoice: { type: wire } };
  if (wire.type === "function")
    return { tools, toolChoice: pin(wire.function.name, tools, "tool_choice.function.name") };
  if (wire.type === "custom")
    return { tools, toolChoice: pin(wire.custom.name, tools, "tool_choice.custom.name") };
  const { mode, tools: entries } = wire.allowed_tools;
  const at = "tool_choice.allowed_tools.tools";
  const allowed = new Set(entries.map((entry, index) => allowedName(entry, tools, `${at}[${index}]`)));
  if (mode === "required" && allowed.size === 0)
    throw invalid(at, `${at} is empty, although the mode requires a call of one of them.`);
  return { tools: tools.filter((tool) => allowed.has(tool.name)), toolChoice: { type: mode } };
}

function pin(name: string, tools: ToolSpec[], at: string): ToolChoice {
  if (!tools.some((tool) => tool.name === name))
    throw invalid(at, `${at} is ${JSON.stringify(name)}, but the request has no tool of that name.`);
  return { type: "tool", name };
}

/** `{type: "function", function: {name}}`, the same for custom tools, or a provider's own tool by its type. */
function allowedName(
  entry: Record<string, unknown> & { type: string },
  tools: ToolSpec[],
  at: string,
): string {
  const inner = entry[entry.type] as { name?: unknown } | null | undefined;
  const name = [inner?.name, entry.name, entry.type].find((word) => typeof word === "string") as string;
  if (!tools.some((tool) => tool.name === name))
    throw invalid(at, `${at} names ${JSON.stringify(name)}, but the request has no tool of that name.`);
  return name;
}

function legacyChoice(body: ChatRequest, tools: ToolSpec[]): ToolChoice | undefined {
  const choice = body.function_call;
  if (!choice) return undefined;
  if (typeof choice === "string") return { type: choice };
  return pin(choice.name, tools, "function_call.name");
}

/** Fields that would change the reply in a way that this door has no room for. */
export function refuseUnsupported(body: ChatRequest): void {
  const other = body.modalities?.find((word) => word !== "text");
  if (other !== undefined)
    throw new AppError(
      "unsupported_field",
      `modalities asks for ${JSON.stringify(other)}, but replies are text only. Leave the field out or send ["text"].`,
      { param: "modalities" },
    );
}
