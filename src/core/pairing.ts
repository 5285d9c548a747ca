/**
 * Calls and their results in a history as a client sends it. Every provider wants the results of a message's calls
 * directly behind it, one for each; what breaks this is found here, and each door says it in its own words.
 */
import type { Message } from "./message.ts";

export interface PairingFault {
  kind: /** A result that answers no call before it. */
    | "result-without-call"
    /** A call that the messages directly behind it do not answer. */
    | "call-without-result"
    /** The id was given to another call that still waits for its result. */
    | "duplicate-call"
    /** The call was answered already. */
    | "duplicate-result";
  /** Position of the message at fault: the result's, or that of the message which calls. */
  index: number;
  callId: string;
}

/**
 * The first problem in order of the messages, or null.
 *
 * `continues`: the messages go on from a history that is kept elsewhere, so that results at their start, before any
 * assistant message, may answer calls which are not among them.
 */
export function findPairingFault(
  messages: readonly Message[],
  options: { continues?: boolean } = {},
): PairingFault | null {
  /** Every call id so far -> whether its result has come. */
  const answered = new Map<string, boolean>();
  let open: string[] = [];
  let openedAt = -1;
  let mayContinue = options.continues === true;

  const unanswered = (): PairingFault | null => {
    const callId = open.find((id) => answered.get(id) === false);
    return callId === undefined ? null : { kind: "call-without-result", index: openedAt, callId };
  };

  for (let index = 0; index < messages.length; index++) {
    const message = messages[index]!;
    if (message.role === "tool") {
      const { callId } = message;
      if (answered.get(callId) === true) return { kind: "duplicate-result", index, callId };
      if (!answered.has(callId) && !mayContinue)
        return unanswered() ?? { kind: "result-without-call", index, callId };
      answered.set(callId, true);
      continue;
    }
    if (open.length > 0) {
      const fault = unanswered();
      if (fault) return fault;
      open = [];
    }
    if (message.role !== "assistant") continue;
    mayContinue = false;
    for (const part of message.content) {
      if (part.type !== "call") continue;
      if (answered.get(part.id) === false) return { kind: "duplicate-call", index, callId: part.id };
      answered.set(part.id, false);
      open.push(part.id);
      openedAt = index;
    }
  }
  return unanswered();
}
