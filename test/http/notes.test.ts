import * as fc from "fast-check";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { scriptedModel } from "../scripted-model.ts";
import { createHome, createService, json, START, type TestHome, type TestService } from "./service.ts";

let home: TestHome;
let service: TestService;

beforeAll(async () => {
  home = await createHome();
});
afterAll(() => home.close());
beforeEach(async () => {
  home.clock.now = START;
  await open();
});
afterEach(async () => {
  for (let left = true; left; ) {
    const { notes, next_cursor } = await json(await get("/api/notes"));
    for (const { id } of notes) await remove(id);
    left = next_cursor !== null;
  }
  await service.close();
});

async function open(env: Record<string, string> = {}): Promise<void> {
  service = await createService(home, { model: scriptedModel([{ text: "ok" }]), env });
}

const get = (path: string, headers: Record<string, string> = {}) => service.request(path, { headers });
const put = (id: string, body: unknown, headers: Record<string, string> = {}) =>
  service.request(`/api/notes/${id}`, { method: "PUT", json: body, headers });
const remove = (id: string, headers: Record<string, string> = {}) =>
  service.request(`/api/notes/${id}`, { method: "DELETE", headers });
const write = (title: string, content: string, category?: string) =>
  service.post("/api/notes", { title, content, category });
const tick = () => {
  home.clock.now = new Date(home.clock.now.getTime() + 1_000);
};

describe("a note", () => {
  test("is written, read, changed and deleted", async () => {
    const created = await write("Rye bread", "# Rye\r\n\r\n- 500 g flour\n");
    expect(created.status).toBe(201);
    expect(created.headers.get("etag")).toBe('"1"');
    const { status, note_id: id, note } = await json(created);
    expect([status, id]).toEqual(["created", note.id]);
    expect(created.headers.get("location")).toBe(`/api/notes/${id}`);
    expect(note).toEqual({
      id: expect.stringMatching(/^note_[2-7a-z]{32}$/),
      title: "Rye bread",
      content: "# Rye\r\n\r\n- 500 g flour\n",
      category: "General",
      version: 1,
      created_at: START.toISOString(),
      updated_at: START.toISOString(),
    });
    const read = await get(`/api/notes/${id}`);
    expect(await json(read)).toEqual(note);
    expect((await get(`/api/notes/${id}`, { "if-none-match": '"1"' })).status).toBe(304);
    tick();
    const changed = await json(await put(id, { category: "Recipes" }));
    expect(changed).toEqual({
      status: "updated",
      note_id: id,
      note: { ...note, category: "Recipes", version: 2, updated_at: home.clock.now.toISOString() },
    });
    expect(await json(await remove(id))).toEqual({ status: "deleted", deleted: 1 });
    for (const gone of [await get(`/api/notes/${id}`), await put(id, { title: "x" }), await remove(id)])
      expect(gone.status).toBe(404);
  });

  test("has its Markdown byte for byte", async () => {
    const text = fc.oneof(
      fc.string({ unit: "grapheme", maxLength: 60 }),
      fc.constantFrom("\ufeff# x", "a  \n", "\r\n\t\r", "<script>&amp;", "\u2028\u202e\u0001", "```\n```"),
    );
    await fc.assert(
      fc.asyncProperty(
        text.filter((value) => !value.includes("\0") && value.isWellFormed()),
        async (content) => {
          const { note_id: id } = await json(await write("x", content));
          expect((await json(await get(`/api/notes/${id}`))).content).toBe(content);
          await put(id, { content: `${content}!` });
          expect((await json(await get(`/api/notes/${id}`))).content).toBe(`${content}!`);
          await remove(id);
        },
      ),
      { numRuns: 40 },
    );
  });

  test.each([
    [{}, "title"],
    [{ title: "x" }, "content"],
    [{ title: " ", content: "" }, "title"],
    [{ title: "x".repeat(301), content: "" }, "title"],
    [{ title: "x", content: 1 }, "content"],
    [{ title: "x", content: "a\0b" }, "content"],
    [{ title: "x", content: "\ud800" }, "content"],
    [{ title: "\0", content: "" }, "title"],
    [{ title: "x", content: "", category: " " }, "category"],
    [{ title: "x", content: "", category: "y".repeat(101) }, "category"],
  ])("that is %j is refused", async (body, path) => {
    const response = await service.post("/api/notes", body);
    expect(response.status).toBe(400);
    const problem = await json(response);
    expect(problem.errors.map((each: { path: string }) => each.path)).toContain(path);
    expect(problem.detail).toMatch(/^[a-z]+ .*\.$/);
    expect((await json(await get("/api/notes"))).notes).toEqual([]);
  });

  test("A3: invalid UTF-8 is refused, and so is what is too long", async () => {
    const headers = { "content-type": "application/json" };
    const body = new Uint8Array([...new TextEncoder().encode('{"title":"x","content":"'), 0xff, 0x22, 0x7d]);
    const broken = await service.request("/api/notes", { method: "POST", headers, body });
    expect([broken.status, (await json(broken)).detail]).toEqual([400, "The body is not valid UTF-8."]);
    expect((await write("x", "y".repeat(1024 * 1024))).status).toBe(413);
    const fits = await write("x", "y".repeat(1024 * 1024 - 100));
    expect(fits.status).toBe(201);
    await service.close();
    await open({ API_BODY_LIMIT: String(4 * 1024 * 1024) });
    expect((await write("x", "y".repeat(1024 * 1024))).status).toBe(201);
    const long = await write("x", "ü".repeat(512 * 1024 + 1));
    expect([long.status, (await json(long)).detail]).toEqual([
      400,
      "content has to have at most 1048576 bytes of UTF-8; make two notes of it.",
    ]);
  });

  test("without anything to change it is refused", async () => {
    const { note_id: id } = await json(await write("x", ""));
    expect((await put(id, {})).status).toBe(400);
    expect((await put(id, { title: null })).status).toBe(400);
    expect((await json(await get(`/api/notes/${id}`))).version).toBe(1);
  });
});

describe("two clients that edit one note", () => {
  test("with If-Match the later one gets 412, and nothing is overwritten", async () => {
    const { note_id: id } = await json(await write("Plan", "one"));
    const [ann, bob] = await Promise.all([get(`/api/notes/${id}`), get(`/api/notes/${id}`)]);
    const tags = [ann, bob].map((each) => ({ "if-match": each.headers.get("etag") as string }));
    const saved = await put(id, { content: "of ann" }, tags[0]);
    expect([saved.status, saved.headers.get("etag")]).toEqual([200, '"2"']);
    const late = await put(id, { content: "of bob" }, tags[1]);
    expect(late.status).toBe(412);
    expect(await json(late)).toMatchObject({ code: "conflict", status: 412, param: "If-Match" });
    expect((await json(await get(`/api/notes/${id}`))).content).toBe("of ann");
    expect((await remove(id, tags[1])).status).toBe(412);
    const again = await put(id, { content: "of both" }, { "if-match": '"2"' });
    expect(again.status).toBe(200);
    expect((await remove(id, { "if-match": '"3"' })).status).toBe(200);
  });

  test("at once, with If-Match: exactly one of them wins", async () => {
    const { note_id: id } = await json(await write("Plan", "none"));
    const all = await Promise.all(
      Array.from({ length: 8 }, (_, n) => put(id, { content: `of ${n}` }, { "if-match": '"1"' })),
    );
    expect(all.map(({ status }) => status).toSorted()).toEqual([200, ...Array(7).fill(412)]);
    const winner = all.findIndex(({ status }) => status === 200);
    expect(await json(await get(`/api/notes/${id}`))).toMatchObject({ content: `of ${winner}`, version: 2 });
  });

  test("without it the last one wins", async () => {
    const { note_id: id } = await json(await write("Plan", "one"));
    await put(id, { content: "of ann" });
    await put(id, { content: "of bob" }, { "if-match": "*" });
    expect(await json(await get(`/api/notes/${id}`))).toMatchObject({ content: "of bob", version: 3 });
  });

  test("a tag of another kind is a version that the note has not", async () => {
    const { note_id: id } = await json(await write("Plan", "one"));
    for (const tag of ['W/"1"', "1", '"x"', '""'])
      expect((await put(id, { content: "two" }, { "if-match": tag })).status).toBe(412);
    expect((await put(id, { content: "two" }, { "if-match": '"1", "2"' })).status).toBe(400);
    expect((await put("note_nobody", { content: "two" }, { "if-match": '"1"' })).status).toBe(404);
    expect((await put("note_nobody", { content: "two" }, { "if-match": "*" })).status).toBe(404);
  });
});

describe("lists", () => {
  test("newest change first, page by page, by category", async () => {
    const ids: string[] = [];
    for (const [n, category] of ["A", "B", "A", "C", "A"].entries()) {
      ids.unshift((await json(await write(`n${n}`, "text", category))).note_id);
      tick();
    }
    const seen: string[] = [];
    for (let cursor = ""; ; ) {
      const page = await json(await get(`/api/notes?limit=2&cursor=${cursor}`));
      seen.push(...page.notes.map((note: { id: string }) => note.id));
      if (page.next_cursor === null) break;
      cursor = page.next_cursor;
    }
    expect(seen).toEqual(ids);
    await put(ids[4] as string, { title: "changed" });
    const { notes } = await json(await get("/api/notes"));
    expect(notes[0]).toMatchObject({ id: ids[4], title: "changed" });
    const { notes: ofA } = await json(await get("/api/notes?category=A"));
    expect(ofA.map((note: { title: string }) => note.title)).toEqual(["changed", "n4", "n2"]);
    expect(await json(await get("/api/notes/categories"))).toEqual({
      categories: [
        { category: "A", notes: 3 },
        { category: "B", notes: 1 },
        { category: "C", notes: 1 },
      ],
    });
    for (const path of ["?limit=0", "?limit=201", "?cursor=x", "?q=x&cursor=x"])
      expect((await get(`/api/notes${path}`)).status).toBe(400);
  });

  test("a page of long notes ends early, and the next one goes on", async () => {
    const ids: string[] = [];
    for (let n = 0; n < 5; n++) {
      ids.unshift((await json(await write(`n${n}`, `word ${"x".repeat(600_000)}`))).note_id);
      tick();
    }
    for (const path of [
      "/api/notes?limit=3",
      "/api/notes?limit=3&q=word",
      "/api/notes?limit=3&category=General",
    ]) {
      const seen: string[] = [];
      for (let cursor = ""; ; ) {
        const page = await json(await get(`${path}&cursor=${cursor}`));
        expect(page.notes).toHaveLength(1);
        seen.push(page.notes[0].id);
        if (page.next_cursor === null) break;
        cursor = page.next_cursor;
      }
      expect(seen).toEqual(ids);
    }
  });

  test("a search finds words of titles and texts, best first, and says where", async () => {
    await write(
      "Sourdough",
      `${"Filling words before it. ".repeat(20)}The zebra eats rye.\n\nMore.`,
      "Bread",
    );
    await write("Zebra", "stripes", "Animals");
    await write("Other", "nothing of it", "Animals");
    const titles = async (query: string) =>
      (await json(await get(`/api/notes?${query}`))).notes.map((note: { title: string }) => note.title);
    expect(await titles("q=zebra")).toEqual(["Zebra", "Sourdough"]);
    expect(await titles("q=zebra rye")).toEqual(["Sourdough"]);
    expect(await titles("q=ZÉB")).toEqual(["Zebra", "Sourdough"]);
    expect(await titles("q=zebra&category=Bread")).toEqual(["Sourdough"]);
    expect(await titles("q=nowhere")).toEqual([]);
    expect(await titles(`q=${encodeURIComponent('" OR ) NEAR( title:zebra *')}`)).toEqual([]);
    const { notes } = await json(await get("/api/notes?q=rye"));
    expect(notes[0].snippet).toMatch(/^….*The zebra eats rye\. More\.$/);
    expect(notes[0].snippet.length).toBeLessThan(250);
    const [first] = (await json(await get("/api/notes?q=zebra&limit=1"))).notes;
    expect(first).not.toHaveProperty("snippet");
  });

  test("what has no words is looked for in titles", async () => {
    await write("100 %", "x");
    await write("Party 🎉", "x");
    const { notes } = await json(await get(`/api/notes?q=${encodeURIComponent("🎉")}`));
    expect(notes.map((note: { title: string }) => note.title)).toEqual(["Party 🎉"]);
  });

  test("a changed note is found by its new words only, a deleted one by none", async () => {
    const { note_id: id } = await json(await write("x", "before"));
    await put(id, { content: "after" });
    const found = async (word: string) => (await json(await get(`/api/notes?q=${word}`))).notes.length;
    expect([await found("before"), await found("after")]).toEqual([0, 1]);
    await remove(id);
    expect(await found("after")).toBe(0);
  });
});

test("Idempotency-Key: a note that is sent twice is written once", async () => {
  const headers = { "idempotency-key": "note-1" };
  const body = { title: "once", content: "x" };
  const [first, again] = [
    await service.post("/api/notes", body, headers),
    await service.post("/api/notes", body, headers),
  ];
  expect([again.status, again.headers.get("idempotency-replayed"), again.headers.get("etag")]).toEqual([
    201,
    "true",
    '"1"',
  ]);
  expect(await json(again)).toEqual(await json(first));
  expect((await service.post("/api/notes", { ...body, content: "y" }, headers)).status).toBe(422);
  expect((await json(await get("/api/notes"))).notes).toHaveLength(1);
});

test.each([
  ["by token", { ACCESS_TOKENS: "ann:token-a,bob:token-b" }, "token-a", "token-b"],
  ["by key", { AUTH: "key" }, "sk-key-of-ann", "sk-key-of-bob"],
])("A5: two owners %s: a note of the one is nothing to the other", async (_, env, ann, bob) => {
  await service.close();
  await open(env);
  const as = (token: string) => ({ authorization: `Bearer ${token}` });
  const draft = { title: "Secret", content: "zebra", category: "Mine" };
  const { note_id: id } = await json(await service.post("/api/notes", draft, as(ann)));
  for (const response of [
    await get(`/api/notes/${id}`, as(bob)),
    await put(id, { title: "x" }, as(bob)),
    await put(id, { title: "x" }, { ...as(bob), "if-match": '"1"' }),
    await put(id, { title: "x" }, { ...as(bob), "if-match": '"7"' }),
    await remove(id, as(bob)),
  ])
    expect([response.status, (await json(response)).code]).toEqual([404, "not_found"]);
  for (const path of ["", "?q=zebra", "?category=Mine", "?q=zebra&category=Mine"])
    expect((await json(await get(`/api/notes${path}`, as(bob)))).notes).toEqual([]);
  expect(await json(await get("/api/notes/categories", as(bob)))).toEqual({ categories: [] });
  expect((await get("/api/notes")).status).toBe(401);
  expect((await remove(id, as(ann))).status).toBe(200);
  await service.close();
  await open();
});
