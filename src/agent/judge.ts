/** A call of the agent's own, before anything happens: may it run, must somebody be asked, or will it not run at all. */
import { type CallPart, type ResultPart, type ToolResultMessage, text } from "../core/message.ts";
import type { CallRecord, CallState } from "../core/run.ts";
import type { Tool } from "../core/tool.ts";
import type { Policy } from "./policy.ts";
import { readArgs } from "./run-tool.ts";

/** How long somebody may take to decide. Milliseconds. */
export const DECISION_MS = 24 * 60 * 60 * 1000;

export interface Bench {
  runId: string;
  sessionId: string;
  step: number;
  tools: ReadonlyMap<string, Tool>;
  policy: Policy;
  /** `nobody`: what would ask does not run. `allow`: it does. */
  asking: "person" | "nobody" | "allow";
  /** Whether the model has read content from outside. Asked only where it matters. */
  outside(): boolean;
  now: Date;
}

export function judgeCalls(calls: CallPart[], bench: Bench): CallRecord[] {
  return calls.map((call, position) => judge(call, position, bench));
}

function judge(call: CallPart, position: number, bench: Bench): CallRecord {
  const tool = bench.tools.get(call.name);
  const record = (state: CallState, refusal?: string): CallRecord => ({
    runId: bench.runId,
    sessionId: bench.sessionId,
    callId: call.id,
    step: bench.step,
    position,
    name: call.name,
    args: call.args,
    risk: tool?.risk ?? "read",
    state,
    codeHash: null,
    expiresAt: state === "pending" ? new Date(bench.now.getTime() + DECISION_MS) : null,
    decidedAt: null,
    result: refusal === undefined ? null : notRun(call, refusal),
  });
  // An unknown tool and wrong arguments are told to the model by whatever runs the call.
  const read = tool ? readArgs(tool, call.args) : undefined;
  if (!tool || read?.problem !== undefined) return record("allowed");
  const decision = bench.policy.decide(
    tool,
    read?.args ?? {},
    tool.consent === "after-outside" && bench.outside(),
  );
  if (decision === "allow" || (decision === "ask" && bench.asking === "allow")) return record("allowed");
  if (decision === "deny") return record("denied", FORBIDDEN);
  return bench.asking === "person" ? record("pending") : record("denied", NOBODY);
}

const FORBIDDEN =
  "Not run: the policy of this service forbids this call. Do not try it again; tell the user or find another way.";
const NOBODY =
  "Not run: this call needs a person's approval, and there is no way to ask for it here. Tell the user what you wanted to run.";

/** Results of calls that will never run, for the model. */
export const REFUSALS: Partial<Record<CallState, string>> = {
  denied:
    "Not run: the user denied this call. Do not try it again unless they ask for it; find another way or stop.",
  expired: "Not run: nobody decided on this call in time.",
  cancelled: "Not run: the user went on without deciding on this call.",
  unknown:
    "Interrupted: the service stopped while this ran. Whether it had an effect is unknown; check before you do it again.",
};

export function notRun(
  call: { id?: string; callId?: string; name: string },
  sentence: string,
): ToolResultMessage {
  const content: ResultPart[] = [text(sentence)];
  return { role: "tool", callId: call.callId ?? call.id ?? "", name: call.name, content, failed: true };
}
