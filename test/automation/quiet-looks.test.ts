import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { QuietLooks } from "../../src/automation/quiet-looks.ts";
import type { QuietLook } from "../../src/core/automation.ts";
import { NOW } from "./records.ts";

const look = (id: string): QuietLook => ({
  ...{ id, nextAt: NOW, lastCheckedAt: NOW, lastFiredAt: null, lastError: null },
});

const written: string[][] = [];
const rest = async (claim: string, looks: readonly QuietLook[]) => {
  written.push([claim, ...looks.map(({ id }) => id)]);
};
beforeEach(() => {
  written.length = 0;
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test("those that end together are written at once when they are the last, whatever came of the others", async () => {
  const looks = new QuietLooks({ rest }, "a", 3);
  await Promise.all([looks.ended(look("x")), looks.ended(look("y")), looks.ended(null)]);
  expect(written).toEqual([["a", "x", "y"]]);
  expect(vi.getTimerCount()).toBe(0);
});

test("one that takes its time holds up no other, and is written by itself", async () => {
  const looks = new QuietLooks({ rest }, "a", 4);
  const early = Promise.all([looks.ended(look("x")), looks.ended(look("y"))]);
  await vi.advanceTimersByTimeAsync(100);
  await early;
  expect(written).toEqual([["a", "x", "y"]]);
  await looks.ended(null);
  await looks.ended(look("z"));
  expect(written).toEqual([
    ["a", "x", "y"],
    ["a", "z"],
  ]);
});

test("all of them hear that they could not be written", async () => {
  const failing = { rest: () => Promise.reject(new Error("The disk is full.")) };
  const looks = new QuietLooks(failing, "a", 2);
  const ends = await Promise.allSettled([looks.ended(look("x")), looks.ended(look("y"))]);
  expect(ends.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
});
