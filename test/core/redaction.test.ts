import * as fc from "fast-check";
import { expect, test } from "vitest";
import { createRedaction } from "../../src/core/redaction.ts";

const KEY = "sk-ant-api03-Q7canary0123456789";

function holding(...keys: string[]) {
  const redaction = createRedaction();
  for (const key of keys) redaction.hold(key);
  return redaction;
}

test("K2: a key is cut out wherever it stands, and the rest stays", () => {
  const { clean } = holding("sk-other-0123456789", KEY);
  expect(clean(`Bearer ${KEY}!`)).toBe("Bearer [key]!");
  expect(clean(`${KEY}${KEY} sk-other-0123456789`)).toBe("[key][key] [key]");
  expect(clean({ a: [1, { [`x${KEY}`]: KEY }], b: null })).toEqual({
    a: [1, { "x[key]": "[key]" }],
    b: null,
  });
  expect(clean("sk-ant-api03-Q7of-somebody-else")).toBe("sk-ant-api03-Q7of-somebody-else");
});

test("a key that a quotation has cut off is cut out too", () => {
  const { clean } = holding(KEY);
  expect(clean(`'${KEY.slice(0, 24)}…' is no provider`)).toBe("'[key]…' is no provider");
  expect(clean(`${KEY.slice(0, 13)}… is Anthropic's`)).toBe("sk-ant-api03-… is Anthropic's");
});

test("what holds no key is the same object", () => {
  const value = { list: ["nothing in here to be found"], deep: { name: 1 } };
  expect(holding(KEY).clean(value)).toBe(value);
  expect(createRedaction().clean(value)).toBe(value);
});

test("placeholders and sentences are no keys", () => {
  const { clean } = holding("ollama", "not-needed", "", "request failed");
  expect(clean("request failed: ollama is not-needed")).toBe("request failed: ollama is not-needed");
});

test("a thousand keys are known, and of more those that were used last", () => {
  const redaction = createRedaction();
  const key = (n: number) => `sk-canary-${String(n).padStart(8, "0")}`;
  for (let n = 0; n < 1_000; n++) redaction.hold(key(n));
  redaction.hold(key(0));
  redaction.hold(key(1_000));
  const shown = Array.from({ length: 1_001 }, (_, n) => redaction.clean(key(n)));
  expect(shown.filter((text) => text !== "[key]")).toEqual([key(1)]);
});

test("it finds what a plain search finds, in texts made of pieces of keys", () => {
  const letters = fc.constantFrom("a", "b", "é", '"');
  const keys = fc.array(fc.string({ unit: letters, minLength: 12, maxLength: 18 }), {
    minLength: 1,
    maxLength: 4,
  });
  const texts = keys.chain((list) => {
    const pieces = list.flatMap((key) => [key, key.slice(0, 7), key.slice(3)]);
    const piece = fc.oneof(fc.constantFrom(...pieces), fc.string({ unit: letters, maxLength: 5 }));
    return fc.tuple(
      fc.constant(list),
      fc.array(piece, { maxLength: 8 }).map((parts) => parts.join("")),
    );
  });
  fc.assert(
    fc.property(texts, ([list, text]) => {
      const cleaned = holding(...list).clean(text);
      for (const key of list) expect(cleaned).not.toContain(key);
      const isClean = !list.some((key) => text.includes(key));
      if (isClean) expect(cleaned).toBe(text);
    }),
  );
});
