import { describe, expect, test } from "vitest";
import { type Frame, type FrameEncoder, RunJournal } from "../../src/agent/journal.ts";
import type { AgentEvent } from "../../src/core/event.ts";
import { type Message, text } from "../../src/core/message.ts";
import type { RunChange, Runs } from "../../src/core/run.ts";
import { AppError } from "../../src/errors.ts";

const said = (delta: string): AgentEvent => ({
  type: "model",
  step: 0,
  event: { type: "part-delta", index: 0, delta },
});
const close: AgentEvent = {
  type: "run-close",
  outcome: "completed",
  stop: "stop",
  usage: { input: 1, output: 2 },
};
const reply: Message = { role: "assistant", content: [text("hello")] };
const progress = { calls: [], steps: 1, usage: { input: 1, output: 2 } };

/** One frame an event, with the event's words in it. */
function plainEncoder(): FrameEncoder {
  let seq = 0;
  const frame = (words: string): Frame[] => [{ seq: ++seq, text: `${seq} ${words}\n\n` }];
  return {
    messageId: null,
    hasShown: () => false,
    push: (event) => frame(event.type === "model" && "delta" in event.event ? event.event.delta : event.type),
    failed: ({ message }) => [{ seq, text: `${seq} ${message}\n\n` }],
  };
}

/** What the store would be told, and whether it takes it. */
function setup(answers: (boolean | Error)[] = []) {
  const changes: RunChange[] = [];
  const begun: Message[][] = [];
  const rows: string[] = [];
  const runs = {
    begin: async (_owner: string, _run: unknown, messages: Message[]) => {
      begun.push(messages);
      return { historySeq: 1 };
    },
    commit: async (_owner: string, _run: string, _holder: string, change: RunChange) => {
      changes.push(structuredClone(change));
      const answer = answers.shift() ?? true;
      if (answer instanceof Error) throw answer;
      return answer;
    },
  } as unknown as Runs;
  const encoder = plainEncoder();
  const run = { id: "run_1", sessionId: "ses_1", holder: "me" } as never;
  const journal = new RunJournal({
    ...{ runs, owner: "ann", encoder: () => encoder, onRow: () => rows.push("row") },
    start: async () => ({ run, messages: [{ role: "user", content: [text("hi")] }] }),
  });
  return { journal, changes, begun, rows, encoder };
}

const busy = new AppError("unavailable", "The database is busy.", { retryAfter: 1 });

describe("the journal of a run", () => {
  test("a run that does nothing is never written", async () => {
    const { journal, changes, begun } = setup();
    journal.add([reply]);
    expect(await journal.see(said("hello"))).toEqual({ event: said("hello"), frames: [] });
    expect((await journal.see(close)).event).toBe(close);
    expect([changes, begun]).toEqual([[], []]);
  });

  test("one that first does something late has all that it said in its stream", async () => {
    const { journal, changes, rows } = setup();
    await journal.see(said("a"));
    await journal.see(said("b"));
    journal.add([reply]);
    await journal.commit(progress);
    expect(rows).toEqual(["row"]);
    expect(changes).toMatchObject(
      [
        {
          frames: { first: 1, last: 2, text: "1 a\n\n2 b\n\n" },
          messages: [reply],
          messageIds: [/^msg_/],
          steps: 1,
        },
      ].map((change) => ({ ...change, messageIds: [expect.stringMatching(/^msg_/)] })),
    );
    expect(journal.storedSeq).toBe(2);
    expect((await journal.see(said("c"))).frames).toEqual([{ seq: 3, text: "3 c\n\n" }]);
  });

  test("the end is one write, with what was said last and its message", async () => {
    const { journal, changes, encoder } = setup();
    await journal.begin();
    await journal.see(said("a"));
    journal.add([reply]);
    const { frames } = await journal.see(close);
    expect(frames).toEqual([{ seq: 2, text: "2 run-close\n\n" }]);
    expect(changes).toHaveLength(1);
    expect(changes[0]).toMatchObject({
      end: { status: "completed", stop: "stop" },
      messages: [reply],
      frames: { first: 1, last: 2 },
      usage: { input: 1, output: 2 },
    });
    expect(encoder.messageId).toBe(changes[0]?.messageIds?.[0]);
  });

  test("what is stored with a result is shown once", async () => {
    const { journal, changes } = setup();
    await journal.begin();
    const shown: AgentEvent = {
      type: "tool-end",
      step: 0,
      callId: "c",
      name: "t",
      output: [],
      failed: false,
    };
    await journal.commit({ ...progress, shown });
    expect(changes[0]?.frames?.text).toBe("1 tool-end\n\n");
    expect((await journal.see(shown)).frames).toEqual([{ seq: 1, text: "1 tool-end\n\n" }]);
    await journal.commit(progress);
    expect(changes[1]?.frames).toBeUndefined();
  });

  test("R8: an end that cannot be stored is a failure, in place of the end", async () => {
    const { journal } = setup([busy]);
    await journal.begin();
    const seen = await journal.see(close);
    expect(seen).toMatchObject({
      event: { type: "run-close", outcome: "failed", fault: { code: "unavailable", retryAfter: 1 } },
      frames: [{ seq: 1, text: "1 The database is busy.\n\n" }],
      unstored: busy,
    });
  });

  test("a lost lease is one, too", async () => {
    const { journal } = setup([false]);
    await journal.begin();
    await expect(journal.commit(progress)).rejects.toThrow("in other hands");
  });

  test("what could not be stored goes with the next commit", async () => {
    const { journal, changes } = setup([busy]);
    await journal.begin();
    await journal.see(said("a"));
    journal.add([reply]);
    await expect(journal.commit(progress)).rejects.toThrow(busy);
    await journal.see(said("b"));
    await journal.commit(progress);
    expect(changes[1]).toMatchObject({
      messages: [reply],
      frames: { first: 1, last: 2, text: "1 a\n\n2 b\n\n" },
    });
    expect(changes[1]?.messageIds).toEqual(changes[0]?.messageIds);
  });

  test("a run that says much is stored in between, and a database that is busy then does not end it", async () => {
    const { journal, changes } = setup([busy]);
    await journal.begin();
    const much = "x".repeat(40 * 1024);
    await journal.see(said(much));
    expect(changes).toHaveLength(0);
    expect((await journal.see(said(much))).frames).toHaveLength(1);
    expect(changes).toHaveLength(1);
    for (let i = 0; i < 3; i++) await journal.see(said(much));
    expect(changes).toHaveLength(2);
    expect(changes[1]?.frames).toMatchObject({ first: 1 });
  });
});
