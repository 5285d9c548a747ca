/**
 * The contract that every upstream adapter must pass: against aimock for what a good upstream says, against a plain
 * HTTP server for what a bad one does to the wire.
 *
 * A provider brings a way to create its adapter, replies recorded from its real service, and its error bodies.
 */
import { LLMock } from "@copilotkit/aimock";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { AssistantPart, ProviderName, StopReason, Usage } from "../../src/core/message.ts";
import type { ModelAdapter, ToolSpec } from "../../src/core/model.ts";
import type { Fault } from "../../src/errors.ts";
import { createUpstreamFetch } from "../../src/platform/local-upstream.ts";
import { createConfiguredFetch } from "../../src/providers/configured-fetch.ts";
import type { Fetch, UpstreamLimits } from "../../src/providers/upstream.ts";
import { frames, reply, startUpstream, stream, type UpstreamServer } from "../upstream-server.ts";
import { replyOf, request, withoutMadeUpIds } from "./model-stream.ts";

/** One streamed reply as the service sends it, and what it says. */
export interface Recording {
  sse: string;
  content: AssistantPart[];
  stop: StopReason;
  usage: Usage;
  /** How many frames of `sse` the reply needs; from there on a cut connection does no harm. All where absent. */
  needs?: number;
}

export interface Contract {
  provider: ProviderName;
  /** `url` is the server's root, without a path: the adapter's base URL is made from it here. */
  create(url: string, limits: UpstreamLimits, key: string, fetch: Fetch): ModelAdapter;
  model: string;
  /** At least a text reply of several frames with non-ASCII text, and one with parallel calls. */
  recordings: { text: Recording; calls: Recording } & Record<string, Recording>;
  /** The JSON body of an error, as the service writes it. */
  errorBody(status: number, message: string): Record<string, unknown>;
  /** An error that the service sends inside its stream, with the status that it should become. */
  streamError?: { frame: string; status: number; message: string };
  /** A frame of good SSE whose data is no JSON. */
  brokenFrame?: string;
}

/** The adapter's own limits play no part in most tests. Retries come at once. */
const LIMITS: UpstreamLimits = { firstByteMs: 10_000, idleMs: 10_000, retries: 2, retryWaitMs: 1 };
const KEY = "sk-canary-8f2b61d09c";
const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

const WEATHER: ToolSpec = {
  kind: "function",
  name: "get_weather",
  description: "The weather in a city.",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};

/** By `fetch`, as on Bun and Workers, and by what asks providers on Node. */
export function contractSuite(contract: Contract): void {
  describe("by fetch", () => suite(contract, createConfiguredFetch()));
  describe("by node:http", () => suite(contract, createConfiguredFetch(createUpstreamFetch())));
}

function suite(contract: Contract, fetch: Fetch): void {
  const never = new AbortController().signal;

  describe(`${contract.provider}: good replies`, () => {
    const mock = new LLMock({ port: 0, logLevel: "silent", chunkSize: 7 });
    let adapter: ModelAdapter;
    beforeAll(async () => {
      adapter = contract.create(await mock.start(), LIMITS, KEY, fetch);
    });
    afterAll(() => mock.stop());
    beforeEach(() => void mock.reset());
    const ask = (part: Parameters<typeof request>[0] = {}) =>
      replyOf(adapter.stream(request({ model: contract.model, ...part }), never));

    test("plain text with usage", async () => {
      mock.onMessage("hi", {
        content: "Grüße aus dem Süden 🌻, and more of it.",
        usage: { prompt_tokens: 12, completion_tokens: 7 },
      });
      const { message, end, events } = await ask();
      expect(message.content).toEqual([{ type: "text", text: "Grüße aus dem Süden 🌻, and more of it." }]);
      expect(end).toMatchObject({ type: "done", stop: "stop" });
      expect(message.usage?.input).toBeGreaterThan(0);
      expect(message.usage?.output).toBeGreaterThan(0);
      expect(events[0]).toMatchObject({ type: "open", model: expect.stringContaining(contract.model) });
      expect(events.filter((event) => event.type === "part-delta").length).toBeGreaterThan(3);
    });

    test("the system prompt and the history arrive in order", async () => {
      mock.onMessage("third", { content: "ok" });
      await ask({
        system: [{ type: "text", text: "You are terse." }],
        messages: [
          { role: "user", content: [{ type: "text", text: "first" }] },
          { role: "assistant", content: [{ type: "text", text: "second" }] },
          { role: "user", content: [{ type: "text", text: "third" }] },
        ],
      });
      expect(sentMessages(mock)).toEqual([
        ["system", "You are terse."],
        ["user", "first"],
        ["assistant", "second"],
        ["user", "third"],
      ]);
    });

    test("a tool call", async () => {
      mock.onMessage("weather", { toolCalls: [{ name: "get_weather", arguments: '{"city":"Köln"}' }] });
      const { message, end } = await ask({
        messages: [{ role: "user", content: [{ type: "text", text: "weather?" }] }],
        tools: [WEATHER],
      });
      expect(end).toMatchObject({ type: "done", stop: "tool-calls" });
      expect(message.content).toMatchObject([{ type: "call", name: "get_weather" }]);
      expect(JSON.parse((message.content[0] as { args: string }).args)).toEqual({ city: "Köln" });
      expect(lastBody(mock).tools).toMatchObject([{ function: { name: "get_weather" } }]);
    });

    test("parallel calls beside text, and the round trip of their results", async () => {
      mock.on(
        { userMessage: "weather", hasToolResult: false },
        {
          content: "I look.",
          toolCalls: [
            { name: "get_weather", arguments: '{"city":"Bonn"}' },
            { name: "get_weather", arguments: '{"city":"Rome"}' },
          ],
        },
      );
      mock.on({ userMessage: "weather", hasToolResult: true }, { content: "Rain here, sun there." });
      const user = { role: "user" as const, content: [{ type: "text" as const, text: "weather?" }] };
      const first = await ask({ messages: [user], tools: [WEATHER] });
      const calls = first.message.content.filter((part) => part.type === "call");
      expect(calls.map((call) => JSON.parse(call.args).city)).toEqual(["Bonn", "Rome"]);
      expect(new Set(calls.map((call) => call.id)).size).toBe(2);
      const second = await ask({
        tools: [WEATHER],
        messages: [
          user,
          { ...first.message, origin: { provider: contract.provider, model: contract.model } },
          ...calls.map((call, i) => ({
            role: "tool" as const,
            callId: call.id,
            name: call.name,
            content: [{ type: "text" as const, text: i === 0 ? "rain" : "sun" }],
          })),
        ],
      });
      expect(second.message.content).toEqual([{ type: "text", text: "Rain here, sun there." }]);
      const sent = lastBody(mock).messages as { role: string; content: unknown; tool_calls?: unknown[] }[];
      expect(
        sent.filter((message) => message.role === "assistant").flatMap((m) => m.tool_calls ?? []),
      ).toHaveLength(2);
      const results = sent.filter((message) => message.role === "tool");
      expect(results).toHaveLength(2);
      expect(JSON.stringify(results[0]?.content)).toContain("rain");
      expect(JSON.stringify(results[1]?.content)).toContain("sun");
    });

    test("reasoning comes before the answer, as its own part", async () => {
      mock.onMessage("hi", { content: "42", reasoning: "Six times seven is forty-two." });
      const { message } = await ask({ reasoning: { effort: "low" } });
      expect(message.content).toMatchObject([
        { type: "reasoning", text: "Six times seven is forty-two." },
        { type: "text", text: "42" },
      ]);
    });

    test.each([
      ["stop", "stop"],
      ["length", "length"],
    ])("finish reason %s", async (said, meant) => {
      mock.onMessage("hi", { content: "cut sh", finishReason: said });
      const { end } = await ask();
      expect(end).toMatchObject({ type: "done", stop: meant });
    });

    test("an empty reply is a finished one", async () => {
      mock.onMessage("hi", { content: "" });
      const { message, end } = await ask();
      expect(end.type).toBe("done");
      expect(message.content.every((part) => part.type === "text" && part.text === "")).toBe(true);
    });

    test.each([400, 401, 403, 404, 413, 422])("status %i comes through, once", async (status) => {
      mock.onMessage("hi", { error: { message: "No such thing.", type: "some_error" }, status });
      const { end, events } = await ask();
      expect(events).toHaveLength(1);
      expect(faultOf(end)).toMatchObject({ code: "upstream_error", status, message: "No such thing." });
      expect(mock.getRequests()).toHaveLength(1);
    });

    test.each([500, 502, 503, 529])("status %i is asked again, at most twice", async (status) => {
      mock.onMessage("hi", { error: { message: "Broken.", type: "server_error" }, status });
      const { end } = await ask();
      expect(faultOf(end)).toMatchObject({ code: "upstream_error", status, message: "Broken." });
      expect(mock.getRequests()).toHaveLength(3);
    });

    test("a 500 and then a reply is a reply", async () => {
      mock.onMessage("hi", { content: "There." });
      mock.nextRequestError(500, { message: "Broken.", type: "server_error" });
      const { message } = await ask();
      expect(message.content).toEqual([{ type: "text", text: "There." }]);
    });

    test("a 429 with a short retry-after is honoured", async () => {
      mock.onMessage("hi", {
        error: { message: "Slow down.", type: "rate_limit_error" },
        status: 429,
        retryAfter: 0.01,
      });
      const { end } = await ask();
      expect(faultOf(end)).toMatchObject({ status: 429, retryAfter: 0.01, message: "Slow down." });
      expect(mock.getRequests()).toHaveLength(3);
    });

    test("a 429 with a long retry-after goes out at once", async () => {
      mock.onMessage("hi", {
        error: { message: "Slow down.", type: "rate_limit_error" },
        status: 429,
        retryAfter: 120,
      });
      const { end } = await ask();
      expect(faultOf(end)).toMatchObject({ status: 429, retryAfter: 120 });
      expect(mock.getRequests()).toHaveLength(1);
    });
  });

  describe(`${contract.provider}: the wire`, () => {
    let upstream: UpstreamServer;
    beforeAll(async () => {
      upstream = await startUpstream();
    });
    afterAll(() => upstream[Symbol.asyncDispose]());
    const create = (limits: Partial<UpstreamLimits> = {}) =>
      contract.create(upstream.url, { ...LIMITS, ...limits }, KEY, fetch);
    const ask = (limits: Partial<UpstreamLimits> = {}, part: Parameters<typeof request>[0] = {}) =>
      replyOf(create(limits).stream(request({ model: contract.model, ...part }), never));
    const text = contract.recordings.text;

    for (const [name, recording] of Object.entries(contract.recordings)) {
      test(`${name}: says what was recorded`, async () => {
        upstream.answer(stream(frames(recording.sse)));
        const { message, end } = await ask();
        expect(end).toMatchObject({ type: "done", stop: recording.stop });
        expect(message.content).toEqual(recording.content);
        expect(message.usage).toMatchObject(recording.usage);
      });

      test(`${name}: the same events however the bytes are split`, async () => {
        const bytes = new TextEncoder().encode(recording.sse);
        upstream.answer(stream([bytes]));
        const whole = withoutMadeUpIds((await ask()).events);
        const cuts = fc.array(fc.integer({ min: 1, max: bytes.length - 1 }), { maxLength: 40 });
        await fc.assert(
          fc.asyncProperty(cuts, async (at) => {
            upstream.answer(stream(split(bytes, at)));
            expect(withoutMadeUpIds((await ask()).events)).toEqual(whole);
          }),
          { numRuns: 15 },
        );
      });

      test(`${name}: a stream cut after any frame is a failure, and only the missing part is missing`, async () => {
        const all = frames(recording.sse);
        const needs = recording.needs ?? all.length;
        for (let kept = 1; kept < all.length; kept++) {
          upstream.answer(stream(all.slice(0, kept), "cut"));
          const { end } = await ask({ retries: 0 });
          expect(end.type, `after ${kept} of ${all.length} frames`).toBe(kept < needs ? "failed" : "done");
          if (end.type === "failed") expect(end.fault.code).toBe("upstream_unreachable");
        }
      });
    }

    test("an image goes out with its bytes and type", async () => {
      upstream.answer(stream([text.sse]));
      await ask(
        {},
        {
          messages: [
            {
              role: "user",
              content: [
                { type: "text", text: "What is this?" },
                { type: "image", source: { kind: "data", mediaType: "image/png", data: PIXEL } },
              ],
            },
          ],
        },
      );
      const sent = JSON.stringify(upstream.requests[0]?.body);
      expect(sent).toContain(PIXEL);
      expect(sent).toContain("image/png");
    });

    test("a JSON schema goes out", async () => {
      upstream.answer(stream([text.sse]));
      const schema = {
        type: "object",
        properties: { zebra_count: { type: "integer" } },
        required: ["zebra_count"],
        additionalProperties: false,
      };
      await ask({}, { format: { type: "schema", name: "zoo", schema, strict: true } });
      expect(JSON.stringify(upstream.requests[0]?.body)).toContain("zebra_count");
    });

    test("settings go out", async () => {
      upstream.answer(stream([text.sse]));
      await ask({}, { settings: { maxTokens: 321, temperature: 0.25, topP: 0.75, stop: ["HALT"] } });
      const sent = JSON.stringify(upstream.requests[0]?.body);
      for (const value of ["321", "0.25", "0.75", "HALT"]) expect(sent).toContain(value);
    });

    test("silence before the first byte", async () => {
      upstream.answer(() => {});
      const { end, events } = await ask({ firstByteMs: 60 });
      expect(events).toHaveLength(1);
      expect(faultOf(end)).toMatchObject({ code: "upstream_timeout", status: 504 });
      expect(await upstream.requests[0]?.closed).toBe(false);
      expect(upstream.requests).toHaveLength(1);
    });

    test("silence after the headers", async () => {
      upstream.answer(stream([": hello\n\n"], "hang"));
      const { end } = await ask({ firstByteMs: 60 });
      expect(faultOf(end).code).toBe("upstream_timeout");
    });

    test("silence between bytes", async () => {
      const all = frames(text.sse);
      upstream.answer(stream(all.slice(0, all.length >> 1), "hang"));
      const { end, events } = await ask({ idleMs: 60 });
      expect(faultOf(end).code).toBe("upstream_timeout");
      expect(events.length).toBeGreaterThan(1);
      expect(await upstream.requests[0]?.closed).toBe(false);
    });

    test("HTML with status 200 names the base URL as what to check, and is not asked for again", async () => {
      upstream.answer(reply(200, "<!doctype html><h1>Welcome to nginx</h1>"));
      const { end } = await ask();
      expect(faultOf(end)).toMatchObject({ code: "upstream_unreachable", status: 502 });
      expect(faultOf(end).message).toMatch(/base URL/);
      expect(upstream.requests).toHaveLength(1);
    });

    test("an empty body with status 200", async () => {
      upstream.answer(stream([]));
      const { end } = await ask({ retries: 0 });
      expect(faultOf(end).code).toBe("upstream_unreachable");
    });

    test("an event that is no JSON fails after what stood before it", async () => {
      const all = frames(text.sse);
      const half = all.length >> 1;
      upstream.answer(
        stream([...all.slice(0, half), contract.brokenFrame ?? "data: {oops\n\n", ...all.slice(half)]),
      );
      const { end, events } = await ask();
      expect(faultOf(end)).toMatchObject({ code: "upstream_unreachable", status: 502 });
      expect(events.length).toBeGreaterThan(1);
    });

    test.each(["data: null\n\n", "data: 7\n\n", "data: []\n\n", "data: {}\n\n", 'data: "x"\n\n'])(
      "a stray event does no harm beyond its stream: %j",
      async (frame) => {
        const [head, ...rest] = frames(text.sse);
        upstream.answer(stream([head ?? "", frame, ...rest]));
        const { end } = await ask({ retries: 0 });
        if (end.type === "failed") expect(end.fault.code).not.toBe("internal");
      },
    );

    const streamError = contract.streamError;
    if (streamError)
      test("an error inside the stream has its status and sentence", async () => {
        const [head] = frames(text.sse);
        upstream.answer(stream([head ?? "", streamError.frame]));
        const { end } = await ask({ retries: 0 });
        expect(faultOf(end)).toMatchObject({
          code: "upstream_error",
          status: streamError.status,
          message: streamError.message,
        });
      });

    test("an error before anything else in the stream may be asked again", async () => {
      if (!streamError) return;
      upstream.answer((response, incoming, n) =>
        stream(n === 0 ? [streamError.frame] : [text.sse])(response, incoming, n),
      );
      const { message } = await ask();
      expect(message.content).toEqual(text.content);
      expect(upstream.requests).toHaveLength(2);
    });

    test("nothing listens there", async () => {
      const gone = await startUpstream();
      await gone[Symbol.asyncDispose]();
      const adapter = contract.create(gone.url, LIMITS, KEY, fetch);
      const { end } = await replyOf(adapter.stream(request({ model: contract.model }), never));
      expect(faultOf(end)).toMatchObject({ code: "upstream_unreachable", status: 502 });
      expect(faultOf(end).message).toMatch(/ECONNREFUSED|could not be reached/);
      await expect(adapter.models(never)).rejects.toMatchObject({ code: "upstream_unreachable" });
    });

    test.each([401, 400, 500])("a status %i that echoes the key is told without it", async (status) => {
      upstream.answer(reply(status, contract.errorBody(status, `Incorrect API key provided: ${KEY}.`)));
      const { end } = await ask({ retries: 0 });
      expect(faultOf(end)).toMatchObject({ status, message: "Incorrect API key provided: [key]." });
      expect(JSON.stringify(end)).not.toContain(KEY);
    });

    test.each([401, 500])(
      "a status %i with a page that echoes the key is told without it",
      async (status) => {
        upstream.answer(reply(status, `<h1>Bad ${KEY}</h1>${"x".repeat(100_000)}`));
        const { end } = await ask({ retries: 0 });
        expect(faultOf(end).status).toBe(status);
        expect(JSON.stringify(end)).not.toContain(KEY);
        expect(faultOf(end).message.length).toBeLessThan(1000);
      },
    );

    test("a page with status 200 that echoes the key is told without it", async () => {
      upstream.answer(reply(200, `<h1>Bad ${KEY}</h1>`));
      expect(JSON.stringify((await ask()).end)).not.toContain(KEY);
    });

    test("cancelled before it began: nothing is sent", async () => {
      upstream.answer(stream([text.sse]));
      const { events } = await replyOf(
        create().stream(request({ model: contract.model }), AbortSignal.abort()),
      );
      expect(events).toMatchObject([{ type: "failed", fault: { code: "cancelled" } }]);
      expect(upstream.requests).toHaveLength(0);
    });

    test("nothing is sent before the first next()", async () => {
      upstream.answer(stream([text.sse]));
      const events = create().stream(request({ model: contract.model }), never);
      await events.return();
      expect(upstream.requests).toHaveLength(0);
    });

    test("cancelled while the upstream thinks: its connection closes", async () => {
      upstream.answer(() => {});
      const controller = new AbortController();
      const ended = replyOf(create().stream(request({ model: contract.model }), controller.signal));
      const { closed } = await upstream.request(0);
      controller.abort();
      expect((await ended).events).toMatchObject([{ type: "failed", fault: { code: "cancelled" } }]);
      expect(await closed).toBe(false);
    });

    test("cancelled in mid-stream: its connection closes", async () => {
      const all = frames(text.sse);
      upstream.answer(stream(all.slice(0, all.length >> 1), "hang"));
      const controller = new AbortController();
      const events = create().stream(request({ model: contract.model }), controller.signal);
      expect((await events.next()).value).toMatchObject({ type: "open" });
      controller.abort();
      const { end } = await replyOf(
        (async function* () {
          yield { type: "open" as const, model: "" };
          yield* events;
        })(),
      );
      expect(faultOf(end).code).toBe("cancelled");
      expect(await upstream.requests[0]?.closed).toBe(false);
    });

    test("left in mid-stream: its connection closes", async () => {
      const all = frames(text.sse);
      upstream.answer(stream(all.slice(0, all.length >> 1), "hang"));
      for await (const event of create().stream(request({ model: contract.model }), never)) {
        expect(event.type).toBe("open");
        break;
      }
      expect(await upstream.requests[0]?.closed).toBe(false);
    });

    test("cancelled during the wait for a retry", async () => {
      upstream.answer(reply(500, contract.errorBody(500, "Broken.")));
      const controller = new AbortController();
      const ended = replyOf(
        create({ retryWaitMs: 60_000 }).stream(request({ model: contract.model }), controller.signal),
      );
      await (await upstream.request(0)).closed;
      controller.abort();
      expect((await ended).events).toMatchObject([{ type: "failed", fault: { code: "cancelled" } }]);
      expect(upstream.requests).toHaveLength(1);
    });

    test("one adapter serves many streams at once", async () => {
      upstream.answer(stream(frames(text.sse)));
      const adapter = create();
      const replies = await Promise.all(
        Array.from({ length: 20 }, () => replyOf(adapter.stream(request({ model: contract.model }), never))),
      );
      for (const { message } of replies) expect(message.content).toEqual(text.content);
    });
  });
}

function faultOf(end: { type: "failed"; fault: Fault } | { type: "done" }): Fault {
  if (end.type === "done") throw new Error("The stream ended well, where a failure was due.");
  return end.fault;
}

function split(bytes: Uint8Array, at: number[]): Uint8Array[] {
  const edges = [...new Set([0, ...at, bytes.length])].sort((a, b) => a - b);
  return edges.slice(1).map((end, i) => bytes.subarray(edges[i], end));
}

/** The last request that reached aimock. It keeps every dialect in the form of chat completions. */
function lastBody(mock: LLMock): Record<string, unknown> {
  return (mock.getLastRequest()?.body ?? {}) as unknown as Record<string, unknown>;
}

function sentMessages(mock: LLMock): [string, string][] {
  const messages = lastBody(mock).messages as { role: string; content: unknown }[];
  return messages.map(({ role, content }) => [
    role,
    typeof content === "string"
      ? content
      : (content as { text?: string }[]).map((part) => part.text).join(""),
  ]);
}
