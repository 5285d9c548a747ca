/**
 * Runs the agent's own calls of one model turn. Calls that only read run side by side; a call that writes or executes
 * waits for those before it and holds back those behind it, since models put "write the file" and "run it" into one turn.
 *
 * A call is marked as started before it starts, and its result is stored before anybody is told of it: after a crash
 * nothing runs twice that may have had effects.
 */
import type { AgentEvent, PendingCall } from "../core/event.ts";
import type { ToolResultMessage, Usage } from "../core/message.ts";
import type { Log } from "../core/platform.ts";
import type { CallRecord } from "../core/run.ts";
import type { Tool, ToolContext, ToolOutput } from "../core/tool.ts";
import { runTool } from "./run-tool.ts";

export interface ToolBatch {
  step: number;
  tools: ReadonlyMap<string, Tool>;
  context: Omit<ToolContext, "callId" | "signal" | "progress" | "show">;
  log: Log;
  /** Makes changed calls durable, and what is shown of it. Throws when it cannot: the batch ends with that. */
  store(calls: CallRecord[], shown?: AgentEvent): Promise<void>;
  /** Told of tokens that a tool has used, before its result is stored. */
  spend(usage: Usage): void;
  /** Told of calls that a tool waits for. The tool's own stays as it is, started and without a result. */
  park(calls: PendingCall[]): void;
}

/** Characters of output that wait for a slow reader; older ones are dropped, the result has them. */
const PROGRESS_BACKLOG = 64 * 1024;
/** Made once: an abort without a reason makes one each time, with a stack. */
const OVER = new DOMException("The calls are over.", "AbortError");

/** Calls that may run side by side, in the order in which the groups run. */
export function groupCalls(calls: CallRecord[]): CallRecord[][] {
  const out: CallRecord[][] = [];
  let open = false;
  for (const call of calls) {
    const aside = call.risk === "read" || call.risk === "network";
    if (aside && open) out.at(-1)?.push(call);
    else out.push([call]);
    open = aside;
  }
  return out;
}

/**
 * Yields the tools' events as they happen, and leaves state and result in the calls. Calls of the first group are
 * marked as started, and stored so, by the caller. What the signal keeps from starting stays `allowed`.
 */
export async function* runTools(
  batch: ToolBatch,
  groups: CallRecord[][],
  signal: AbortSignal,
): AsyncGenerator<AgentEvent, void, void> {
  for (const [position, group] of groups.entries()) {
    if (signal.aborted) return;
    if (position > 0) {
      for (const call of group) call.state = "started";
      await batch.store(group);
    }
    yield* runGroup(batch, group, signal);
  }
}

type Waiting =
  | AgentEvent
  | { type: "ended"; call: CallRecord; output: ToolOutput }
  | { type: "shown"; event: AgentEvent; taken: () => void };

async function* runGroup(
  batch: ToolBatch,
  calls: CallRecord[],
  signal: AbortSignal,
): AsyncGenerator<AgentEvent, void, void> {
  const { step } = batch;
  const waiting: Waiting[] = [];
  let wake = () => {};
  let running = calls.length;
  /** Nobody takes anything any more. */
  let left = false;
  // A consumer that goes away ends the generator at a yield; the tools must not outlive it.
  const controller = new AbortController();
  const stop = () => controller.abort();
  if (signal.aborted) stop();
  else signal.addEventListener("abort", stop, { once: true });

  const progress = (callId: string, delta: string) => {
    const last = waiting.at(-1);
    if (last?.type === "tool-progress" && last.callId === callId)
      last.delta = (last.delta + delta).slice(-PROGRESS_BACKLOG);
    else waiting.push({ type: "tool-progress", step, callId, delta });
    wake();
  };
  const show = (event: AgentEvent) =>
    new Promise<void>((taken) => {
      if (left) return taken();
      waiting.push({ type: "shown", event, taken });
      wake();
    });
  for (const call of calls) {
    const { callId, name, args } = call;
    waiting.push({ type: "tool-start", step, callId, name, args });
    const context = {
      ...batch.context,
      callId,
      signal: controller.signal,
      progress: (delta: string) => progress(callId, delta),
      show,
    };
    void runOne(batch, call, context).then((output) => {
      waiting.push({ type: "ended", call, output });
      running--;
      wake();
    });
  }
  try {
    for (;;) {
      const event = waiting.shift();
      if (event?.type === "ended") {
        if (event.output.parked) batch.park(event.output.parked);
        else yield await ended(batch, event.call, event.output);
      } else if (event?.type === "shown") {
        yield event.event;
        event.taken();
      } else if (event) yield event;
      else if (running === 0) return;
      else
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
    }
  } finally {
    signal.removeEventListener("abort", stop);
    controller.abort(OVER);
    left = true;
    for (const event of waiting) if (event.type === "shown") event.taken();
  }
}

async function ended(batch: ToolBatch, call: CallRecord, output: ToolOutput): Promise<AgentEvent> {
  call.state = "done";
  if (output.usage) batch.spend(output.usage);
  call.result = resultOf(call, output, output.outside ?? batch.tools.get(call.name)?.outside);
  const { callId, name } = call;
  const failed = output.failed === true;
  const { step } = batch;
  const event: AgentEvent = { type: "tool-end", step, callId, name, output: output.content, failed };
  await batch.store([call], event);
  return event;
}

/** The result as the model reads it. */
export function resultOf(
  call: Pick<CallRecord, "callId" | "name">,
  output: ToolOutput,
  outside?: boolean,
): ToolResultMessage {
  return {
    role: "tool",
    callId: call.callId,
    name: call.name,
    content: output.content,
    ...(output.failed ? { failed: true } : {}),
    ...(outside ? { outside } : {}),
  };
}

function runOne(batch: ToolBatch, call: CallRecord, context: ToolContext): Promise<ToolOutput> {
  const tool = batch.tools.get(call.name);
  if (tool) return runTool(tool, call.args, context, batch.log);
  const names = [...batch.tools.keys()].join(", ") || "none";
  return Promise.resolve({
    content: [{ type: "text", text: `There is no tool named '${call.name}'. The tools are: ${names}.` }],
    failed: true,
  });
}
