/** From a decoded request to a run under way: the session's history, kept turns, tools, prompt, limits. */
import type { AgentEvent } from "../core/event.ts";
import type { Message } from "../core/message.ts";
import type { ModelAdapter, ModelRequest } from "../core/model.ts";
import type { Platform } from "../core/platform.ts";
import type { Store } from "../core/store.ts";
import type { Tool } from "../core/tool.ts";
import { handedBackTurn, mustKeep, replayedCallIds, restoreTurns } from "./handed-back.ts";
import type { RunLimits } from "./limits.ts";
import type { Policy } from "./policy.ts";
import { agentPrompt } from "./prompt.ts";
import { run } from "./run.ts";
import { selectTools, type ToolSelection } from "./select-tools.ts";
import { SessionLog } from "./session-log.ts";
import type { Target } from "./target.ts";
import { type ModelWindow, windowOf } from "./windows.ts";

export interface AgentServices {
  platform: Platform;
  store: Store;
  tools: readonly Tool[];
  policy: Policy;
  limits: RunLimits;
  windows: readonly ModelWindow[];
}

export interface Ask {
  runId: string;
  owner: string;
  /** For the usage row: `chat-completions`, `messages`. */
  door: string;
  adapter: ModelAdapter;
  target: Target;
  /** As the door decoded it. `model` is replaced by the target's. */
  request: ModelRequest;
  selection: ToolSelection;
  /** `x-session-id`; undefined for a stateless run. */
  session: string | undefined;
  /** See Decoded.carriesSeals. */
  carriesSeals: boolean;
}

export interface StartedRun {
  sessionId: string | undefined;
  /** Nothing is sent upstream before it is read. Ends by itself when `signal` is aborted. */
  events: AsyncGenerator<AgentEvent, void, void>;
}

/** Throws AppError when the run cannot begin: an unknown session, a database that does not answer. */
export async function startRun(services: AgentServices, ask: Ask, signal: AbortSignal): Promise<StartedRun> {
  const { platform, store, policy, limits } = services;
  const { owner, runId } = ask;
  const begun = performance.now();
  const window = windowOf(ask.target.model, services.windows);
  const session =
    ask.session === undefined ? undefined : await SessionLog.open(store.sessions, owner, ask.session, window);
  const messages = session
    ? await session.begin(ask.request.messages)
    : await restored(store, owner, ask.request.messages);

  const files = platform.files(owner);
  const terminal = platform.terminal?.(owner);
  const available = services.tools.filter(
    (tool) => !tool.needs.includes("terminal") || terminal !== undefined,
  );
  const tools =
    ask.target.agent === null
      ? []
      : selectTools({
          available,
          policy,
          selection: ask.selection,
          clientTools: ask.request.tools,
          toolChoice: ask.request.toolChoice,
          canAsk: false,
        });
  const prompted = ask.target.agent !== null && (tools.length > 0 || ask.target.named);
  const request: ModelRequest = {
    ...ask.request,
    model: ask.target.model,
    system: prompted ? [agentPrompt({ tools, files, terminal }), ...ask.request.system] : ask.request.system,
    messages,
  };
  const events = run(
    {
      adapter: ask.adapter,
      request,
      tools: new Map(tools.map((tool) => [tool.name, tool])),
      policy,
      limits,
      window,
      context: { owner, sessionId: session?.id, runId, files, terminal },
      log: platform.log,
      record: async (made) => {
        await session?.append(made);
      },
      handBack: async (made, calls) => {
        if (session || !mustKeep(made, ask.carriesSeals)) return;
        const ids = calls.map((call) => call.id);
        await store.handedBack.keep(owner, handedBackTurn(messages, made, ids));
      },
      finished: ({ outcome, steps, usage }) => {
        store.usage.record({
          ...{ owner, runId, door: ask.door, provider: ask.adapter.provider, model: request.model },
          ...{ outcome, steps, usage, durationMs: Math.round(performance.now() - begun) },
        });
      },
    },
    signal,
  );
  return { sessionId: session?.id, events };
}

async function restored(store: Store, owner: string, messages: Message[]): Promise<Message[]> {
  const ids = replayedCallIds(messages);
  return ids.length === 0 ? messages : restoreTurns(messages, await store.handedBack.find(owner, ids));
}
