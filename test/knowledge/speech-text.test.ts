import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { PieceLimit } from "../../src/core/speech.ts";
import { lengthOf, speakable, splitText } from "../../src/knowledge/speech-text.ts";

const size = (text: string, { unit }: PieceLimit) =>
  unit === "chars" ? text.length : Buffer.byteLength(text);

const words = fc.array(
  fc.oneof(
    fc.stringMatching(/^[a-z]{1,12}$/),
    fc.constantFrom(". ", "! ", ", ", "\n\n", " ", "。", "你好", "😀", "👩‍👩‍👧", "é", "'s ", "Wörter", "  "),
    fc.string({ unit: "grapheme", maxLength: 8 }),
  ),
  { maxLength: 120 },
);
const texts = words.map((parts) => parts.join("").toWellFormed());
const limits = fc.record({
  most: fc.integer({ min: 4, max: 120 }),
  unit: fc.constantFrom("chars" as const, "bytes" as const),
});

describe("splitting", () => {
  test("keeps every character, stays within the limit and never splits a surrogate pair", () => {
    fc.assert(
      fc.property(texts, limits, (text, limit) => {
        const pieces = splitText(text, limit);
        expect(pieces.join("")).toBe(text);
        for (const piece of pieces) {
          expect(piece).not.toBe("");
          expect(size(piece, limit)).toBeLessThanOrEqual(limit.most);
          expect(piece.isWellFormed()).toBe(true);
        }
      }),
      { numRuns: 300 },
    );
  });

  test("splits no word that a piece could hold", () => {
    const prose = fc.array(fc.stringMatching(/^[a-zäöü]{1,10}[.,;!?]?$/), { minLength: 1, maxLength: 80 });
    fc.assert(
      fc.property(prose, fc.integer({ min: 25, max: 90 }), (parts, most) => {
        const pieces = splitText(parts.join(" "), { most, unit: "bytes" });
        const heard = pieces.flatMap((piece) => piece.split(" ").filter((word) => word !== ""));
        expect(heard).toEqual(parts);
      }),
    );
  });

  test("takes the end of a sentence before that of a clause, and that before a blank", () => {
    const limit = { most: 40, unit: "chars" } as const;
    expect(splitText("One is here. Two is there, and three goes on for long.", limit)).toEqual([
      "One is here. ",
      "Two is there, ",
      "and three goes on for long.",
    ]);
    expect(splitText("Here it begins, and it does not end so soon", limit)[0]).toBe("Here it begins, ");
    expect(splitText("これは一つ目の文です。これは二つ目の文です。", { most: 40, unit: "bytes" })[0]).toBe(
      "これは一つ目の文です。",
    );
  });

  test("counts characters as people do, and turns what is no sound into pauses", () => {
    expect(lengthOf("a😀é")).toBe(3);
    expect(speakable("a\u0000b\u001b[1mc\r\nd\te\ud800f")).toBe("a b [1mc \nd\te f");
  });
});
