/** A provider's key stays with the server that was configured, wherever it redirects to. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createUpstreamFetch } from "../../src/platform/local-upstream.ts";
import { createConfiguredFetch } from "../../src/providers/configured-fetch.ts";
import { createOpenAIAdapter } from "../../src/providers/openai.ts";
import { startUpstream, type UpstreamServer } from "../upstream-server.ts";

let upstream: UpstreamServer;
let other: UpstreamServer;
beforeAll(async () => {
  [upstream, other] = await Promise.all([startUpstream(), startUpstream()]);
});
beforeEach(() => other.answer((response) => void response.end("other")));
afterAll(() => Promise.all([upstream[Symbol.asyncDispose](), other[Symbol.asyncDispose]()]));

describe.each([
  ["fetch", undefined],
  ["node:http", createUpstreamFetch()],
])("%s", (_, send) => {
  const ask = createConfiguredFetch(send);
  const post = () =>
    ask(`${upstream.url}/v1/chat`, { method: "POST", body: '{"a":1}', headers: { "x-api-key": "k" } });
  const redirect = (status: number, location?: string) =>
    upstream.answer((response, { path, body, method }) => {
      if (path !== "/v1/chat") response.end(JSON.stringify({ path, body, method }));
      else response.writeHead(status, location === undefined ? {} : { location }).end();
    });

  test.each([307, 308])("%i on the same server: the same request again", async (status) => {
    redirect(status, "../v2/chat");
    const response = await post();
    expect(await response.json()).toEqual({ path: "/v2/chat", body: { a: 1 }, method: "POST" });
    expect(upstream.requests[1]?.headers["x-api-key"]).toBe("k");
  });

  test.each([301, 302, 303, 307, 308])("%i to another server: no key goes there", async (status) => {
    redirect(status, `${other.url}/v1/chat`);
    await expect(post()).rejects.toMatchObject({
      code: "upstream_unreachable",
      message: expect.stringMatching(/redirects to .*, where no key is sent\. Set the base URL/),
    });
    expect(other.requests).toEqual([]);
  });

  test.each([301, 302, 303])(
    "%i on the same server: a POST would lose its body, a GET does not",
    async (status) => {
      redirect(status, "/v2");
      await expect(post()).rejects.toMatchObject({ message: expect.stringContaining("loses the request") });
      expect(await (await ask(`${upstream.url}/v1/chat`)).json()).toMatchObject({
        path: "/v2",
        method: "GET",
      });
    },
  );

  test("in circles, or to nowhere", async () => {
    redirect(307, "/v1/chat");
    await expect(post()).rejects.toMatchObject({ message: expect.stringContaining("again and again") });
    expect(upstream.requests).toHaveLength(4);
    redirect(308);
    await expect(post()).rejects.toMatchObject({ message: expect.stringContaining("without saying where") });
  });

  test("the sentence reaches whoever lists models through an SDK", async () => {
    upstream.answer((response) => void response.writeHead(307, { location: other.url }).end());
    const limits = { firstByteMs: 5_000, idleMs: 5_000, retries: 0 };
    const adapter = createOpenAIAdapter({ key: "sk-k", baseUrl: `${upstream.url}/v1`, limits, fetch: ask });
    await expect(adapter.models(new AbortController().signal)).rejects.toMatchObject({
      message: expect.stringContaining("where no key is sent"),
    });
    expect(other.requests).toEqual([]);
  });
});
