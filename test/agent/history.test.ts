import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { handedBackTurn, mustKeep, restoreTurns } from "../../src/agent/handed-back.ts";
import { resolveTarget } from "../../src/agent/target.ts";
import { trimHistory } from "../../src/agent/trim.ts";
import { windowOf } from "../../src/agent/windows.ts";
import { type Message, text } from "../../src/core/message.ts";
import type { ModelRequest } from "../../src/core/model.ts";
import { repairHistory } from "../../src/providers/repair-history.ts";

/** Turns as a client would have them: question, any rounds of calls with their results, an answer. */
const turn = fc
  .record({
    question: fc.string({ maxLength: 400 }),
    rounds: fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 3 }),
    answer: fc.string({ minLength: 1, maxLength: 400 }),
    output: fc.string({ maxLength: 2000 }),
  })
  .map(({ question, rounds, answer, output }) => ({ question, rounds, answer, output }));

let serial = 0;
function messagesOf(
  turns: { question: string; rounds: number[]; answer: string; output: string }[],
): Message[] {
  const out: Message[] = [];
  for (const { question, rounds, answer, output } of turns) {
    out.push({ role: "user", content: [text(question)] });
    for (const calls of rounds) {
      const ids = Array.from({ length: calls }, () => `call_${serial++}`);
      out.push({
        role: "assistant",
        content: ids.map((id) => ({ type: "call", id, name: "t", args: "{}" })),
      });
      for (const callId of ids) out.push({ role: "tool", callId, name: "t", content: [text(output)] });
    }
    out.push({ role: "assistant", content: [text(answer)] });
  }
  out.push({ role: "user", content: [text("last question")] });
  return out;
}

function request(messages: Message[]): ModelRequest {
  return { model: "m", system: [], messages, tools: [], settings: { maxTokens: 10 } };
}

function expectPaired(messages: Message[]): void {
  for (const [i, message] of messages.entries()) {
    if (message.role !== "assistant") continue;
    const ids = message.content.flatMap((part) => (part.type === "call" ? [part.id] : []));
    const results = messages.slice(i + 1, i + 1 + ids.length);
    expect(results.map((m) => m.role === "tool" && m.callId)).toEqual(ids);
  }
  const calls = messages.flatMap((m) =>
    m.role === "assistant" ? m.content.filter((p) => p.type === "call") : [],
  );
  expect(messages.filter((m) => m.role === "tool")).toHaveLength(calls.length);
}

describe("trimming", () => {
  test("never splits a call from its result, keeps the last question, begins with a user message", () => {
    fc.assert(
      fc.property(fc.array(turn, { maxLength: 6 }), fc.integer({ min: 20, max: 4000 }), (turns, window) => {
        const messages = messagesOf(turns);
        const trimmed = trimHistory(request(messages), window);
        expect(trimmed.messages.length + trimmed.dropped).toBe(messages.length);
        expect(trimmed.messages[0]?.role).toBe("user");
        expect(trimmed.messages.at(-1)).toBe(messages.at(-1));
        expectPaired(trimmed.messages);
      }),
    );
  });

  test("one long turn loses its oldest rounds and keeps its question", () => {
    const messages: Message[] = [{ role: "user", content: [text("the question")] }];
    for (let i = 0; i < 10; i++) {
      messages.push({ role: "assistant", content: [{ type: "call", id: `c${i}`, name: "t", args: "{}" }] });
      messages.push({ role: "tool", callId: `c${i}`, content: [text("x".repeat(3500))] });
    }
    const { messages: kept, dropped } = trimHistory(request(messages), 4000);
    expect(kept[0]).toBe(messages[0]);
    expect(kept.at(-1)).toBe(messages.at(-1));
    expect(dropped).toBeGreaterThan(0);
    expectPaired(kept);
  });

  test("what fits is left alone, and so is everything for a model that is not known", () => {
    const messages = messagesOf([{ question: "q", rounds: [1], answer: "a", output: "o" }]);
    expect(trimHistory(request(messages), 100_000)).toEqual({ messages, dropped: 0 });
    expect(trimHistory(request(messages), undefined).messages).toBe(messages);
  });
});

describe("windows and targets", () => {
  test("a configured window wins over the known one", () => {
    expect(windowOf("gpt-4o-mini", [])).toBe(128_000);
    expect(windowOf("gpt-4o-mini", [{ glob: "gpt-4o*", tokens: 8000 }])).toBe(8000);
    expect(windowOf("qwen3", [])).toBeUndefined();
  });

  test.each([
    ["gpt-5", { agent: "dragoman", named: false, model: "gpt-5" }],
    ["claude-x", { agent: "dragoman", named: false, model: "gpt-5" }],
    ["dragoman", { agent: "dragoman", named: true, model: "default" }],
    ["dragoman@m", { agent: "dragoman", named: true, model: "m" }],
    ["dragoman/raw@openai/gpt-oss-20b", { agent: null, named: true, model: "openai/gpt-oss-20b" }],
    ["dragoman/raw", { agent: null, named: true, model: "default" }],
    ["dragoman/dragoman@claude-x", { agent: "dragoman", named: true, model: "gpt-5" }],
    ["dragoman-2", { agent: "dragoman", named: false, model: "dragoman-2" }],
  ])("%s", (word, wanted) => {
    expect(resolveTarget(word, "default", [{ glob: "claude-*", model: "gpt-5" }])).toEqual(wanted);
  });

  test("an unknown agent is a 404 that names the field", () => {
    expect(() => resolveTarget("dragoman/nobody", "d", [])).toThrow(
      expect.objectContaining({ status: 404, param: "model" }),
    );
    expect(() => resolveTarget("dragoman/raw@", "d", [])).toThrow(expect.objectContaining({ status: 400 }));
  });
});

describe("handed-back turns", () => {
  const question: Message = { role: "user", content: [text("weather and file?")] };
  const made: Message[] = [
    {
      role: "assistant",
      content: [
        { type: "call", id: "s", name: "look", args: "{}" },
        { type: "call", id: "c", name: "w", args: "{}", seal: "sig" },
      ],
    },
    { role: "tool", callId: "s", name: "look", content: [text("file!")] },
  ];
  const clientCopy: Message = {
    role: "assistant",
    content: [{ type: "call", id: "c", name: "w", args: "{}" }],
  };
  const result: Message = { role: "tool", callId: "c", content: [text("sunny")] };

  test("put back what the client could not carry, at its place", () => {
    const kept = handedBackTurn([question], made, ["c"]);
    expect(restoreTurns([question, clientCopy, result], [kept])).toEqual([question, ...made, result]);
  });

  test("an id that is not random counts only behind the same question", () => {
    const kept = handedBackTurn([question], made, ["c"]);
    const other: Message[] = [{ role: "user", content: [text("another talk")] }, clientCopy, result];
    expect(restoreTurns(other, [kept])).toEqual(other);
  });

  test("calls that are not the kept ones are left alone", () => {
    const kept = handedBackTurn([question], made, ["c", "d"]);
    expect(restoreTurns([question, clientCopy, result], [kept])).toEqual([question, clientCopy, result]);
  });

  test("kept only where something would be lost", () => {
    const call = (seal?: string): Message => ({
      role: "assistant",
      content: [{ type: "call", id: "c", name: "w", args: "{}", seal }],
    });
    const thought: Message = { role: "assistant", content: [{ type: "reasoning", text: "hm", seal: "s" }] };
    expect(mustKeep([call()], false)).toBe(false);
    expect(mustKeep([call("s")], true)).toBe(true);
    expect(mustKeep([thought], true)).toBe(false);
    expect(mustKeep([thought], false)).toBe(true);
    expect(mustKeep(made, true)).toBe(true);
  });
});

describe("repairing a history", () => {
  const arbitrary = fc.array(
    fc.oneof(
      fc.record({
        role: fc.constant("user" as const),
        content: fc.array(fc.string().map(text), { maxLength: 2 }),
      }),
      fc.record({
        role: fc.constant("assistant" as const),
        content: fc.array(
          fc.oneof(
            fc.string().map(text),
            fc
              .constantFrom("a", "b", "weird id!")
              .map((id) => ({ type: "call" as const, id, name: "t", args: "{}", seal: "s" })),
            fc.string().map((t) => ({ type: "reasoning" as const, text: t, seal: "s" })),
          ),
          { maxLength: 4 },
        ),
        origin: fc.constantFrom(
          undefined,
          { provider: "gemini" as const },
          { provider: "anthropic" as const },
        ),
      }),
      fc.record({
        role: fc.constant("tool" as const),
        callId: fc.constantFrom("a", "b", "weird id!"),
        content: fc.constant([text("r")]),
      }),
    ),
    { maxLength: 12 },
  );

  test("every call has exactly one result directly behind it, ids are unique and portable, foreign seals are gone", () => {
    fc.assert(
      fc.property(
        arbitrary,
        fc.constantFrom("anthropic" as const, "openai" as const),
        (messages, provider) => {
          const repaired = repairHistory(messages as Message[], provider);
          expectPaired(repaired);
          const ids = repaired.flatMap((m) => (m.role === "tool" ? [m.callId] : []));
          expect(new Set(ids).size).toBe(ids.length);
          for (const id of ids) expect(id).toMatch(/^[a-zA-Z0-9_-]{1,40}$/);
          for (const message of repaired) {
            if (message.role !== "assistant") continue;
            expect(message.content.length).toBeGreaterThan(0);
            if (message.origin?.provider !== provider)
              for (const part of message.content)
                expect("seal" in part ? part.seal : undefined).toBeUndefined();
          }
          expect(repairHistory(repaired, provider)).toEqual(repaired);
        },
      ),
    );
  });

  test("a history in order is returned untouched, part for part", () => {
    const messages = messagesOf([{ question: "q", rounds: [2, 1], answer: "a", output: "o" }]);
    expect(repairHistory(messages, "openai")).toEqual(
      messages.map((m) => (m.role === "tool" ? { ...m, name: "t" } : m)),
    );
  });
});
