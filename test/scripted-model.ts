/** A ModelAdapter that plays back what a test wrote, and keeps the requests that it got. */
import type { ModelEvent } from "../src/core/event.ts";
import type { ProviderName, StopReason } from "../src/core/message.ts";
import type { ModelAdapter, ModelRequest } from "../src/core/model.ts";
import type { Fault } from "../src/errors.ts";

export interface ScriptedCall {
  id: string;
  name: string;
  args: unknown;
  seal?: string;
}

export interface ScriptedReply {
  text?: string;
  reasoning?: string;
  seal?: string;
  calls?: ScriptedCall[];
  stop?: StopReason;
  usage?: { input: number; output: number };
  /** Instead of `done`. */
  fault?: Fault;
  /** Never ends by itself: waits for the signal behind its text. */
  hang?: boolean;
}

export function scriptedEvents(reply: ScriptedReply): ModelEvent[] {
  const events: ModelEvent[] = [{ type: "open", model: "scripted" }];
  let index = 0;
  const part = (start: Extract<ModelEvent, { type: "part-open" }>["part"], delta: string, seal?: string) => {
    events.push({ type: "part-open", index, part: start });
    if (delta !== "") events.push({ type: "part-delta", index, delta });
    events.push(seal === undefined ? { type: "part-close", index } : { type: "part-close", index, seal });
    index++;
  };
  if (reply.reasoning !== undefined) part({ kind: "reasoning" }, reply.reasoning, reply.seal);
  if (reply.text !== undefined) part({ kind: "text" }, reply.text);
  for (const { id, name, args, seal } of reply.calls ?? [])
    part({ kind: "call", id, name }, typeof args === "string" ? args : JSON.stringify(args), seal);
  if (reply.hang) return events;
  if (reply.fault) events.push({ type: "failed", fault: reply.fault });
  else
    events.push({
      type: "done",
      stop: reply.stop ?? (reply.calls?.length ? "tool-calls" : "stop"),
      usage: reply.usage ?? { input: 10, output: 5 },
    });
  return events;
}

export interface ScriptedModel extends ModelAdapter {
  requests: ModelRequest[];
}

/** Replies in turn; the last one again and again. */
export function scriptedModel(replies: ScriptedReply[], provider: ProviderName = "openai"): ScriptedModel {
  const requests: ModelRequest[] = [];
  return {
    provider,
    requests,
    models: async () => [],
    async *stream(request, signal) {
      requests.push(structuredClone(request));
      const reply = replies[Math.min(requests.length, replies.length) - 1] as ScriptedReply;
      yield* scriptedEvents(reply);
      if (!reply.hang) return;
      await new Promise<void>((resolve) => {
        if (signal.aborted) resolve();
        else signal.addEventListener("abort", () => resolve(), { once: true });
      });
      yield {
        type: "failed",
        fault: { code: "cancelled", message: "The request was cancelled.", status: 499 },
      };
    },
  };
}
