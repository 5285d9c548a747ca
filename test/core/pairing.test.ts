import fc from "fast-check";
import { expect, test } from "vitest";
import { type AssistantMessage, type Message, text } from "../../src/core/message.ts";
import { findPairingFault } from "../../src/core/pairing.ts";

const user: Message = { role: "user", content: [text("go")] };
const calls = (...ids: string[]): AssistantMessage => ({
  role: "assistant",
  content: ids.map((id) => ({ type: "call", id, name: "f", args: "{}" })),
});
const result = (callId: string): Message => ({ role: "tool", callId, content: [text("ok")] });

test("a history in which each call has its result is whole", () => {
  expect(
    findPairingFault([user, calls("a", "b"), result("b"), result("a"), calls("c"), result("c"), user]),
  ).toBe(null);
});

test.each<[string, Message[], ReturnType<typeof findPairingFault>]>([
  ["a result alone", [user, result("x")], { kind: "result-without-call", index: 1, callId: "x" }],
  [
    "a call at the end",
    [user, calls("a", "b"), result("a")],
    { kind: "call-without-result", index: 1, callId: "b" },
  ],
  [
    "a user who speaks before the result",
    [calls("a"), user, result("a")],
    { kind: "call-without-result", index: 0, callId: "a" },
  ],
  [
    "an assistant who goes on before the result",
    [calls("a"), calls("b"), result("a"), result("b")],
    { kind: "call-without-result", index: 0, callId: "a" },
  ],
  [
    "a result of another id in place of the call's",
    [calls("a"), result("b")],
    { kind: "call-without-result", index: 0, callId: "a" },
  ],
  [
    "two results for one call",
    [calls("a"), result("a"), result("a")],
    { kind: "duplicate-result", index: 2, callId: "a" },
  ],
  [
    "a second result, later",
    [calls("a"), result("a"), user, result("a")],
    { kind: "duplicate-result", index: 3, callId: "a" },
  ],
  ["one id twice in a message", [calls("a", "a")], { kind: "duplicate-call", index: 0, callId: "a" }],
  [
    "one id for two calls, the first unanswered",
    [calls("a"), calls("a"), result("a")],
    { kind: "call-without-result", index: 0, callId: "a" },
  ],
  ["one id in two turns, each answered", [calls("a"), result("a"), user, calls("a"), result("a")], null],
])("%s", (_, messages, fault) => {
  expect(findPairingFault(messages)).toEqual(fault);
});

test("where the history is kept elsewhere, results at the start may answer calls of it", () => {
  const continues = { continues: true };
  expect(findPairingFault([result("a"), result("b"), user], continues)).toBe(null);
  expect(findPairingFault([user, result("a")], continues)).toBe(null);
  expect(findPairingFault([result("a"), result("a")], continues)).toEqual({
    kind: "duplicate-result",
    index: 1,
    callId: "a",
  });
  expect(findPairingFault([result("a"), calls("b"), result("b"), result("c")], continues)).toEqual({
    kind: "result-without-call",
    index: 3,
    callId: "c",
  });
  expect(findPairingFault([result("a"), calls("a"), result("a")], continues)).toBe(null);
});

test("leaving any call or any result out of a whole history is found", () => {
  const history = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 6 }).map((turns) =>
    turns.flatMap((count, turn): Message[] => {
      const ids = Array.from({ length: count }, (_, n) => `c${turn}_${n}`);
      return [user, calls(...ids), ...ids.map(result)];
    }),
  );
  fc.assert(
    fc.property(history, fc.nat(), (messages, pick) => {
      expect(findPairingFault(messages)).toBe(null);
      const removable = messages.flatMap((message, index) => (message.role === "user" ? [] : [index]));
      const at = removable[pick % removable.length]!;
      expect(findPairingFault(messages.toSpliced(at, 1))).not.toBe(null);
    }),
  );
});

test("a message with very many calls is checked in one pass", () => {
  const ids = Array.from({ length: 200_000 }, (_, n) => `c${n}`);
  expect(findPairingFault([calls(...ids), ...ids.map(result)])).toBe(null);
});
