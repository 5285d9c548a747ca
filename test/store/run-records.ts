/** Runs, calls and changes as the tests need them. */
import { createId } from "../../src/core/id.ts";
import { type Message, type ToolResultMessage, text } from "../../src/core/message.ts";
import type { CallRecord, NewRun, RunSpec } from "../../src/core/run.ts";
import type { Store } from "../../src/core/store.ts";
import type { Fault } from "../../src/errors.ts";

export const NOW = new Date("2026-11-20T10:00:00.000Z");
export const LATER = new Date("2026-11-20T10:00:30.000Z");
export const MUCH_LATER = new Date("2026-11-21T10:00:00.000Z");

export const SPEC: RunSpec = {
  door: "chat",
  provider: "openai",
  agent: "dragoman",
  request: { model: "gpt", system: [text("Be brief.")], messages: [], tools: [], settings: {} },
  tools: ["look"],
};

export const CANCELLED: Fault = { code: "cancelled", message: "Nobody decided.", status: 499 };

export const user = (value: string): Message => ({ role: "user", content: [text(value)] });
export const reply = (value: string): Message => ({ role: "assistant", content: [text(value)] });

export const calling = (...ids: string[]): Message => ({
  role: "assistant",
  content: ids.map((id) => ({ type: "call", id, name: "look", args: "{}" })),
});

export const resultOf = (callId: string, value = "seen"): ToolResultMessage => ({
  role: "tool",
  callId,
  name: "look",
  content: [text(value)],
});

export const newRun = (sessionId: string, more: Partial<NewRun> = {}): NewRun => ({
  id: createId("run"),
  sessionId,
  spec: SPEC,
  sealedKey: "sealed",
  holder: "h1",
  leaseUntil: LATER,
  ...more,
});

export const newCall = (run: NewRun, callId: string, more: Partial<CallRecord> = {}): CallRecord => ({
  runId: run.id,
  sessionId: run.sessionId,
  callId,
  step: 0,
  position: 0,
  name: "look",
  args: '{"at":"x"}',
  risk: "execute",
  state: "pending",
  codeHash: null,
  expiresAt: MUCH_LATER,
  decidedAt: null,
  result: null,
  ...more,
});

/** A run in a session of its own. */
export async function begin(store: Store, owner: string, more: Partial<NewRun> = {}): Promise<NewRun> {
  const { id } = await store.sessions.open(owner, "new");
  const run = newRun(id, more);
  await store.runs.begin(owner, run, [user("go")]);
  return run;
}

/** A run that is parked with these calls. */
export async function park(
  store: Store,
  owner: string,
  ids: string[],
  more: Partial<CallRecord> = {},
): Promise<NewRun> {
  const run = await begin(store, owner);
  const calls = ids.map((id, position) => newCall(run, id, { position, ...more }));
  const end = { status: "paused" as const, stop: "stop" as const };
  await store.runs.commit(owner, run.id, run.holder, { messages: [calling(...ids)], calls, steps: 1, end });
  return run;
}

export async function history(store: Store, owner: string, sessionId: string): Promise<Message[]> {
  const page = await store.sessions.page(owner, sessionId, { limit: 100_000 });
  return page.map((stored) => stored.message).reverse();
}
