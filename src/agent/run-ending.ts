/** How a run ends, and what stands in the history for what it could not finish. Pure. */
import type { AgentEvent, ModelEvent, RunOutcome } from "../core/event.ts";
import type { AssistantMessage, Message, StopReason } from "../core/message.ts";
import type { CallRecord } from "../core/run.ts";
import type { Fault } from "../errors.ts";
import { notRun, REFUSALS } from "./judge.ts";

export interface Ending {
  outcome: RunOutcome;
  stop: StopReason;
  fault?: Fault | undefined;
  stopSequence?: string | undefined;
  extra?: Extract<ModelEvent, { type: "done" }>["extra"];
}

export function failed(fault: Fault): Ending {
  return { outcome: fault.code === "cancelled" ? "stopped" : "failed", stop: "stop", fault };
}

/** Stopped, or out of time: every call gets a result. */
export function endCalls(calls: readonly CallRecord[]): void {
  for (const call of calls) {
    if (call.result !== null) continue;
    call.state = call.state === "started" ? "unknown" : "cancelled";
    call.result = notRun(
      call,
      call.state === "unknown" ? (REFUSALS.unknown ?? LOST) : "Not run: the run was stopped.",
    );
  }
}

/** The end of a call that was decided and not run. */
export function ended(step: number, { callId, name, result }: CallRecord): AgentEvent {
  const output = result?.content ?? [];
  return { type: "tool-end", step, callId, name, output, failed: result?.failed === true };
}

/** What had been said when a stream broke, without calls that were never finished. */
export function spoken(message: AssistantMessage): Message[] {
  const content = message.content.filter((part) => part?.type === "text" && part.text !== "");
  return content.length === 0 ? [] : [{ ...message, content }];
}

export const CUT_OFF =
  "Not run: the reply was cut off at its output limit before the arguments were complete; write less at once.";
export const LOOPING = "the same call was made too often in a row";
export const LOST = "There is no result of this call.";
