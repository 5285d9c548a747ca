import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type AssistantMessage, type Message, text, type UserMessage } from "../../src/core/message.ts";
import { createClient } from "../../src/platform/local-database.ts";
import { BACKENDS, type Backend, createFileBackend, openStore, type TestStore } from "./backends.ts";

const user = (value: string): UserMessage => ({ role: "user", content: [text(value)] });
const reply: AssistantMessage = {
  role: "assistant",
  content: [
    { type: "reasoning", text: "hm", seal: "c2VhbA==" },
    { type: "call", id: "call_1", name: "look", args: '{"at":"\\u0000"}' },
  ],
  origin: { provider: "anthropic", model: "m" },
  stop: "tool-calls",
  usage: { input: 3, output: 4, cacheRead: 1 },
};

describe.each(BACKENDS)("sessions on $name", ({ available, create }) => {
  let backend: Backend;
  let store: TestStore;
  beforeAll(async () => {
    if (!available) return;
    backend = await create();
    store = await openStore(backend);
  });
  afterAll(async () => {
    await store?.close();
    await backend?.close();
  });

  it.runIf(available)("opens new ones, finds them by id, and makes labelled ones on first use", async () => {
    const made = await store.sessions.open("ann", "new");
    expect(made).toEqual({
      id: expect.stringMatching(/^ses_[a-z2-7]{32}$/),
      title: "",
      lastSeq: 0,
      messageCount: 0,
      createdAt: store.clock.now,
      updatedAt: store.clock.now,
    });
    expect(await store.sessions.open("ann", made.id)).toEqual(made);
    const labelled = await store.sessions.open("ann", "proj:1.a_b-c");
    expect(await store.sessions.open("ann", "proj:1.a_b-c")).toEqual(labelled);
    expect((await store.sessions.open("bob", "proj:1.a_b-c")).id).not.toBe(labelled.id);
    const opened = await Promise.all(Array.from({ length: 20 }, () => store.sessions.open("ann", "race")));
    expect(new Set(opened.map((session) => session.id)).size).toBe(1);
  });

  it.runIf(available)("answers a foreign id exactly as one that is not there", async () => {
    const { id } = await store.sessions.open("ann", "new");
    await store.sessions.append("ann", id, 0, [user("secret")]);
    const missing = await store.sessions.open("bob", "ses_nowhere").catch((error) => error);
    const foreign = await store.sessions.open("bob", id).catch((error) => error);
    expect(foreign).toMatchObject({ code: "not_found", status: 404, message: missing.message });
    expect(await store.sessions.page("bob", id, { limit: 10 })).toEqual([]);
    await expect(store.sessions.append("bob", id, 1, [user("mine")])).rejects.toMatchObject({
      code: "not_found",
    });
    expect((await store.sessions.open("ann", id)).lastSeq).toBe(1);
  });

  it.runIf(available).each(["", "a b", "a/b", "ü", "x".repeat(129), "a\0"])(
    "refuses the label %j",
    async (label) => {
      await expect(store.sessions.open("ann", label)).rejects.toMatchObject({ code: "invalid_request" });
    },
  );

  it.runIf(available)("appends in order and pages from the end", async () => {
    const { id } = await store.sessions.open("ann", "new");
    store.clock.now = new Date("2026-11-20T11:00:00.000Z");
    const first = [user("one"), reply, { role: "tool", callId: "call_1", content: [text("2")] } as Message];
    expect(await store.sessions.append("ann", id, 0, first)).toBe(3);
    expect(await store.sessions.append("ann", id, 3, [user("two")])).toBe(4);
    const page = await store.sessions.page("ann", id, { limit: 3 });
    expect(page.map((entry) => entry.seq)).toEqual([4, 3, 2]);
    expect(page[2]).toEqual({
      id: expect.stringMatching(/^msg_/),
      seq: 2,
      message: reply,
      createdAt: store.clock.now,
    });
    const older = await store.sessions.page("ann", id, { before: 2, limit: 10 });
    expect(older.map((entry) => entry.message)).toEqual([user("one")]);
    expect(await store.sessions.open("ann", id)).toMatchObject({
      title: "one",
      lastSeq: 4,
      messageCount: 4,
      updatedAt: store.clock.now,
    });
  });

  it.runIf(available)("writes nothing when the position has moved on", async () => {
    const { id } = await store.sessions.open("ann", "new");
    await store.sessions.append("ann", id, 0, [user("one")]);
    expect(await store.sessions.append("ann", id, 0, [user("late"), user("later")])).toBeNull();
    expect(await store.sessions.append("ann", id, 7, [user("early")])).toBeNull();
    expect((await store.sessions.page("ann", id, { limit: 10 })).map((entry) => entry.message)).toEqual([
      user("one"),
    ]);
  });

  it.runIf(available)("has one winner among 100 appends at the same position", async () => {
    const other = await openStore(backend);
    const { id } = await store.sessions.open("ann", "new");
    const results = await Promise.all(
      Array.from({ length: 100 }, (_, index) =>
        (index % 2 ? other : store).sessions.append("ann", id, 0, [user(`${index}`), user("b")]),
      ),
    );
    expect(results.filter((result) => result !== null)).toEqual([2]);
    const winner = results.indexOf(2);
    const page = await store.sessions.page("ann", id, { limit: 10 });
    expect(page.map((entry) => entry.message)).toEqual([user("b"), user(`${winner}`)]);
    await other.close();
  });

  it.runIf(available)("lets two stores take turns without a gap", async () => {
    const other = await openStore(backend);
    const { id } = await store.sessions.open("ann", "new");
    const chain = async (from: TestStore, name: string) => {
      for (let done = 0; done < 25; ) {
        const { lastSeq } = await from.sessions.open("ann", id);
        if ((await from.sessions.append("ann", id, lastSeq, [user(`${name}${done}`)])) !== null) done += 1;
      }
    };
    await Promise.all([chain(store, "a"), chain(other, "b")]);
    const said = (await store.sessions.page("ann", id, { limit: 100 })).reverse();
    expect(said.map((entry) => entry.seq)).toEqual(Array.from({ length: 50 }, (_, index) => index + 1));
    const texts = said.map((entry) => (entry.message as UserMessage).content[0]);
    for (const name of ["a", "b"])
      expect(texts.filter((part) => part?.type === "text" && part.text.startsWith(name))).toEqual(
        Array.from({ length: 25 }, (_, index) => text(`${name}${index}`)),
      );
    await other.close();
  });

  it.runIf(available)("keeps any text, without NUL and lone surrogates", async () => {
    const { id } = await store.sessions.open("ann", "new");
    let seq = 0;
    const check = async (value: string) => {
      const message: Message = { role: "tool", callId: value, content: [text(value)] };
      seq = (await store.sessions.append("ann", id, seq, [message]))!;
      const [last] = await store.sessions.page("ann", id, { limit: 1 });
      const kept = value.replaceAll("\0", "").toWellFormed();
      expect(last?.message).toEqual({ role: "tool", callId: kept, content: [text(kept)] });
    };
    await check("a\0b \ud800 \udc00 \ud83d\ude00 \u2028 \ufeff ' \" \\ \\u0000 ß");
    await fc.assert(fc.asyncProperty(fc.string({ unit: "binary" }), check), { numRuns: 40 });
  });

  it.runIf(available)(
    "keeps messages larger than a server's value, and pages larger than its answer",
    async () => {
      const { id } = await store.sessions.open("ann", "new");
      const long = `${"x".repeat(749_990)}${"😀".repeat(20)}${"ü".repeat(6_000_000)}`;
      const messages = [
        user(long),
        user("short"),
        ...Array.from({ length: 5 }, () => user("é".repeat(1_400_000))),
      ];
      expect(await store.sessions.append("ann", id, 0, messages)).toBe(7);
      const page = (await store.sessions.page("ann", id, { limit: 50 })).reverse();
      expect(page.map((entry) => entry.seq)).toEqual([1, 2, 3, 4, 5, 6, 7]);
      expect(page.every((entry, at) => JSON.stringify(entry.message) === JSON.stringify(messages[at]))).toBe(
        true,
      );
      expect(await store.sessions.append("ann", id, 0, [user(long)])).toBeNull();
    },
  );

  it.runIf(available).each([
    ["the first line", "  \n Fix the   parser \nplease", "Fix the parser"],
    ["80 characters and no half ones", "😀".repeat(100), "😀".repeat(80)],
    ["text that can be stored", "a\0\ud800b", "a\ufffdb"],
  ])("takes %s for a title", async (_, said, title) => {
    const { id } = await store.sessions.open("ann", "new");
    await store.sessions.append("ann", id, 0, [{ role: "system", content: [text("rules")] }]);
    await store.sessions.append("ann", id, 1, [user(said)]);
    await store.sessions.append("ann", id, 2, [user("later")]);
    expect((await store.sessions.open("ann", id)).title).toBe(title);
  });
});

it("reads the last messages of a long session without a scan", async () => {
  const backend = await createFileBackend();
  const store = await openStore(backend);
  const client = createClient({ url: `file:${encodeURIComponent(backend.path).replaceAll("%2F", "/")}` });
  const plan = await client.execute(
    `EXPLAIN QUERY PLAN SELECT id FROM messages WHERE session_id = 's' AND owner = 'o' AND seq < 9
     ORDER BY seq DESC LIMIT 50`,
  );
  expect(plan.rows.map((row) => row.detail)).toEqual([
    "SEARCH messages USING INDEX messages_position (session_id=? AND seq<?)",
  ]);
  client.close();
  await store.close();
  await backend.close();
});
