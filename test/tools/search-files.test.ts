import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import { compileGlob, compileText } from "../../src/tools/pattern.ts";
import { createToolFixture, said, type ToolFixture } from "./fixture.ts";

let fixture: ToolFixture;
beforeEach(async () => {
  fixture = createToolFixture();
  await fixture.write("src/a.ts", "import x\nconst a = 1;\r\nlet B = (2);\n");
  await fixture.write("src/deep/b.tsx", "const b = 1;");
  await fixture.write("readme.md", "const in prose\n\n");
  await fixture.write("node_modules/m.js", "const c = 1;");
  await fixture.write("image", Uint8Array.from([0, ...new TextEncoder().encode("const d")]));
});
const search = async (args: Record<string, unknown>) =>
  said(await fixture.call("search_files", args)).split("\n");

describe("search_files", () => {
  test("finds lines in text files, in path order", async () => {
    expect(await search({ pattern: "const" })).toEqual([
      "readme.md:1: const in prose",
      "src/a.ts:2: const a = 1;",
      "src/deep/b.tsx:1: const b = 1;",
    ]);
    expect(await search({ pattern: "^const [ab] = \\d;$" })).toEqual([
      "src/a.ts:2: const a = 1;",
      "src/deep/b.tsx:1: const b = 1;",
    ]);
    expect(await search({ pattern: "\\Alet" })).toEqual(["src/a.ts:3: let B = (2);"]);
    expect(await search({ pattern: "^$" })).toEqual(["readme.md:2: "]);
  });

  test("takes text as it is, and any case, where asked", async () => {
    expect(await search({ pattern: "= (2)", literal: true })).toEqual(["src/a.ts:3: let B = (2);"]);
    expect(await search({ pattern: "LET b", literal: true, ignore_case: true })).toEqual([
      "src/a.ts:3: let B = (2);",
    ]);
    expect(await search({ pattern: "= (2)" })).toEqual(["No match in 3 text files."]);
  });

  test("narrows by path, file and glob", async () => {
    expect(await search({ pattern: "const", path: "src/deep" })).toEqual(["src/deep/b.tsx:1: const b = 1;"]);
    expect(await search({ pattern: "const", path: "readme.md" })).toEqual(["readme.md:1: const in prose"]);
    expect(await search({ pattern: "const", glob: "*.ts" })).toEqual(["src/a.ts:2: const a = 1;"]);
    expect(await search({ pattern: "const", glob: "src/**/*.{ts,tsx}" })).toHaveLength(2);
    expect(await search({ pattern: "const", path: "src", glob: "deep/*" })).toEqual([
      "src/deep/b.tsx:1: const b = 1;",
    ]);
  });

  test("caps what it returns and says so", async () => {
    await fixture.write("many", "hit\n".repeat(500));
    const some = await search({ pattern: "hit", max_results: 3 });
    expect(some.slice(0, 3)).toEqual(["many:1: hit", "many:2: hit", "many:3: hit"]);
    expect(some[3]).toMatch(/more matches/);
    await fixture.write("long", `${"y".repeat(200_000)}z\n`.repeat(3));
    const long = await search({ pattern: "yz" });
    expect(long).toHaveLength(3);
    expect(long.join("").length).toBeLessThan(2_000);
    await fixture.write("huge", "x".repeat(5 * 1024 * 1024 + 1));
    expect((await search({ pattern: "nowhere" }))[0]).toMatch(/Not searched: 1 file over 5 MiB/);
  });

  test("a pattern or glob that is none is refused with a sentence", async () => {
    for (const pattern of ["(", "(a)\\1", "(?<=a)b", "[z-a]", "a{2000}", "x".repeat(2_000)]) {
      await expect(fixture.call("search_files", { pattern })).rejects.toThrow(/pattern/);
    }
    await expect(fixture.call("search_files", { pattern: "a", glob: "[a" })).rejects.toThrow(/glob/);
  });

  test("E6: patterns that backtrack elsewhere end, and leave the event loop to others", async () => {
    await fixture.write("xs", `${"x".repeat(3_000)}\n`.repeat(700));
    let turns = 0;
    const ticker = setInterval(() => turns++, 1);
    for (const pattern of [
      "(x+x+)+y",
      "(x|x)*y$",
      "^(([a-z])+.)+[A-Z]([a-z])+$",
      "(.*)(.*)(.*)(.*)(.*)[0-9]",
    ]) {
      expect((await search({ pattern, path: "xs" }))[0]).toBe("No match in 1 text file.");
    }
    clearInterval(ticker);
    expect(turns).toBeGreaterThan(10);
  });

  test("E6: the more a pattern costs, the sooner others get their turn", async () => {
    await fixture.write("x.txt", `${"x".repeat(500)}\n`.repeat(20));
    let turns = 0;
    const ticker = setInterval(() => turns++, 0);
    const found = await search({ pattern: "(?:x{0,1000}){1,1}\\by", path: "x.txt" });
    clearInterval(ticker);
    expect(found).toEqual(["No match in 1 text file."]);
    expect(turns).toBeGreaterThan(5);
  });

  test("a search that is stopped ends", async () => {
    await fixture.write("xs", "x\n".repeat(500_000));
    const stop = new AbortController();
    const work = fixture.call("search_files", { pattern: "y" }, { signal: stop.signal });
    setTimeout(() => stop.abort(new Error("stopped")), 1);
    await expect(work).rejects.toThrow("stopped");
  });
});

describe("patterns", () => {
  test("a block that no line matches is the only one passed over", () => {
    const pattern = fc.constantFrom(
      "a",
      "^a",
      "a$",
      "^$",
      "a.b",
      "\\Aa",
      "a\\z",
      "\\ba\\b",
      "[^a]",
      "a|b$",
      "(?i)A",
      "\\s",
      "^\\s*$",
    );
    const lines = fc.array(fc.string({ unit: fc.constantFrom("a", "b", " ", "A", "_"), maxLength: 4 }), {
      minLength: 1,
    });
    fc.assert(
      fc.property(pattern, lines, fc.boolean(), fc.boolean(), (source, texts, literal, ignoreCase) => {
        const compiled = compileText(source, { literal, ignoreCase });
        if (texts.some((line) => compiled.line(line))) expect(compiled.block(texts.join("\n"))).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  test.each([
    ["*.ts", ["a.ts", "src/a.ts"], ["a.tsx", "ats"]],
    ["src/*.ts", ["src/a.ts"], ["src/b/a.ts", "a.ts"]],
    ["**/*.ts", ["a.ts", "src/a.ts", "a/b/c.ts"], ["a.js"]],
    ["src/**", ["src/a", "src/a/b"], ["src", "other/src/a"]],
    ["a?c", ["abc"], ["ac", "a/c"]],
    ["[a-c]x", ["ax", "cx"], ["dx"]],
    ["[!a]x", ["bx"], ["ax", "/x"]],
    ["{a,b*}.md", ["a.md", "bcd.md"], ["c.md"]],
    ["a.b+c", ["a.b+c"], ["aXb+c", "a.bbc"]],
    ["\\*", ["*"], ["a"]],
    ["./src/x", ["src/x"], ["x"]],
  ])("glob %s", (glob, yes, no) => {
    const matches = compileGlob(glob);
    expect(yes.filter((path) => !matches(path))).toEqual([]);
    expect(no.filter((path) => matches(path))).toEqual([]);
  });

  test("a glob of many stars against a long name ends", () => {
    expect(compileGlob(`${"*a".repeat(100)}b`)("a".repeat(5_000))).toBe(false);
  });
});
