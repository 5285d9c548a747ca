/**
 * Runs the agent's own calls of one model turn. Calls that only read run side by side; a call that writes or executes
 * waits for those before it and holds back those behind it, since models put "write the file" and "run it" into one turn.
 */
import type { AgentEvent } from "../core/event.ts";
import type { CallPart, ToolResultMessage } from "../core/message.ts";
import type { Log } from "../core/platform.ts";
import type { Tool, ToolContext, ToolOutput } from "../core/tool.ts";
import type { Policy } from "./policy.ts";
import { runTool } from "./run-tool.ts";

export interface ToolBatch {
  step: number;
  calls: CallPart[];
  tools: ReadonlyMap<string, Tool>;
  policy: Policy;
  context: Omit<ToolContext, "callId" | "signal" | "progress">;
  log: Log;
}

/** Characters of output that wait for a slow reader; older ones are dropped, the result has them. */
const PROGRESS_BACKLOG = 64 * 1024;

/** Yields the tools' events as they happen and returns the results in the order of the calls. Does not throw. */
export async function* runTools(
  batch: ToolBatch,
  signal: AbortSignal,
): AsyncGenerator<AgentEvent, ToolResultMessage[], void> {
  const results: ToolResultMessage[] = [];
  for (const group of groups(batch)) results.push(...(yield* runGroup(batch, group, signal)));
  return results;
}

function groups({ calls, tools }: ToolBatch): CallPart[][] {
  const out: CallPart[][] = [];
  let open = false;
  for (const call of calls) {
    const risk = tools.get(call.name)?.risk;
    const aside = risk === undefined || risk === "read" || risk === "network";
    if (aside && open) out.at(-1)?.push(call);
    else out.push([call]);
    open = aside;
  }
  return out;
}

async function* runGroup(batch: ToolBatch, calls: CallPart[], signal: AbortSignal) {
  const { step } = batch;
  const waiting: AgentEvent[] = [];
  let wake = () => {};
  let running = calls.length;
  const results: ToolResultMessage[] = [];
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
  for (const [position, { id: callId, name, args }] of calls.entries()) {
    waiting.push({ type: "tool-start", step, callId, name, args });
    const context = {
      ...batch.context,
      callId,
      signal: controller.signal,
      progress: (d: string) => progress(callId, d),
    };
    void runOne(batch, name, args, context).then((output) => {
      results[position] = { role: "tool", callId, name, content: output.content, failed: output.failed };
      waiting.push({
        type: "tool-end",
        step,
        callId,
        name,
        output: output.content,
        failed: output.failed === true,
      });
      running--;
      wake();
    });
  }
  try {
    for (;;) {
      const event = waiting.shift();
      if (event) yield event;
      else if (running === 0) return results;
      else
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
    }
  } finally {
    signal.removeEventListener("abort", stop);
    controller.abort();
  }
}

async function runOne(
  batch: ToolBatch,
  name: string,
  args: string,
  context: ToolContext,
): Promise<ToolOutput> {
  const tool = batch.tools.get(name);
  if (!tool) {
    const names = [...batch.tools.keys()].join(", ");
    return failure(`There is no tool named '${name}'. The tools are: ${names}.`);
  }
  if (context.signal.aborted) return failure("Not run: the request was cancelled.");
  return runTool(tool, args, context, batch.log, (parsed) => {
    const decision = batch.policy.decide(tool, parsed);
    if (decision === "allow") return null;
    return decision === "deny"
      ? "Not run: the policy of this service forbids this call. Do not try it again; tell the user or find another way."
      : "Not run: this call needs a person's approval, and there is no way to ask for it here. Tell the user what you wanted to run.";
  });
}

function failure(sentence: string): ToolOutput {
  return { content: [{ type: "text", text: sentence }], failed: true };
}
