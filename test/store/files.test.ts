import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { FileChanges } from "../../src/core/store.ts";
import { BACKENDS, type Backend, openStore, type TestStore } from "./backends.ts";
import { ModelFiles } from "./model-files.ts";

const MIB = 1024 * 1024;
const bytes = (value: string) => new TextEncoder().encode(value);
const changes = (part: Partial<FileChanges>): FileChanges => ({
  remove: [],
  write: [],
  makeDirectories: [],
  ...part,
});
const put = (path: string, value: string, mode?: number) =>
  changes({ write: [{ path, bytes: bytes(value), ...(mode === undefined ? {} : { mode }) }] });

const path = fc
  .array(fc.constantFrom("a", "b", "a-", "a0", "ü", "😀"), { minLength: 1, maxLength: 3 })
  .map((names) => names.join("/"));
const change = fc.record({
  remove: fc.array(fc.oneof({ weight: 9, arbitrary: path }, { weight: 1, arbitrary: fc.constant("") }), {
    maxLength: 2,
  }),
  makeDirectories: fc.array(path, { maxLength: 2 }),
  write: fc.array(
    fc.record({
      path,
      bytes: fc.uint8Array({ maxLength: 4 }),
      mode: fc.option(fc.constantFrom(0o600, 0o755), { nil: undefined }),
    }),
    { maxLength: 3 },
  ),
});

describe.each(BACKENDS)("files on $name", ({ available, create }) => {
  let backend: Backend;
  let store: TestStore;
  let owners = 0;
  const newOwner = () => `owner-${owners++}`;
  beforeAll(async () => {
    if (!available) return;
    backend = await create();
    store = await openStore(backend);
  });
  afterAll(async () => {
    await store?.close();
    await backend?.close();
  });
  const pathsOf = async (owner: string) =>
    (await store.files.below(owner, "", null, 1_000)).map((file) => file.path);

  it.runIf(available)("writes, reads and lists, making parents", async () => {
    const ann = newOwner();
    await store.files.apply(ann, put("src/deep/a.txt", "hello", 0o700));
    await store.files.apply(ann, put("src/b.txt", ""));
    const file = {
      path: "src/deep/a.txt",
      directory: false,
      size: 5,
      mode: 0o700,
      modifiedAt: store.clock.now,
    };
    expect(await store.files.stat(ann, "src/deep/a.txt")).toEqual(file);
    expect(await store.files.stat(ann, "src")).toMatchObject({ directory: true, size: 0, mode: 0o755 });
    expect(await store.files.read(ann, "src/deep/a.txt")).toEqual(bytes("hello"));
    expect(await store.files.read(ann, "src/b.txt")).toEqual(new Uint8Array(0));
    expect(await store.files.read(ann, "src")).toBeNull();
    expect(await store.files.read(ann, "none")).toBeNull();
    expect(await store.files.stat(ann, "none")).toBeNull();
    expect((await store.files.list(ann, "src")).map((entry) => entry.path)).toEqual([
      "src/deep",
      "src/b.txt",
    ]);
    expect((await store.files.list(ann, "")).map((entry) => entry.path)).toEqual(["src"]);
    await store.files.apply(ann, put("src/deep/a.txt", "bye"));
    expect(await store.files.stat(ann, "src/deep/a.txt")).toEqual({ ...file, size: 3 });
    expect(await store.files.read(ann, "src/deep/a.txt")).toEqual(bytes("bye"));
    const bob = newOwner();
    expect(await store.files.stat(bob, "src/b.txt")).toBeNull();
    expect(await store.files.read(bob, "src/b.txt")).toBeNull();
    expect(await store.files.list(bob, "")).toEqual([]);
    await store.files.apply(bob, changes({ remove: ["src", ""] }));
    expect(await pathsOf(ann)).toEqual(["src", "src/b.txt", "src/deep", "src/deep/a.txt"]);
  });

  it.runIf(available)(
    "takes what is in a directory along, and nothing that only begins like it",
    async () => {
      const ann = newOwner();
      for (const name of ["a/x", "a/y/z", "a-b/x", "a.txt", "a0", "a%/x", "A/x"])
        await store.files.apply(ann, put(name, "1"));
      await store.files.apply(ann, changes({ remove: ["a"] }));
      expect(await pathsOf(ann)).toEqual(["A", "A/x", "a%", "a%/x", "a-b", "a-b/x", "a.txt", "a0"]);
    },
  );

  it.runIf(available)("pages through what is below a directory", async () => {
    const ann = newOwner();
    for (const name of ["d/a", "d/b/c", "d/😀", "d-", "d0"]) await store.files.apply(ann, put(name, "1"));
    const first = await store.files.below(ann, "d", null, 2);
    expect(first.map((file) => file.path)).toEqual(["d/a", "d/b"]);
    const rest = await store.files.below(ann, "d", "d/b", 9);
    expect(rest.map((file) => file.path)).toEqual(["d/b/c", "d/😀"]);
  });

  it.runIf(available)("removes before it writes, so that a folder can become a file", async () => {
    const ann = newOwner();
    await store.files.apply(ann, put("x/y", "1"));
    await store.files.apply(ann, { ...put("x", "2"), remove: ["x"] });
    expect(await pathsOf(ann)).toEqual(["x"]);
    await store.files.apply(ann, { ...put("x/y", "3"), remove: ["x"] });
    expect(await store.files.read(ann, "x/y")).toEqual(bytes("3"));
  });

  it.runIf(available)(
    "refuses files under files and files over folders, and changes nothing then",
    async () => {
      const ann = newOwner();
      await store.files.apply(ann, put("f", "1"));
      await store.files.apply(ann, put("d/x", "1"));
      const bad = [
        put("f/below", "2"),
        put("d", "2"),
        changes({ makeDirectories: ["f"] }),
        changes({ makeDirectories: ["new"], write: [{ path: "new", bytes: bytes("2") }] }),
        changes({
          write: [
            { path: "n", bytes: bytes("2") },
            { path: "n/m", bytes: bytes("2") },
          ],
        }),
      ];
      for (const one of bad) {
        const all = { ...one, remove: ["d/x"], write: [{ path: "other", bytes: bytes("3") }, ...one.write] };
        await expect(store.files.apply(ann, all)).rejects.toMatchObject({ code: "invalid_request" });
      }
      expect(await pathsOf(ann)).toEqual(["d", "d/x", "f"]);
      expect(await store.files.read(ann, "f")).toEqual(bytes("1"));
    },
  );

  it.runIf(available).each(["/a", "a/", "a//b", "../a", "a/./b", "a\0", "\ud800", "long".repeat(257), ""])(
    "refuses a path that is none: %#",
    async (name) => {
      await expect(store.files.apply(newOwner(), put(name, "1"))).rejects.toMatchObject({
        code: "invalid_request",
      });
    },
  );

  it.runIf(available)("reads large files whole, also while they are overwritten", async () => {
    const ann = newOwner();
    const versions = [1, 2].map((fill) => new Uint8Array(10 * MIB - fill).fill(fill));
    const write = (at: number) =>
      store.files.apply(ann, changes({ write: [{ path: "big", bytes: versions[at]! }] }));
    await write(0);
    const reads = [store.files.read(ann, "big"), store.files.read(ann, "big")];
    await write(1);
    for (const read of [...(await Promise.all(reads)), await store.files.read(ann, "big")])
      expect(versions.some((version) => Buffer.compare(read!, version) === 0)).toBe(true);
    const tooLarge = changes({ write: [{ path: "big", bytes: new Uint8Array(10 * MIB + 1) }] });
    await expect(store.files.apply(ann, tooLarge)).rejects.toMatchObject({ code: "payload_too_large" });
  });

  it.runIf(available)("keeps an owner within 256 MiB", async () => {
    const ann = newOwner();
    await store.files.apply(ann, put("small", "1"));
    const database = await backend.open();
    await database.write.execute({
      sql: "UPDATE files SET size = ? WHERE owner = ?",
      args: [256 * MIB - 3, ann],
    });
    await expect(store.files.apply(ann, put("d/more", "1234"))).rejects.toMatchObject({
      code: "storage_full",
      status: 507,
    });
    expect(await pathsOf(ann)).toEqual(["small"]);
    await store.files.apply(ann, put("d/more", "123"));
    await store.files.apply(ann, { ...put("d/more", "1234"), remove: ["small"] });
    expect(await pathsOf(ann)).toEqual(["d", "d/more"]);
    database.write.close();
    database.read.close();
  });

  it.runIf(available)("does as a tree in memory does", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 6 }), async (steps) => {
        const owner = newOwner();
        const model = new ModelFiles();
        for (const step of steps) {
          const refused = await store.files.apply(owner, step).then(
            () => false,
            (error) => error.code,
          );
          expect(refused).toBe(model.apply(step) ? false : "invalid_request");
          const rows = await store.files.below(owner, "", null, 1_000);
          expect(rows.map(({ path, directory, size, mode }) => ({ path, directory, size, mode }))).toEqual(
            model.rows(),
          );
        }
        for (const [name, file] of model.entries)
          expect(await store.files.read(owner, name)).toEqual(file.bytes);
        for (const directory of ["", ...model.directories()])
          expect((await store.files.list(owner, directory)).map((row) => row.path)).toEqual(
            model.list(directory),
          );
      }),
      { numRuns: 60 },
    );
  });
});
