import { LLMock } from "@copilotkit/aimock";
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { ModelEvent } from "../../src/core/event.ts";
import { fold } from "../../src/core/fold.ts";
import type { AssistantMessage, AssistantPart, Message } from "../../src/core/message.ts";
import type { ModelAdapter, ModelRequest } from "../../src/core/model.ts";
import { createAnthropicAdapter } from "../../src/providers/anthropic.ts";
import { AnthropicDecoder } from "../../src/providers/anthropic-stream.ts";
import type { UpstreamLimits } from "../../src/providers/upstream.ts";
import { frames, reply, startUpstream, stream, type UpstreamServer } from "../upstream-server.ts";
import * as recordings from "./anthropic-recordings.ts";
import { block, messageEnd, messageStart, SIGNATURE, sse } from "./anthropic-recordings.ts";
import { contractSuite, type Recording } from "./contract.ts";
import { assertModelStream, replyOf, request } from "./model-stream.ts";

const LIMITS: UpstreamLimits = { firstByteMs: 10_000, idleMs: 10_000, retries: 0, retryWaitMs: 1 };
const never = new AbortController().signal;
const { text, calls, thinking, hidden, search, unknown } = recordings;

/** With the stop reason a reply is whole: `message_stop` adds nothing. */
function whole(recording: Recording): Recording {
  return { ...recording, needs: frames(recording.sse).length - 1 };
}

contractSuite({
  provider: "anthropic",
  create: (url, limits, key, fetch) => createAnthropicAdapter({ key, baseUrl: url, limits, fetch }),
  model: "claude-sonnet-4-6",
  recordings: {
    text: whole(text),
    calls: whole(calls),
    thinking: whole(thinking),
    hidden: whole(hidden),
    search: whole(search),
    unknown: whole(unknown),
  },
  errorBody: (_status, message) => ({
    type: "error",
    error: { type: "api_error", message },
    request_id: "req_1",
  }),
  streamError: {
    frame: sse([{ type: "error", error: { type: "overloaded_error", message: "Overloaded" } }]),
    status: 529,
    message: "Overloaded",
  },
});

interface Sent {
  url: string;
  headers: Headers;
  body: Record<string, unknown>;
}

/** What a request looks like on the wire. */
async function send(part: Partial<ModelRequest>, key = "sk-ant-api03-k", baseUrl?: string): Promise<Sent> {
  let sent: Sent | undefined;
  const adapter = createAnthropicAdapter({
    key,
    baseUrl,
    limits: LIMITS,
    fetch: async (input, init) => {
      sent = {
        url: String(input),
        headers: new Headers(init?.headers),
        body: JSON.parse(String(init?.body)),
      };
      return new Response(text.sse, { headers: { "content-type": "text/event-stream" } });
    },
  });
  const { end } = await replyOf(adapter.stream(request({ model: "claude-opus-4-8", ...part }), never));
  if (!sent) throw new Error(`nothing was sent: ${JSON.stringify(end)}`);
  return sent;
}

async function bodyOf(part: Partial<ModelRequest>): Promise<Record<string, unknown>> {
  return (await send(part)).body;
}

async function faultOf(part: Partial<ModelRequest>) {
  const adapter = createAnthropicAdapter({
    key: "k",
    limits: LIMITS,
    fetch: () => {
      throw new Error("nothing may be sent");
    },
  });
  const { end } = await replyOf(adapter.stream(request(part), never));
  if (end.type === "done") throw new Error("a failure was due");
  return end.fault;
}

const F = "anthropic-messages" as const;
const extra = (fields: Record<string, unknown>) => ({ family: F, fields });
const says = (value: string) => ({ type: "text" as const, text: value });
const user = (...content: string[]): Message => ({ role: "user", content: content.map(says) });
const assistant = (...content: AssistantPart[]): AssistantMessage => ({ role: "assistant", content });
const call = (id: string, args = "{}"): AssistantPart => ({ type: "call", id, name: "look", args });
const result = (callId: string, value: string): Message => ({ role: "tool", callId, content: [says(value)] });
const ephemeral = { cache_control: { type: "ephemeral" } };
const native = { family: F, fields: { "anthropic-version": "2026-10-21" } };

describe("the key and the headers", () => {
  test("a key goes as Bearer to Anthropic, with the SDK's version", async () => {
    const { url, headers } = await send({});
    expect(url).toBe("https://api.anthropic.com/v1/messages");
    expect(headers.get("authorization")).toBe("Bearer sk-ant-api03-k");
    expect(headers.get("x-api-key")).toBeNull();
    expect(headers.get("anthropic-version")).toBe("2026-10-21");
    expect(headers.get("anthropic-beta")).toBeNull();
  });

  test("behind a configured address it goes in both headers", async () => {
    const { url, headers } = await send({}, "key-of-a-stand-in", "http://127.0.0.1:9/proxy/v1/");
    expect(url).toBe("http://127.0.0.1:9/proxy/v1/messages");
    expect(headers.get("authorization")).toBe("Bearer key-of-a-stand-in");
    expect(headers.get("x-api-key")).toBe("key-of-a-stand-in");
  });

  test("a subscription token is a Bearer token with its beta, beside the client's own", async () => {
    const plain = await send({}, "sk-ant-oat01-t");
    expect(plain.headers.get("authorization")).toBe("Bearer sk-ant-oat01-t");
    expect(plain.headers.get("x-api-key")).toBeNull();
    expect(plain.headers.get("anthropic-beta")).toBe("oauth-2025-04-20");
    expect(plain.url).not.toContain("beta=true");
    const beside = await send(
      { headers: { family: F, fields: { "anthropic-beta": "context-1m-2025-08-07" } } },
      "sk-ant-oat01-t",
    );
    expect(beside.headers.get("anthropic-beta")).toBe("context-1m-2025-08-07,oauth-2025-04-20");
  });

  test("betas and version of a messages client go along, to the beta endpoint", async () => {
    const fields = { "anthropic-beta": "a-1,b-2", "anthropic-version": "2023-06-01" };
    const { url, headers } = await send({ headers: { family: F, fields } });
    expect(url).toBe("https://api.anthropic.com/v1/messages?beta=true");
    expect(headers.get("anthropic-beta")).toBe("a-1,b-2");
    expect(headers.get("anthropic-version")).toBe("2023-06-01");
  });

  test("?beta=true without a name asks for the endpoint alone", async () => {
    const { url, headers } = await send({ headers: { family: F, fields: { "anthropic-beta": "" } } });
    expect(url).toContain("?beta=true");
    expect(headers.get("anthropic-beta")).toBeNull();
  });

  test("headers of another family stay behind", async () => {
    const { headers } = await send({ headers: { family: "openai-chat", fields: { "anthropic-beta": "x" } } });
    expect(headers.get("anthropic-beta")).toBeNull();
  });

  test("sampling goes out under the version that knows it, unless the client named one", async () => {
    const { headers, body } = await send({ settings: { temperature: 0, topK: 5 } });
    expect(headers.get("anthropic-version")).toBe("2023-06-01");
    expect(body).toMatchObject({ temperature: 0, top_k: 5 });
    const named = await send({ settings: { temperature: 0 }, headers: native });
    expect(named.headers.get("anthropic-version")).toBe("2026-10-21");
  });
});

describe("settings", () => {
  test("a small request, whole", async () => {
    expect(
      await bodyOf({
        system: [says("Be terse.")],
        settings: { maxTokens: 99, stop: ["END"], seed: 7, presencePenalty: 0, logitBias: {} },
        user: "u-1",
      }),
    ).toEqual({
      model: "claude-opus-4-8",
      max_tokens: 99,
      stream: true,
      system: [{ type: "text", text: "Be terse." }],
      messages: [{ role: "user", content: [{ type: "text", text: "hi" }] }],
      stop_sequences: ["END"],
      metadata: { user_id: "u-1" },
    });
  });

  test("the defaults of sampling say nothing, except in a messages client's words", async () => {
    const settings = { temperature: 1, topP: 1 };
    expect(await bodyOf({ settings })).not.toHaveProperty("temperature");
    expect(await bodyOf({ settings })).not.toHaveProperty("top_p");
    expect(await bodyOf({ settings, headers: native })).toMatchObject({ temperature: 1, top_p: 1 });
  });

  test.each([
    ["logprobs", { logprobs: { top: 2 } }],
    ["logit_bias", { logitBias: { "50256": -100 } }],
    ["presence_penalty", { presencePenalty: 0.5 }],
    ["frequency_penalty", { frequencyPenalty: -1 }],
  ])("%s is refused by name", async (param, settings) => {
    expect(await faultOf({ settings })).toMatchObject({ code: "unsupported_field", status: 400, param });
  });

  test.each([
    ["claude-3-haiku-20240307", 4096],
    ["claude-3-5-sonnet-20241022", 8192],
    ["claude-3-7-sonnet-20250219", 32_000],
    ["claude-opus-4-20250514", 32_000],
    ["claude-haiku-5-5", 32_000],
    ["some-local-model", 8192],
  ])("max_tokens of %s where none is asked for", async (model, expected) => {
    expect((await bodyOf({ model })).max_tokens).toBe(expected);
  });

  test("fields that the core does not know go along under those that it does; another family's do not", async () => {
    const known = await bodyOf({
      extra: extra({
        container: "c_1",
        metadata: { user_id: "theirs" },
        model: "other",
        service_tier: "auto",
      }),
      user: "u-1",
    });
    expect(known).toMatchObject({
      model: "claude-opus-4-8",
      container: "c_1",
      metadata: { user_id: "theirs" },
      service_tier: "auto",
    });
    expect(await bodyOf({ extra: { family: "openai-chat", fields: { store: true } } })).not.toHaveProperty(
      "store",
    );
  });
});

describe("thinking", () => {
  const plan = async (part: Partial<ModelRequest>) => {
    const { thinking, output_config, max_tokens } = await bodyOf(part);
    return { thinking, output_config, max_tokens };
  };

  test.each([
    ["claude-opus-4-8", "high", { type: "adaptive", display: "summarized" }, { effort: "high" }],
    ["claude-opus-4-8", "xhigh", { type: "adaptive", display: "summarized" }, { effort: "xhigh" }],
    ["claude-opus-4-8", "minimal", { type: "adaptive", display: "summarized" }, { effort: "low" }],
    ["claude-sonnet-4-6", "xhigh", { type: "adaptive" }, { effort: "high" }],
    ["claude-sonnet-4-6", "max", { type: "adaptive" }, { effort: "max" }],
    ["claude-opus-4-5", "max", { type: "enabled", budget_tokens: 24_000 }, { effort: "high" }],
    ["claude-sonnet-4-5-20250929", "low", { type: "enabled", budget_tokens: 4096 }, undefined],
    ["claude-3-7-sonnet-20250219", "medium", { type: "enabled", budget_tokens: 10_240 }, undefined],
    ["claude-3-5-haiku-20241022", "high", undefined, undefined],
    ["some-local-model", "high", undefined, undefined],
    ["claude-opus-4-8", "none", undefined, undefined],
    ["claude-opus-5", "none", { type: "disabled" }, undefined],
    ["claude-haiku-5-5", "none", { type: "disabled" }, undefined],
    ["claude-opus-5-5", "none", undefined, { effort: "low" }],
    ["claude-fable-5", "none", undefined, { effort: "low" }],
    ["claude-mythos-preview", "none", undefined, { effort: "low" }],
    ["us.anthropic.claude-sonnet-4-6-v1:0", "low", { type: "adaptive" }, { effort: "low" }],
    ["anthropic/claude-opus-4.8", "low", { type: "adaptive", display: "summarized" }, { effort: "low" }],
  ])("%s at effort %s", async (model, effort, thinking, output_config) => {
    expect(await plan({ model, reasoning: { effort } })).toMatchObject({ thinking, output_config });
  });

  test("nothing asked, nothing said", async () => {
    expect(await plan({ model: "claude-opus-5-5" })).toEqual({
      thinking: undefined,
      output_config: undefined,
      max_tokens: 32_000,
    });
  });

  test("a budget stays below max_tokens, and goes where too little is left", async () => {
    const model = "claude-sonnet-4-5";
    const reasoning = { effort: "high" };
    expect(await plan({ model, reasoning, settings: { maxTokens: 4000 } })).toMatchObject({
      thinking: { type: "enabled", budget_tokens: 3000 },
      max_tokens: 4000,
    });
    expect((await plan({ model, reasoning, settings: { maxTokens: 1200 } })).thinking).toBeUndefined();
  });

  test("an effort gives way to a forced tool and to a temperature", async () => {
    const forced = {
      tools: [{ kind: "function" as const, name: "look" }],
      toolChoice: { type: "required" as const },
      reasoning: { effort: "max" },
    };
    expect(await plan({ ...forced, model: "claude-sonnet-4-5" })).toMatchObject({ thinking: undefined });
    expect(await plan({ ...forced, model: "claude-opus-4-8" })).toMatchObject({
      thinking: undefined,
      output_config: { effort: "high" },
    });
    expect(await plan({ ...forced, model: "claude-sonnet-5" })).toMatchObject({
      thinking: { type: "disabled" },
      output_config: { effort: "high" },
    });
    expect(
      await plan({
        model: "claude-sonnet-4-6",
        reasoning: { effort: "low" },
        settings: { temperature: 0.2 },
      }),
    ).toMatchObject({ thinking: undefined, output_config: { effort: "low" } });
  });

  test("a budget does not start in the middle of a tool turn that has no thinking", async () => {
    const turn = (first: AssistantPart[]): Partial<ModelRequest> => ({
      model: "claude-sonnet-4-5",
      reasoning: { effort: "low" },
      messages: [user("go"), assistant(...first, call("c1")), result("c1", "ok")],
    });
    expect((await plan(turn([]))).thinking).toBeUndefined();
    expect((await plan(turn([{ type: "reasoning", text: "Hm.", seal: SIGNATURE }]))).thinking).toBeDefined();
  });

  test("a messages client's own words are kept", async () => {
    const asked = (reasoning: ModelRequest["reasoning"]) =>
      plan({ model: "claude-sonnet-4-6", reasoning, headers: native, settings: { maxTokens: 5000 } });
    expect(await asked({ budget: 4096, display: "omitted" })).toMatchObject({
      thinking: { type: "enabled", budget_tokens: 4096, display: "omitted" },
      max_tokens: 5000,
    });
    expect(await asked({ adaptive: true, effort: "xhigh", display: "omitted" })).toMatchObject({
      thinking: { type: "adaptive", display: "omitted" },
      output_config: { effort: "xhigh" },
    });
    expect(await asked({ budget: 0 })).toMatchObject({ thinking: { type: "disabled" } });
    expect(await asked({ effort: "low" })).toMatchObject({
      thinking: undefined,
      output_config: { effort: "low" },
    });
    expect(
      await plan({
        extra: extra({
          thinking: { type: "between_tools" },
          output_config: { effort: "low", task_budget: 1 },
        }),
        reasoning: { effort: "low" },
      }),
    ).toMatchObject({
      thinking: { type: "between_tools" },
      output_config: { effort: "low", task_budget: 1 },
    });
  });
});

describe("answers in a form", () => {
  const schema = {
    type: "object",
    properties: { n: { type: "integer", minimum: 1 } },
    required: ["n"],
    additionalProperties: false,
  };

  test("a schema becomes output_config.format, by the SDK's rules", async () => {
    const body = await bodyOf({
      format: { type: "schema", name: "r", schema, strict: true },
      reasoning: { effort: "low" },
    });
    expect(body.output_config).toEqual({
      effort: "low",
      format: {
        type: "json_schema",
        schema: {
          type: "object",
          properties: { n: { type: "integer", description: "{minimum: 1}" } },
          required: ["n"],
          additionalProperties: false,
        },
      },
    });
    expect(body.system).toBeUndefined();
  });

  test("a messages client's schema goes as it came", async () => {
    const body = await bodyOf({ format: { type: "schema", name: "response", schema }, headers: native });
    expect(body.output_config).toEqual({ format: { type: "json_schema", schema } });
  });

  test.each([
    ["an older model", "claude-3-5-haiku-20241022", schema],
    [
      "a map, which the API's schemas have not",
      "claude-opus-4-8",
      { type: "object", additionalProperties: { type: "string" } },
    ],
    ["a schema without a type", "claude-opus-4-8", { description: "anything" }],
  ])("%s: an instruction carries it", async (_, model, open) => {
    const body = await bodyOf({
      model,
      system: [says("Be terse.")],
      format: { type: "schema", name: "r", schema: open },
    });
    expect(body.output_config).toBeUndefined();
    const system = body.system as { text: string }[];
    expect(system).toHaveLength(2);
    expect(system[1]?.text).toContain(JSON.stringify(open));
  });

  test("JSON mode is an instruction", async () => {
    const system = (await bodyOf({ format: { type: "json" } })).system as { text: string }[];
    expect(system[0]?.text).toMatch(/JSON/);
  });
});

describe("tools", () => {
  const parameters = { type: "object", properties: { a: { type: "string" } } };

  test("each kind", async () => {
    const builtin = { type: "web_search_20260318", name: "web_search", max_uses: 3 };
    const body = await bodyOf({
      headers: native,
      tools: [
        { kind: "function", name: "plain" },
        { kind: "function", name: "full", description: "Does it.", parameters, strict: true },
        {
          kind: "function",
          name: "later",
          parameters,
          extra: extra({ type: "custom", defer_loading: true, ...ephemeral }),
        },
        { kind: "builtin", family: F, name: "web_search", entry: builtin },
      ],
    });
    expect(body.tools).toEqual([
      { name: "plain", input_schema: { type: "object", properties: {} } },
      { name: "full", description: "Does it.", input_schema: parameters, strict: true },
      { type: "custom", defer_loading: true, ...ephemeral, name: "later", input_schema: parameters },
      builtin,
    ]);
  });

  test("free-text tools and other providers' hosted tools are refused", async () => {
    expect(await faultOf({ tools: [{ kind: "freeform", name: "patch" }] })).toMatchObject({
      code: "unsupported_field",
      param: "tools",
    });
    const entry = { type: "web_search" };
    expect(
      await faultOf({ tools: [{ kind: "builtin", family: "openai-chat", name: "web_search", entry }] }),
    ).toMatchObject({ code: "unsupported_field", param: "tools" });
  });

  test("strict stays behind where the model has no structured outputs", async () => {
    const tools = [{ kind: "function" as const, name: "t", parameters, strict: true }];
    expect((await bodyOf({ model: "claude-3-7-sonnet", tools })).tools).toMatchObject([{ name: "t" }]);
    expect(JSON.stringify((await bodyOf({ model: "claude-3-7-sonnet", tools })).tools)).not.toContain(
      "strict",
    );
    expect((await bodyOf({ tools })).tools).toMatchObject([{ strict: true }]);
  });

  test.each([
    [{ type: "auto" }, undefined, { type: "auto" }],
    [{ type: "none" }, undefined, { type: "none" }],
    [{ type: "required" }, undefined, { type: "any" }],
    [{ type: "tool", name: "t" }, undefined, { type: "tool", name: "t" }],
    [{ type: "required" }, false, { type: "any", disable_parallel_tool_use: true }],
    [undefined, false, { type: "auto", disable_parallel_tool_use: true }],
    [undefined, true, undefined],
  ] as const)("choice %j, parallel %j", async (toolChoice, parallelTools, expected) => {
    const tools = [{ kind: "function" as const, name: "t" }];
    expect((await bodyOf({ tools, toolChoice, parallelTools })).tool_choice).toEqual(expected);
    expect(await bodyOf({ toolChoice, parallelTools })).not.toHaveProperty("tool_choice");
  });
});

describe("the conversation", () => {
  const messagesOf = async (messages: Message[], part: Partial<ModelRequest> = {}) =>
    (await bodyOf({ messages, headers: native, ...part })).messages;

  test("user parts of every kind", async () => {
    const messages: Message[] = [
      {
        role: "user",
        content: [
          { type: "text", text: "See.", extra: extra(ephemeral) },
          { type: "text", text: "  \n" },
          { type: "image", source: { kind: "data", mediaType: "image/png", data: "iVBO" } },
          { type: "image", source: { kind: "url", url: "https://example.com/a.png" } },
          { type: "image", source: { kind: "id", family: F, id: "file_1" } },
          {
            type: "file",
            mediaType: "application/pdf",
            source: { kind: "data", mediaType: "application/pdf", data: "JVBE" },
            name: "a.pdf",
          },
          {
            type: "file",
            mediaType: "text/markdown",
            source: { kind: "data", mediaType: "text/markdown", data: btoa("# H\u00c3\u00b6") },
          },
          {
            type: "file",
            mediaType: "application/pdf",
            source: { kind: "url", url: "https://example.com/b.pdf" },
            extra: extra({ citations: { enabled: true } }),
          },
          {
            type: "file",
            mediaType: "image/webp",
            source: { kind: "data", mediaType: "image/webp", data: "UklG" },
          },
          { type: "raw", family: F, block: { type: "search_result", source: "s" } },
          { type: "raw", family: "gemini", block: { executable: 1 } },
        ],
      },
    ];
    expect(await messagesOf(messages)).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "See.", ...ephemeral },
          { type: "image", source: { type: "base64", media_type: "image/png", data: "iVBO" } },
          { type: "image", source: { type: "url", url: "https://example.com/a.png" } },
          { type: "image", source: { type: "file", file_id: "file_1" } },
          {
            type: "document",
            title: "a.pdf",
            source: { type: "base64", media_type: "application/pdf", data: "JVBE" },
          },
          { type: "document", source: { type: "text", media_type: "text/plain", data: "# Hö" } },
          {
            type: "document",
            source: { type: "url", url: "https://example.com/b.pdf" },
            citations: { enabled: true },
          },
          { type: "image", source: { type: "base64", media_type: "image/webp", data: "UklG" } },
          { type: "search_result", source: "s" },
        ],
      },
    ]);
  });

  test.each([
    [
      "sound",
      {
        type: "file",
        mediaType: "audio/wav",
        source: { kind: "data", mediaType: "audio/wav", data: "UklG" },
      },
    ],
    [
      "another provider's file",
      { type: "image", source: { kind: "id", family: "openai-chat", id: "file-9" } },
    ],
  ] as const)("%s is refused", async (_, part) => {
    expect(await faultOf({ messages: [{ role: "user", content: [part] }] })).toMatchObject({
      code: "unsupported_field",
      status: 400,
      param: "messages",
    });
  });

  test("an assistant's parts, with thinking byte for byte and arguments as an object", async () => {
    expect(
      await messagesOf([
        user("go"),
        assistant(
          { type: "reasoning", text: "Hm.\n", seal: SIGNATURE },
          { type: "reasoning", text: "", redacted: true, seal: "Zm9v" },
          { type: "reasoning", text: "not signed" },
          says(""),
          says("Look: "),
          call("c1", '{"a":[1]}'),
          call("c2", ""),
          call("c3", '{"a":'),
          call("c4", "[1]"),
          {
            type: "raw",
            family: F,
            block: { type: "server_tool_use", id: "s", name: "web_search", input: {} },
          },
          { type: "refusal", text: "No." },
        ),
        result("c1", "1"),
        result("c2", "2"),
        result("c3", "3"),
        result("c4", "4"),
      ]),
    ).toMatchObject([
      { role: "user" },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "Hm.\n", signature: SIGNATURE },
          { type: "redacted_thinking", data: "Zm9v" },
          { type: "text", text: "Look: " },
          { type: "tool_use", id: "c1", name: "look", input: { a: [1] } },
          { type: "tool_use", id: "c2", name: "look", input: {} },
          { type: "tool_use", id: "c3", name: "look", input: { _raw: '{"a":' } },
          { type: "tool_use", id: "c4", name: "look", input: { _raw: "[1]" } },
          { type: "server_tool_use", id: "s", name: "web_search", input: {} },
          { type: "text", text: "No." },
        ],
      },
      {
        role: "user",
        content: [{ tool_use_id: "c1" }, { tool_use_id: "c2" }, { tool_use_id: "c3" }, { tool_use_id: "c4" }],
      },
    ]);
  });

  test("another provider's seals stay behind", async () => {
    const sealed = assistant({ type: "reasoning", text: "x", seal: "s" }, says("a"));
    expect(
      await messagesOf([user("q"), { ...sealed, origin: { provider: "gemini" } }, user("r")]),
    ).toMatchObject([
      { role: "user" },
      { role: "assistant", content: [{ type: "text", text: "a" }] },
      { role: "user" },
    ]);
  });

  test("results open the user turn after their calls, with failures and pictures", async () => {
    expect(
      await messagesOf([
        user("go"),
        assistant(call("c1"), call("c2"), call("c3")),
        result("c1", "fine"),
        {
          role: "tool",
          callId: "c2",
          failed: true,
          content: [],
        },
        {
          role: "tool",
          callId: "c3",
          content: [
            says("see"),
            { type: "image", source: { kind: "data", mediaType: "image/png", data: "iVBO" } },
            { type: "raw", family: F, block: { type: "tool_reference", tool_name: "t" } },
          ],
          extra: extra(ephemeral),
        },
        user("and?"),
        user("well?"),
      ]),
    ).toMatchObject([
      {},
      {},
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "c1", content: [{ type: "text", text: "fine" }] },
          {
            type: "tool_result",
            tool_use_id: "c2",
            is_error: true,
            content: [{ type: "text", text: "The tool failed." }],
          },
          {
            type: "tool_result",
            tool_use_id: "c3",
            ...ephemeral,
            content: [
              { type: "text", text: "see" },
              { type: "image", source: { type: "base64", media_type: "image/png", data: "iVBO" } },
              { type: "tool_reference", tool_name: "t" },
            ],
          },
          { type: "text", text: "and?" },
          { type: "text", text: "well?" },
        ],
      },
    ]);
  });

  test("an assistant's last words end without white space", async () => {
    const messages = await messagesOf([user("q"), assistant(says("So: \n"))]);
    expect(messages).toMatchObject([{}, { content: [{ text: "So:" }] }]);
  });

  const later: Message = { role: "system", content: [says("Now German.")] };

  test("a system message goes to the end of its user turn", async () => {
    const body = await bodyOf({ messages: [user("a"), later, user("b"), assistant(says("c")), user("d")] });
    expect(body.system).toBeUndefined();
    expect((body.messages as { role: string }[]).map((m) => m.role)).toEqual([
      "user",
      "system",
      "assistant",
      "user",
    ]);
    expect((body.messages as unknown[])[1]).toEqual({
      role: "system",
      content: [{ type: "text", text: "Now German." }],
    });
  });

  test.each([
    ["before any user turn", "claude-opus-4-8", [later, user("a")]],
    ["behind an assistant's turn", "claude-opus-4-8", [user("a"), assistant(says("b")), later]],
    ["on a model that has no such message", "claude-sonnet-4-6", [user("a"), later]],
    ["on an unknown model", "some-local-model", [user("a"), later]],
  ])("%s it joins the system prompt", async (_, model, messages) => {
    const body = await bodyOf({ model, messages, system: [says("Be terse.")] });
    expect(body.system).toMatchObject([{ text: "Be terse." }, { text: "Now German." }]);
    expect((body.messages as { role: string }[]).every((m) => m.role !== "system")).toBe(true);
  });

  test("a messages client's system message stays where it is, and whole", async () => {
    const added = [{ type: "tool_addition", tool: { type: "tool_reference", name: "t" } }];
    const messages: Message[] = [
      user("a"),
      { ...later, extra: extra({ clear_at: "never" }) },
      user("b"),
      { role: "system", content: [], extra: extra({ content: added }) },
    ];
    expect(await messagesOf(messages, { model: "claude-sonnet-4-6" })).toEqual([
      { role: "user", content: [{ type: "text", text: "a" }] },
      { role: "system", content: [{ type: "text", text: "Now German." }], clear_at: "never" },
      { role: "user", content: [{ type: "text", text: "b" }] },
      { role: "system", content: added },
    ]);
  });
});

describe("prompt caching", () => {
  const marks = (body: Record<string, unknown>) => {
    const places: string[] = [];
    const scan = (at: string, list: unknown) =>
      Array.isArray(list) &&
      list.forEach((entry, i) => {
        if (entry.cache_control) places.push(`${at}.${i}`);
      });
    scan("tools", body.tools);
    scan("system", body.system);
    (body.messages as { content: unknown }[]).forEach((m, i) => {
      scan(`messages.${i}`, m.content);
    });
    return places;
  };
  const tools = [
    { kind: "function" as const, name: "a" },
    { kind: "function" as const, name: "b" },
  ];
  const loop = [user("go"), assistant(call("c1"), call("c2")), result("c1", "1"), result("c2", "2")];

  test("a loop from another door is marked behind its prefix and at its last two user turns", async () => {
    const system = [says("one"), says("two")];
    expect(marks(await bodyOf({ system, tools, messages: loop }))).toEqual([
      "system.1",
      "messages.0.0",
      "messages.2.1",
    ]);
    expect(marks(await bodyOf({ tools, messages: loop }))).toEqual([
      "tools.1",
      "messages.0.0",
      "messages.2.1",
    ]);
  });

  test("a single question without tools is not, nor is what a messages client wrote", async () => {
    expect(marks(await bodyOf({ system: [says("one")] }))).toEqual([]);
    expect(marks(await bodyOf({ tools, messages: loop, headers: native }))).toEqual([]);
  });

  test("marks that a session adds up never exceed four: the oldest in the messages go", async () => {
    const marked = (value: string): Message => ({
      role: "user",
      content: [{ type: "text", text: value, extra: extra(ephemeral) }],
    });
    const messages = [
      marked("a"),
      assistant(says("1")),
      marked("b"),
      assistant(says("2")),
      marked("c"),
      assistant(says("3")),
      marked("d"),
    ];
    const system = [{ ...says("s"), extra: extra(ephemeral) }];
    const expected = ["system.0", "messages.2.0", "messages.4.0", "messages.6.0"];
    expect(marks(await bodyOf({ system, messages, headers: native }))).toEqual(expected);
    expect(marks(await bodyOf({ system, messages }))).toEqual(expected);
  });

  test("the caller's own objects are not touched", async () => {
    const entry = { type: "bash_20250124", name: "bash" };
    const request = { tools: [{ kind: "builtin" as const, family: F, name: "bash", entry }], messages: loop };
    const before = structuredClone(request);
    await bodyOf(request);
    expect(request).toEqual(before);
  });
});

describe("the stream", () => {
  function decode(events: readonly Record<string, unknown>[], ended = false): ModelEvent[] {
    const out: ModelEvent[] = [];
    const decoder = new AnthropicDecoder();
    for (const event of events) decoder.push({ event: "", data: JSON.stringify(event) }, out);
    if (ended) decoder.end(out);
    return out;
  }

  test("every event of a small reply", () => {
    const start = { type: "thinking", thinking: "", signature: "" };
    expect(
      decode([
        messageStart(),
        ...block(
          0,
          start,
          { type: "thinking_delta", thinking: "Hm" },
          { type: "signature_delta", signature: SIGNATURE },
        ),
        ...block(1, { type: "text", text: "" }, { type: "text_delta", text: "Hi" }),
        ...messageEnd("stop_sequence", { output_tokens: 9 }, { stop_sequence: "END" }),
      ]),
    ).toEqual([
      {
        type: "open",
        model: "claude-opus-4-8",
        id: "msg_01Xk2mPq7",
        extra: extra({ usage: (messageStart().message as { usage: unknown }).usage }),
      },
      { type: "part-open", index: 0, part: { kind: "reasoning" } },
      { type: "part-delta", index: 0, delta: "Hm" },
      { type: "part-close", index: 0, seal: SIGNATURE },
      { type: "part-open", index: 1, part: { kind: "text" } },
      { type: "part-delta", index: 1, delta: "Hi" },
      { type: "part-close", index: 1 },
      {
        type: "done",
        stop: "stop-sequence",
        stopSequence: "END",
        usage: {
          input: 21,
          output: 9,
          cacheRead: 0,
          cacheWrite: 0,
          extra: extra({
            cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
            service_tier: "standard",
          }),
        },
      },
    ]);
  });

  test.each([
    ["end_turn", "stop"],
    ["max_tokens", "length"],
    ["tool_use", "tool-calls"],
    ["pause_turn", "pause"],
    ["refusal", "refusal"],
    ["model_context_window_exceeded", "context-window"],
  ])("stop reason %s", (said, stop) => {
    const done = decode([messageStart(), ...messageEnd(said, {})]).at(-1);
    expect(done).toMatchObject({ type: "done", stop });
    expect(done).not.toHaveProperty("extra.fields.stop_reason");
  });

  test("a stop reason that is newer than the program keeps its word, and a refusal its details", () => {
    expect(decode([messageStart(), ...messageEnd("tired", {})]).at(-1)).toMatchObject({
      stop: "stop",
      extra: extra({ stop_reason: "tired" }),
    });
    const stop_details = { type: "refusal", category: "cyber", explanation: null };
    expect(decode([messageStart(), ...messageEnd("refusal", {}, { stop_details })]).at(-1)).toMatchObject({
      stop: "refusal",
      extra: extra({ stop_details }),
    });
  });

  test("deltas of a hosted tool and citations go out as they came", () => {
    const deltas = decode(
      frames(search.sse).map((frame) => JSON.parse(frame.slice(frame.indexOf("{")))),
    ).filter((event) => event.type === "part-delta" && event.extra !== undefined);
    expect(deltas).toMatchObject([
      { index: 0, delta: "", extra: extra({ type: "input_json_delta", partial_json: "" }) },
      { index: 0, delta: "", extra: extra({ type: "input_json_delta", partial_json: '{"query": "Claude ' }) },
      { index: 0, delta: "", extra: extra({ type: "input_json_delta", partial_json: 'Shannon birth"}' }) },
      { index: 2, delta: "", extra: { fields: { type: "citations_delta" } } },
    ]);
  });

  test("the opening of a hosted tool is not changed by what follows", () => {
    const events = decode(frames(search.sse).map((frame) => JSON.parse(frame.slice(frame.indexOf("{")))));
    expect(events[1]).toMatchObject({ type: "part-open", part: { kind: "raw", block: { input: {} } } });
  });

  test("blocks that come whole with their start", () => {
    const events = decode([
      messageStart(),
      ...block(0, { type: "thinking", thinking: "Hm", signature: SIGNATURE }),
      ...block(1, { type: "text", text: "Hi" }),
      ...block(2, { type: "tool_use", id: "t1", name: "f", input: { a: 1 } }),
      ...messageEnd("tool_use", {}),
    ]);
    assertModelStream(events);
    expect(fold(events).content).toEqual([
      { type: "reasoning", text: "Hm", seal: SIGNATURE },
      { type: "text", text: "Hi" },
      { type: "call", id: "t1", name: "f", args: '{"a":1}' },
    ]);
  });

  test("an orderly end after the stop reason needs no message_stop; any other does", () => {
    const [delta] = messageEnd("end_turn", {});
    expect(decode([messageStart(), delta!], true).at(-1)).toMatchObject({ type: "done" });
    expect(decode([messageStart(), ...block(0, { type: "text", text: "Hi" })], true).at(-1)?.type).toBe(
      "part-close",
    );
    expect(decode([{ type: "message_stop" }], true)).toEqual([]);
  });

  test("a block that is still open at the end is closed, and nothing comes after it", () => {
    const events = decode([
      messageStart(),
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "a" } },
      ...messageEnd("max_tokens", {}),
      ...block(1, { type: "text", text: "late" }),
    ]);
    assertModelStream(events);
    expect(fold(events).content).toEqual([{ type: "text", text: "a" }]);
  });

  test.each([
    ["invalid_request_error", 400],
    ["authentication_error", 401],
    ["permission_error", 403],
    ["not_found_error", 404],
    ["request_too_large", 413],
    ["rate_limit_error", 429],
    ["api_error", 500],
    ["timeout_error", 504],
    ["overloaded_error", 529],
    ["an_error_of_tomorrow", 500],
  ])("%s in the stream has status %i", (type, status) => {
    expect(() => decode([messageStart(), { type: "error", error: { type, message: "Sorry." } }])).toThrow(
      expect.objectContaining({ code: "upstream_error", status, upstreamType: type, message: "Sorry." }),
    );
  });

  /** A part, and the wire block that says it in pieces. */
  const pieces = (value: string, size: number): string[] => {
    const chars = [...value];
    return Array.from({ length: Math.ceil(chars.length / size) }, (_, i) =>
      chars.slice(i * size, (i + 1) * size).join(""),
    );
  };
  const filled = fc.string({ unit: "binary", minLength: 1, maxLength: 40 });
  const size = fc.integer({ min: 1, max: 9 });
  const signature = fc.base64String({ minLength: 4, maxLength: 80 });
  const textBlock = fc.tuple(filled, size).map(([value, n]) => ({
    part: { type: "text", text: value } as AssistantPart,
    wire: (i: number) =>
      block(i, { type: "text", text: "" }, ...pieces(value, n).map((t) => ({ type: "text_delta", text: t }))),
  }));
  const thinkingBlock = fc.tuple(filled, size, signature).map(([value, n, seal]) => ({
    part: { type: "reasoning", text: value, seal } as AssistantPart,
    wire: (i: number) =>
      block(
        i,
        { type: "thinking", thinking: "", signature: "" },
        ...pieces(value, n).map((t) => ({ type: "thinking_delta", thinking: t })),
        { type: "signature_delta", signature: seal },
      ),
  }));
  const redactedBlock = signature.map((seal) => ({
    part: { type: "reasoning", text: "", redacted: true, seal } as AssistantPart,
    wire: (i: number) => block(i, { type: "redacted_thinking", data: seal }),
  }));
  const callBlock = fc
    .tuple(fc.uuid(), fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 4 }), size)
    .map(([id, input, n]) => {
      const args = JSON.stringify(input);
      return {
        part: { type: "call", id, name: "f", args } as AssistantPart,
        wire: (i: number) =>
          block(
            i,
            { type: "tool_use", id, name: "f", input: {} },
            ...pieces(args, n).map((partial_json) => ({ type: "input_json_delta", partial_json })),
          ),
      };
    });

  test("property: any blocks in any order fold to the message, and are written back as they were said", async () => {
    const blocks = fc.array(fc.oneof(textBlock, thinkingBlock, redactedBlock, callBlock), { maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(blocks, async (list) => {
        const events = decode([
          messageStart(),
          ...list.flatMap(({ wire }, i) => wire(i)),
          ...messageEnd("end_turn", {}),
        ]);
        assertModelStream(events);
        const message = fold(events);
        expect(message.content).toEqual(list.map(({ part }) => part));
        const body = await bodyOf({ messages: [user("q"), message, user("r")], headers: native });
        const sent = (body.messages as { role: string; content: Record<string, unknown>[] }[]).find(
          (m) => m.role === "assistant",
        );
        const seals = list.flatMap(({ part }) => (part.type === "reasoning" ? [part.seal] : []));
        expect(
          (sent?.content ?? []).flatMap((b) => ((b.signature ?? b.data) ? [b.signature ?? b.data] : [])),
        ).toEqual(seals);
      }),
      { numRuns: 60 },
    );
  });
});

describe("against aimock", () => {
  const mock = new LLMock({ port: 0, logLevel: "silent" });
  let adapter: ModelAdapter;
  beforeAll(async () => {
    adapter = createAnthropicAdapter({ key: "sk-ant-api03-k", baseUrl: await mock.start(), limits: LIMITS });
  });
  afterAll(() => mock.stop());
  afterEach(() => void mock.reset());

  test("thinking with its signature, kept over a tool turn", async () => {
    mock.on(
      { userMessage: "weather", hasToolResult: false },
      {
        reasoning: "I need the city.",
        reasoningSignature: SIGNATURE,
        toolCalls: [{ name: "look", arguments: "{}" }],
      },
    );
    mock.on({ userMessage: "weather", hasToolResult: true }, { content: "Sun." });
    const model = "claude-sonnet-4-5";
    const tools = [{ kind: "function" as const, name: "look" }];
    const reasoning = { effort: "low" };
    const first = await replyOf(
      adapter.stream(request({ model, tools, reasoning, messages: [user("weather?")] }), never),
    );
    expect(first.message.content).toMatchObject([
      { type: "reasoning", text: "I need the city.", seal: SIGNATURE },
      { type: "call", name: "look" },
    ]);
    const call = first.message.content[1];
    const second = await replyOf(
      adapter.stream(
        request({
          model,
          tools,
          reasoning,
          messages: [user("weather?"), first.message, result(call?.type === "call" ? call.id : "", "sun")],
        }),
        never,
      ),
    );
    expect(second.message.content).toEqual([says("Sun.")]);
  });
});

describe("models and tokens", () => {
  let upstream: UpstreamServer;
  beforeAll(async () => {
    upstream = await startUpstream();
  });
  afterAll(() => upstream[Symbol.asyncDispose]());
  const create = (limits: Partial<UpstreamLimits> = {}) =>
    createAnthropicAdapter({
      key: "sk-ant-api03-k",
      baseUrl: upstream.url,
      limits: { ...LIMITS, ...limits },
    });

  test("all pages of models", async () => {
    const model = (id: string, created_at: string) => ({
      type: "model",
      id,
      display_name: id.toUpperCase(),
      created_at,
    });
    upstream.answer((response, incoming, n) => {
      const data =
        n === 0
          ? [model("a", "2026-09-22T00:00:00Z"), model("b", "1970-01-01T00:00:00Z")]
          : [model("c", "2026-01-01T00:00:00Z")];
      return reply(200, { data, has_more: n === 0, first_id: null, last_id: n === 0 ? "b" : "c" })(
        response,
        incoming,
        n,
      );
    });
    expect(await create().models(never)).toEqual([
      { id: "a", created: 1_790_035_200, displayName: "A", ownedBy: "anthropic" },
      { id: "b", created: undefined, displayName: "B", ownedBy: "anthropic" },
      { id: "c", created: 1_767_225_600, displayName: "C", ownedBy: "anthropic" },
    ]);
    expect(upstream.requests.map(({ path }) => path)).toEqual([
      "/v1/models?limit=1000",
      "/v1/models?limit=1000&after_id=b",
    ]);
  });

  test("the counter gets what decides the count, and nothing else", async () => {
    upstream.answer(reply(200, { input_tokens: 314 }));
    const counted = await create().countTokens?.(
      request({
        model: "claude-opus-4-8",
        system: [says("s")],
        settings: { maxTokens: 5, temperature: 0.1, stop: ["x"] },
        headers: { family: F, fields: { "anthropic-beta": "b-1", "anthropic-version": "2023-06-01" } },
        extra: extra({ service_tier: "auto", context_management: { edits: [] } }),
      }),
      never,
    );
    expect(counted).toBe(314);
    const sent = upstream.requests[0];
    expect(sent?.path).toBe("/v1/messages/count_tokens?beta=true");
    expect(sent?.headers["anthropic-beta"]).toBe("b-1");
    expect(Object.keys(sent?.body ?? {}).sort()).toEqual([
      "context_management",
      "messages",
      "model",
      "system",
    ]);
  });

  test("faults: the upstream's own, none that counts, cancellation, silence", async () => {
    const error = { type: "error", error: { type: "authentication_error", message: "invalid x-api-key" } };
    upstream.answer(reply(401, error));
    await expect(create().models(never)).rejects.toMatchObject({
      code: "upstream_error",
      status: 401,
      upstreamType: "authentication_error",
      message: "invalid x-api-key",
    });
    await expect(create().countTokens?.(request(), never)).rejects.toMatchObject({ status: 401 });
    upstream.answer(reply(200, {}));
    await expect(create().countTokens?.(request(), never)).rejects.toMatchObject({
      code: "upstream_unreachable",
    });
    await expect(create().models(AbortSignal.abort())).rejects.toMatchObject({ code: "cancelled" });
    upstream.answer(() => {});
    await expect(create({ firstByteMs: 50 }).models(never)).rejects.toMatchObject({
      code: "upstream_timeout",
    });
  });

  test("a server that ignores `stream` and answers in one piece", async () => {
    const { message } = messageStart() as { message: Record<string, unknown> };
    upstream.answer(
      reply(200, {
        ...message,
        content: [
          { type: "thinking", thinking: "Hm", signature: SIGNATURE },
          { type: "text", text: "Hi", citations: null },
          { type: "tool_use", id: "t", name: "f", input: { a: 1 } },
        ],
        stop_reason: "tool_use",
        usage: { input_tokens: 3, output_tokens: 4 },
      }),
    );
    const { message: said, end } = await replyOf(create().stream(request(), never));
    expect(said.content).toEqual([
      { type: "reasoning", text: "Hm", seal: SIGNATURE },
      { type: "text", text: "Hi" },
      { type: "call", id: "t", name: "f", args: '{"a":1}' },
    ]);
    expect(end).toMatchObject({ type: "done", stop: "tool-calls", usage: { input: 3, output: 4 } });
  });

  test("an error body's type comes through", async () => {
    upstream.answer(
      stream([sse([{ type: "error", error: { type: "overloaded_error", message: "Overloaded" } }])]),
    );
    const { end } = await replyOf(create().stream(request(), never));
    expect(end).toMatchObject({ type: "failed", fault: { status: 529, upstreamType: "overloaded_error" } });
  });
});
