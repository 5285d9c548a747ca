/** The session that a turn belongs to: which one it is, when its turn has come, and what the turn is told of before. */
import { createId } from "../core/id.ts";
import type { Recall } from "../core/memory.ts";
import { type Message, textOf } from "../core/message.ts";
import type { Store } from "../core/store.ts";
import { AppError } from "../errors.ts";
import { replayedCallIds, restoreTurns } from "./handed-back.ts";
import type { RunJournal } from "./journal.ts";
import type { AgentServices, Ask, SessionTurn } from "./turn.ts";
import { cancelPaused } from "./turn-ending.ts";

/** How often a waiting turn looks whether the session is free. Milliseconds. */
const LOOK_AGAIN_MS = 100;

/** The session of an ask. A new one is made with its first run: only its id is there yet. */
export async function sessionOf(
  store: Store,
  { owner, session }: Ask,
): Promise<{ id: string; lastSeq: number; isNew: boolean } | undefined> {
  if (session === undefined) return undefined;
  if (session === "new") return { id: createId("ses"), lastSeq: 0, isNew: true };
  const { id, lastSeq } = await store.sessions.open(owner, session);
  return { id, lastSeq, isNew: false };
}

/** What is remembered, from what the conversation began with; null at once where there is nothing. */
export function recalledFor(
  recall: Recall,
  { owner, request }: Ask,
  session: { id: string; lastSeq: number } | undefined,
): ReturnType<Recall> {
  return recall({
    owner,
    sessionId: session?.id,
    isNew: session ? session.lastSeq === 0 : !request.messages.some(({ role }) => role === "assistant"),
    opening: () => textOf(request.messages.find(({ role }) => role === "user") ?? { content: [] }),
  });
}

export function sessionTurn(
  { owner, adapter, target, key, callersKey }: Ask,
  sessionId: string,
): SessionTurn {
  return { owner, sessionId, provider: adapter.provider, model: target.model, key, callersKey };
}

/** The messages of a request without a session, with what was kept of the turns that they go on with. */
export async function restored(store: Store, owner: string, messages: Message[]): Promise<Message[]> {
  const ids = replayedCallIds(messages);
  return ids.length === 0 ? messages : restoreTurns(messages, await store.handedBack.find(owner, ids));
}

/** Waits for the session's turn. A turn that waits for a decision gives way: the user has gone on without one. */
export async function beginInTurn(
  services: AgentServices,
  owner: string,
  journal: RunJournal,
  client: AbortSignal,
): Promise<void> {
  const deadline = performance.now() + services.patienceMs;
  for (;;) {
    const inTheWay = await journal.begin();
    if (!inTheWay) return;
    if (inTheWay.status === "paused") {
      await cancelPaused(services, owner, inTheWay.id, "superseded");
      continue;
    }
    if (performance.now() >= deadline)
      throw new AppError(
        "conflict",
        `This session is busy with run ${inTheWay.id}. Wait until it has ended, or stop it with POST /api/runs/${inTheWay.id}/stop.`,
        { details: { run_id: inTheWay.id }, retryAfter: 1 },
      );
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
    if (client.aborted) throw new AppError("cancelled", "The client went before its turn had come.");
  }
}
