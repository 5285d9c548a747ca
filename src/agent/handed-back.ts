/**
 * What a client's protocol cannot carry between a tool call and its result: seals, the results of the agent's own tools
 * in the same turn, earlier steps. Kept under the client's call ids and put back when those ids return.
 */
import { type AssistantMessage, callsOf, type Message, textOf } from "../core/message.ts";
import type { HandedBackTurn } from "../core/store.ts";

/** Ids of this length or more are taken for random. Shorter ones (`call_0`) repeat in other conversations. */
const RANDOM_ID_LENGTH = 20;

/** Whether the client's copy of the turn would lose something. `steps` are the run's messages, the calling one last but for results. */
export function mustKeep(steps: Message[], carriesSeals: boolean): boolean {
  if (steps.length > 1) return true;
  return steps.some(
    (message) =>
      message.role === "assistant" &&
      message.content.some(
        (part) =>
          (part.type === "call" && part.seal !== undefined) ||
          (!carriesSeals && (part.type === "reasoning" || part.type === "text") && part.seal !== undefined),
      ),
  );
}

/** The record of a turn that ends in calls of the client's. `history` is what stood before the run's messages. */
export function handedBackTurn(history: Message[], steps: Message[], callIds: string[]): HandedBackTurn {
  return { callIds, context: contextOf(callIds[0] as string, history), messages: steps };
}

/** Ids of all calls in a client's history: what to look up. */
export function replayedCallIds(messages: Message[]): string[] {
  const ids: string[] = [];
  for (const message of messages)
    if (message.role === "assistant")
      for (const part of message.content) if (part.type === "call") ids.push(part.id);
  return ids;
}

/** The history with each kept turn in place of the client's copy of it. */
export function restoreTurns(messages: Message[], turns: HandedBackTurn[]): Message[] {
  if (turns.length === 0) return messages;
  const byId = new Map<string, HandedBackTurn[]>();
  for (const turn of turns) for (const id of turn.callIds) byId.set(id, [...(byId.get(id) ?? []), turn]);
  const out: Message[] = [];
  for (const message of messages) {
    const turn = message.role === "assistant" ? turnOf(message, byId, out) : undefined;
    if (turn) out.push(...turn.messages);
    else out.push(message);
  }
  return out;
}

function turnOf(message: AssistantMessage, byId: Map<string, HandedBackTurn[]>, before: Message[]) {
  const ids = callsOf(message).map((call) => call.id);
  return byId
    .get(ids[0] ?? "")
    ?.find(
      (turn) =>
        turn.callIds.length === ids.length &&
        ids.every((id) => turn.callIds.includes(id)) &&
        turn.context === contextOf(turn.callIds[0] as string, before),
    );
}

/** Empty for an id that is random; otherwise a hash of the question, which tells equal ids of two conversations apart. */
function contextOf(callId: string, before: Message[]): string {
  if (callId.length >= RANDOM_ID_LENGTH) return "";
  const question = before.findLast((message) => message.role === "user");
  return question ? hash(textOf(question)) : "";
}

/** FNV-1a in two lanes: no secret depends on it, rows are an owner's own. */
function hash(text: string): string {
  let a = 0x811c9dc5;
  let b = 0x01000193;
  for (let i = 0; i < text.length; i++) {
    a = Math.imul(a ^ text.charCodeAt(i), 0x01000193);
    b = Math.imul(b ^ text.charCodeAt(text.length - 1 - i), 0x85ebca6b);
  }
  return (a >>> 0).toString(36) + (b >>> 0).toString(36);
}
