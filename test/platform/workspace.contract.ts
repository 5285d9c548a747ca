/** What every Workspace must do, whatever keeps its files. */
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { FileEntry, Workspace } from "../../src/core/platform.ts";
import { AppError } from "../../src/errors.ts";

export interface Fixture {
  workspace: Workspace;
  dispose(): Promise<void>;
}

export const encode = (text: string) => new TextEncoder().encode(text);
export const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

/** The code of the AppError that it fails with. Anything else is a defect. */
export async function failureOf(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof AppError)) throw new Error(`expected an AppError, got ${String(error)}`);
  return error.code;
}

export async function collect(entries: AsyncIterable<FileEntry>): Promise<string[]> {
  const paths: string[] = [];
  for await (const entry of entries) paths.push(entry.path);
  return paths;
}

const name = fc.constantFrom("a", "b", "a-b", "a.b", "ä", "名", "😀", "x y", "\uffee", "-", "...");
const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((names) => names.join("/"));

export function workspaceContract(kind: string, create: () => Promise<Fixture>): void {
  describe(`workspace: ${kind}`, () => {
    let fixture: Fixture;
    let workspace: Workspace;
    beforeEach(async () => {
      fixture = await create();
      workspace = fixture.workspace;
    });
    afterEach(() => fixture.dispose());

    test("writes, reads, replaces and describes a file", async () => {
      const entry = await workspace.write("docs/notes/a.txt", encode("one"));
      expect(entry).toMatchObject({ path: "docs/notes/a.txt", name: "a.txt", directory: false, size: 3 });
      expect(decode(await workspace.read("docs/notes/a.txt"))).toBe("one");
      await workspace.write("docs/notes/a.txt", encode("three"));
      expect(decode(await workspace.read("docs/notes/a.txt"))).toBe("three");
      expect(await workspace.stat("docs/notes/a.txt")).toMatchObject({ size: 5, directory: false });
      expect(await workspace.stat("docs/notes")).toMatchObject({
        path: "docs/notes",
        directory: true,
        size: 0,
      });
      expect((await workspace.stat("docs/notes/a.txt")).modifiedAt).toBeInstanceOf(Date);
    });

    test("keeps all bytes, and gives ranges of them", async () => {
      const bytes = Uint8Array.from({ length: 70_000 }, (_, i) => (i * 7) % 256);
      await workspace.write("data.bin", bytes);
      expect(await workspace.read("data.bin")).toEqual(bytes);
      expect(await workspace.read("data.bin", { offset: 100, limit: 5 })).toEqual(bytes.slice(100, 105));
      expect(await workspace.read("data.bin", { offset: 69_990 })).toEqual(bytes.slice(69_990));
      expect(await workspace.read("data.bin", { offset: 80_000, limit: 5 })).toEqual(new Uint8Array(0));
      await workspace.write("empty", new Uint8Array(0));
      expect(await workspace.read("empty")).toEqual(new Uint8Array(0));
    });

    test("takes every spelling of a path inside for the same file", async () => {
      await workspace.write("a/b.txt", encode("x"));
      for (const spelling of [
        "./a/b.txt",
        "a//b.txt",
        "a/./b.txt",
        "a/../a/b.txt",
        `${workspace.root}/a/b.txt`,
        "a/b.txt/",
      ]) {
        expect((await workspace.stat(spelling)).path).toBe("a/b.txt");
      }
      for (const root of ["", ".", "./", workspace.root, `${workspace.root}/`, "a/.."]) {
        expect(await workspace.stat(root)).toMatchObject({ path: "", directory: true });
      }
    });

    test("E2: nothing outside can be named", async () => {
      const outside = [
        "..",
        "../x",
        "a/../../x",
        "/etc/passwd",
        "/",
        `${workspace.root}-other/x`,
        `${workspace.root}/../x`,
      ];
      for (const path of [...outside, "a\0b", "\0", "\ud800"]) {
        expect(await failureOf(workspace.stat(path))).toBe("invalid_request");
        expect(await failureOf(workspace.read(path))).toBe("invalid_request");
        expect(await failureOf(workspace.write(path, encode("x")))).toBe("invalid_request");
        expect(await failureOf(workspace.list(path))).toBe("invalid_request");
        expect(await failureOf(workspace.remove(path))).toBe("invalid_request");
        expect(await failureOf(collect(workspace.walk(path)))).toBe("invalid_request");
      }
      expect(await workspace.list("")).toEqual([]);
    });

    test("E2: generated escapes stay inside or are refused", async () => {
      const segment = fc.constantFrom("..", ".", "", "a", "b", "...", "..a", "%2e%2e", "..\\", "~", "etc");
      await fc.assert(
        fc.asyncProperty(fc.array(segment, { maxLength: 6 }), fc.boolean(), async (segments, absolute) => {
          const given = (absolute ? "/" : "") + segments.join("/");
          let depth = 0;
          const escapes = segments.some((part) => {
            if (part === "..") depth--;
            else if (part !== "" && part !== ".") depth++;
            return depth < 0;
          });
          const code = await failureOf(workspace.read(given));
          if (escapes || given.startsWith("/")) expect(code).toBe("invalid_request");
          else expect(["invalid_request", "not_found"]).toContain(code);
        }),
        { numRuns: 200 },
      );
    });

    test("names that are too long are refused, long ones kept", async () => {
      expect(await failureOf(workspace.write("ä".repeat(128), encode("x")))).toBe("invalid_request");
      expect(await failureOf(workspace.write(`${"d/".repeat(600)}x`, encode("x")))).toBe("invalid_request");
      const deep = `${"directory/".repeat(60)}${"ä".repeat(120)}`;
      await workspace.write(deep, encode("x"));
      expect(decode(await workspace.read(deep))).toBe("x");
    });

    test("tells files, directories and nothing apart", async () => {
      await workspace.write("dir/file", encode("x"));
      expect(await failureOf(workspace.read("dir"))).toBe("invalid_request");
      expect(await failureOf(workspace.read(""))).toBe("invalid_request");
      expect(await failureOf(workspace.write("dir", encode("x")))).toBe("invalid_request");
      expect(await failureOf(workspace.write("", encode("x")))).toBe("invalid_request");
      expect(await failureOf(workspace.write("dir/file/below", encode("x")))).toBe("invalid_request");
      expect(await failureOf(workspace.list("dir/file"))).toBe("invalid_request");
      expect(await failureOf(workspace.stat("dir/file/below"))).toBe("invalid_request");
      expect(await failureOf(collect(workspace.walk("dir/file")))).toBe("invalid_request");
      for (const missing of ["none", "none/below", "dir/none"]) {
        expect(await failureOf(workspace.stat(missing))).toBe("not_found");
        expect(await failureOf(workspace.read(missing))).toBe("not_found");
        expect(await failureOf(workspace.list(missing))).toBe("not_found");
        expect(await failureOf(workspace.remove(missing))).toBe("not_found");
      }
      expect(decode(await workspace.read("dir/file"))).toBe("x");
    });

    test("lists folders first, then by name", async () => {
      for (const file of ["b.txt", "a.txt", "z/1", "m/1", "B.txt"]) await workspace.write(file, encode(file));
      const listed = await workspace.list("");
      expect(listed.map((entry) => entry.name)).toEqual(["m", "z", "B.txt", "a.txt", "b.txt"]);
      expect(listed.map((entry) => entry.directory)).toEqual([true, true, false, false, false]);
      expect((await workspace.list("m")).map((entry) => entry.path)).toEqual(["m/1"]);
    });

    test("walks all files in path order, without .git and node_modules", async () => {
      const files = [
        "a/b",
        "a-b",
        "a.b",
        "a/node_modules/x/y",
        ".git/config",
        "node_modules/z",
        "node_modules-x",
        ".gitignore",
        "c/.git/d",
        "c/e",
      ];
      for (const file of files) await workspace.write(file, encode(file));
      expect(await collect(workspace.walk(""))).toEqual([
        ".gitignore",
        "a-b",
        "a.b",
        "a/b",
        "c/e",
        "node_modules-x",
      ]);
      expect(await collect(workspace.walk("a"))).toEqual(["a/b"]);
      expect(await collect(workspace.walk("node_modules"))).toEqual(["node_modules/z"]);
    });

    test("a walk ends when its signal says so", async () => {
      for (const file of ["1", "2", "3"]) await workspace.write(file, encode(file));
      const stop = new AbortController();
      const seen: string[] = [];
      const walk = async () => {
        for await (const entry of workspace.walk("", stop.signal)) {
          seen.push(entry.path);
          stop.abort(new Error("stopped"));
        }
      };
      await expect(walk()).rejects.toThrow("stopped");
      expect(seen).toEqual(["1"]);
    });

    test("removes files and directories with all that is in them, but not the workspace", async () => {
      for (const file of ["a/1", "a/b/2", "ab", "a.txt"]) await workspace.write(file, encode(file));
      await workspace.remove("a");
      expect(await collect(workspace.walk(""))).toEqual(["a.txt", "ab"]);
      await workspace.remove("ab");
      expect(await failureOf(workspace.remove(""))).toBe("invalid_request");
      expect(await collect(workspace.walk(""))).toEqual(["a.txt"]);
    });

    test("concurrent writes leave one of the written contents", async () => {
      const contents = Array.from({ length: 12 }, (_, i) => String(i).repeat(50_000));
      await workspace.write("f", encode(contents[0]!));
      const reads = contents.map(async () => decode(await workspace.read("f")));
      await Promise.all(contents.map((content) => workspace.write("f", encode(content))));
      for (const seen of await Promise.all(reads)) expect(contents).toContain(seen);
      expect(contents).toContain(decode(await workspace.read("f")));
      expect((await workspace.list("")).map((entry) => entry.name)).toEqual(["f"]);
    });

    test("writes into one new directory at the same time", async () => {
      const files = Array.from({ length: 10 }, (_, i) => `new/deep/${i}`);
      await Promise.all(files.map((file) => workspace.write(file, encode(file))));
      expect(await collect(workspace.walk(""))).toEqual(files);
    });

    test("is what a map of paths says, after any writes and removals", async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(fc.tuple(fc.boolean(), path), { maxLength: 12 }), async (steps) => {
          const files = new Map<string, string>();
          /** A directory stays when the last file in it goes. */
          const folders = new Set<string>();
          for (const entry of await workspace.list("")) await workspace.remove(entry.path);
          for (const [keep, at] of steps) {
            const inTheWay = [...files.keys()].some((file) => at.startsWith(`${file}/`));
            if (keep) {
              if (inTheWay || folders.has(at)) {
                expect(await failureOf(workspace.write(at, encode(at)))).toBe("invalid_request");
              } else {
                await workspace.write(at, encode(at));
                files.set(at, at);
                for (let end = at.lastIndexOf("/"); end > 0; end = at.lastIndexOf("/", end - 1))
                  folders.add(at.slice(0, end));
              }
            } else if (files.has(at)) {
              await workspace.remove(at);
              files.delete(at);
            }
          }
          const bytes = (text: string) => Buffer.from(text);
          const expected = [...files.keys()].sort((a, b) => Buffer.compare(bytes(a), bytes(b)));
          expect(await collect(workspace.walk(""))).toEqual(expected);
          for (const file of files.keys()) expect(decode(await workspace.read(file))).toBe(file);
        }),
        { numRuns: 30 },
      );
    });
  });
}
