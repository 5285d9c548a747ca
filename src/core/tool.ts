/** A tool of the agent's own: it runs on the server, and its result goes to the model. */
import * as z from "zod";
import type { ResultPart } from "./message.ts";
import type { ToolSpec } from "./model.ts";
import type { Terminal, Workspace } from "./platform.ts";

/** What a tool needs of the platform. Where one is missing the tool is not offered. */
export type Capability = "files" | "terminal";

export type Risk = "read" | "write" | "execute" | "network";

export interface ToolContext {
  owner: string;
  sessionId?: string | undefined;
  runId: string;
  callId: string;
  /** Aborted when the run is stopped or the call's time is over. */
  signal: AbortSignal;
  files: Workspace;
  /** Present whenever the tool's `needs` name it. */
  terminal?: Terminal | undefined;
  /** Output of a long tool while it runs. */
  progress(delta: string): void;
}

export interface ToolOutput {
  content: ResultPart[];
  /** The tool did its work but the answer is a failure (a non-zero exit, a missing file). */
  failed?: boolean | undefined;
}

/**
 * `run` gets arguments that `args` has accepted. Its failures are results for the model: an AppError's sentence is
 * shown as it is, anything else is logged and shown as a failure without detail.
 */
export interface Tool<Args = unknown> {
  name: string;
  /** What it does and when to use it, for the model. */
  description: string;
  args: z.ZodType<Args>;
  needs: Capability[];
  risk: Risk;
  run(args: Args, context: ToolContext): Promise<ToolOutput>;
}

/** Keeps the argument type between `args` and `run`. */
export function defineTool<Args>(tool: Tool<Args>): Tool {
  return tool as Tool;
}

const specs = new WeakMap<Tool, ToolSpec>();

/**
 * The tool as a model sees it. Made once, since the schema conversion is the dear part of a small request, and frozen, so
 * that adapters may remember what they made of it.
 */
export function toolSpec(tool: Tool): ToolSpec {
  let spec = specs.get(tool);
  if (!spec) {
    const { $schema: _, ...parameters } = z.toJSONSchema(tool.args, { io: "input" }) as Record<
      string,
      unknown
    >;
    spec = Object.freeze<ToolSpec>({
      kind: "function",
      name: tool.name,
      description: tool.description,
      parameters,
    });
    specs.set(tool, spec);
  }
  return spec;
}
