import fc from "fast-check";
import OpenAI from "openai";
import { expect, test, vi } from "vitest";
import { createSdkPost, rememberTools } from "../../src/providers/sdk-post.ts";

const never = new AbortController().signal;

/** A post of the real SDK over a fetch that remembers what it was given. */
function createPost(answer: () => Response = () => new Response("{}")) {
  const sent: { url: string; headers: Headers; body: string; method: string | undefined }[] = [];
  const fetch = async (url: unknown, init?: RequestInit) => {
    sent.push({
      url: String(url),
      headers: new Headers(init?.headers),
      body: String(init?.body),
      method: init?.method,
    });
    return answer();
  };
  const client = new OpenAI({ apiKey: "sk-test-key", baseURL: "http://127.0.0.1:9/v1", fetch });
  const built = vi.spyOn(client, "buildRequest");
  const post = createSdkPost({ client, errors: OpenAI.APIError, path: "/chat/completions", fetch });
  return { post, sent, built };
}

test("the SDK's address and headers go out with every body, without its telemetry", async () => {
  const { post, sent, built } = createPost();
  await post({ model: "a" }, never);
  await post({ model: "b" }, never);
  expect(built).toHaveBeenCalledTimes(1);
  expect(sent.map(({ body }) => body)).toEqual(['{"model":"a"}', '{"model":"b"}']);
  for (const { url, method, headers } of sent) {
    expect([method?.toUpperCase(), url]).toEqual(["POST", "http://127.0.0.1:9/v1/chat/completions"]);
    expect(headers.get("authorization")).toBe("Bearer sk-test-key");
    expect(headers.get("content-type")).toBe("application/json");
    expect([...headers.keys()].filter((name) => name.startsWith("x-stainless"))).toEqual([]);
  }
});

test("extra headers and queries belong to their own call", async () => {
  const { post, sent } = createPost();
  await post({}, never, { headers: { "x-trace": "1" }, query: { beta: "true" } });
  await post({}, never);
  await post({}, never, { headers: { "x-trace": "2" } });
  expect(sent.map(({ headers, url }) => [headers.get("x-trace"), new URL(url).search])).toEqual([
    ["1", "?beta=true"],
    [null, ""],
    ["2", ""],
  ]);
});

test("an error status becomes the SDK's own error, with headers and body", async () => {
  const body = { error: { message: "slow down", type: "rate_limit_error", code: "x", param: null } };
  const { post } = createPost(() => Response.json(body, { status: 429, headers: { "retry-after": "7" } }));
  const error = await post({}, never).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(OpenAI.RateLimitError);
  expect(error).toMatchObject({ status: 429, code: "x", type: "rate_limit_error" });
  expect((error as InstanceType<typeof OpenAI.APIError>).headers?.get("retry-after")).toBe("7");
});

test("a body that is no JSON is the error's message", async () => {
  const { post } = createPost(() => new Response("<h1>Bad gateway</h1>", { status: 502 }));
  await expect(post({}, never)).rejects.toMatchObject({
    status: 502,
    message: expect.stringContaining("Bad gateway"),
  });
});

test("property: with frozen tools the body says what JSON.stringify says, time after time", async () => {
  const { post, sent } = createPost();
  const tool = fc.record({ name: fc.string(), parameters: fc.dictionary(fc.string(), fc.jsonValue()) });
  const body = fc.record({
    model: fc.string(),
    messages: fc.array(fc.jsonValue(), { maxLength: 3 }),
    seed: fc.option(fc.integer(), { nil: undefined }),
  });
  await fc.assert(
    fc.asyncProperty(body, fc.array(fc.tuple(tool, fc.boolean()), { maxLength: 4 }), async (rest, tools) => {
      const frozen = tools.map(([entry, frozen]) => (frozen ? Object.freeze(entry) : entry));
      for (let call = 0; call < 2; call++) {
        await post({ ...rest, tools: frozen }, never);
        expect(JSON.parse(sent.at(-1)!.body)).toEqual(JSON.parse(JSON.stringify({ ...rest, tools: frozen })));
      }
    }),
  );
});

test("what a frozen tool becomes is made once, and any other tool anew", () => {
  const remembered = rememberTools<{ name: string }>();
  const write = vi.fn(() => ({ name: "t" }));
  const own = Object.freeze({ kind: "function" as const, name: "t" });
  expect(remembered(own, write)).toBe(remembered(own, write));
  expect(write).toHaveBeenCalledTimes(1);
  const clients = { kind: "function" as const, name: "t" };
  expect(remembered(clients, write)).not.toBe(remembered(clients, write));
});
