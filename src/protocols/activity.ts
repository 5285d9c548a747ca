/** What the agent's own tools do, for clients of the `/v1` doors that ask to see it (`x-agent-events: 1`). */
import type { AgentEvent } from "../core/event.ts";
import { textOf } from "../core/message.ts";

/** null for events that are not of that kind. */
export function activityOf(event: AgentEvent): Record<string, unknown> | null {
  switch (event.type) {
    case "tool-start":
      return {
        type: event.type,
        step: event.step,
        call_id: event.callId,
        name: event.name,
        args: event.args,
      };
    case "tool-progress":
      return { type: event.type, step: event.step, call_id: event.callId, delta: event.delta };
    case "tool-end":
      return {
        type: event.type,
        step: event.step,
        call_id: event.callId,
        name: event.name,
        output: textOf({ content: event.output }),
        failed: event.failed,
      };
    case "approval-needed":
      return { type: event.type, step: event.step, calls: event.calls };
    case "agent":
      return {
        type: event.type,
        agent: event.member.name,
        task: event.member.task,
        status: event.status,
        parent: event.member.parent,
        ...(event.calls ? { calls: event.calls } : {}),
      };
    case "member": {
      const theirs = activityOf(event.event);
      return theirs && theirs.type !== "approval-needed" ? { agent: event.member.name, ...theirs } : null;
    }
    case "compacted":
      return {
        type: event.type,
        step: event.step,
        messages: event.messages,
        tokens_before: event.tokensBefore,
        tokens_after: event.tokensAfter,
      };
    default:
      return null;
  }
}
