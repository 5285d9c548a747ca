import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Message, text } from "../../src/core/message.ts";
import { BACKENDS, type Backend, openStore, type TestStore } from "./backends.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const said = (value: string): Message[] => [
  { role: "assistant", content: [{ type: "reasoning", text: value, seal: "s/+=" }] },
  { role: "tool", callId: "server_1", content: [text(value)] },
];

describe.each(BACKENDS)("handed-back turns on $name", ({ available, create }) => {
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

  it.runIf(available)("finds a turn once under any of its call ids, and no other owner's", async () => {
    const turn = { callIds: ["a1", "a2", "a3"], context: "c", messages: said("x") };
    await store.handedBack.keep("ann", turn);
    expect(await store.handedBack.find("ann", ["a2"])).toEqual([turn]);
    expect(await store.handedBack.find("ann", ["a3", "a1", "none"])).toEqual([turn]);
    expect(await store.handedBack.find("bob", ["a1"])).toEqual([]);
    expect(await store.handedBack.find("ann", [])).toEqual([]);
  });

  it.runIf(available)("keeps equal ids of different contexts apart", async () => {
    const turns = ["one", "two"].map((context) => ({ callIds: ["b"], context, messages: said(context) }));
    for (const turn of turns) await store.handedBack.keep("ann", turn);
    await store.handedBack.keep("bob", { callIds: ["b"], context: "one", messages: said("bob") });
    const found = await store.handedBack.find("ann", ["b"]);
    expect(found.toSorted((x, y) => (x.context < y.context ? -1 : 1))).toEqual(turns);
  });

  it.runIf(available)(
    "replaces a turn that is kept again, and gives shared ids to the newer one",
    async () => {
      await store.handedBack.keep("ann", { callIds: ["c1", "c2"], context: "c", messages: said("old") });
      const again = { callIds: ["c1", "c2"], context: "c", messages: said("new") };
      await store.handedBack.keep("ann", again);
      expect(await store.handedBack.find("ann", ["c1", "c2"])).toEqual([again]);
      const newer = { callIds: ["c2", "c3"], context: "c", messages: said("newer") };
      await store.handedBack.keep("ann", newer);
      expect(await store.handedBack.find("ann", ["c2"])).toEqual([newer]);
      expect(await store.handedBack.find("ann", ["c1"])).toEqual([again]);
    },
  );

  it.runIf(available)("keeps ids and texts that are not storable as they can be stored", async () => {
    await store.handedBack.keep("ann", { callIds: ["d\0\ud800"], context: "\0c", messages: said("\0y") });
    expect(await store.handedBack.find("ann", ["d\0\ud800"])).toEqual([
      { callIds: ["d\ufffd"], context: "c", messages: said("y") },
    ]);
  });

  it.runIf(available)("keeps turns larger than a server's value", async () => {
    const turn = { callIds: ["e1", "e2"], context: "c", messages: said("ü".repeat(3_000_000)) };
    await store.handedBack.keep("ann", turn);
    const found = await store.handedBack.find("ann", ["e1", "e2"]);
    expect(JSON.stringify(found) === JSON.stringify([turn])).toBe(true);
  });

  it.runIf(available)("forgets after 30 days, and clears what is forgotten away", async () => {
    const start = store.clock.now.getTime();
    await store.handedBack.keep("ann", { callIds: ["f"], context: "c", messages: said("ü".repeat(800_000)) });
    store.clock.now = new Date(start + 30 * DAY_MS - 1);
    expect(await store.handedBack.find("ann", ["f"])).toHaveLength(1);
    store.clock.now = new Date(start + 30 * DAY_MS);
    expect(await store.handedBack.find("ann", ["f"])).toEqual([]);
    await store.handedBack.keep("bob", { callIds: ["g"], context: "c", messages: said("z") });
    const database = await backend.open();
    for (const table of ["handed_back_turns", "handed_back_calls", "handed_back_pieces"]) {
      const { rows } = await database.read.execute(
        `SELECT count(*) AS rows FROM ${table} WHERE owner <> 'bob'`,
      );
      expect([table, rows[0]?.rows]).toEqual([table, 0]);
    }
    database.write.close();
    database.read.close();
  });
});
