import fc from "fast-check";
import { expect, test } from "vitest";
import { digestOf } from "../../src/automation/watch-digest.ts";
import { digest } from "../../src/platform/local-digest.ts";

test("a text has the same name wherever it is digested, so that what is stored stays valid", async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: "binary" }), fc.string({ unit: "binary-ascii" }), async (a, b) => {
      for (const text of [a, `${a}\ud800${b}`, `${b}é€`])
        expect(await digestOf(text, digest)).toBe(await digestOf(text));
    }),
  );
  expect(await digestOf("abc", digest)).toBe("ba7816bf8f01cfea414140de5dae2223");
});

test("what is long is not digested on the event loop", async () => {
  const long = "x".repeat(1_000_000);
  const refused = () => {
    throw new Error("That would take its time.");
  };
  expect(await digestOf(long, refused)).toBe(digest(long).slice(0, 32));
});
