import { readFileSync } from "node:fs";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, expectTypeOf, test } from "vitest";
import {
  type ChatEvent,
  type ChatReply,
  type Client,
  chatEvents,
  createClient,
  type MessageView,
  type NumberedEvent,
  type RunView,
  type SessionView,
} from "../src/client.ts";
import { createHome, createService, type TestHome, type TestService } from "./http/service.ts";
import { scriptedModel } from "./scripted-model.ts";

const TOKEN = "a-token-of-the-tests-1234567890";

let home: TestHome;
let service: TestService;
let client: Client;

beforeAll(async () => {
  home = await createHome();
  const asks = { text: "I write.", calls: [{ id: "call_1", name: "write", args: { n: 1 } }] };
  service = await createService(home, {
    model: scriptedModel([asks, { text: "Written." }]),
    env: { ACCESS_TOKENS: `ann:${TOKEN}` },
  });
  client = createClient("http://127.0.0.1:8000", { token: TOKEN, fetch: send });
});
afterAll(async () => {
  await service.close();
  await home.close();
});

/** What the service is asked through is a function: no port is opened. */
function send(input: string | URL | Request, init?: RequestInit): Promise<Response> {
  return service.request(String(input).slice("http://127.0.0.1:8000".length), init ?? {});
}

test("a conversation: asked, approved, streamed, read, renamed, forked, deleted", async () => {
  const asked = await client.api.chat.$post({ json: { message: "write it" } });
  if (!asked.ok) throw new Error("not asked");
  const { session_id, run_id, pending_calls } = await asked.json();
  expectTypeOf(pending_calls[0]?.preview).toEqualTypeOf<string | undefined>();
  expect(pending_calls.map(({ name }) => name)).toEqual(["write"]);

  const approved = await client.api.chat.approve.$post({
    json: { session_id, approved: true, pending_calls: pending_calls.map(({ id }) => id), stream: true },
  });
  const events: NumberedEvent[] = [];
  for await (const each of chatEvents(approved)) events.push(each);
  expect(events.at(-1)?.event).toMatchObject({ type: "done", reply: expect.stringContaining("Written.") });

  const param = { id: run_id };
  const after = Number(events[0]?.id);
  const byQuery = await client.api.runs[":id"].events.$get({ param, query: { after } });
  const header = { "last-event-id": String(after) };
  const byHeader = await client.api.runs[":id"].events.$get({ param, header });
  for (const response of [byQuery, byHeader]) {
    const rest: NumberedEvent[] = [];
    for await (const each of chatEvents(response)) rest.push(each);
    expect(rest).toEqual(events.slice(1));
  }

  const runs = await client.api.runs.$get({ query: { limit: 1, session_id, cursor: undefined } });
  if (!runs.ok) throw new Error("no runs");
  expect((await runs.json()).runs.map(({ id }) => id)).toEqual([run_id]);

  const session = { id: session_id };
  const renamed = await client.api.sessions[":id"].$patch({ param: session, json: { title: "Notes" } });
  if (!renamed.ok) throw new Error("not renamed");
  expect((await renamed.json()).title).toBe("Notes");
  const forked = await client.api.sessions[":id"].fork.$post({ param: session, json: {} });
  expect(forked.status).toBe(201);
  expect((await client.api.sessions[":id"].$delete({ param: session })).status).toBe(200);
  expect((await client.api.sessions[":id"].$get({ param: session })).status).toBe(404);
});

test("an error is a problem with a code", async () => {
  const response = await client.api.runs[":id"].$get({ param: { id: "run_unknown" } });
  if (response.ok) throw new Error("there is such a run");
  const problem = await response.json();
  expect(problem.status).toBe(404);
  expect(problem.code).toBe("not_found");
});

test("without the token it stays outside, but for what is public", async () => {
  const stranger = createClient("http://127.0.0.1:8000", { fetch: send });
  expect((await stranger.api.sessions.$get()).status).toBe(401);
  expect((await stranger.healthz.$get()).status).toBe(200);
  expect((await stranger["openapi.json"].$get()).status).toBe(200);
});

test("the doors of the SDKs are there too", async () => {
  const response = await client.v1.chat.completions.$post({
    json: { model: "dragoman", messages: [{ role: "user", content: "hi" }] },
  });
  if (!response.ok) throw new Error((await response.json()).error.message);
  const { choices } = await response.json();
  expect(choices[0]?.message.content).toBe("Written.");
});

describe("types", () => {
  test("replies, discriminated by ok", () => {
    type Chat = Awaited<ReturnType<Client["api"]["chat"]["$post"]>>;
    type Json<Response> = Response extends { json(): Promise<infer Body> } ? Body : never;
    expectTypeOf<Json<Extract<Chat, { ok: true }>>>().toEqualTypeOf<ChatReply>();
    type Problem = Json<Extract<Chat, { ok: false }>>;
    expectTypeOf<Problem["detail"]>().toEqualTypeOf<string>();
    expectTypeOf<Problem["code"]>().extract<"not_found">().toEqualTypeOf<"not_found">();

    type Run = Awaited<ReturnType<Client["api"]["runs"][":id"]["stop"]["$post"]>>;
    expectTypeOf<Json<Extract<Run, { ok: true }>>>().toEqualTypeOf<RunView>();
    type Sessions = Awaited<ReturnType<Client["api"]["sessions"]["$get"]>>;
    expectTypeOf<Json<Extract<Sessions, { ok: true }>>["sessions"]>().toEqualTypeOf<SessionView[]>();
    type Messages = Awaited<ReturnType<Client["api"]["sessions"][":id"]["messages"]["$get"]>>;
    expectTypeOf<Json<Extract<Messages, { ok: true }>>["messages"]>().toEqualTypeOf<MessageView[]>();
    type Fork = Awaited<ReturnType<Client["api"]["sessions"][":id"]["fork"]["$post"]>>;
    expectTypeOf<Extract<Fork, { ok: true }>["status"]>().toEqualTypeOf<201>();
  });

  test("requests: what is missing or of another kind does not compile", () => {
    const never = (): unknown[] => [
      // @ts-expect-error the body is required
      client.api.chat.$post(),
      // @ts-expect-error message is required
      client.api.chat.$post({ json: {} }),
      // @ts-expect-error message is a string
      client.api.chat.$post({ json: { message: 1 } }),
      // @ts-expect-error the id is required
      client.api.runs[":id"].$get(),
      // @ts-expect-error limit is a number
      client.api.runs.$get({ query: { limit: "many" } }),
      // @ts-expect-error there is no such word
      client.api.chat.approve.$post({ json: { session_id: "ses", approved: true, scope: "always" } }),
      // @ts-expect-error there is no such route
      client.api.nothing.$get(),
    ];
    expect(never).toBeTypeOf("function");
    expectTypeOf(client.api.runs.$get).toBeCallableWith({ query: { limit: 5 } });
    expectTypeOf(client.api.chat.$post).toBeCallableWith({
      json: { message: "hi", provider: "claude" },
      header: { "idempotency-key": "one" },
    });
  });
});

test("nothing of the server comes along but types", () => {
  const code = readFileSync(new URL("../src/client.ts", import.meta.url), "utf8");
  const values = [...code.matchAll(/^(?:import|export) (?!type ).*from "([^"]+)"/gm)].map(([, from]) => from);
  expect(values).toEqual(["hono/client"]);
});

describe("chatEvents", () => {
  const event = fc.oneof(
    fc.string({ unit: "binary" }).map((content): ChatEvent => ({ type: "content", content })),
    fc.record({
      type: fc.constant("tool_call" as const),
      ...{ id: fc.string(), name: fc.string(), args: fc.dictionary(fc.string(), fc.jsonValue()) },
    }),
  );

  test("gives the events of a stream, however its bytes are cut", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(event, fc.boolean())),
        fc.array(fc.nat(200), { maxLength: 20 }),
        async (parts, cuts) => {
          const wanted = parts.map(([each], index) => ({
            id: String(index + 1),
            event: JSON.parse(JSON.stringify(each)),
          }));
          const text = parts
            .map(
              ([each, quiet], index) =>
                `${quiet ? ": alive\n\n" : ""}id: ${index + 1}\ndata: ${JSON.stringify(each)}\n\n`,
            )
            .join("");
          expect(await collect(streamed(new TextEncoder().encode(text), cuts))).toEqual(wanted);
        },
      ),
    );
  });

  test("leaves a frame out that was cut off", async () => {
    const text = 'id: 1\ndata: {"type":"content","content":"a"}\n\nid: 2\ndata: {"type":"con';
    expect(await collect(streamed(new TextEncoder().encode(text), []))).toHaveLength(1);
  });

  test("cancels the stream when its reader has had enough", async () => {
    let cancelled = false;
    const frame = new TextEncoder().encode('id: 1\ndata: {"type":"content","content":"a"}\n\n');
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(frame),
      cancel: () => {
        cancelled = true;
      },
    });
    for await (const _ of chatEvents(eventStream(body))) break;
    expect(cancelled).toBe(true);
  });

  test("refuses what is no event stream", async () => {
    await expect(collect(Response.json({ detail: "no" }))).rejects.toThrow("application/json");
    await expect(collect(new Response(null, { status: 204 }))).rejects.toThrow("empty");
  });
});

async function collect(response: Response): Promise<NumberedEvent[]> {
  const all: NumberedEvent[] = [];
  for await (const each of chatEvents(response)) all.push(each);
  return all;
}

function eventStream(body: ReadableStream<Uint8Array>): Response {
  return new Response(body, { headers: { "content-type": "text/event-stream; charset=utf-8" } });
}

function streamed(bytes: Uint8Array, cuts: number[]): Response {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      let at = 0;
      for (const cut of cuts) {
        controller.enqueue(bytes.slice(at, at + cut));
        at += cut;
      }
      controller.enqueue(bytes.slice(at));
      controller.close();
    },
  });
  return eventStream(body);
}
