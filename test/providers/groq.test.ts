import { expect, test, vi } from "vitest";
import { createGroqAdapter } from "../../src/providers/groq.ts";
import { reply, startUpstream, stream } from "../upstream-server.ts";
import { GROQ_RECORDINGS } from "./chat-completions-recordings.ts";
import { contractSuite } from "./contract.ts";
import { replyOf, request } from "./model-stream.ts";

contractSuite({
  provider: "groq",
  create: (url, limits, key, fetch) => createGroqAdapter({ key, baseUrl: url, limits, fetch }),
  model: "openai/gpt-oss-120b",
  recordings: GROQ_RECORDINGS,
  errorBody: (_status, message) => ({ error: { message, type: "invalid_request_error", code: "some_code" } }),
  streamError: {
    frame:
      'event: error\ndata: {"error":{"message":"Over capacity.","type":"internal_server_error","status_code":503}}\n\n',
    status: 503,
    message: "Over capacity.",
  },
});

const limits = { firstByteMs: 5_000, idleMs: 5_000, retries: 0 };
const never = new AbortController().signal;

test.each(["", "/", "/openai/v1", "/openai/v1/"])("the base URL may end in %j", async (path) => {
  await using upstream = await startUpstream(stream([GROQ_RECORDINGS.text.sse]));
  vi.stubEnv("GROQ_API_KEY", "gsk_env");
  const adapter = createGroqAdapter({ key: "gsk_test", baseUrl: upstream.url + path, limits });
  await replyOf(adapter.stream(request(), never));
  vi.unstubAllEnvs();
  expect(upstream.requests[0]).toMatchObject({
    path: "/openai/v1/chat/completions",
    headers: { authorization: "Bearer gsk_test" },
    body: { model: "model-1", stream: true },
  });
});

test("the list of models", async () => {
  await using upstream = await startUpstream(
    reply(200, { data: [{ id: "qwen/qwen3-32b", created: 5, owned_by: "Alibaba Cloud" }] }),
  );
  const adapter = createGroqAdapter({ key: "gsk_test", baseUrl: upstream.url, limits });
  expect(await adapter.models(never)).toEqual([
    { id: "qwen/qwen3-32b", created: 5, ownedBy: "Alibaba Cloud" },
  ]);
  expect(upstream.requests[0]?.path).toBe("/openai/v1/models");
});
