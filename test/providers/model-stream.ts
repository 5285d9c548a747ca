/** What a model stream must be, whatever adapter made it. */
import { expect } from "vitest";
import type { ModelEvent } from "../../src/core/event.ts";
import { fold } from "../../src/core/fold.ts";
import type { AssistantMessage } from "../../src/core/message.ts";
import type { ModelRequest } from "../../src/core/model.ts";

export function request(part: Partial<ModelRequest> = {}): ModelRequest {
  return {
    model: "model-1",
    system: [],
    messages: [{ role: "user", content: [{ type: "text", text: "hi" }] }],
    tools: [],
    settings: {},
    ...part,
  };
}

export async function collect(events: AsyncIterable<ModelEvent>): Promise<ModelEvent[]> {
  const out: ModelEvent[] = [];
  for await (const event of events) out.push(event);
  return out;
}

/** Throws where `events` breaks the order that ModelEvent's contract sets. */
export function assertModelStream(events: readonly ModelEvent[]): void {
  const terminal = events.at(-1);
  expect(terminal?.type, "a stream ends in done or failed").toMatch(/^(done|failed)$/);
  const opened: boolean[] = [];
  events.forEach((event, at) => {
    const last = at === events.length - 1;
    if (event.type === "done" || event.type === "failed") {
      expect(last, `event ${at} is terminal, and others follow`).toBe(true);
      if (event.type === "done") expect(opened, "parts left open").not.toContain(true);
      return;
    }
    expect(event.type === "open", `event ${at}: one open, and it comes first`).toBe(at === 0);
    if (event.type === "part-open") {
      expect(event.index, `event ${at}: parts are numbered in order`).toBe(opened.length);
      if (event.part.kind === "call") {
        expect(event.part.id, "a call has an id").not.toBe("");
        expect(event.part.name, "a call has a name").not.toBe("");
      }
      opened.push(true);
    } else if (event.type === "part-delta") {
      expect(opened[event.index], `event ${at}: delta of a part that is not open`).toBe(true);
      if (event.extra === undefined) expect(event.delta, `event ${at}: empty delta`).not.toBe("");
    } else if (event.type === "part-close") {
      expect(opened[event.index], `event ${at}: close of a part that is not open`).toBe(true);
      opened[event.index] = false;
    }
  });
}

/** Collects, checks the order, and folds. */
export async function replyOf(events: AsyncIterable<ModelEvent>): Promise<{
  events: ModelEvent[];
  message: AssistantMessage;
  /** The terminal event. */
  end: Extract<ModelEvent, { type: "done" | "failed" }>;
}> {
  const all = await collect(events);
  assertModelStream(all);
  const end = all.at(-1);
  if (end?.type !== "done" && end?.type !== "failed") throw new Error("unreachable");
  return { events: all, message: fold(all), end };
}

/** The events with ids that the adapter made up itself replaced by their order, for comparing two runs. */
export function withoutMadeUpIds(events: readonly ModelEvent[]): ModelEvent[] {
  let n = 0;
  return events.map((event) =>
    event.type === "part-open" && event.part.kind === "call" && /^call_[a-z2-7]{32}$/.test(event.part.id)
      ? { ...event, part: { ...event.part, id: `made-up-${n++}` } }
      : event,
  );
}
