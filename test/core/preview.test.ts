import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { toArgs } from "../../src/core/args.ts";
import { previewOf, previewsOf, reveal } from "../../src/core/preview.ts";

/** Undoes the marks. */
function unreveal(text: string): string {
  return text.replace(/⟨U\+([0-9A-F]+)(?: ×(\d+))?⟩/g, (_, code: string, times = "1") =>
    String.fromCodePoint(Number.parseInt(code, 16)).repeat(Number(times)),
  );
}

/** Everything but the plain space and line end that could hide. */
const HIDES = /(?![ \n])[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/u;

const nasty = fc
  .array(
    fc.oneof(
      fc.constantFrom("\u202e", "\u200b", "\u2066", "\ufeff", "\u00a0", "\r", "\t", "\0", "\x1b", "\u3164"),
      fc.constantFrom("\ud800", "\u{e0041}", "⟨", "⟩", "⟨U+202E⟩", "\n", " ", "\n\n\n\n\n", " ".repeat(50)),
      fc.string({ unit: "binary" }),
      fc.string(),
    ),
  )
  .map((pieces) => pieces.join(""));

const command = (text: string, others: object = {}) =>
  previewOf("run_terminal_command", JSON.stringify({ command: text, ...others }));

describe("a preview", () => {
  test("of a command is the command line, with its other arguments behind it", () => {
    expect(command("npm test")).toBe("npm test");
    expect(command("cat <<EOF\n  a\n\n  b\nEOF")).toBe("cat <<EOF\n  a\n\n  b\nEOF");
    const args = (more = {}) => JSON.stringify({ command: "npm test", ...more });
    expect(previewOf("run_terminal_command", args(), "a b/ü")).toBe('npm test\n⟨cwd: "a b/ü"⟩');
    expect(previewOf("run_terminal_command", args(), "x\u202e")).toBe('npm test\n⟨cwd: "x⟨U+202E⟩"⟩');
    expect(previewOf("run_terminal_command", args({ cwd: "web" }), "src")).toBe('npm test\n⟨cwd: "web"⟩');
    const run = (more = {}) => ({ name: "run_terminal_command", args: args(more) });
    const calls = [
      run({ cwd: "web" }),
      run({ background: true }),
      { name: "look", args: "{}" },
      run(),
      run(),
    ];
    expect(previewsOf(calls, "src")).toEqual([
      'npm test\n⟨cwd: "web"⟩',
      'npm test\n⟨background: true, cwd: "src"⟩',
      "look()",
      'npm test\n⟨cwd: "src"⟩',
      "npm test\n⟨cwd: where the command before it ends⟩",
    ]);
    expect(previewOf("create_file", '{"path":"x"}', "src")).not.toContain("src");
    expect(previewOf("run_terminal_command", args({ timeout_seconds: 5 }), null)).toBe(
      "npm test\n⟨timeout_seconds: 5, cwd: where the command before it ends⟩",
    );
    expect(previewOf("run_terminal_command", args({ cwd: "web" }), null)).toBe('npm test\n⟨cwd: "web"⟩');
    expect(command("npm test", { cwd: "web", timeout_seconds: 5 })).toBe(
      'npm test\n⟨cwd: "web", timeout_seconds: 5⟩',
    );
  });

  test("of any other call is its name and its arguments", () => {
    expect(previewOf("create_file", '{"path":"a.txt","content":"x\\ny"}')).toBe(
      'create_file({\n  "path": "a.txt",\n  "content": "x\\ny"\n})',
    );
    expect(previewOf("now", "")).toBe("now()");
    expect(previewOf("github__run", '{"command":"ls"}')).toBe('github__run({\n  "command": "ls"\n})');
    expect(previewOf("run_terminal_command", '{"command":["ls"]}')).toBe(
      'run_terminal_command({\n  "command": [\n    "ls"\n  ]\n})',
    );
  });

  test("of arguments that are no object is their text", () => {
    expect(previewOf("run_terminal_command", '{"command": "l')).toBe('run_terminal_command({"command": "l)');
    expect(previewOf("x", "[1]")).toBe("x([1])");
    const deep = `${'{"a":'.repeat(20_000)}1${"}".repeat(20_000)}`;
    expect(previewOf("x", deep)).toBe(`x(${deep})`);
  });

  test.each([
    ["ls \u202eexe.txt", "ls ⟨U+202E⟩exe.txt"],
    ["rm a\u200bb", "rm a⟨U+200B⟩b"],
    ["a\rb\tc\u00a0d", "a⟨U+000D⟩b⟨U+0009⟩c⟨U+00A0⟩d"],
    ["\u{e0041}\ud800", "⟨U+E0041⟩⟨U+D800⟩"],
    ["⟨U+202E⟩", "⟨U+27E8⟩U+202E⟩"],
    [`ls${" ".repeat(33)}; rm x`, "ls⟨U+0020 ×33⟩; rm x"],
    ["ls\n \n \n \nrm x", "ls⟨U+000A⟩⟨U+0020⟩⟨U+000A⟩⟨U+0020⟩⟨U+000A⟩⟨U+0020⟩⟨U+000A⟩rm x"],
    ["häßlich 漢字 🎉 שלום", "häßlich 漢字 🎉 שלום"],
  ])("shows %j", (text, shown) => {
    expect(command(text)).toBe(shown);
  });

  test("hides nothing and cuts nothing, whatever the command", () => {
    fc.assert(
      fc.property(nasty, (text) => {
        const shown = reveal(text);
        expect(HIDES.test(shown)).toBe(false);
        expect(unreveal(shown)).toBe(text);
        expect(command(text)).toBe(shown);
        const blanks = shown.match(/[ \n]+/g) ?? [];
        for (const blank of blanks) {
          expect(blank.split("\n").length - 1).toBeLessThanOrEqual(3);
          expect(blank).not.toContain(" ".repeat(33));
        }
      }),
      { numRuns: 500 },
    );
  });

  test("hides nothing and cuts nothing, whatever the tool and its arguments", () => {
    fc.assert(
      fc.property(nasty, fc.dictionary(nasty, fc.jsonValue({ maxDepth: 3 })), (name, args) => {
        const shown = previewOf(name, JSON.stringify(args));
        expect(HIDES.test(shown)).toBe(false);
        const whole = unreveal(shown);
        expect(whole.startsWith(`${name}(`)).toBe(true);
        const inner = whole.slice(name.length + 1, -1);
        expect(JSON.parse(inner === "" ? "{}" : inner)).toEqual(JSON.parse(JSON.stringify(args)));
      }),
      { numRuns: 300 },
    );
  });
});

describe("arguments", () => {
  test("are an object, or nothing that a tool takes", () => {
    expect(toArgs('{"a":1}')).toEqual({ a: 1 });
    expect(toArgs(" \n")).toEqual({});
    for (const text of ["null", "1", "[]", '"x"', "{", "{}}"]) expect(toArgs(text)).toBeNull();
    const nested = (levels: number) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;
    expect(toArgs(nested(64))).not.toBeNull();
    expect(toArgs(nested(65))).toBeNull();
    expect(toArgs(`{"a":${"[".repeat(50_000)}${"]".repeat(50_000)}}`)).toBeNull();
  });
});
