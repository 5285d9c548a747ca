/** MCP servers and approved definitions, on both kinds of database. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { McpServerSpec, McpVersion } from "../../src/core/mcp.ts";
import { BACKENDS, type Backend, openStore, type TestStore } from "./backends.ts";

const STATE = { sealed: null, active: true, lastError: null };

function spec(id: string, more: Partial<McpServerSpec> = {}): McpServerSpec {
  const tools = { include: ["a*"], exclude: [] };
  return { id, name: id, transport: "http", command: null, args: [], url: `http://x/${id}`, tools, ...more };
}

function version(name: string, hash: string): { name: string } & McpVersion {
  return { name, hash, definition: { description: `${name} ${hash}`, inputSchema: { type: "object" } } };
}

describe.each(BACKENDS.filter(({ available }) => available))("in $name", ({ create }) => {
  let backend: Backend;
  let store: TestStore;
  let others: TestStore;
  beforeAll(async () => {
    backend = await create();
    store = await openStore(backend);
    others = await openStore(backend);
  });
  afterAll(async () => {
    await store.close();
    await others.close();
    await backend.close();
  });

  test("what is saved comes back, newest first, and only to its owner (A5)", async () => {
    const first = await store.mcp.save("ada", spec("one"), { ...STATE, sealed: "abc" });
    store.clock.now = new Date(store.clock.now.getTime() + 1000);
    await store.mcp.save(
      "ada",
      spec("two", { transport: "stdio", command: "node", args: ["a b", "\u00e9"], url: null }),
      STATE,
    );
    const { servers } = await others.mcp.load("ada");
    expect(servers.map(({ id }) => id)).toEqual(["two", "one"]);
    expect(servers[0]).toMatchObject({ command: "node", args: ["a b", "\u00e9"], url: null, pinned: [] });
    expect(servers[1]).toMatchObject({ ...first, sealed: "abc", active: true });
    expect(await store.mcp.get("bob", "one")).toBeNull();
    expect(await store.mcp.load("bob")).toEqual({ revision: 0, servers: [] });
    expect(await store.mcp.setActive("bob", "one", false)).toBe(false);
    expect(await store.mcp.delete("bob", "one")).toBe(false);
  });

  test("saving again replaces, and what OAuth keeps goes with the address that it belongs to", async () => {
    await store.mcp.save("eve", spec("s"), STATE);
    expect(await store.mcp.saveOAuth("eve", "s", { sealed: "tokens", stateHash: "state" })).toBe(true);
    expect(await others.mcp.findByOAuthState("state")).toMatchObject({ owner: "eve", id: "s" });
    const before = await store.mcp.get("eve", "s");
    const same = await store.mcp.save("eve", spec("s", { name: "Other name" }), STATE);
    expect(same).toMatchObject({ oauth: "tokens", name: "Other name" });
    expect(same.updatedAt.getTime()).toBeGreaterThan(before?.updatedAt.getTime() ?? 0);
    expect(await store.mcp.save("eve", spec("s", { url: "http://elsewhere/" }), STATE)).toMatchObject({
      oauth: null,
    });
    expect(await store.mcp.findByOAuthState("state")).toBeNull();
  });

  test("the limit of servers is one of each owner, and does not stand in the way of saving again", async () => {
    for (let n = 0; n < 100; n++) await store.mcp.save("max", spec(`s${n}`), STATE);
    await expect(store.mcp.save("max", spec("one-more"), STATE)).rejects.toMatchObject({ code: "conflict" });
    expect(await store.mcp.save("max", spec("s5", { name: "again" }), STATE)).toMatchObject({
      name: "again",
    });
  });

  test("E5: what is observed is held back where it is not what was approved, until it is approved or is that again", async () => {
    await store.mcp.save("kim", spec("s"), STATE);
    await store.mcp.pin("kim", "s", [version("a", "1"), version("b", "1")]);
    await store.mcp.observe("kim", "s", [version("a", "2"), version("c", "1")]);
    const pinned = async () =>
      (await others.mcp.load("kim")).servers[0]?.pinned.map(({ name, approved, held, listed }) => [
        ...[name, approved?.hash ?? null, held?.hash ?? null, listed],
      ]);
    expect(await pinned()).toEqual([
      ["a", "1", "2", true],
      ["b", "1", null, false],
      ["c", null, "1", true],
    ]);
    expect(await store.mcp.approve("kim", "s", [{ name: "a", hash: "3" }])).toBe(0);
    await store.mcp.observe("kim", "s", [version("a", "1"), version("b", "9"), version("c", "1")]);
    expect(await pinned()).toEqual([
      ["a", "1", null, true],
      ["b", "1", "9", true],
      ["c", null, "1", true],
    ]);
    expect(await store.mcp.approve("kim", "s", [{ name: "b", hash: "9" }])).toBe(1);
    expect(await store.mcp.approve("bob", "s")).toBe(0);
    expect(await store.mcp.approve("kim", "s")).toBe(1);
    expect(await pinned()).toEqual([
      ["a", "1", null, true],
      ["b", "9", null, true],
      ["c", "1", null, true],
    ]);
    await store.mcp.pin("kim", "s", [version("z", "1")]);
    expect(await pinned()).toEqual([["z", "1", null, true]]);
  });

  test("every change is a new revision of its owner's, which others are told of; an error is none", async () => {
    const { revision: before } = await store.mcp.changes(0);
    await store.mcp.save("pat", spec("s"), STATE);
    await store.mcp.save("lee", spec("s"), STATE);
    const changes = await others.mcp.changes(before);
    expect(changes.owners).toEqual(["pat", "lee"]);
    expect(await others.mcp.revision("lee")).toBe(changes.revision);
    await store.mcp.setError("pat", "s", "it is down", true);
    expect(await others.mcp.changes(changes.revision)).toEqual({ revision: changes.revision, owners: [] });
    expect(await store.mcp.get("pat", "s")).toMatchObject({ lastError: "it is down", needsReauth: true });
    expect(await store.mcp.setActive("pat", "s", true)).toBe(true);
    expect(await store.mcp.get("pat", "s")).toMatchObject({ lastError: null, needsReauth: false });
    expect((await others.mcp.changes(changes.revision)).owners).toEqual(["pat"]);
    await store.mcp.pin("lee", "s", [version("a", "1")]);
    expect(await store.mcp.delete("lee", "s")).toBe(true);
    expect((await others.mcp.load("lee")).servers).toEqual([]);
    expect(await store.mcp.delete("lee", "s")).toBe(false);
  });

  test("of many who want the lease at once one gets it, and it runs out", async () => {
    await store.mcp.save("zoe", spec("s"), STATE);
    const now = new Date(1_000_000);
    const until = new Date(1_010_000);
    const wants = await Promise.all(
      Array.from({ length: 10 }, (_, n) =>
        (n % 2 ? store : others).mcp.lease("zoe", "s", { holder: `h${n}`, now, until }),
      ),
    );
    expect(wants.filter(Boolean)).toHaveLength(1);
    const holder = `h${wants.indexOf(true)}`;
    await store.mcp.release("zoe", "s", "somebody else");
    expect(await store.mcp.lease("zoe", "s", { holder: "next", now, until })).toBe(false);
    expect(await store.mcp.lease("zoe", "s", { holder, now, until })).toBe(true);
    expect(
      await store.mcp.lease("zoe", "s", { holder: "late", now: until, until: new Date(1_020_000) }),
    ).toBe(true);
  });

  test("texts that a database cannot keep are kept as far as it can", async () => {
    await store.mcp.save("nul", spec("s", { name: "a\0b\ud800", args: ["\0"] }), STATE);
    expect(await store.mcp.get("nul", "s")).toMatchObject({ name: "ab\ufffd", args: [""] });
    await store.mcp.pin("nul", "s", [version("t\0", "1")]);
    expect((await store.mcp.load("nul")).servers[0]?.pinned[0]?.name).toBe("t");
    expect(await store.mcp.get("nul", "s\0")).toBeNull();
  });
});
