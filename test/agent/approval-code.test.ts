import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { approvalText, createCode, hashCode, parseDecision } from "../../src/agent/approval-code.ts";

const EXPIRES = "2026-11-21T10:00:59.000Z";

describe("a code", () => {
  test("has 40 random bits in characters that are not mistaken for one another", () => {
    const codes = Array.from({ length: 2000 }, createCode);
    expect(new Set(codes).size).toBe(2000);
    expect([...new Set(codes.join(""))].sort().join("")).toBe("23456789ABCDEFGHJKLMNPQRSTUVWXYZ");
    for (const code of codes) expect(code).toHaveLength(8);
  });

  test("is stored as its SHA-256", async () => {
    expect(await hashCode("K7MPQ2XR")).toBe(
      "88c83b1eb8856bbe56adbfa3a8b6b0f808bd83aba20a8afc7340b860c90f8f68",
    );
  });
});

describe("the message that asks", () => {
  test("shows one call and its code", () => {
    expect(approvalText([{ preview: "npm test", code: "K7MPQ2XR" }], EXPIRES)).toBe(
      [
        "This needs your approval before it runs:",
        "",
        "```",
        "npm test",
        "```",
        "",
        "Reply with exactly `approve K7MPQ2XR` or `deny K7MPQ2XR`. The code is good until 2026-11-21 10:00 UTC.",
      ].join("\n"),
    );
  });

  test("shows each of several calls with a code of its own, in fences that they cannot end", () => {
    const calls = [
      { preview: "cat <<'E'\n```\nE", code: "AAAAAAA2" },
      { preview: 'create_file({\n  "path": "a"\n})', code: "BBBBBBB3" },
    ];
    expect(approvalText(calls, EXPIRES)).toBe(
      [
        "These 2 calls need your approval before they run. Decide on each in a message of its own; the codes are good until 2026-11-21 10:00 UTC.",
        "",
        "**1.**",
        "",
        "````",
        "cat <<'E'",
        "```",
        "E",
        "````",
        "",
        "Reply with exactly `approve AAAAAAA2` or `deny AAAAAAA2`.",
        "",
        "**2.**",
        "",
        "```",
        "create_file({",
        '  "path": "a"',
        "})",
        "```",
        "",
        "Reply with exactly `approve BBBBBBB3` or `deny BBBBBBB3`.",
      ].join("\n"),
    );
  });

  test("holds every preview whole, inside a fence that is longer than any in it", () => {
    const preview = fc.array(fc.constantFrom("`", "```", "\n", "x", "~")).map((pieces) => pieces.join(""));
    fc.assert(
      fc.property(preview, (shown) => {
        const text = approvalText([{ preview: shown, code: "K7MPQ2XR" }], EXPIRES);
        const [, fence = "", inner] = /\n\n(`{3,})\n([\s\S]*)\n\1\n\nReply/.exec(text) ?? [];
        expect(inner).toBe(shown);
        expect(shown).not.toContain(fence);
      }),
    );
  });
});

describe("the message that decides", () => {
  test.each([
    ["approve K7MPQ2XR", "allowed"],
    ["deny K7MPQ2XR", "denied"],
    ["  Approve \t k7mpq2xr\n", "allowed"],
    ["`approve K7MPQ2XR`", "allowed"],
    ["approve `K7MPQ2XR`", "allowed"],
    ['"DENY K7MPQ2XR"', "denied"],
    ["'deny K7MPQ2XR'", "denied"],
  ])("%j", (message, decision) => {
    expect(parseDecision(message)).toEqual({ decision, code: "K7MPQ2XR" });
  });

  test.each([
    "approve",
    "approve K7MPQ2X",
    "approve K7MPQ2XRR",
    "approve K7MPQ2X0",
    "approveK7MPQ2XR",
    "approve\nK7MPQ2XR",
    "approve K7MPQ2XR.",
    "approve K7MPQ2XR please",
    "please approve K7MPQ2XR",
    "I do not approve K7MPQ2XR",
    "approve K7MPQ2XR\ndeny K7MPQ2XR",
    "approve K7MPQ2XR K7MPQ2XS",
    "`approve K7MPQ2XR",
    "\"approve K7MPQ2XR'",
    "approve \u200bK7MPQ2XR",
    "approve K7MPQ2X\u212a",
    "allow K7MPQ2XR",
    "K7MPQ2XR",
    `${" ".repeat(100)}approve K7MPQ2XR`,
    "",
  ])("is not %j", (message) => {
    expect(parseDecision(message)).toBeNull();
  });

  test("names any code that is ever made, and is nothing once a word stands around it", () => {
    fc.assert(
      fc.property(
        fc.constantFrom("approve", "deny"),
        fc.stringMatching(/^[a-z.!?]{1,20}$/),
        (word, other) => {
          const code = createCode();
          expect(parseDecision(`${word} ${code}`)?.code).toBe(code);
          expect(parseDecision(`${other} ${word} ${code}`)).toBeNull();
          expect(parseDecision(`${word} ${code} ${other}`)).toBeNull();
        },
      ),
    );
  });
});
