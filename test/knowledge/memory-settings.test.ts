import { expect, test } from "vitest";
import { type ConfigError, parseConfig, secretsOf } from "../../src/config.ts";

const read = (env: Record<string, string>) => parseConfig(env, { runtime: "node" });
const problem = (env: Record<string, string>) => {
  try {
    read(env);
  } catch (error) {
    return (error as ConfigError).problems.join("\n");
  }
  return "";
};

test("words alone and no extraction, unless more is asked for", () => {
  expect(read({}).memory).toEqual({ recallTokens: 500, extraction: undefined, embedding: undefined });
  const env = { MEMORY_EXTRACTION: "on", MEMORY_EXTRACTION_IDLE: "60", MEMORY_RECALL_TOKENS: "0" };
  expect(read(env).memory).toMatchObject({ recallTokens: 0, extraction: { idleMs: 60_000, tokens: 4_000 } });
});

test("K1: a provider's key goes to that provider's address alone", () => {
  const env = { EMBEDDING_PROVIDER: "openai", OPENAI_API_KEY: "sk-operator" };
  expect(read(env).memory.embedding).toEqual({
    ...{ provider: "openai", model: "text-embedding-3-small", apiKey: "sk-operator", baseUrl: undefined },
  });
  const elsewhere = read({
    ...env,
    EMBEDDING_BASE_URL: "http://127.0.0.1:11434/v1/",
    EMBEDDING_MODEL: "nomic",
  });
  expect(elsewhere.memory.embedding).toEqual({
    ...{ provider: "openai", model: "nomic", apiKey: "none", baseUrl: "http://127.0.0.1:11434/v1" },
  });
  expect(secretsOf(elsewhere)).toEqual(["sk-operator"]);
  const own = read({ ...env, EMBEDDING_PROVIDER: "gemini", EMBEDDING_API_KEY: "AIza-own" });
  expect(own.memory.embedding).toMatchObject({ model: "gemini-embedding-001", apiKey: "AIza-own" });
  expect(secretsOf(own)).toContain("AIza-own");
});

test("what is missing is said", () => {
  expect(problem({ EMBEDDING_PROVIDER: "gemini", OPENAI_API_KEY: "sk-x" })).toContain("GEMINI_API_KEY");
  expect(problem({ EMBEDDING_MODEL: "nomic" })).toContain("EMBEDDING_PROVIDER");
  expect(problem({ EMBEDDING_PROVIDER: "cohere" })).toContain("openai, gemini");
});
