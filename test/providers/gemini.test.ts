import { LLMock } from "@copilotkit/aimock";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ModelEvent } from "../../src/core/event.ts";
import type { AssistantPart } from "../../src/core/message.ts";
import { createGeminiAdapter } from "../../src/providers/gemini.ts";
import { reply, startUpstream, stream, type UpstreamServer } from "../upstream-server.ts";
import { contractSuite } from "./contract.ts";
import * as recordings from "./gemini-recordings.ts";
import { replyOf, request } from "./model-stream.ts";

const LIMITS = { firstByteMs: 5_000, idleMs: 5_000, retries: 2, retryWaitMs: 1 };
const never = new AbortController().signal;
const MADE_UP = expect.stringMatching(/^call_[a-z2-7]{32}$/) as unknown as string;

contractSuite({
  provider: "gemini",
  create: (url, limits, key, fetch) => createGeminiAdapter({ key, baseUrl: url, limits, fetch }),
  model: "gemini-2.5-flash",
  recordings: {
    text: {
      sse: recordings.TEXT,
      content: [{ type: "text", text: "Grüße aus Köln – und 🌻 dazu." }],
      stop: "stop",
      usage: { input: 9, output: 12 },
    },
    calls: {
      sse: recordings.PARALLEL_CALLS,
      content: [
        {
          type: "call",
          id: MADE_UP,
          name: "get_weather",
          args: '{"city":"Bonn"}',
          seal: recordings.SIGNATURE,
        },
        { type: "call", id: MADE_UP, name: "get_weather", args: '{"city":"Rome"}' },
        { type: "call", id: MADE_UP, name: "now", args: "{}" },
      ],
      stop: "tool-calls",
      usage: { input: 71, output: 34 + 190, reasoning: 190, cacheRead: 40 },
    },
    thinking: {
      sse: recordings.THINKING,
      content: [
        { type: "reasoning", text: "**Adding**\n\nSix times seven." },
        { type: "text", text: "It is 42.", seal: recordings.SIGNATURE },
      ],
      stop: "stop",
      usage: { input: 5, output: 4 + 61, reasoning: 61 },
    },
    code: {
      sse: recordings.CODE,
      content: [
        {
          type: "raw",
          family: "gemini",
          block: {
            executableCode: { language: "PYTHON", code: "print(6*7)" },
            thoughtSignature: recordings.SIGNATURE,
          },
        },
        {
          type: "raw",
          family: "gemini",
          block: { codeExecutionResult: { outcome: "OUTCOME_OK", output: "42\n" } },
        },
        { type: "text", text: "42" },
      ],
      stop: "stop",
      usage: { input: 8 + 20, output: 3 },
    },
  },
  errorBody: (status, message) => ({ error: { code: status, message, status: "SOME_STATUS" } }),
  streamError: {
    frame: 'data: {"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}\n\n',
    status: 503,
    message: "The model is overloaded.",
  },
});

/** One event with the given parts and whatever else the candidate has. */
function event(parts: unknown[], candidate: Record<string, unknown> = {}): string {
  return `data: ${JSON.stringify({ candidates: [{ content: { role: "model", parts }, ...candidate }] })}\n\n`;
}
const STOP = { finishReason: "STOP" };

describe("gemini: what the stream means", () => {
  let upstream: UpstreamServer;
  beforeAll(async () => {
    upstream = await startUpstream();
  });
  afterAll(() => upstream[Symbol.asyncDispose]());
  const ask = (pieces: string[], part: Parameters<typeof request>[0] = {}) => {
    upstream.answer(stream(pieces));
    const adapter = createGeminiAdapter({ key: "AIza-test", baseUrl: upstream.url, limits: LIMITS });
    return replyOf(adapter.stream(request({ model: "gemini-3-flash", ...part }), never));
  };

  test("the first event names the model that answers and the id of the reply", async () => {
    const { events } = await ask([recordings.TEXT]);
    expect(events[0]).toEqual({ type: "open", model: "gemini-2.5-flash", id: "resp-text" });
  });

  test.each<[string, unknown[], AssistantPart[]]>([
    [
      "an empty signed text signs the fragments before it",
      [{ text: "a" }, { text: "b" }, { text: "", thoughtSignature: "S1" }],
      [{ type: "text", text: "ab", seal: "S1" }],
    ],
    [
      "a signed fragment is a part of its own",
      [{ text: "a" }, { text: "b", thoughtSignature: "S1" }, { text: "c" }],
      [
        { type: "text", text: "a" },
        { type: "text", text: "b", seal: "S1" },
        { type: "text", text: "c" },
      ],
    ],
    [
      "an empty signed text with nothing before it is kept for its signature",
      [
        { text: "t", thought: true },
        { text: "", thoughtSignature: "S1" },
      ],
      [
        { type: "reasoning", text: "t" },
        { type: "text", text: "", seal: "S1" },
      ],
    ],
    [
      "a signed thought",
      [{ text: "t", thought: true, thoughtSignature: "S1" }, { text: "a" }],
      [
        { type: "reasoning", text: "t", seal: "S1" },
        { type: "text", text: "a" },
      ],
    ],
    [
      "a signature in a part of its own signs the call before it",
      [{ functionCall: { id: "c1", name: "f", args: {} } }, { thoughtSignature: "S1" }],
      [{ type: "call", id: "c1", name: "f", args: "{}", seal: "S1" }],
    ],
    [
      "an id used twice is used once",
      [{ functionCall: { id: "c1", name: "f" } }, { functionCall: { id: "c1", name: "g" } }],
      [
        { type: "call", id: "c1", name: "f", args: "{}" },
        { type: "call", id: MADE_UP, name: "g", args: "{}" },
      ],
    ],
    [
      "an image comes as the block it is",
      [{ text: "Here:" }, { inlineData: { mimeType: "image/png", data: "AAAA" }, thoughtSignature: "S1" }],
      [
        { type: "text", text: "Here:" },
        {
          type: "raw",
          family: "gemini",
          block: { inlineData: { mimeType: "image/png", data: "AAAA" }, thoughtSignature: "S1" },
        },
      ],
    ],
    ["empty text is nothing", [{ text: "" }], []],
  ])("%s", async (_, parts, content) => {
    // In one event and in one event each: fragments are the same either way.
    expect((await ask([event(parts, STOP)])).message.content).toEqual(content);
    const each = await ask([...parts.map((part) => event([part])), event([], STOP)]);
    expect(each.message.content).toEqual(content);
  });

  test.each([
    ["MAX_TOKENS", "length"],
    ["SAFETY", "content-filter"],
    ["RECITATION", "content-filter"],
    ["BLOCKLIST", "content-filter"],
    ["PROHIBITED_CONTENT", "content-filter"],
    ["SPII", "content-filter"],
    ["OTHER", "content-filter"],
    ["A_NEWER_REASON", "stop"],
  ])("finish reason %s is %s", async (finishReason, stop) => {
    const { end } = await ask([event([{ text: "So" }], { finishReason })]);
    expect(end).toMatchObject({ type: "done", stop });
  });

  test("a blocked prompt is a finished reply without parts", async () => {
    const { message, end } = await ask([recordings.BLOCKED]);
    expect(message.content).toEqual([]);
    expect(end).toMatchObject({ type: "done", stop: "content-filter", usage: { input: 6, output: 0 } });
  });

  test("a malformed call is asked for again, while nothing has been shown", async () => {
    upstream.answer((response, incoming, n) =>
      stream([n === 0 ? recordings.MALFORMED : recordings.TEXT])(response, incoming, n),
    );
    const adapter = createGeminiAdapter({ key: "AIza-test", baseUrl: upstream.url, limits: LIMITS });
    const { end } = await replyOf(adapter.stream(request(), never));
    expect(end.type).toBe("done");
    expect(upstream.requests).toHaveLength(2);
  });

  test("a malformed call after text is a failure with a sentence", async () => {
    const { message, end } = await ask([event([{ text: "I call" }]), recordings.MALFORMED]);
    expect(message.content).toEqual([{ type: "text", text: "I call" }]);
    expect(end).toMatchObject({
      type: "failed",
      fault: {
        code: "upstream_error",
        status: 502,
        upstreamType: "MALFORMED_FUNCTION_CALL",
        message: expect.stringContaining("print(default_api"),
      },
    });
  });

  test("one call at most, where the request wants that: the signed one", async () => {
    const { message, end } = await ask([recordings.PARALLEL_CALLS], { parallelTools: false });
    expect(message.content).toMatchObject([
      { type: "call", args: '{"city":"Bonn"}', seal: recordings.SIGNATURE },
    ]);
    expect(message.content).toHaveLength(1);
    expect(end).toMatchObject({ type: "done", stop: "tool-calls" });
  });

  test("without a finish reason the reply was cut", async () => {
    const { end } = await ask([event([{ text: "So" }])]);
    expect(end).toMatchObject({ type: "failed", fault: { code: "upstream_unreachable" } });
  });

  test("an array of replies, where a gateway has dropped alt=sse", async () => {
    const chunks = recordings.TEXT.split("\n\n")
      .filter(Boolean)
      .map((frame) => JSON.parse(frame.slice("data: ".length)));
    upstream.answer((response) => {
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(chunks));
    });
    const adapter = createGeminiAdapter({ key: "AIza-test", baseUrl: upstream.url, limits: LIMITS });
    const { message } = await replyOf(adapter.stream(request(), never));
    expect(message.content).toEqual([{ type: "text", text: "Grüße aus Köln – und 🌻 dazu." }]);
  });
});

describe("gemini: errors", () => {
  let upstream: UpstreamServer;
  beforeAll(async () => {
    upstream = await startUpstream();
  });
  afterAll(() => upstream[Symbol.asyncDispose]());
  const adapter = () => createGeminiAdapter({ key: "AIza-test", baseUrl: upstream.url, limits: LIMITS });
  const ask = async () => (await replyOf(adapter().stream(request(), never))).end;

  test("a key that is not valid is a 401", async () => {
    upstream.answer(reply(400, recordings.BAD_KEY));
    const fault = {
      code: "upstream_error",
      status: 401,
      message: "API key not valid. Please pass a valid API key.",
      upstreamType: "INVALID_ARGUMENT",
      upstreamCode: "API_KEY_INVALID",
    };
    expect(await ask()).toMatchObject({ type: "failed", fault });
    await expect(adapter().models(never)).rejects.toMatchObject(fault);
    await expect(adapter().countTokens?.(request(), never)).rejects.toMatchObject(fault);
  });

  test("a quota says when to come back, in the body", async () => {
    upstream.answer(reply(429, recordings.QUOTA));
    expect(await ask()).toMatchObject({
      fault: { status: 429, retryAfter: 20, upstreamType: "RESOURCE_EXHAUSTED" },
    });
    expect(upstream.requests).toHaveLength(1);
  });

  test("the header counts before the body", async () => {
    upstream.answer(reply(429, recordings.QUOTA, { "retry-after": "33" }));
    expect(await ask()).toMatchObject({ fault: { status: 429, retryAfter: 33 } });
  });

  test("an error in an array of one", async () => {
    upstream.answer((response) => {
      response.writeHead(404, { "content-type": "application/json" });
      response.end('[{"error":{"code":404,"message":"models/x is not found.","status":"NOT_FOUND"}}]');
    });
    expect(await ask()).toMatchObject({
      fault: { status: 404, message: "models/x is not found.", upstreamType: "NOT_FOUND" },
    });
  });

  test("a model id that would leave its path is refused before anything is sent", async () => {
    upstream.answer(stream([recordings.TEXT]));
    for (const model of ["../files", "a?b=c", "a#b", "a%2e", ""]) {
      const { events } = await replyOf(adapter().stream(request({ model }), never));
      expect(events).toMatchObject([{ type: "failed", fault: { code: "invalid_request", param: "model" } }]);
    }
    expect(upstream.requests).toHaveLength(0);
  });
});

describe("gemini: models and token counts", () => {
  let upstream: UpstreamServer;
  beforeAll(async () => {
    upstream = await startUpstream();
  });
  afterAll(() => upstream[Symbol.asyncDispose]());
  const adapter = (path = "") =>
    createGeminiAdapter({ key: "AIza-test", baseUrl: `${upstream.url}${path}`, limits: LIMITS });

  test("models of all pages, without prefix, and only those that talk", async () => {
    upstream.answer((response, incoming, n) =>
      reply(
        200,
        n === 0
          ? {
              models: [
                {
                  name: "models/gemini-2.5-pro",
                  displayName: "Gemini 2.5 Pro",
                  supportedGenerationMethods: ["generateContent", "countTokens"],
                },
                { name: "models/text-embedding-004", supportedGenerationMethods: ["embedContent"] },
              ],
              nextPageToken: "page-2",
            }
          : { models: [{ name: "models/gemma-4" }] },
      )(response, incoming, n),
    );
    expect(await adapter().models(never)).toEqual([
      { id: "gemini-2.5-pro", displayName: "Gemini 2.5 Pro", ownedBy: "google" },
      { id: "gemma-4", displayName: undefined, ownedBy: "google" },
    ]);
    expect(upstream.requests.map(({ path }) => path)).toEqual([
      "/v1beta/models?pageSize=1000",
      "/v1beta/models?pageSize=1000&pageToken=page-2",
    ]);
    expect(upstream.requests[0]?.headers["x-goog-api-key"]).toBe("AIza-test");
  });

  test("a count covers instructions and tools", async () => {
    upstream.answer(reply(200, { totalTokens: 31 }));
    const counted = await adapter().countTokens?.(
      request({
        model: "models/gemini-2.5-flash",
        system: [{ type: "text", text: "Be brief." }],
        tools: [{ kind: "function", name: "now" }],
      }),
      never,
    );
    expect(counted).toBe(31);
    expect(upstream.requests[0]?.path).toBe("/v1beta/models/gemini-2.5-flash:countTokens");
    expect(upstream.requests[0]?.body).toEqual({
      generateContentRequest: {
        model: "models/gemini-2.5-flash",
        contents: [{ role: "user", parts: [{ text: "hi" }] }],
        systemInstruction: { parts: [{ text: "Be brief." }] },
        tools: [{ functionDeclarations: [{ name: "now" }] }],
      },
    });
  });

  test("a count that does not come in time, or is cancelled", async () => {
    upstream.answer(() => {});
    const slow = createGeminiAdapter({
      key: "AIza-test",
      baseUrl: upstream.url,
      limits: { ...LIMITS, firstByteMs: 30 },
    });
    await expect(slow.countTokens?.(request(), never)).rejects.toMatchObject({ code: "upstream_timeout" });
    const controller = new AbortController();
    const counting = adapter().countTokens?.(request(), controller.signal);
    await upstream.request(1);
    controller.abort();
    await expect(counting).rejects.toMatchObject({ code: "cancelled" });
  });

  test.each([
    ["", "/v1beta/models/model-1"],
    ["/", "/v1beta/models/model-1"],
    ["/v1beta", "/v1beta/models/model-1"],
    ["/v1beta/", "/v1beta/models/model-1"],
    ["/v1", "/v1/models/model-1"],
    ["/gateway/gemini/v1alpha", "/gateway/gemini/v1alpha/models/model-1"],
    ["/gateway", "/gateway/v1beta/models/model-1"],
  ])("a base URL that ends in %j", async (path, expected) => {
    upstream.answer(stream([recordings.TEXT]));
    await replyOf(adapter(path).stream(request(), never));
    expect(upstream.requests[0]?.path).toBe(`${expected}:streamGenerateContent?alt=sse`);
  });
});

test("gemini: one client keeps the replies of concurrent calls apart", async () => {
  const mock = new LLMock({ port: 0, logLevel: "silent", chunkSize: 3 });
  const names = Array.from({ length: 30 }, (_, i) => `number-${String(i).padStart(2, "0")}`);
  for (const name of names) mock.onMessage(name, { content: `This is ${name}, and no other.` });
  const adapter = createGeminiAdapter({ key: "AIza-test", baseUrl: await mock.start(), limits: LIMITS });
  const replies = await Promise.all(
    names.map((name) =>
      replyOf(
        adapter.stream(
          request({ messages: [{ role: "user", content: [{ type: "text", text: name }] }] }),
          never,
        ),
      ),
    ),
  );
  expect(replies.map(({ message }) => message.content)).toEqual(
    names.map((name) => [{ type: "text", text: `This is ${name}, and no other.` }]),
  );
  await mock.stop();
});

test("gemini: the same fetch serves every call, and gets the signal of each", async () => {
  const seen: (AbortSignal | null | undefined)[] = [];
  const adapter = createGeminiAdapter({
    key: "AIza-test",
    limits: LIMITS,
    fetch: async (input, init) => {
      expect(String(input)).toBe(
        "https://generativelanguage.googleapis.com/v1beta/models/model-1:streamGenerateContent?alt=sse",
      );
      seen.push(init?.signal);
      return new Response(recordings.TEXT, { headers: { "content-type": "text/event-stream" } });
    },
  });
  const events: ModelEvent[] = [];
  for (let i = 0; i < 2; i++) for await (const event of adapter.stream(request(), never)) events.push(event);
  expect(events.filter(({ type }) => type === "done")).toHaveLength(2);
  expect(seen[0]).toBeInstanceOf(AbortSignal);
  expect(seen[1]).not.toBe(seen[0]);
});
