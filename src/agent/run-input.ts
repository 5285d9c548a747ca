/** What a run works with: who answers, with what tools, under which limits, and where it goes on from. */
import type { CallPart, Message, Usage } from "../core/message.ts";
import type { ModelAdapter, ModelRequest } from "../core/model.ts";
import type { Log } from "../core/platform.ts";
import type { CallRecord } from "../core/run.ts";
import type { Tool, ToolContext } from "../core/tool.ts";
import type { Compaction } from "./compaction.ts";
import type { Journal } from "./journal.ts";
import type { RunLimits } from "./limits.ts";
import type { Policy } from "./policy.ts";

export interface RunInput {
  adapter: ModelAdapter;
  /** History included, with the client's tools only. */
  request: ModelRequest;
  /** The agent's own tools, by name. */
  tools: ReadonlyMap<string, Tool>;
  policy: Policy;
  /** What happens to a call that policy wants asked. `text`: as `person`, in words that any chat can show and answer. */
  asking: "person" | "text" | "nobody" | "allow";
  limits: RunLimits;
  /** Tokens of the model's window; undefined where it is not known. */
  window: number | undefined;
  /** Stands in front of the history, for what came before it; never left out. */
  summary?: Message | undefined;
  /** Makes room before a model call; without it, or when it cannot, the history's oldest part is left out. */
  compaction?: Compaction | undefined;
  context: Omit<ToolContext, "callId" | "signal" | "progress" | "show">;
  /** It belongs to a swarm: what all of its runs have used, for the budget. */
  share?: { tokens: number } | undefined;
  /** The named agent, as its messages say. */
  agent?: string | undefined;
  /** Another run's words begin it: the ids of calls are told apart from those of others, and what it is told may come from outside. */
  delegated?: { outside: boolean } | undefined;
  log: Log;
  now(): Date;
  journal: Journal;
  /** Called before a run is handed back, with all messages that it made. */
  handBack(messages: Message[], calls: CallPart[]): Promise<void>;
  /** A run that was parked or interrupted goes on. */
  resume?: Resume | undefined;
}

export interface Resume {
  /** The calls of the last message of the history, where it has any without results. */
  calls: CallRecord[];
  /** What the run had made before; the tail of `request.messages`. */
  made: Message[];
  /** Whether readers have had the result of a call. */
  isShown(callId: string): boolean;
  steps: number;
  usage: Usage;
}
