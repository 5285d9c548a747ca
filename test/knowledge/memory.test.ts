import * as fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { MemoryVault } from "../../src/core/memory.ts";
import { BACKENDS, type Backend, openStore, type TestStore } from "../store/backends.ts";
import { say, vaultOver, wordEmbedder } from "./vault.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

describe.each(BACKENDS)("the vault on $name", ({ available, create }) => {
  let backend: Backend;
  let store: TestStore;
  let vault: MemoryVault;
  beforeAll(async () => {
    if (!available) return;
    backend = await create();
    store = await openStore(backend);
  });
  afterAll(async () => {
    await store?.close();
    await backend?.close();
  });
  beforeEach(async () => {
    if (!available) return;
    ({ vault } = vaultOver(store));
    await vault.clear("ann");
    await vault.clear("bob");
  });
  const test = it.runIf(available);
  const documents = async (owner = "ann") =>
    (await vault.list(owner, { limit: 200 })).memories.map(({ document }) => document);

  test("keeps what it is told, with its receipt", async () => {
    const receipt = { sessionId: "ses_1", messageId: "msg_1", quote: "I am called Ann" };
    const { outcome, memory } = await say(vault, "  The user is called Ann. ", {
      ...{ category: "person", importance: 0.8, receipt, outside: true },
    });
    expect(outcome).toBe("created");
    expect(memory).toEqual({
      ...{ id: expect.stringMatching(/^mem_[a-z2-7]{32}$/), document: "The user is called Ann." },
      ...{ category: "person", importance: 0.8, origin: "user", outside: true, ...receipt },
      ...{ seenCount: 1, lastSeenAt: store.clock.now, createdAt: store.clock.now },
      ...{ updatedAt: store.clock.now, supersededBy: null, validTo: null },
    });
    expect(await vault.get("ann", memory.id)).toEqual(memory);
    expect((await vault.list("ann", { limit: 5 })).memories).toEqual([memory]);
  });

  test("strengthens what it knows, in other words too", async () => {
    const { memory } = await say(vault, "The user lives in Berlin");
    store.clock.now = new Date(store.clock.now.getTime() + DAY_MS);
    const receipt = { sessionId: "ses_2", messageId: "msg_2", quote: "I live in Berlin" };
    const again = await say(vault, "I'm based in Berlin.", { receipt });
    expect(again).toMatchObject({
      outcome: "strengthened",
      memory: { id: memory.id, seenCount: 2, document: memory.document },
    });
    expect(again.memory.importance).toBeGreaterThan(memory.importance);
    expect(await vault.get("ann", memory.id)).toEqual(again.memory);
    expect(await documents()).toEqual(["The user lives in Berlin"]);
  });

  test("lets what has changed take the place of what was, and keeps that in the history", async () => {
    const pass = () => {
      store.clock.now = new Date(store.clock.now.getTime() + DAY_MS);
    };
    const berlin = await say(vault, "The user lives in Berlin");
    pass();
    const lyon = await say(vault, "The user moved to Lyon");
    pass();
    const oslo = await say(vault, "I now live in Oslo");
    expect(oslo.outcome).toBe("superseded");
    expect(oslo.superseded.map(({ id }) => id)).toEqual([lyon.memory.id]);
    expect(await documents()).toEqual(["I now live in Oslo"]);
    for (const { memory } of [berlin, lyon, oslo]) {
      const { memories } = await vault.history("ann", memory.id, { limit: 5 });
      expect(memories.map(({ id }) => id)).toEqual([oslo, lyon, berlin].map((each) => each.memory.id));
      expect(memories.map(({ supersededBy }) => supersededBy)).toEqual([
        ...[null, oslo.memory.id, lyon.memory.id],
      ]);
    }
    const first = await vault.history("ann", berlin.memory.id, { limit: 2 });
    const rest = await vault.history("ann", berlin.memory.id, { limit: 2, cursor: first.next ?? "" });
    expect([first.memories.length, rest.memories.length, rest.next]).toEqual([2, 1, null]);
    expect((await vault.search("ann", "Berlin", { limit: 5 })).found).toEqual([]);
  });

  test.each([
    ["The user's favourite colour is blue", "My favorite color is green", "superseded"],
    ["The user likes coffee", "The user no longer likes coffee", "superseded"],
    ["The user likes coffee", "The user hates coffee", "superseded"],
    ["The user lives in Berlin", "The user does not live in Berlin anymore", "superseded"],
    ["The user is 34 years old", "I'm 35 years old", "superseded"],
    ["The staging server listens on port 8080", "The staging server listens on port 9090", "superseded"],
    ["The user prefers tabs over spaces", "I prefer spaces to tabs", "superseded"],
    ["Anna's birthday is 3 May", "The birthday of Anna is May 4th", "superseded"],
    ["Anna's birthday is 3 May", "The birthday of Anna is May 3rd", "strengthened"],
    ["The user works at ACME as a nurse", "The user works at ACME", "strengthened"],
    ["The user likes coffee", "The user likes tea", "created"],
    ["Alice reports to Bob", "Bob reports to Alice", "created"],
    ["Invoice 1234 is paid", "Invoice 1235 is paid", "created"],
    ["The user's cat is black", "The user's cat is old", "created"],
    ["The user lives in Berlin", "The user does not live in Paris", "created"],
    ["The user prefers to work at night", "The user works at ACME", "created"],
    ["Ich wohne in Berlin", "Ich wohne in Wien", "created"],
    ["我住在北京", "我住在上海", "created"],
  ])("%s; then: %s: %s", async (first, second, outcome) => {
    await say(vault, first);
    expect((await say(vault, second)).outcome).toBe(outcome);
  });

  test("replaces what it is told to replace, and nothing when it is told so", async () => {
    const { memory } = await say(vault, "The user has a dog");
    const cat = await say(vault, "The user has a cat and no dog", { replaces: memory.id });
    expect(cat.superseded.map(({ id }) => id)).toEqual([memory.id]);
    await expect(say(vault, "x y", { replaces: memory.id })).rejects.toMatchObject({ code: "conflict" });
    await expect(say(vault, "x y", { replaces: "mem_nobody" })).rejects.toMatchObject({ code: "not_found" });
    await say(vault, "The user lives in Rome");
    expect((await say(vault, "The user lives in Bonn", { replaces: null })).outcome).toBe("created");
    expect(await documents()).toHaveLength(3);
  });

  test("sees the drafts of one batch in their order", async () => {
    const drafts = ["The user lives in Rome", "The user lives in Bonn", "I live in Bonn"];
    const all = await vault.rememberAll(
      "ann",
      drafts.map((document) => ({ document, origin: "import" })),
    );
    expect(all.map(({ outcome }) => outcome)).toEqual(["created", "superseded", "strengthened"]);
    expect(await documents()).toEqual(["The user lives in Bonn"]);
  });

  test("writes a fact once, whoever writes it at the same time", async () => {
    const other = vaultOver(store).vault;
    const all = await Promise.all(
      Array.from({ length: 10 }, (_, at) => say(at % 2 ? vault : other, "The user plays the cello")),
    );
    expect(all.filter(({ outcome }) => outcome === "created")).toHaveLength(1);
    const [memory] = (await vault.list("ann", { limit: 5 })).memories;
    expect(memory?.seenCount).toBe(10);
    await Promise.all(
      ["Rome", "Bonn", "Oslo", "Lyon"].map((city) => say(vault, `The user lives in ${city}`)),
    );
    expect(await documents()).toHaveLength(2);
  });

  test("an edit keeps what was said before", async () => {
    const { memory } = await say(vault, "The user's dog is called Rex");
    const at = new Date(store.clock.now.getTime() + DAY_MS);
    store.clock.now = at;
    const edited = await vault.edit("ann", memory.id, { document: "The user's dog is called Max" });
    expect(edited).toEqual({ ...memory, document: "The user's dog is called Max", updatedAt: at });
    const { memories } = await vault.history("ann", memory.id, { limit: 5 });
    expect(memories).toMatchObject([
      edited,
      { document: "The user's dog is called Rex", supersededBy: memory.id, validTo: at },
    ]);
    expect((await vault.search("ann", "Rex", { limit: 5 })).found).toEqual([]);
    expect((await vault.search("ann", "Max", { limit: 5 })).found).toHaveLength(1);
    const weighed = await vault.edit("ann", memory.id, { importance: 1, category: "pet" });
    expect(weighed).toMatchObject({ importance: 1, category: "pet", document: edited.document });
    expect((await vault.history("ann", memory.id, { limit: 5 })).memories).toHaveLength(2);
    const cat = await say(vault, "The user's cat is called Tom");
    await expect(
      vault.edit("ann", cat.memory.id, { document: "The user's dog is called Bello" }),
    ).rejects.toMatchObject({ code: "conflict" });
    await expect(vault.edit("ann", memories[1]!.id, { importance: 1 })).rejects.toMatchObject({
      code: "conflict",
    });
  });

  test("deleting takes the history along; a past version goes alone", async () => {
    const rome = await say(vault, "I live in Rome");
    const bonn = await say(vault, "I live in Bonn");
    const oslo = await say(vault, "I live in Oslo");
    await vault.delete("ann", bonn.memory.id);
    const { memories } = await vault.history("ann", oslo.memory.id, { limit: 5 });
    expect(memories.map(({ id }) => id)).toEqual([oslo.memory.id, rome.memory.id]);
    await vault.delete("ann", oslo.memory.id);
    for (const { memory } of [rome, bonn, oslo])
      await expect(vault.get("ann", memory.id)).rejects.toMatchObject({ code: "not_found" });
  });

  test("A5: another owner's memories are not there", async () => {
    const { memory } = await say(vault, "The user lives in Rome");
    const bobs = await vault.remember("bob", { document: "The user lives in Bonn", origin: "user" });
    expect(bobs.outcome).toBe("created");
    const attempts = [
      () => vault.get("bob", memory.id),
      () => vault.edit("bob", memory.id, { importance: 1 }),
      () => vault.history("bob", memory.id, { limit: 5 }),
      () => vault.delete("bob", memory.id),
      () => vault.remember("bob", { document: "x", origin: "user", replaces: memory.id }),
    ];
    for (const attempt of attempts) await expect(attempt()).rejects.toMatchObject({ code: "not_found" });
    expect((await vault.search("bob", "Rome lives", { limit: 5 })).found.map((f) => f.memory)).toEqual([
      bobs.memory,
    ]);
    expect(await vault.clear("bob")).toBe(1);
    expect(await documents()).toEqual(["The user lives in Rome"]);
  });

  test("finds by words, by forms of words, by beginnings and in a category", async () => {
    await say(vault, "The user's sister Mia studies biology in Graz", { category: "person" });
    await say(vault, "The deployment runs on Friday mornings", { category: "work" });
    await say(vault, "我住在北京");
    await say(vault, "=> :-)");
    const found = async (query: string, more: object = {}) =>
      (await vault.search("ann", query, { limit: 5, ...more })).found.map(({ memory }) => memory.document);
    expect(await found("what does Mia study?")).toEqual(["The user's sister Mia studies biology in Graz"]);
    expect(await found("deployments")).toEqual(["The deployment runs on Friday mornings"]);
    expect(await found("biol", { prefix: true })).toHaveLength(1);
    expect(await found("biol")).toEqual([]);
    expect(await found("北京")).toEqual(["我住在北京"]);
    expect(await found(":-)")).toEqual(["=> :-)"]);
    expect(await found("Mia", { category: "work" })).toEqual([]);
    expect(await found("Mia Friday", { category: "work" })).toHaveLength(1);
    for (const query of ["", "which", '"', "a* OR", "NEAR(", "owner:", "%", "\0"])
      expect(await found(query), query).toEqual([]);
  });

  test("what is important and recent comes first among what matches alike", async () => {
    await say(vault, "Kim plays chess on paper");
    await say(vault, "Lou plays chess on paper", { importance: 1 });
    store.clock.now = new Date(store.clock.now.getTime() + 400 * DAY_MS);
    await say(vault, "Max plays chess on paper");
    const { found } = await vault.search("ann", "who plays chess", { limit: 5 });
    expect(found.map(({ memory }) => memory.document.slice(0, 3))).toEqual(["Max", "Lou", "Kim"]);
  });

  test("any text can be kept, found by its own words and deleted again", async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: "binary", minLength: 1, maxLength: 60 }), async (text) => {
        fc.pre(text.replaceAll("\0", "").trim() !== "");
        const { memory } = await say(vault, text);
        expect((await vault.get("ann", memory.id)).document).toBe(memory.document);
        await vault.search("ann", text, { limit: 5, prefix: true });
        await vault.delete("ann", memory.id);
        expect(await documents()).toEqual([]);
      }),
      { numRuns: 60 },
    );
  });

  test("finds where one lives in what says it otherwise, by the same words after an edit", async () => {
    const find = async () =>
      (await vault.search("ann", "where live", { limit: 5 })).found[0]?.memory.document;
    const { memory } = await say(vault, "The user moved to Lyon");
    expect(await find()).toBe("The user moved to Lyon");
    await vault.edit("ann", memory.id, { document: "I relocated to Oslo" });
    expect(await find()).toBe("I relocated to Oslo");
  });

  test("what was derived from a session goes with it when that is wanted", async () => {
    const receipt = (sessionId: string) => ({ receipt: { sessionId, messageId: null, quote: null } });
    await say(vault, "The user lives in Rome", receipt("ses_a"));
    const bonn = await say(vault, "The user lives in Bonn", receipt("ses_b"));
    await say(vault, "The user rows", receipt("ses_a"));
    // What the user has entered is not derived from the session in which it is said again.
    await say(vault, "The user sings");
    await say(vault, "I sing", { origin: "agent", ...receipt("ses_a") });
    await say(vault, "The user swims", { origin: "agent" });
    await say(vault, "I swim", { origin: "agent", ...receipt("ses_a") });
    expect(await vault.deleteOfSession("bob", "ses_a")).toBe(0);
    expect(await vault.deleteOfSession("ann", "ses_a")).toBe(2);
    expect((await vault.history("ann", bonn.memory.id, { limit: 5 })).memories).toHaveLength(1);
    expect((await documents()).toSorted()).toEqual(["The user lives in Bonn", "The user sings"]);
  });

  test("vectors find what has no word in common, and are made anew for another model", async () => {
    const fixed = (model: string, near: string) => ({
      model,
      embed: async (texts: readonly string[]) =>
        texts.map((text) => Float32Array.from(new RegExp(near).test(text) ? [1, 0.1] : [0.1, 1])),
    });
    await say(vault, "The user eats no meat");
    await say(vault, "The user rides a bicycle");
    const first = vaultOver(store, fixed("test/a", "meat|vegetarian"));
    expect(await first.vault.embedding("ann")).toEqual({ model: "test/a", done: 0, total: 2, error: null });
    await first.embeddings?.catchUp();
    expect(await first.vault.embedding("ann")).toMatchObject({ done: 2, total: 2 });
    const { found } = await first.vault.search("ann", "vegetarian", { limit: 1 });
    expect(found[0]).toMatchObject({ memory: { document: "The user eats no meat" }, coverage: 0 });
    expect(found[0]?.similarity).toBeCloseTo(1);
    const second = vaultOver(store, fixed("test/b", "bicycle|bike"));
    expect(await second.vault.embedding("ann")).toMatchObject({ model: "test/b", done: 0, total: 2 });
    await second.embeddings?.catchUp();
    expect((await second.vault.search("ann", "bike", { limit: 1 })).found[0]?.memory.document).toContain(
      "bicycle",
    );
    const edited = await second.vault.edit("ann", found[0]!.memory.id, { document: "The user eats fish" });
    expect(await second.vault.embedding("ann")).toMatchObject({ total: 2 });
    await second.embeddings?.catchUp();
    expect(await second.vault.embedding("ann")).toMatchObject({ done: 2, total: 2 });
    await second.vault.delete("ann", edited.id);
    expect(await second.vault.embedding("ann")).toMatchObject({ done: 1, total: 1 });
  });

  test("R3: processes that embed at once do each memory once", async () => {
    const drafts = Array.from({ length: 300 }, (_, at) => ({
      document: `Fact number ${at} of many`,
      origin: "user" as const,
      replaces: null,
    }));
    await vault.rememberAll("ann", drafts);
    const embedders = [wordEmbedder(), wordEmbedder(), wordEmbedder()];
    await Promise.all(embedders.map((embedder) => vaultOver(store, embedder).embeddings?.catchUp()));
    expect(embedders.flatMap(({ calls }) => calls.flat())).toHaveLength(300);
    expect(await vaultOver(store, wordEmbedder()).vault.embedding("ann")).toMatchObject({ done: 300 });
  });

  test("a model that fails is said to fail, and words are searched meanwhile", async () => {
    const embedder = { model: "test/down", embed: () => Promise.reject(new TypeError("no")) };
    await say(vault, "The user rows");
    const broken = vaultOver(store, embedder);
    await broken.embeddings?.catchUp();
    expect(store.logged.at(-1)).toMatchObject([
      "warning",
      expect.stringContaining("could not be embedded"),
      {},
    ]);
    const { found, degraded } = await broken.vault.search("ann", "rows", { limit: 5 });
    expect(found).toHaveLength(1);
    expect(degraded).toContain("test/down failed");
    expect(await broken.vault.embedding("ann")).toMatchObject({
      done: 0,
      total: 1,
      error: expect.any(String),
    });
    expect(await broken.vault.embedding("bob")).toMatchObject({ done: 0, total: 0 });
  });

  test("texts out of bounds are refused", async () => {
    for (const document of ["", " \n", "\0", "x".repeat(4_001)])
      await expect(say(vault, document)).rejects.toMatchObject({ code: "invalid_request" });
  });
});
