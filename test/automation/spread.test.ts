import fc from "fast-check";
import { expect, test } from "vitest";
import { nextLook } from "../../src/automation/spread.ts";

const NOW = new Date("2026-11-20T10:00:00.123Z");
const later = (time: Date, ms: number) => new Date(time.getTime() + ms);

test("comes within the interval, and from then on once in each, however late a look is", () => {
  const id = fc.string({ minLength: 1 });
  const seconds = fc.integer({ min: 5, max: 86_400 });
  const late = fc.nat({ max: 4_999 });
  fc.assert(
    fc.property(
      id,
      seconds,
      fc.date({ noInvalidDate: true, min: new Date(0), max: new Date("2100-01-01") }),
      late,
      (name, every, now, ms) => {
        const first = nextLook(name, now, every * 1_000);
        expect(first.getTime()).toBeGreaterThan(now.getTime());
        expect(first.getTime()).toBeLessThanOrEqual(now.getTime() + every * 1_000);
        expect(nextLook(name, later(first, ms), every * 1_000)).toEqual(later(first, every * 1_000));
      },
    ),
  );
});

test("1,000 that were made at once are looked at over the whole minute", () => {
  const counts = new Map<number, number>();
  for (let n = 0; n < 1_000; n++) {
    const at = nextLook(`wdg_${crypto.randomUUID()}`, NOW, 60_000).getTime();
    counts.set(at, (counts.get(at) ?? 0) + 1);
  }
  // Every other second, so that those of one are claimed together.
  expect(counts.size).toBe(30);
  expect(Math.max(...counts.values())).toBeLessThan(75);
});
