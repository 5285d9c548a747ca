import { expect, test } from "vitest";
import { createId } from "../../src/core/id.ts";

test("ids have their prefix and 160 bits, and none comes twice, however the random bytes are fetched", () => {
  const ids = Array.from({ length: 20_000 }, () => createId("run"));
  expect(new Set(ids).size).toBe(ids.length);
  for (const id of ids) expect(id).toMatch(/^run_[a-z2-7]{32}$/);
  expect(createId("chatcmpl")).toMatch(/^chatcmpl-[a-z2-7]{32}$/);
});

test("every letter comes about as often as every other", () => {
  const counts = new Map<string, number>();
  for (let i = 0; i < 2_000; i++)
    for (const letter of createId("ses").slice(4)) counts.set(letter, (counts.get(letter) ?? 0) + 1);
  expect(counts.size).toBe(32);
  for (const count of counts.values()) expect(Math.abs(count - 2_000)).toBeLessThan(400);
});
