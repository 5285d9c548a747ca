import { expect, test, vi } from "vitest";
import { createId } from "../../src/core/id.ts";

test("ids have their prefix and 32 letters, and none comes twice, however the random bytes are fetched", () => {
  const ids = Array.from({ length: 20_000 }, () => createId("run"));
  expect(new Set(ids).size).toBe(ids.length);
  for (const id of ids) expect(id).toMatch(/^run_[a-z2-7]{32}$/);
  expect(createId("chatcmpl")).toMatch(/^chatcmpl-[a-z2-7]{32}$/);
});

test("ids grow with time", () => {
  vi.useFakeTimers({ now: new Date("2026-11-20T10:00:00.000Z") });
  const ids = Array.from({ length: 2_000 }, () => {
    vi.advanceTimersByTime(64);
    return createId("msg");
  });
  vi.useRealTimers();
  expect(ids.toSorted()).toEqual(ids);
});

test("behind the time every letter comes about as often as every other", () => {
  const counts = new Map<string, number>();
  for (let i = 0; i < 2_000; i++)
    for (const letter of createId("ses").slice(10)) counts.set(letter, (counts.get(letter) ?? 0) + 1);
  expect(counts.size).toBe(32);
  for (const count of counts.values()) expect(Math.abs(count - 1_625)).toBeLessThan(400);
});
