/** The messages door: what a request becomes, and the sentences for those that cannot be one. */
import Anthropic from "@anthropic-ai/sdk";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import type { AgentEvent } from "../../src/core/event.ts";
import { AppError, toFault } from "../../src/errors.ts";
import { anthropicMessages } from "../../src/protocols/anthropic-messages.ts";
import {
  countTokensRequest,
  decodeCountTokens,
  messagesRequest,
} from "../../src/protocols/anthropic-messages-request.ts";

const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

function decode(body: unknown, headers: Record<string, string> = {}, query = "") {
  return anthropicMessages.decode(messagesRequest.parse(body), {
    headers: new Headers(headers),
    query: new URLSearchParams(query),
  });
}

function request(fields: Record<string, unknown>) {
  return { model: "m", max_tokens: 10, messages: [{ role: "user", content: "hi" }], ...fields };
}

const user = (content: unknown) => ({ role: "user", content });
const assistant = (content: unknown) => ({ role: "assistant", content });
const call = (id: string) => ({ type: "tool_use", id, name: "f", input: {} });
const result = (id: string, content: unknown = "ok") => ({ type: "tool_result", tool_use_id: id, content });

function faultOf(messages: unknown, fields: Record<string, unknown> = {}, headers = {}) {
  try {
    decode({ ...request(fields), messages }, headers);
  } catch (error) {
    if (error instanceof AppError) return `${error.status} ${error.param} | ${error.message}`;
    throw error;
  }
  return null;
}

const family = (fields: Record<string, unknown>) => ({ family: "anthropic-messages", fields });

describe("a request", () => {
  test("of the least fields", () => {
    expect(decode(request({}))).toEqual({
      request: {
        model: "m",
        system: [],
        messages: [{ role: "user", content: [{ type: "text", text: "hi" }] }],
        tools: [],
        settings: { maxTokens: 10 },
        headers: family({}),
      },
      stream: false,
      choices: 1,
      carriesSeals: true,
      echo: { hideThinking: false },
    });
  });

  test("keeps settings, tools and what the core does not model", () => {
    const { request: out, stream } = decode(
      request({
        stream: true,
        system: [
          { type: "text", text: "a", cache_control: { type: "ephemeral" } },
          { type: "text", text: "b" },
        ],
        temperature: 0.5,
        top_p: 0.9,
        top_k: 5,
        stop_sequences: ["END"],
        metadata: { user_id: "u1", more: 1 },
        thinking: { type: "enabled", budget_tokens: 2048, display: "summarized" },
        output_config: { effort: "high", format: { type: "json_schema", schema: { type: "object" } } },
        tool_choice: { type: "tool", name: "f", disable_parallel_tool_use: true },
        tools: [
          {
            name: "f",
            description: "d",
            input_schema: { type: "object" },
            strict: true,
            eager_input_streaming: true,
            cache_control: null,
          },
          { type: "custom", name: "g", input_schema: { type: "object" }, defer_loading: true },
          { type: "web_search_20250305", name: "web_search", max_uses: 3 },
          { type: "mcp_toolset", mcp_server_name: "x" },
        ],
        service_tier: "auto",
        container: "c1",
        context_management: { edits: [{ type: "clear_tool_uses_20250919" }] },
        mcp_servers: [{ type: "url", url: "https://x.example", name: "x" }],
        speed: "fast",
        brand_new: { a: 1 },
      }),
      { "anthropic-beta": "a-1,b-2", "anthropic-version": "2026-10-21" },
      "beta=true",
    );
    expect(stream).toBe(true);
    expect(out).toEqual({
      model: "m",
      system: [
        { type: "text", text: "a", extra: family({ cache_control: { type: "ephemeral" } }) },
        { type: "text", text: "b" },
      ],
      messages: [{ role: "user", content: [{ type: "text", text: "hi" }] }],
      tools: [
        {
          kind: "function",
          name: "f",
          description: "d",
          parameters: { type: "object" },
          strict: true,
          extra: family({ eager_input_streaming: true }),
        },
        {
          kind: "function",
          name: "g",
          parameters: { type: "object" },
          extra: family({ defer_loading: true }),
        },
        {
          kind: "builtin",
          family: "anthropic-messages",
          name: "web_search",
          entry: { type: "web_search_20250305", name: "web_search", max_uses: 3 },
        },
        {
          kind: "builtin",
          family: "anthropic-messages",
          name: "mcp_toolset",
          entry: { type: "mcp_toolset", mcp_server_name: "x" },
        },
      ],
      toolChoice: { type: "tool", name: "f" },
      parallelTools: false,
      reasoning: { budget: 2048, display: "summarized", effort: "high" },
      format: { type: "schema", name: "response", schema: { type: "object" } },
      settings: { maxTokens: 10, temperature: 0.5, topP: 0.9, topK: 5, stop: ["END"] },
      user: "u1",
      headers: family({ "anthropic-beta": "a-1,b-2", "anthropic-version": "2026-10-21" }),
      extra: family({
        metadata: { user_id: "u1", more: 1 },
        service_tier: "auto",
        container: "c1",
        context_management: { edits: [{ type: "clear_tool_uses_20250919" }] },
        mcp_servers: [{ type: "url", url: "https://x.example", name: "x" }],
        speed: "fast",
        brand_new: { a: 1 },
      }),
    });
  });

  test.each([
    [{ type: "auto" }, { type: "auto" }],
    [{ type: "any" }, { type: "required" }],
    [{ type: "none" }, { type: "none" }],
  ])("tool_choice %j", (wire, core) => {
    expect(decode(request({ tool_choice: wire })).request.toolChoice).toEqual(core);
  });

  test.each([
    [{ type: "adaptive", display: "omitted" }, { adaptive: true, display: "omitted" }, true],
    [{ type: "disabled" }, { budget: 0 }, true],
    [{ type: "adaptive", display: null }, { adaptive: true }, false],
    [{ type: "between_tools" }, undefined, false],
  ])("thinking %j", (thinking, reasoning, hideThinking) => {
    const out = decode(request({ thinking }));
    expect(out.request.reasoning).toEqual(reasoning);
    expect(out.echo).toEqual({ hideThinking });
    expect(out.request.extra).toEqual(reasoning ? undefined : family({ thinking }));
  });

  test("takes the older output_format, and keeps a format it does not know", () => {
    const schema = { type: "object", properties: { a: { type: "string" } } };
    const older = decode(request({ output_format: { type: "json_schema", schema } })).request;
    expect(older.format).toEqual({ type: "schema", name: "response", schema });
    expect(older.extra).toBeUndefined();
    const both = { output_format: { type: "json_schema", schema }, output_config: { effort: "low", x: 1 } };
    expect(decode(request(both)).request.extra).toEqual(family(both));
    const newer = { effort: "low", format: { type: "grammar", text: "x" } };
    const kept = decode(request({ output_config: newer })).request;
    expect(kept.format).toBeUndefined();
    expect(kept.reasoning).toEqual({ effort: "low" });
    expect(kept.extra).toEqual(family({ output_config: newer }));
  });

  test("?beta=true alone is an empty anthropic-beta", () => {
    expect(decode(request({}), {}, "beta=true&x=1").request.headers).toEqual(
      family({ "anthropic-beta": "" }),
    );
  });
});

describe("messages", () => {
  test("of every kind of block", () => {
    const cache = { cache_control: { type: "ephemeral" } };
    const search = { type: "server_tool_use", id: "s1", name: "web_search", input: { query: "q" } };
    const found = { type: "web_search_tool_result", tool_use_id: "s1", content: [] };
    const hit = { type: "search_result", source: "s", title: "t", content: [{ type: "text", text: "x" }] };
    const { messages } = decode({
      ...request({}),
      messages: [
        user([
          { type: "text", text: "look", ...cache },
          { type: "image", source: { type: "base64", media_type: "image/png", data: PNG }, ...cache },
          { type: "image", source: { type: "url", url: "https://x.example/a.png" } },
          { type: "image", source: { type: "file", file_id: "file_1" } },
          { type: "document", title: "T", source: { type: "text", media_type: "text/plain", data: "é" } },
          {
            type: "document",
            source: { type: "base64", media_type: "application/pdf", data: "JVBERi0=" },
            citations: { enabled: true },
            context: "c",
          },
          { type: "document", source: { type: "url", url: "https://x.example/a.pdf" } },
          { type: "document", source: { type: "file", file_id: "file_2" } },
          { type: "document", source: { type: "content", content: [{ type: "text", text: "in" }] } },
          hit,
        ]),
        assistant([
          { type: "thinking", thinking: "hm", signature: "c2ln" },
          { type: "redacted_thinking", data: "cmVk" },
          search,
          found,
          { type: "text", text: "so", citations: [{ type: "char_location" }] },
          { type: "tool_use", id: "t1", name: "f", input: { a: [1, "x"] }, caller: { type: "direct" } },
          { type: "tool_use", id: "t2", name: "g", input: {} },
        ]),
        user([
          {
            type: "tool_result",
            tool_use_id: "t1",
            is_error: true,
            content: [
              { type: "text", text: "no" },
              { type: "image", source: { type: "base64", media_type: "image/png", data: PNG } },
              { type: "tool_reference", tool_name: "g" },
            ],
            ...cache,
          },
          { type: "tool_result", tool_use_id: "t2" },
          { type: "text", text: "and now?" },
        ]),
        { role: "system", content: "be brief", clear_at: "never" },
        assistant("The answer is ("),
      ],
    }).request;
    expect(messages).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "look", extra: family(cache) },
          {
            type: "image",
            source: { kind: "data", mediaType: "image/png", data: PNG },
            extra: family(cache),
          },
          { type: "image", source: { kind: "url", url: "https://x.example/a.png" } },
          { type: "image", source: { kind: "id", family: "anthropic-messages", id: "file_1" } },
          {
            type: "file",
            name: "T",
            mediaType: "text/plain",
            source: { kind: "data", mediaType: "text/plain", data: "w6k=" },
          },
          {
            type: "file",
            mediaType: "application/pdf",
            source: { kind: "data", mediaType: "application/pdf", data: "JVBERi0=" },
            extra: family({ citations: { enabled: true }, context: "c" }),
          },
          {
            type: "file",
            mediaType: "application/pdf",
            source: { kind: "url", url: "https://x.example/a.pdf" },
          },
          {
            type: "file",
            mediaType: "application/pdf",
            source: { kind: "id", family: "anthropic-messages", id: "file_2" },
          },
          {
            type: "file",
            mediaType: "text/plain",
            source: { kind: "data", mediaType: "text/plain", data: "aW4=" },
            extra: family({ source: { type: "content", content: [{ type: "text", text: "in" }] } }),
          },
          { type: "raw", family: "anthropic-messages", block: hit },
        ],
      },
      {
        role: "assistant",
        origin: { provider: "anthropic" },
        content: [
          { type: "reasoning", text: "hm", seal: "c2ln" },
          { type: "reasoning", text: "", redacted: true, seal: "cmVk" },
          { type: "raw", family: "anthropic-messages", block: search },
          { type: "raw", family: "anthropic-messages", block: found },
          { type: "text", text: "so", extra: family({ citations: [{ type: "char_location" }] }) },
          {
            type: "call",
            id: "t1",
            name: "f",
            args: '{"a":[1,"x"]}',
            extra: family({ caller: { type: "direct" } }),
          },
          { type: "call", id: "t2", name: "g", args: "{}" },
        ],
      },
      {
        role: "tool",
        callId: "t1",
        failed: true,
        content: [
          { type: "text", text: "no" },
          { type: "image", source: { kind: "data", mediaType: "image/png", data: PNG } },
          {
            type: "raw",
            family: "anthropic-messages",
            block: { type: "tool_reference", tool_name: "g" },
          },
        ],
        extra: family(cache),
      },
      { role: "tool", callId: "t2", content: [] },
      { role: "user", content: [{ type: "text", text: "and now?" }] },
      {
        role: "system",
        content: [{ type: "text", text: "be brief" }],
        extra: family({ clear_at: "never" }),
      },
      { role: "assistant", content: [{ type: "text", text: "The answer is (" }] },
    ]);
  });

  test("seals of one provider make the origin, and those of another are dropped", () => {
    const [, message] = decode({
      ...request({}),
      messages: [
        user("hi"),
        assistant([
          { type: "thinking", thinking: "a", signature: "dragoman.gemini.s.1" },
          { type: "thinking", thinking: "b", signature: "" },
          { type: "thinking", thinking: "c", signature: "bmF0aXZl" },
          { type: "redacted_thinking", data: "bmF0aXZl" },
          { type: "redacted_thinking", data: "dragoman.gemini.s2" },
        ]),
      ],
    }).request.messages;
    expect(message).toEqual({
      role: "assistant",
      origin: { provider: "gemini" },
      content: [
        { type: "reasoning", text: "a", seal: "s.1" },
        { type: "reasoning", text: "b" },
        { type: "reasoning", text: "c" },
        { type: "reasoning", text: "", redacted: true, seal: "s2" },
      ],
    });
  });

  test("tools that come with a system message are kept for the family", () => {
    const content = [{ type: "tool_addition", tool: { name: "g" } }];
    const out = decode({ ...request({}), messages: [user("hi"), { role: "system", content }] });
    expect(out.request.messages[1]).toEqual({ role: "system", content: [], extra: family({ content }) });
  });

  test("argument text that is no object comes back from where it was kept", () => {
    const replayed = (input: unknown) =>
      decode({
        ...request({}),
        messages: [
          user("hi"),
          assistant([{ type: "tool_use", id: "a", name: "f", input }]),
          user([result("a")]),
        ],
      }).request.messages[1]?.content[0];
    expect(replayed({ _raw: '{"a":' })).toMatchObject({ args: '{"a":' });
    expect(replayed({ _raw: '{"a":1}' })).toMatchObject({ args: '{"_raw":"{\\"a\\":1}"}' });
    expect(replayed("")).toMatchObject({ args: "{}" });
  });

  test("in a session results may answer calls that the server has", () => {
    const messages = [user([result("kept")])];
    expect(faultOf(messages, {}, { "x-session-id": "s" })).toBeNull();
    expect(faultOf(messages)).toBe(
      '400 messages.0.content.0 | messages.0.content.0: The `tool_result` answers "kept", but no `tool_use` before it has that id.',
    );
  });
});

describe("what is wrong", () => {
  const image = (media_type: string, data: string) => [
    user([{ type: "image", source: { type: "base64", media_type, data } }]),
  ];
  const sentences: [string, unknown[], string][] = [
    ["no messages", [], "messages: At least one message is required."],
    [
      "a message that is none",
      ["x"],
      "messages.0: A message is an object with `role` and `content`, got string.",
    ],
    [
      "an unknown role",
      [{ role: "robot", content: "x" }],
      'messages.0.role: The role is `user`, `assistant` or `system`, not "robot".',
    ],
    [
      "no role",
      [{ content: "x" }],
      "messages.0.role: The role is `user`, `assistant` or `system`, not absent.",
    ],
    [
      "content that is a number",
      [user(1)],
      "messages.0.content: A string or an array of content blocks is required, got number.",
    ],
    [
      "a block that is a string",
      [user(["x"])],
      "messages.0.content.0: A content block is an object with a `type`, got string.",
    ],
    [
      "a block without a type",
      [user([{ text: "x" }])],
      "messages.0.content.0.type: Every content block needs a type, such as `text`.",
    ],
    ["text that is none", [user([{ type: "text" }])], "messages.0.content.0.text: A string is required."],
    [
      "a call of the user's",
      [user([call("a")])],
      "messages.0.content.0.type: A `tool_use` block cannot stand in a user message.",
    ],
    [
      "a result of the assistant's",
      [assistant([result("a")])],
      "messages.0.content.0.type: A `tool_result` block cannot stand in an assistant message.",
    ],
    [
      "a call without its result",
      [user("x"), assistant([call("a")]), user("y")],
      'messages.1: The `tool_use` "a" has no `tool_result`: the user message directly after it has to bring one.',
    ],
    [
      "the same id in two calls",
      [user("x"), assistant([call("a"), call("a")]), user([result("a")])],
      'messages.1: The `tool_use` id "a" is used more than once. Ids have to be unique.',
    ],
    [
      "two results for one call",
      [user("x"), assistant([call("a")]), user([result("a"), result("a")])],
      'messages.2.content.1: The `tool_use` "a" has a `tool_result` already.',
    ],
    [
      "input that is an array",
      [user("x"), assistant([{ ...call("a"), input: [1] }]), user([result("a")])],
      "messages.1.content.0.input: An object is required, got an array.",
    ],
    [
      "an image that is not base64",
      image("image/png", "no image!"),
      "messages.0.content.0.source.data: The data is not valid base64.",
    ],
    [
      "an image that is text",
      image("image/png", btoa("just some words")),
      "messages.0.content.0.source.data: The data is not a PNG, JPEG, GIF or WebP image.",
    ],
    [
      "an image of another format",
      image("image/jpeg", PNG),
      "messages.0.content.0.source.data: The data is image/png, but the media type says image/jpeg.",
    ],
    [
      "an SVG",
      image("image/svg+xml", PNG),
      'messages.0.content.0.source.data: The media type "image/svg+xml" is not supported. Send image/png, image/jpeg, image/gif, image/webp.',
    ],
    [
      "a file URL",
      [user([{ type: "image", source: { type: "url", url: "file:///etc/passwd" } }])],
      "messages.0.content.0.source.url: An http or https URL is required.",
    ],
    [
      "an unknown source",
      [user([{ type: "document", source: { type: "ftp" } }])],
      "messages.0.content.0.source.type: The source of a document is `base64`, `text`, `url`, `content` or `file`.",
    ],
  ];
  test.each(sentences)("%s", (_, messages, sentence) => {
    const param = sentence.slice(0, sentence.indexOf(": "));
    // `messages: []` is the schema's to refuse; the decoder does not rely on it.
    const wire = { ...request({}), messages } as never;
    const context = { headers: new Headers(), query: new URLSearchParams() };
    expect(() => anthropicMessages.decode(wire, context)).toThrow(
      expect.objectContaining({ code: "invalid_request", status: 400, param, message: sentence }),
    );
  });

  test.each([
    [{ tools: [{ name: "f" }] }, "tools.0.input_schema: A JSON Schema object is required."],
    [{ tools: [{ input_schema: {} }] }, "tools.0.name: A string is required."],
    [
      { tools: ["f", "f"].map((name) => ({ name, input_schema: {} })) },
      'tools.1.name: Another tool is called "f" already.',
    ],
    [{ tool_choice: { type: "tool" } }, "tool_choice.name: The name of the tool is required."],
    [{ system: [{ type: "image" }] }, "system.0.type: System blocks are of type `text`."],
    [
      { thinking: { type: "enabled" } },
      "thinking.budget_tokens: A whole number is required when thinking is `enabled`.",
    ],
    [
      { output_config: { format: { type: "json_schema" } } },
      "output_config.format.schema: A JSON Schema object is required.",
    ],
  ])("%j", (fields, sentence) => {
    expect(faultOf([user("x")], fields)).toMatch(
      `400 ${sentence.slice(0, sentence.indexOf(":"))} | ${sentence}`,
    );
  });

  test("max_tokens has to be there, whole and positive, but not to count", () => {
    for (const max_tokens of [undefined, 0, 1.5, "10"])
      expect(messagesRequest.safeParse({ ...request({}), max_tokens }).error?.issues[0]?.path).toEqual([
        "max_tokens",
      ]);
    const { max_tokens: _, ...counted } = request({ tools: [{ name: "f", input_schema: {} }] });
    const context = { headers: new Headers(), query: new URLSearchParams() };
    const out = decodeCountTokens(countTokensRequest.parse(counted), context);
    expect(out.request.settings).toEqual({});
    expect(out.request.tools).toHaveLength(1);
  });

  test("a thread is refused so that the SDK sends the whole history", () => {
    for (const thread of [{ type: "create" }, { type: "continue", previous_message_id: "msg_1" }])
      expect(() => decode(request({ thread }))).toThrow(
        expect.objectContaining({
          status: 400,
          details: { error_code: "thread_unsupported_request", unsupported: ["thread"] },
        }),
      );
    expect(decode(request({ thread: null })).request.extra).toBeUndefined();
  });

  test("no JSON makes it fail in another way", () => {
    const block = fc.record(
      {
        type: fc.oneof(
          fc.constantFrom(
            "text",
            "image",
            "document",
            "tool_use",
            "tool_result",
            "thinking",
            "redacted_thinking",
          ),
          fc.string(),
        ),
        text: fc.jsonValue(),
        source: fc.oneof(
          fc.jsonValue(),
          fc.record({
            type: fc.constantFrom("base64", "url", "file", "text", "content"),
            data: fc.jsonValue(),
            media_type: fc.constantFrom("image/png", "text/plain"),
            content: fc.jsonValue(),
            url: fc.string(),
          }),
        ),
        id: fc.constantFrom("a", "b", ""),
        tool_use_id: fc.constantFrom("a", "b"),
        name: fc.string(),
        input: fc.jsonValue(),
        content: fc.jsonValue(),
        thinking: fc.jsonValue(),
        signature: fc.oneof(fc.jsonValue(), fc.constant("dragoman.gemini.x"), fc.constant("dragoman.")),
        data: fc.jsonValue(),
      },
      { requiredKeys: [] },
    );
    const message = fc.record({
      role: fc.constantFrom("user", "assistant", "system", "x"),
      content: fc.oneof(fc.string(), fc.array(block), fc.array(fc.jsonValue()), fc.jsonValue()),
    });
    const body = fc.record(
      {
        model: fc.string(),
        max_tokens: fc.integer(),
        messages: fc.oneof(fc.array(message), fc.array(fc.jsonValue()), fc.jsonValue()),
        system: fc.jsonValue(),
        tools: fc.oneof(
          fc.array(fc.record({ name: fc.string(), input_schema: fc.jsonValue() })),
          fc.jsonValue(),
        ),
        thinking: fc.jsonValue(),
        output_config: fc.jsonValue(),
        tool_choice: fc.jsonValue(),
      },
      { requiredKeys: ["model", "max_tokens", "messages"] },
    );
    fc.assert(
      fc.property(body, (wire) => {
        const parsed = messagesRequest.safeParse(wire);
        if (!parsed.success) return;
        try {
          JSON.stringify(decode(wire));
        } catch (error) {
          if (!(error instanceof AppError)) throw error;
          expect(error.status).toBe(400);
          expect(error.param).not.toBe("");
          expect(error.message.length).toBeGreaterThan(10);
        }
      }),
      { numRuns: 500 },
    );
  });
});

test("the request of a coding agent is no fault", () => {
  const betas = Array.from({ length: 9 }, (_, i) => `beta-${i}-2026-01-01`).join(",");
  const body = {
    model: "claude-opus-5",
    max_tokens: 128_000,
    stream: true,
    system: ["billing", "You are a coding agent.", "Rules"].map((text, i) => ({
      type: "text",
      text,
      ...(i > 0 ? { cache_control: { type: "ephemeral", ttl: "1h" } } : {}),
    })),
    thinking: { type: "adaptive", display: "omitted" },
    output_config: {
      effort: "high",
      format: {
        type: "json_schema",
        schema: { type: "object", properties: { t: { type: "string" } }, additionalProperties: false },
      },
    },
    context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
    metadata: { user_id: '{"device_id":"x"}' },
    tools: Array.from({ length: 12 }, (_, i) => ({
      name: `Tool${i}`,
      description: "does it",
      input_schema: {
        $schema: "https://json-schema.org/draft/2020-12/schema",
        type: "object",
        properties: {},
      },
      ...(i === 3 ? { type: "custom" } : {}),
      ...(i === 4 ? { defer_loading: true } : {}),
      ...(i === 5 ? { eager_input_streaming: true } : {}),
    })),
    messages: [
      user([
        { type: "text", text: "<system-reminder>x</system-reminder>" },
        { type: "text", text: "go" },
      ]),
      assistant([
        { type: "thinking", thinking: "", signature: "EqQBCg==" },
        { type: "tool_use", id: "toolu_1", name: "Tool1", input: { path: "a" } },
      ]),
      user([{ ...result("toolu_1"), cache_control: { type: "ephemeral" } }]),
      { role: "system", content: [{ type: "text", text: "The date has changed." }] },
      user("and?"),
    ],
  };
  const out = decode(body, { "anthropic-beta": betas, "anthropic-version": "2023-06-01" }, "beta=true");
  expect(out.request.messages.map((message) => message.role)).toEqual([
    "user",
    "assistant",
    "tool",
    "system",
    "user",
  ]);
  expect(out.request.reasoning).toEqual({ adaptive: true, display: "omitted", effort: "high" });
  expect(out.request.headers?.fields["anthropic-beta"]).toBe(betas);
  expect(out.request.messages[1]?.content[0]).toEqual({ type: "reasoning", text: "", seal: "EqQBCg==" });
});

test("both schemas describe themselves", () => {
  const schema = z.toJSONSchema(messagesRequest) as {
    required: string[];
    properties: Record<string, unknown>;
  };
  expect(schema.required.sort()).toEqual(["max_tokens", "messages", "model"]);
  expect(schema.properties.messages).toMatchObject({ type: "array", items: { required: ["role"] } });
  expect(z.toJSONSchema(countTokensRequest).required).toEqual(["model", "messages"]);
});

test("the SDK's tool runner goes on without a thread, with the whole history", async () => {
  const meta = { model: "m", requestId: "req_1", createdAt: new Date(0), choices: 1, agentEvents: false };
  const usage = { input: 1, output: 1 };
  const open: AgentEvent = { type: "run-open", runId: "run_1", provider: "openai", model: "m" };
  const calling: AgentEvent[] = [
    open,
    {
      type: "model",
      step: 0,
      event: { type: "part-open", index: 0, part: { kind: "call", id: "call_1", name: "f" } },
    },
    { type: "model", step: 0, event: { type: "part-close", index: 0 } },
    { type: "run-close", outcome: "handed-back", stop: "tool-calls", usage },
  ];
  const saying: AgentEvent[] = [
    open,
    { type: "model", step: 0, event: { type: "part-open", index: 0, part: { kind: "text" } } },
    { type: "model", step: 0, event: { type: "part-delta", index: 0, delta: "done" } },
    { type: "model", step: 0, event: { type: "part-close", index: 0 } },
    { type: "run-close", outcome: "completed", stop: "stop", usage },
  ];
  const seen: { thread: unknown; roles: string[] }[] = [];
  const door = async (_: unknown, init?: RequestInit) => {
    const body = JSON.parse(String(init?.body));
    let events: AgentEvent[];
    try {
      const { messages } = decode(body).request;
      seen.push({ thread: null, roles: messages.map((message) => message.role) });
      events = messages.at(-1)?.role === "tool" ? saying : calling;
    } catch (error) {
      seen.push({ thread: body.thread?.type, roles: [] });
      const reply = anthropicMessages.fault(toFault(error), "req_1");
      return Response.json(reply.body, { status: reply.status, headers: reply.headers });
    }
    const collector = anthropicMessages.collector(meta);
    for (const event of events) collector.push(event);
    return Response.json(collector.body());
  };
  const client = new Anthropic({ apiKey: "k", baseURL: "http://door.test", maxRetries: 0, fetch: door });
  const runner = client.beta.messages.toolRunner({
    model: "m",
    max_tokens: 10,
    messages: [{ role: "user", content: "go" }],
    tools: [
      {
        name: "f",
        input_schema: { type: "object" },
        parse: (input) => input,
        run: async () => "ok",
      },
    ],
  });
  const last = await runner.runUntilDone();
  expect(last.content).toMatchObject([{ type: "text", text: "done" }]);
  expect(seen).toEqual([
    { thread: "create", roles: [] },
    { thread: null, roles: ["user"] },
    { thread: null, roles: ["user", "assistant", "tool"] },
  ]);
});
