import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { createOpenAIAdapter } from "../../src/providers/openai.ts";
import { reply, startUpstream, stream, type UpstreamServer } from "../upstream-server.ts";
import { OPENAI_RECORDINGS } from "./chat-completions-recordings.ts";
import { contractSuite } from "./contract.ts";
import { replyOf, request } from "./model-stream.ts";

contractSuite({
  provider: "openai",
  create: (url, limits, key, fetch) => createOpenAIAdapter({ key, baseUrl: `${url}/v1`, limits, fetch }),
  model: "gpt-5-mini",
  recordings: OPENAI_RECORDINGS,
  errorBody: (_status, message) => ({
    error: { message, type: "invalid_request_error", param: null, code: "some_code" },
  }),
  streamError: {
    frame:
      'data: {"error":{"message":"The server had an error.","type":"server_error","param":null,"code":null}}\n\n',
    status: 500,
    message: "The server had an error.",
  },
});

describe("servers that imitate OpenAI", () => {
  const never = new AbortController().signal;
  let upstream: UpstreamServer;
  beforeAll(async () => {
    upstream = await startUpstream();
  });
  afterAll(() => upstream[Symbol.asyncDispose]());
  const adapter = () =>
    createOpenAIAdapter({
      key: "sk-test",
      baseUrl: `${upstream.url}/v1`,
      limits: { firstByteMs: 5_000, idleMs: 5_000, retries: 0 },
    });

  test("what is sent, and where", async () => {
    upstream.answer(stream([OPENAI_RECORDINGS.text.sse]));
    await replyOf(
      adapter().stream(request({ headers: { family: "openai-chat", fields: { "x-trace": "t1" } } }), never),
    );
    const [sent] = upstream.requests;
    expect(sent).toMatchObject({
      method: "POST",
      path: "/v1/chat/completions",
      headers: { authorization: "Bearer sk-test", "x-trace": "t1" },
      body: {
        model: "model-1",
        messages: [{ role: "user", content: "hi" }],
        stream: true,
        stream_options: { include_usage: true },
      },
    });
    expect(Object.keys(sent?.body ?? {})).toHaveLength(4);
  });

  test("nothing comes from the environment", async () => {
    vi.stubEnv("OPENAI_API_KEY", "sk-env");
    vi.stubEnv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1");
    vi.stubEnv("OPENAI_ORG_ID", "org-env");
    vi.stubEnv("OPENAI_PROJECT_ID", "proj-env");
    upstream.answer(stream([OPENAI_RECORDINGS.text.sse]));
    await replyOf(adapter().stream(request(), never));
    vi.unstubAllEnvs();
    expect(upstream.requests[0]?.headers.authorization).toBe("Bearer sk-test");
    expect(JSON.stringify(upstream.requests[0]?.headers)).not.toMatch(/env/);
  });

  test("one connection serves one stream after the other", async () => {
    upstream.answer(stream([OPENAI_RECORDINGS.text.sse]));
    const one = adapter();
    await replyOf(one.stream(request(), never));
    const before = upstream.connections;
    for (let i = 0; i < 10; i++) await replyOf(one.stream(request(), never));
    expect(upstream.connections - before).toBeLessThan(2);
  });

  test("a JSON reply to a streamed request", async () => {
    upstream.answer(
      reply(200, {
        id: "x",
        model: "local",
        choices: [{ index: 0, message: { role: "assistant", content: "Hi." }, finish_reason: "stop" }],
        usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
      }),
    );
    const { message, end } = await replyOf(adapter().stream(request(), never));
    expect(message.content).toEqual([{ type: "text", text: "Hi." }]);
    expect(end).toMatchObject({ type: "done", usage: { input: 1, output: 2 } });
  });

  test("a JSON error with status 200", async () => {
    upstream.answer(reply(200, { error: { message: "No such model.", code: 404 } }));
    const { end } = await replyOf(adapter().stream(request(), never));
    expect(end).toMatchObject({ fault: { code: "upstream_error", status: 404, message: "No such model." } });
  });

  test.each([
    [{ detail: "Not Found" }, "Not Found"],
    [{ object: "error", message: "Too long.", type: "BadRequestError", code: 400 }, "Too long."],
    [{ error: "model not found" }, "model not found"],
    [{ detail: [{ loc: ["body"], msg: "missing" }] }, '[{"loc":["body"],"msg":"missing"}]'],
  ])("an error of another shape: %j", async (body, message) => {
    upstream.answer(reply(400, body));
    const { end } = await replyOf(adapter().stream(request(), never));
    expect(end).toMatchObject({ fault: { code: "upstream_error", status: 400, message } });
  });

  test("a setting that cannot be honoured fails before anything is sent", async () => {
    upstream.answer(stream([OPENAI_RECORDINGS.text.sse]));
    const file = {
      type: "file" as const,
      mediaType: "application/pdf",
      source: { kind: "url" as const, url: "https://x.example/a.pdf" },
    };
    const { end } = await replyOf(
      adapter().stream(request({ messages: [{ role: "user", content: [file] }] }), never),
    );
    expect(end).toMatchObject({ fault: { code: "unsupported_field", param: "messages[0].content[0]" } });
    expect(upstream.requests).toHaveLength(0);
  });

  test("the list of models", async () => {
    upstream.answer(
      reply(200, {
        object: "list",
        data: [{ id: "a", object: "model", created: 5, owned_by: "me" }, { id: "b" }, { nameless: true }],
      }),
    );
    expect(await adapter().models(never)).toEqual([
      { id: "a", created: 5, ownedBy: "me" },
      { id: "b", ownedBy: "openai" },
    ]);
    expect(upstream.requests[0]?.path).toBe("/v1/models");
  });

  test("a refused list of models", async () => {
    upstream.answer(reply(401, { error: { message: "Bad key sk-test.", type: "invalid_request_error" } }));
    await expect(adapter().models(never)).rejects.toMatchObject({ status: 401, message: "Bad key [key]." });
    await expect(adapter().models(AbortSignal.abort())).rejects.toMatchObject({ code: "cancelled" });
  });
});
