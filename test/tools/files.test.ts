import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import { createToolFixture, refused, said, type ToolFixture } from "./fixture.ts";

const PNG = Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, 1, 2, 3, 255]);

let fixture: ToolFixture;
beforeEach(() => {
  fixture = createToolFixture();
});

describe("create_file", () => {
  test("creates with parents, then replaces, and says which", async () => {
    const created = said(await fixture.call("create_file", { path: "a/b/c.txt", content: "one\ntwo\n" }));
    expect(created).toBe("Created a/b/c.txt: 8 bytes, 2 lines.");
    const replaced = said(await fixture.call("create_file", { path: "./a/b/c.txt", content: "ä" }));
    expect(replaced).toBe("Replaced a/b/c.txt: 2 bytes, 1 line.");
    expect(await fixture.text("a/b/c.txt")).toBe("ä");
  });

  test("E2: refuses what lies outside", async () => {
    await expect(fixture.call("create_file", { path: "../x", content: "" })).rejects.toThrow(/leads out/);
  });
});

describe("read_file", () => {
  test("shows lines under a header, and says how to go on", async () => {
    await fixture.write("a.txt", Array.from({ length: 10 }, (_, i) => `line ${i + 1}\n`).join(""));
    expect(said(await fixture.call("read_file", { path: "a.txt", offset: 3, limit: 2 }))).toBe(
      "[a.txt: lines 3 to 4 of 10]\nline 3\nline 4\n[more lines: read on with offset 5]",
    );
    expect(said(await fixture.call("read_file", { path: "a.txt", offset: 9 }))).toBe(
      "[a.txt: lines 9 to 10 of 10]\nline 9\nline 10",
    );
    expect(said(await fixture.call("read_file", { path: "a.txt", offset: 11 }))).toBe(
      "[a.txt has 10 lines; there is no line 11]",
    );
    await fixture.write("empty", "");
    expect(said(await fixture.call("read_file", { path: "empty" }))).toBe("[empty is empty]");
    await fixture.write("crlf", "a\r\nb");
    expect(said(await fixture.call("read_file", { path: "crlf" }))).toBe(
      "[crlf: lines 1 to 2 of 2, CRLF line ends]\na\nb",
    );
  });

  test("reading on from each offset gives every line once, whatever the lengths", async () => {
    const line = fc.oneof(
      fc.string({ maxLength: 40 }),
      fc.nat(6_000).map((n) => "x".repeat(n)),
    );
    const text = fc.array(
      line.map((value) => value.replaceAll(/[\r\n\0]/g, "_")),
      { minLength: 1, maxLength: 60 },
    );
    await fc.assert(
      fc.asyncProperty(text, async (lines) => {
        await fixture.write("f", `${lines.join("\n")}\n`);
        const seen: string[] = [];
        for (let offset = 1; offset <= lines.length; ) {
          const output = said(await fixture.call("read_file", { path: "f", offset, limit: 20 }));
          expect(output.length).toBeLessThan(33_000);
          const [header, ...rest] = output.split("\n");
          const [, first, last] = /lines (\d+) to (\d+) of/.exec(header!)!;
          expect(Number(first)).toBe(offset);
          if (Number(last) < lines.length) rest.pop();
          seen.push(...rest);
          offset = Number(last) + 1;
        }
        const cut = (value: string) =>
          value.length > 2_000
            ? `${"x".repeat(2_000)}… [${value.length - 2_000} more characters in this line]`
            : value;
        expect(seen).toEqual(lines.map(cut));
      }),
      { numRuns: 50 },
    );
  });

  test("shows images by their bytes, and refuses other binary files and directories", async () => {
    await fixture.write("picture.txt", PNG);
    const { content } = await fixture.call("read_file", { path: "picture.txt" });
    expect(content[1]).toEqual({
      type: "image",
      source: { kind: "data", mediaType: "image/png", data: Buffer.from(PNG).toString("base64") },
    });
    await fixture.write(
      "large.png",
      Uint8Array.from({ length: 6 * 1024 * 1024 }, (_, i) => PNG[i % 16]!),
    );
    expect(refused(await fixture.call("read_file", { path: "large.png" }))).toMatch(/smaller copy/);
    await fixture.write("data", Uint8Array.from([1, 0, 2]));
    expect(refused(await fixture.call("read_file", { path: "data" }))).toMatch(/binary file of 3 bytes/);
    await fixture.write("dir/x", "x");
    expect(refused(await fixture.call("read_file", { path: "dir" }))).toMatch(/list_files/);
    await expect(fixture.call("read_file", { path: "none" })).rejects.toThrow(/no file or directory "none"/);
  });

  test("an image of any length arrives whole", async () => {
    for (const length of [16, 24_576, 24_577, 50_000]) {
      const bytes = Uint8Array.from({ length }, (_, i) => (i < 12 ? PNG[i]! : i % 251));
      await fixture.write("p", bytes);
      const { content } = await fixture.call("read_file", { path: "p" });
      expect(content[1]).toMatchObject({ source: { data: Buffer.from(bytes).toString("base64") } });
    }
  });
});

describe("edit_file", () => {
  test("replaces one place, or all", async () => {
    await fixture.write("a.ts", "const a = 1;\nconst b = 1;\n");
    const edited = said(
      await fixture.call("edit_file", { path: "a.ts", old_text: "b = 1", new_text: "b = $&2" }),
    );
    expect(edited).toBe("Edited a.ts in 1 place, first at line 2.");
    expect(await fixture.text("a.ts")).toBe("const a = 1;\nconst b = $&2;\n");
    await fixture.call("edit_file", { path: "a.ts", old_text: "const ", new_text: "", replace_all: true });
    expect(await fixture.text("a.ts")).toBe("a = 1;\nb = $&2;\n");
  });

  test("each failure changes nothing and says what to do", async () => {
    const content = "if (a) {\n    b();\n}\nx\nx\n";
    await fixture.write("f", content);
    const edit = async (old_text: string, new_text = "new") =>
      refused(await fixture.call("edit_file", { path: "f", old_text, new_text }));
    expect(await edit("x")).toMatch(/2 times in f \(lines 4, 5\).*replace_all/);
    expect(await edit("if (a) {\n  b();\n}")).toMatch(/other spaces or line breaks/);
    expect(await edit("if (a) {\n    c();\n}")).toMatch(/first line is at line 1/);
    expect(await edit("nowhere")).toMatch(/Read the file again/);
    expect(await edit("same", "same")).toMatch(/are the same/);
    expect(await fixture.text("f")).toBe(content);
    await fixture.write("latin", Uint8Array.from([0x61, 0xe4, 0x62]));
    expect(refused(await fixture.call("edit_file", { path: "latin", old_text: "a", new_text: "b" }))).toMatch(
      /not UTF-8/,
    );
  });

  test("keeps the byte order mark and CRLF line ends", async () => {
    await fixture.write("win", "\ufeffone\r\ntwo\r\nthree\r\n");
    await fixture.call("edit_file", { path: "win", old_text: "one\ntwo", new_text: "1\n2\n2b" });
    expect(await fixture.text("win")).toBe("\ufeff1\r\n2\r\n2b\r\nthree\r\n");
    await fixture.call("edit_file", { path: "win", old_text: "three", new_text: "3\n4" });
    expect(await fixture.text("win")).toBe("\ufeff1\r\n2\r\n2b\r\n3\r\n4\r\n");
  });

  test("parallel edits of one file are all kept", async () => {
    await fixture.write("f", Array.from({ length: 20 }, (_, i) => `<${i}>\n`).join(""));
    await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        fixture.call("edit_file", {
          path: i % 2 ? "./f" : "/workspace/f",
          old_text: `<${i}>`,
          new_text: `done ${i}`,
        }),
      ),
    );
    expect(await fixture.text("f")).toBe(Array.from({ length: 20 }, (_, i) => `done ${i}\n`).join(""));
  });

  test("a unique text is exchanged and nothing else", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: "grapheme" }),
        fc.string({ unit: "grapheme" }),
        fc.string(),
        async (before, after, next) => {
          const clean = (value: string) =>
            value.replaceAll("\0", "").replaceAll("\r", "").replaceAll("\u0001", "");
          const [head, tail, new_text] = [clean(before), clean(after), clean(next)];
          await fixture.write("f", `${head}\u0001${tail}`);
          said(await fixture.call("edit_file", { path: "f", old_text: "\u0001", new_text }));
          expect(await fixture.text("f")).toBe(`${head}${new_text}${tail}`);
        },
      ),
      { numRuns: 100 },
    );
  });
});

describe("list_files", () => {
  test("lists to a depth, folders first, and does not open .git and node_modules", async () => {
    for (const file of ["b.txt", "src/a.ts", "src/deep/c/d", ".git/config", "node_modules/m/i.js"])
      await fixture.write(file, file);
    expect(said(await fixture.call("list_files", {}))).toBe(
      [".git/", "node_modules/", "src/", "src/deep/", "src/a.ts  (8 bytes)", "b.txt  (5 bytes)"].join("\n"),
    );
    expect(said(await fixture.call("list_files", { path: "src", depth: 5 }))).toBe(
      ["src/deep/", "src/deep/c/", "src/deep/c/d  (12 bytes)", "src/a.ts  (8 bytes)"].join("\n"),
    );
    expect(refused(await fixture.call("list_files", { path: "b.txt" }))).toMatch(/read_file/);
  });

  test("an empty workspace and an empty page say so", async () => {
    expect(said(await fixture.call("list_files", {}))).toBe("The workspace is empty.");
    await fixture.write("x", "");
    expect(said(await fixture.call("list_files", { offset: 9 }))).toBe(
      "The workspace has no more than 1 entries.",
    );
  });

  test("long lists come in pages that join", async () => {
    const names = Array.from({ length: 2_300 }, (_, i) => `f${String(i).padStart(5, "0")}`);
    for (const name of names) await fixture.write(name, "");
    const seen: string[] = [];
    for (let offset = 1; ; ) {
      const lines = said(await fixture.call("list_files", { offset })).split("\n");
      const next = /offset (\d+)\]$/.exec(lines.at(-1)!);
      if (next !== null) lines.pop();
      expect(lines.length).toBeLessThanOrEqual(1_000);
      seen.push(...lines.map((line) => line.split("  ")[0]!));
      if (next === null) break;
      offset = Number(next[1]);
    }
    expect(seen).toEqual(names);
  });
});
