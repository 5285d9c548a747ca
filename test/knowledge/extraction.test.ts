import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { candidatesOf } from "../../src/knowledge/extraction.ts";
import { createHome, createService, json, START, type TestHome, type TestOptions } from "../http/service.ts";
import { type ScriptedReply, scriptedModel } from "../scripted-model.ts";

let home: TestHome;
beforeAll(async () => {
  home = await createHome();
});
afterAll(() => home.close());

const found = (...memories: object[]): ScriptedReply => ({
  text: `Here it is:\n\`\`\`json\n${JSON.stringify({ memories })}\n\`\`\``,
});
const ROWS = { memory: "The user rows", category: "sport", importance: 1, quote: "I  ROW" };
const ON = { MEMORY_EXTRACTION: "on", MEMORY_EXTRACTION_IDLE: "60" };

async function start(replies: ScriptedReply[], options: Partial<TestOptions> = {}) {
  home.clock.now = START;
  const model = scriptedModel(replies);
  const service = await createService(home, { model, tools: "own", env: ON, ...options });
  await service.request("/api/memory", { method: "DELETE" });
  const tick = async (seconds: number) => {
    home.clock.now = new Date(START.getTime() + seconds * 1000);
    await service.services.tick();
  };
  const list = async () => (await json(await service.request("/api/memory"))).memories;
  const chat = async (message: string, more: object = {}) =>
    (await json(await service.post("/api/chat", { message, ...more }))).session_id;
  return { service, model, tick, list, chat };
}

describe("extraction", () => {
  test("asks the caller's model once the session has been idle, with the user's words and nothing else", async () => {
    const recall = { calls: [{ id: "c", name: "recall", args: { query: "boats" } }] };
    const { service, model, tick, list, chat } = await start([
      recall,
      { text: "You told me of boats." },
      found(ROWS),
    ]);
    await service.post("/api/memory", { document: "The user owns boats" });
    const session = await chat("I row, by the way. What of my boats?", { api_key: "sk-callers-own-key" });
    await tick(30);
    expect(model.requests).toHaveLength(2);
    await tick(61);
    expect(model.requests).toHaveLength(3);
    const request = JSON.stringify(model.requests[2]);
    expect(request).toContain("I row, by the way");
    for (const word of ["You told me", "owns boats", "Dragoman", "mem_"]) expect(request).not.toContain(word);
    expect(model.requests[2]).toMatchObject({ tools: [], settings: { maxTokens: 1200 } });
    expect(service.keys.at(-1)).toBe("sk-callers-own-key");
    const { messages } = await json(await service.request(`/api/sessions/${session}/messages`));
    expect((await list())[0]).toMatchObject({
      document: "The user rows",
      metadata: {
        ...{ origin: "extraction", category: "sport", importance: 0.75, quote: "I  ROW" },
        ...{ source_session_id: session, source_message_id: messages[0].id },
      },
    });
    await tick(600);
    expect(model.requests).toHaveLength(3);
    await chat("Also, I sing.", { session_id: session });
    await tick(1300);
    expect(JSON.stringify(model.requests.at(-1))).not.toContain("I row");
    expect(JSON.stringify(model.requests.at(-1))).toContain("I sing");
    await service.close();
  });

  test("keeps nothing of a session that is deleted while the model looks at it", async () => {
    const { service, model, tick, list, chat } = await start([{ text: "Fine." }, found(ROWS)]);
    const session = await chat("I row");
    const stream = model.stream.bind(model);
    model.stream = async function* (request, signal) {
      const path = `/api/sessions/${session}?memories=delete`;
      expect((await service.request(path, { method: "DELETE" })).status).toBe(200);
      yield* stream(request, signal);
    };
    await tick(61);
    expect(model.requests).toHaveLength(2);
    expect(await list()).toEqual([]);
    await service.close();
  });

  test("does nothing unless the operator wants it", async () => {
    const { service, model, tick, chat } = await start([{ text: "Fine." }], { env: {} });
    await chat("I row");
    await tick(100_000);
    expect(model.requests).toHaveLength(1);
    await service.close();
  });

  test("K1: the caller's key lies sealed while it waits, and is gone afterwards", async () => {
    const { service, tick, chat } = await start([{ text: "Fine." }, found()]);
    const session = await chat("I row", { api_key: "sk-callers-own-key" });
    const database = await home.backend.open();
    const read = async () =>
      (
        await database.read.execute({
          sql: "SELECT * FROM memory_extractions WHERE session_id = ?",
          args: [session],
        })
      ).rows[0];
    const waiting = await read();
    expect(waiting?.sealed_key).toMatch(/^[\w-]{40,}$/);
    expect(JSON.stringify(waiting)).not.toContain("sk-callers");
    await tick(61);
    expect(await read()).toMatchObject({ sealed_key: null, due_at: null });
    await service.request(`/api/sessions/${session}`, { method: "DELETE" });
    expect(await read()).toBeUndefined();
    database.read.close();
    database.write.close();
    await service.close();
  });

  test("R3: processes that tick at once ask once; a model that fails is asked three times", async () => {
    const one = await start([{ text: "Fine." }, found(ROWS)]);
    await one.chat("I row");
    const others = await Promise.all(
      [0, 1, 2].map(() => createService(home, { model: one.model, tools: "own", env: ON })),
    );
    home.clock.now = new Date(START.getTime() + 61_000);
    await Promise.all([one.service, ...others].map(({ services }) => services.tick()));
    expect(one.model.requests).toHaveLength(2);
    for (const other of others) await other.close();
    await one.service.close();
    const fault = { code: "upstream_error", message: "no", status: 500 } as const;
    const two = await start([{ text: "Fine." }, { fault }]);
    await two.chat("I row");
    for (const seconds of [61, 1_000, 5_000, 20_000, 50_000]) await two.tick(seconds);
    expect(two.model.requests).toHaveLength(4);
    expect(
      two.service.logged.filter(([, text]) => text === "no memories could be made of a session"),
    ).toHaveLength(3);
    await two.service.close();
  });
});

describe("what the model proposes", () => {
  const messages = [{ id: "msg_1", seq: 1, text: "I row on Sundays\nand sing" }];
  const take = (reply: string) => candidatesOf(reply, messages, "ses_1").map(({ document }) => document);

  test("counts only with words that the user has said, three at most", () => {
    const say = (quote: string, memory = quote) => ({ memory, quote });
    expect(
      take(JSON.stringify({ memories: [say("on sundays AND sing"), say("I ski"), say(""), { memory: 1 }] })),
    ).toEqual(["on sundays AND sing"]);
    const many = Array.from({ length: 9 }, (_, at) => say("sing", `Fact ${at}`));
    expect(take(JSON.stringify({ memories: many }))).toHaveLength(3);
    for (const reply of [
      "",
      "nothing",
      "{",
      "[]",
      "{}",
      '{"memories":{}}',
      "{not json}",
      '{"memories":[null]}',
    ])
      expect(take(reply), reply).toEqual([]);
  });
});
