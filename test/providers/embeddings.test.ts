import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createEmbedder } from "../../src/providers/embeddings.ts";
import { type EmbeddingServer, startEmbeddingServer, vectorOf } from "../bench/memory-double.ts";

const signal = new AbortController().signal;
let server: EmbeddingServer;
beforeAll(async () => {
  server = await startEmbeddingServer();
});
afterAll(() => server.close());
beforeEach(() => {
  server.status = 200;
  server.requests.length = 0;
});

describe.each([
  ["openai", "/v1", "/v1/embeddings", "Bearer the-key"],
  ["gemini", "", "/v1beta/models/m:batchEmbedContents", "the-key"],
] as const)("%s", (provider, base, path, authorization) => {
  const create = (more: object = {}) =>
    createEmbedder({ provider, model: "m", key: "the-key", baseUrl: server.url + base, retries: 0, ...more });

  test("gives a vector for each text, in their order", async () => {
    const texts = ["The user rows", "The user sings", "x"];
    const vectors = await create().embed(texts, "document", signal);
    expect(vectors.map((vector) => [...vector])).toEqual(
      texts.map((text) => [...Float32Array.from(vectorOf(text))]),
    );
    expect(server.requests).toEqual([{ path, authorization, texts: 3 }]);
    expect(create().model).toBe(`${provider}/m`);
  });

  test("says what the server says, without the key", async () => {
    server.status = 503;
    const failure = create().embed(["x"], "query", signal);
    await expect(failure).rejects.toMatchObject({ code: "upstream_error", status: 503 });
    await expect(failure).rejects.toThrow("overloaded");
    const down = create({ baseUrl: `http://127.0.0.1:1${base}` }).embed(["x"], "query", signal);
    await expect(down).rejects.toMatchObject({ code: "upstream_unreachable" });
  });

  test.each([
    {},
    { data: [{ index: 0, embedding: ["a"] }], embeddings: [{ values: [] }] },
    { data: [], embeddings: [] },
  ])("refuses what is no vector: %j", async (answer) => {
    const fetch = async () => Response.json(answer);
    await expect(create({ fetch }).embed(["x"], "query", signal)).rejects.toMatchObject({
      code: "upstream_unreachable",
    });
  });

  test("ends with its signal", async () => {
    const controller = new AbortController();
    const fetch = (_: unknown, init?: RequestInit) =>
      new Promise<Response>((_, reject) => {
        init?.signal?.addEventListener("abort", () => reject(init.signal?.reason));
        controller.abort();
      });
    await expect(create({ fetch }).embed(["x"], "query", controller.signal)).rejects.toMatchObject({
      code: "cancelled",
    });
  });
});
