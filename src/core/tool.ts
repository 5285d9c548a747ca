/** A tool of the agent's own: it runs on the server, and its result goes to the model. */
import * as z from "zod";
import type { AgentEvent, PendingCall } from "./event.ts";
import type { GuardedFetch } from "./fetch.ts";
import type { ResultPart, Usage } from "./message.ts";
import type { ToolSpec } from "./model.ts";
import type { ReadHtml, ReadPdf, Terminal, Workspace } from "./platform.ts";

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
  /** Where the session's commands start, or the run's where it has no session. */
  workingDirectory?: WorkingDirectory | undefined;
  /** The only way out for addresses that a caller, a page or the model chose. */
  fetch: GuardedFetch;
  /** Absent where PDFs cannot be read. */
  pdf?: ReadPdf | undefined;
  /** Absent where web pages cannot be read. */
  html?: ReadHtml | undefined;
  /** Whether the model has content from outside before it (E4). Absent where nobody knows. */
  outside?: (() => boolean) | undefined;
  /** Output of a long tool while it runs. */
  progress(delta: string): void;
  /** An event of the run's own. Resolves when it has been taken: whoever waits for that is no faster than its readers. */
  show?: ((event: AgentEvent) => Promise<void>) | undefined;
}

/** Lasts from command to command. Workspace paths; the empty one is the root. */
export interface WorkingDirectory {
  read(): Promise<string>;
  /** Never throws: what cannot be stored lasts as long as the run. */
  move(path: string): Promise<void>;
}

export interface ToolOutput {
  content: ResultPart[];
  /** The tool did its work but the answer is a failure (a non-zero exit, a missing file). */
  failed?: boolean | undefined;
  /** Of this result, where it is not the same for all of the tool's; see {@link Tool.outside}. */
  outside?: boolean | undefined;
  /** Tokens that models have used for it, which count as the run's own. */
  usage?: Usage | undefined;
  /** Nothing is ready before somebody has decided on these: the run parks, and the same call is made again then. */
  parked?: PendingCall[] | undefined;
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
  /** The JSON schema of the arguments where it is not ours to write; default: that of `args`. */
  parameters?: Record<string, unknown> | undefined;
  needs: Capability[];
  risk: Risk;
  /** Who brings it: `dragoman`, or the id of an MCP server. */
  source?: string | undefined;
  /** Its results are content from outside, which models get marked as data (E4). */
  outside?: boolean | undefined;
  /**
   * What happens where no rule speaks, in place of what the risk says. `after-outside`: allowed, but asked in a turn that
   * has read content from outside (E4).
   */
  consent?: "ask" | "after-outside" | undefined;
  run(args: Args, context: ToolContext): Promise<ToolOutput>;
}

/** The tools there are. */
export interface Toolbox {
  /**
   * What an owner's runs may be offered, in the order in which models see it. Asked at every turn: cheap, and without
   * reaching for anything outside. A tool keeps its identity from call to call as long as it is the same.
   */
  of(owner: string): readonly Tool[] | Promise<readonly Tool[]>;
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
    const { $schema: _, ...parameters } =
      tool.parameters ?? (z.toJSONSchema(tool.args, { io: "input" }) as Record<string, unknown>);
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
