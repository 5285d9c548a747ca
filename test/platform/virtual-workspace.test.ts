import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createVirtualWorkspace } from "../../src/platform/virtual-workspace.ts";
import { type Backend, createFileBackend, openStore, type TestStore } from "../store/backends.ts";
import { createMemoryFiles } from "./memory-files.ts";
import { collect, decode, encode, failureOf, workspaceContract } from "./workspace.contract.ts";

workspaceContract("rows in memory", async () => ({
  workspace: createVirtualWorkspace(createMemoryFiles(), "ann"),
  dispose: async () => {},
}));

describe("over the store", () => {
  let backend: Backend;
  let store: TestStore;
  let owners = 0;
  beforeAll(async () => {
    backend = await createFileBackend();
    store = await openStore(backend);
  });
  afterAll(async () => {
    await store.close();
    await backend.close();
  });

  workspaceContract("rows of the store", async () => ({
    workspace: createVirtualWorkspace(store.files, `owner-${owners++}`),
    dispose: async () => {},
  }));

  test("A5: another owner's files are not there", async () => {
    const ann = createVirtualWorkspace(store.files, "ann");
    const ben = createVirtualWorkspace(store.files, "ben");
    await ann.write("secret.txt", encode("of ann"));
    expect(await failureOf(ben.read("secret.txt"))).toBe("not_found");
    expect(await collect(ben.walk(""))).toEqual([]);
    await ben.write("secret.txt", encode("of ben"));
    expect(decode(await ann.read("secret.txt"))).toBe("of ann");
  });

  test("walks more files than one page, and past directories that it skips", async () => {
    const workspace = createVirtualWorkspace(store.files, "many");
    const write = Array.from({ length: 1_300 }, (_, i) => ({
      path: `${i % 2 === 0 ? "node_modules/m" : "src"}/${String(i).padStart(5, "0")}`,
      bytes: encode("x"),
    }));
    await store.files.apply("many", { remove: [], write, makeDirectories: [] });
    await workspace.write("zz", encode("x"));
    const expected = write.map((file) => file.path).filter((path) => path.startsWith("src"));
    expect(await collect(workspace.walk(""))).toEqual([...expected, "zz"]);
  });

  test("a replaced file keeps its permissions", async () => {
    const rows = store.files;
    await rows.apply("mode", {
      remove: [],
      write: [{ path: "run.sh", bytes: encode("a"), mode: 0o755 }],
      makeDirectories: [],
    });
    await createVirtualWorkspace(rows, "mode").write("run.sh", encode("b"));
    expect((await rows.stat("mode", "run.sh"))?.mode).toBe(0o755);
  });

  test("a file that is too large is refused with its size", async () => {
    const workspace = createVirtualWorkspace(store.files, "large");
    const large = new Uint8Array(10 * 1024 * 1024 + 1);
    expect(await failureOf(workspace.write("large", large))).toBe("payload_too_large");
    expect(await collect(workspace.walk(""))).toEqual([]);
  });
});
