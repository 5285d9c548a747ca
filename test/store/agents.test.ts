/** Named agents, on both kinds of database. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AgentDraft } from "../../src/core/agents.ts";
import { BACKENDS, type Backend, openStore, type TestStore } from "./backends.ts";

function draft(name: string, more: Partial<AgentDraft> = {}): AgentDraft {
  return {
    ...{ name, description: "", instructions: "", provider: null, model: null, tools: null },
    ...{ policy: [], subAgents: [], ...more },
  };
}

describe.each(BACKENDS.filter(({ available }) => available))("in $name", ({ create }) => {
  let backend: Backend;
  let store: TestStore;
  beforeAll(async () => {
    backend = await create();
    store = await openStore(backend);
  });
  afterAll(async () => {
    await store.close();
    await backend.close();
  });

  test("what is made comes back by id and by name, and only to its owner (A5)", async () => {
    const made = await store.agents.create(
      "ada",
      draft("reviewer", {
        description: "Reads \u00e9",
        instructions: "Be\nbrief.",
        provider: "anthropic",
        model: "m",
        tools: ["read_*"],
        policy: [{ tool: "read_file", args: { path: "x/*" }, decision: "deny" }],
        subAgents: ["other"],
      }),
    );
    expect(made).toMatchObject({ id: expect.stringMatching(/^agt_[2-7a-z]{32}$/), name: "reviewer" });
    expect(await store.agents.get("ada", "reviewer")).toEqual(made);
    expect(await store.agents.get("ada", made.id)).toEqual(made);
    for (const ref of ["reviewer", made.id]) {
      expect(await store.agents.get("bob", ref)).toBeNull();
      expect(await store.agents.update("bob", ref, { model: "theirs" })).toBeNull();
      expect(await store.agents.delete("bob", ref)).toBe(false);
    }
    expect(await store.agents.get("ada", "reviewer")).toEqual(made);
    expect(await store.agents.names("bob")).toEqual([]);
  });

  test("a change touches what it names, and null is a value", async () => {
    const before = await store.agents.create(
      "eve",
      draft("a", { tools: ["x"], model: "m", provider: "groq", description: "d" }),
    );
    store.clock.now = new Date(store.clock.now.getTime() + 1000);
    const after = await store.agents.update("eve", "a", { model: null, instructions: "New.", tools: [] });
    expect(after).toEqual({
      ...before,
      ...{ model: null, instructions: "New.", tools: [], updatedAt: store.clock.now },
    });
    expect(await store.agents.update("eve", before.id, { tools: null })).toMatchObject({ tools: null });
    expect(await store.agents.update("eve", "a", { name: "b" })).toMatchObject({ id: before.id, name: "b" });
    expect(await store.agents.get("eve", "a")).toBeNull();
  });

  test("a name is one owner's, once", async () => {
    await store.agents.create("kim", draft("one"));
    await store.agents.create("kim", draft("two"));
    await store.agents.create("lee", draft("one"));
    await expect(store.agents.create("kim", draft("one"))).rejects.toMatchObject({
      code: "conflict",
      message: expect.stringContaining("'one'"),
    });
    await expect(store.agents.update("kim", "two", { name: "one" })).rejects.toMatchObject({
      code: "conflict",
    });
    expect(await store.agents.names("kim")).toEqual([
      { name: "one", description: "" },
      { name: "two", description: "" },
    ]);
  });

  test("lists are paged, newest first, and there is a limit", async () => {
    for (let n = 0; n < 200; n++) {
      store.clock.now = new Date(store.clock.now.getTime() + 1);
      await store.agents.create("max", draft(`a${n}`));
    }
    await expect(store.agents.create("max", draft("more"))).rejects.toMatchObject({ code: "conflict" });
    const seen: string[] = [];
    for (let cursor: string | undefined; ; ) {
      const page = await store.agents.list("max", { limit: 70, cursor });
      seen.push(...page.agents.map(({ name }) => name));
      if (page.next === null) break;
      cursor = page.next;
    }
    expect(seen).toEqual(Array.from({ length: 200 }, (_, n) => `a${199 - n}`));
    expect(await store.agents.delete("max", "a7")).toBe(true);
    expect(await store.agents.create("max", draft("more"))).toMatchObject({ name: "more" });
  });
});
