import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type ScriptedReply, scriptedModel } from "../scripted-model.ts";
import {
  createHome,
  createService,
  done,
  json,
  ofType,
  readEvents,
  START,
  type TestHome,
  type TestOptions,
  type TestService,
  toolbox,
} from "./service.ts";

let home: TestHome;
const open: TestService[] = [];

beforeAll(async () => {
  home = await createHome();
});
afterAll(() => home.close());
beforeEach(() => {
  done.length = 0;
  home.clock.now = START;
});
afterEach(async () => {
  for (const each of open.splice(0)) await each.close();
});

async function start(replies: ScriptedReply[], options: Partial<TestOptions> = {}): Promise<TestService> {
  const service = await createService(home, { model: scriptedModel(replies), ...options });
  open.push(service);
  return service;
}

type Turn = { role: "user" | "assistant"; content: string };

interface Answer {
  text: string;
  runId: string;
}

/** A client that knows nothing but its own protocol. */
interface Client {
  name: string;
  ask(service: TestService, turns: Turn[], headers?: Record<string, string>): Promise<Response>;
  read(response: Response): Promise<Answer>;
}

const runIdOf = (response: Response) => response.headers.get("x-run-id") ?? "";

/** The data of an event stream. */
async function dataOf(response: Response): Promise<Record<string, never>[]> {
  const text = await response.text();
  return [...text.matchAll(/^data: (\{.*\})$/gm)].map(([, data]) => JSON.parse(data as string));
}

const CLIENTS: Client[] = [
  {
    name: "chat completions, whole",
    ask: (service, messages, headers) =>
      service.post("/v1/chat/completions", { model: "m", messages }, headers),
    async read(response) {
      const { choices } = await json(response);
      expect(choices[0].finish_reason).toBe("stop");
      expect(choices[0].message.tool_calls).toBeUndefined();
      return { text: choices[0].message.content, runId: runIdOf(response) };
    },
  },
  {
    name: "chat completions, streamed",
    ask: (service, messages, headers) =>
      service.post("/v1/chat/completions", { model: "m", stream: true, messages }, headers),
    async read(response) {
      const chunks = (await dataOf(response)) as unknown as { choices: { delta: { content?: string } }[] }[];
      return {
        text: chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join(""),
        runId: runIdOf(response),
      };
    },
  },
  {
    name: "messages, whole",
    ask: (service, messages, headers) =>
      service.post("/v1/messages", { model: "m", max_tokens: 100, messages }, headers),
    async read(response) {
      const { content, stop_reason } = await json(response);
      expect(stop_reason).toBe("end_turn");
      return {
        text: content.map((block: { text?: string }) => block.text ?? "").join("\n\n"),
        runId: runIdOf(response),
      };
    },
  },
  {
    name: "messages, streamed",
    ask: (service, messages, headers) =>
      service.post("/v1/messages", { model: "m", max_tokens: 100, stream: true, messages }, headers),
    async read(response) {
      const events = (await dataOf(response)) as unknown as { type: string; delta?: { text?: string } }[];
      expect(events.at(-1)?.type).toBe("message_stop");
      return { text: events.map((event) => event.delta?.text ?? "").join(""), runId: runIdOf(response) };
    },
  },
];

const write: ScriptedReply = {
  text: "I write.",
  calls: [{ id: "call_in_band_of_a_chat_00", name: "write", args: { path: "notes.txt" } }],
};
const CODE = /approve ([2-9A-HJ-NP-Z]{8})/;

async function parked(service: TestService, client: Client) {
  const turns: Turn[] = [{ role: "user", content: "write" }];
  const asked = await client.read(await client.ask(service, turns));
  const code = CODE.exec(asked.text)?.[1] as string;
  expect(asked.text).toContain("notes.txt");
  expect(code).toBeDefined();
  const answer = (words: string): Turn[] => [
    ...turns,
    { role: "assistant", content: asked.text },
    { role: "user", content: words },
  ];
  return { ...asked, code, answer };
}

describe.each(CLIENTS)("approval in a chat: $name", (client) => {
  test("approve CODE goes on with the stored run, once", async () => {
    const model = scriptedModel([write, { text: "Written." }]);
    const service = await start([], { model });
    const { runId, code, answer } = await parked(service, client);
    expect(done).toEqual([]);
    const response = await client.ask(service, answer(` approve ${code.toLowerCase()}\n`));
    const reply = await client.read(response);
    expect(reply).toEqual({ text: expect.stringMatching(/Written\.$/), runId });
    expect(done).toEqual(["write notes.txt"]);
    expect(model.requests[1]?.messages.map((message) => message.role)).toEqual(["user", "assistant", "tool"]);
    const again = await client.ask(service, answer(`approve ${code}`));
    expect(again.status).toBe(409);
    expect(done).toHaveLength(1);
    expect(await json(await service.request(`/api/runs/${runId}`))).toMatchObject({ status: "completed" });
  });

  test("deny CODE tells the model", async () => {
    const model = scriptedModel([write, { text: "As you like." }]);
    const service = await start([], { model });
    const { code, answer } = await parked(service, client);
    const reply = await client.read(await client.ask(service, answer(`deny ${code}`)));
    expect(reply.text).toContain("As you like.");
    expect(done).toEqual([]);
    expect(model.requests[1]?.messages.at(-1)).toMatchObject({ role: "tool", failed: true });
  });

  test("anything but the whole message is an ordinary message", async () => {
    const service = await start([write, { text: "Nothing was decided." }]);
    const { code, answer } = await parked(service, client);
    for (const words of [`please approve ${code}`, `approve ${code} now`, "approve 22222222"])
      expect((await client.read(await client.ask(service, answer(words)))).text).toContain(
        "Nothing was decided.",
      );
    expect(done).toEqual([]);
  });

  test("the same run stands in the native door, which may decide it", async () => {
    const service = await start([write, { text: "Written." }]);
    const { runId, code, answer } = await parked(service, client);
    const run = await json(await service.request(`/api/runs/${runId}`));
    expect(run).toMatchObject({ status: "paused", pending_calls: [{ name: "write" }] });
    const approval = { session_id: run.session_id, approved: true, pending_calls: run.pending_calls };
    expect(await json(await service.post("/api/chat/approve", approval))).toMatchObject({
      run_id: runId,
      auth_required: false,
    });
    expect(done).toEqual(["write notes.txt"]);
    expect((await client.ask(service, answer(`approve ${code}`))).status).toBe(409);
  });

  test("a code of another owner's is no code", async () => {
    const env = { ACCESS_TOKENS: "ann:token-a,bob:token-b" };
    const service = await start([write, { text: "Nothing was decided." }], { env });
    const as = (name: string) => ({ "x-access-token": `token-${name}` });
    const asked = await client.read(await client.ask(service, [{ role: "user", content: "write" }], as("a")));
    const words = `approve ${CODE.exec(asked.text)?.[1]}`;
    const reply = await client.read(await client.ask(service, [{ role: "user", content: words }], as("b")));
    expect(reply.text).toContain("Nothing was decided.");
    expect(done).toEqual([]);
  });

  test("x-approval: deny refuses what would ask", async () => {
    const service = await start([write, { text: "I may not." }]);
    const response = await client.ask(service, [{ role: "user", content: "write" }], {
      "x-approval": "deny",
    });
    expect((await client.read(response)).text).toContain("I may not.");
    expect(done).toEqual([]);
  });

  test("restart: the code is good in another process", async () => {
    const first = await start([write]);
    const { code, answer } = await parked(first, client);
    first.kill();
    const second = await start([{ text: "Written elsewhere." }]);
    const reply = await client.read(await client.ask(second, answer(`approve ${code}`)));
    expect(reply.text).toContain("Written elsewhere.");
    expect(done).toEqual(["write notes.txt"]);
  });
});

test("a code is good in the native door, too, and late codes are gone", async () => {
  const client = CLIENTS[0] as Client;
  const service = await start([write, { text: "Written." }, write]);
  const { runId, code } = await parked(service, client);
  const response = await service.post("/api/chat", { message: `approve ${code}`, stream: true });
  const { events } = await readEvents(response);
  expect(ofType(events, "session")).toMatchObject([{ run_id: runId }]);
  expect(events.at(-1)).toMatchObject({ type: "done" });
  expect(done).toEqual(["write notes.txt"]);
  const late = await parked(service, client);
  home.clock.now = new Date(START.getTime() + 25 * 60 * 60 * 1000);
  const gone = await client.ask(service, late.answer(`approve ${late.code}`));
  expect(gone.status).toBe(410);
});

test("several calls: a code each; the others wait on", async () => {
  const client = CLIENTS[0] as Client;
  const calls = [1, 2].map((n) => ({ id: `call_of_several_calls_0${n}`, name: "write", args: { n } }));
  const service = await start([{ calls }, { text: "Both." }]);
  const asked = await client.read(await client.ask(service, [{ role: "user", content: "write" }]));
  const [first] = [...asked.text.matchAll(new RegExp(CODE, "g"))].map(([, code]) => code);
  const next = await client.read(await client.ask(service, [{ role: "user", content: `approve ${first}` }]));
  expect(done).toEqual(["write 1"]);
  const code = CODE.exec(next.text)?.[1];
  const last = await client.read(await client.ask(service, [{ role: "user", content: `approve ${code}` }]));
  expect(last.text).toContain("Both.");
  expect(done).toEqual(["write 1", "write 2"]);
});

describe("a client that goes", () => {
  test("ends its stateless run, and a stored one is not left running", async () => {
    let entered = () => {};
    const reached = new Promise<void>((resolve) => {
      entered = resolve;
    });
    const tools = toolbox(async (_, signal) => {
      entered();
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    });
    const service = await start([write], { tools, env: { APPROVAL: "auto" } });
    const body = { model: "m", stream: true, messages: [{ role: "user", content: "go" }] };
    const response = await service.post("/v1/chat/completions", body);
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    await reached;
    await reader.cancel();
    await service.services.runs.stop("local", runIdOf(response));
    expect(await json(await service.request(`/api/runs/${runIdOf(response)}`))).toMatchObject({
      status: "stopped",
      door: "chat-completions",
    });
    expect(service.services.runs.size).toBe(0);
  });

  test("and wants its run to go on, gets what it made", async () => {
    const service = await start([write, { text: "Written." }], { env: { APPROVAL: "auto" } });
    const body = { model: "m", stream: true, messages: [{ role: "user", content: "go" }] };
    const response = await service.post("/v1/chat/completions", body, {
      "x-on-disconnect": "continue",
      "x-session-id": "kept",
    });
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    await reader.cancel();
    const events = await service.request(`/api/runs/${runIdOf(response)}/events`);
    expect((await readEvents(events)).events.at(-1)).toMatchObject({
      type: "done",
      reply: "I write.\n\nWritten.",
    });
  });
});

test("a bare model's run leaves nothing behind", async () => {
  const service = await start([{ text: "hello" }]);
  const body = { model: "dragoman/raw@m", messages: [{ role: "user", content: "go" }] };
  const response = await service.post("/v1/chat/completions", body);
  expect((await service.request(`/api/runs/${runIdOf(response)}`)).status).toBe(404);
});
