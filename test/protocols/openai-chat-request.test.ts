import fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import type { Message } from "../../src/core/message.ts";
import { AppError } from "../../src/errors.ts";
import type { Decoded } from "../../src/protocols/codec.ts";
import { openaiChat } from "../../src/protocols/openai-chat.ts";
import { parseWire } from "../../src/protocols/problem.ts";

const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const JPEG = "/9j/4AAQSkZJRgABAQEASABIAAD/";
const family = "openai-chat" as const;

function decode(body: unknown, headers: Record<string, string> = {}): Decoded {
  return openaiChat.decode(parseWire(openaiChat.request, body), {
    headers: new Headers(headers),
    query: new URLSearchParams(),
  });
}

function failure(body: unknown, headers?: Record<string, string>): AppError {
  try {
    decode(body, headers);
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
  throw new Error("it was accepted");
}

const hello = { role: "user", content: "Hello" };
const ask = (fields: object) => ({ model: "m", messages: [hello], ...fields });
const say = (...messages: unknown[]) => ({ model: "m", messages });
const messagesOf = (...messages: unknown[]): Message[] => decode(say(...messages)).request.messages;
const call = (id: string, name = "f", args = "{}") => ({
  id,
  type: "function",
  function: { name, arguments: args },
});

describe("a request", () => {
  test("in its smallest form", () => {
    expect(decode(say(hello))).toEqual({
      request: {
        model: "m",
        system: [],
        messages: [{ role: "user", content: [{ type: "text", text: "Hello" }] }],
        tools: [],
        toolChoice: undefined,
        parallelTools: undefined,
        settings: {},
      },
      stream: false,
      choices: 1,
      carriesSeals: false,
      echo: { includeUsage: false, legacyFunctions: false },
    });
  });

  test("with every field", () => {
    const parameters = {
      $schema: "http://json-schema.org/draft-07/schema#",
      type: "object",
      $defs: { a: {} },
    };
    const decoded = decode({
      model: "gpt-x",
      messages: [hello],
      stream: true,
      stream_options: { include_usage: true, include_obfuscation: false },
      n: 3,
      max_completion_tokens: 100,
      temperature: 0.5,
      top_p: 0.9,
      top_k: 40,
      stop: ["a", "b"],
      seed: 7,
      presence_penalty: 0.1,
      frequency_penalty: 0.2,
      logit_bias: { "50256": -100 },
      logprobs: true,
      top_logprobs: 2,
      response_format: {
        type: "json_schema",
        json_schema: { name: "answer", description: "d", schema: parameters, strict: true },
      },
      reasoning_effort: "high",
      tools: [
        { type: "function", function: { name: "f", description: "does", parameters, strict: true } },
        { type: "custom", custom: { name: "c", description: "free", format: { type: "text" } } },
        { type: "browser_search", depth: 2 },
      ],
      tool_choice: { type: "function", function: { name: "f" } },
      parallel_tool_calls: false,
      user: "u1",
      safety_identifier: "s1",
      modalities: ["text"],
      metadata: { a: "b" },
      store: false,
      service_tier: "flex",
      verbosity: "low",
      prediction: { type: "content", content: "x" },
      web_search_options: {},
      prompt_cache_key: "k",
      invented_tomorrow: [1],
    });
    expect(decoded).toEqual({
      request: {
        model: "gpt-x",
        system: [],
        messages: [{ role: "user", content: [{ type: "text", text: "Hello" }] }],
        tools: [
          { kind: "function", name: "f", description: "does", parameters, strict: true },
          { kind: "freeform", name: "c", description: "free", format: { type: "text" } },
          {
            kind: "builtin",
            family,
            name: "browser_search",
            entry: { type: "browser_search", depth: 2 },
          },
        ],
        toolChoice: { type: "tool", name: "f" },
        parallelTools: false,
        format: { type: "schema", name: "answer", description: "d", schema: parameters, strict: true },
        reasoning: { effort: "high" },
        settings: {
          maxTokens: 100,
          temperature: 0.5,
          topP: 0.9,
          topK: 40,
          stop: ["a", "b"],
          seed: 7,
          presencePenalty: 0.1,
          frequencyPenalty: 0.2,
          logitBias: { "50256": -100 },
          logprobs: { top: 2 },
        },
        user: "u1",
        extra: {
          family,
          fields: {
            max_completion_tokens: 100,
            safety_identifier: "s1",
            modalities: ["text"],
            metadata: { a: "b" },
            store: false,
            service_tier: "flex",
            verbosity: "low",
            prediction: { type: "content", content: "x" },
            web_search_options: {},
            prompt_cache_key: "k",
            invented_tomorrow: [1],
          },
        },
      },
      stream: true,
      choices: 3,
      carriesSeals: false,
      echo: { includeUsage: true, legacyFunctions: false },
    });
  });

  test("with null for every optional field is the request without them", () => {
    const optional = Object.keys(
      (z.toJSONSchema(openaiChat.request) as { properties: object }).properties,
    ).filter((name) => name !== "model" && name !== "messages");
    const nulls = Object.fromEntries([...optional, "metadata", "store"].map((name) => [name, null]));
    expect(optional.length).toBeGreaterThan(20);
    expect(decode({ ...nulls, ...say(hello) })).toEqual(decode(say(hello)));
  });

  test("max_tokens alone, one stop word, the other formats", () => {
    expect(decode(ask({ max_tokens: 5, stop: "." })).request.settings).toEqual({ maxTokens: 5, stop: ["."] });
    expect(decode(ask({ stop: [] })).request.settings).toEqual({});
    expect(decode(ask({ response_format: { type: "text" } })).request.format).toEqual({ type: "text" });
    expect(decode(ask({ response_format: { type: "json_object" } })).request.format).toEqual({
      type: "json",
    });
    const withSchema = { type: "json_object", schema: { type: "object" } };
    expect(decode(ask({ response_format: withSchema })).request).toMatchObject({
      format: { type: "json" },
      extra: { family, fields: { response_format: withSchema } },
    });
    expect(decode(ask({ safety_identifier: "s" })).request.user).toBe("s");
  });
});

describe("messages", () => {
  test("system and developer at the start are the system prompt, later ones stay where they are", () => {
    const { request } = decode(
      say(
        { role: "system", content: "one" },
        {
          role: "developer",
          content: [
            { type: "text", text: "two" },
            { type: "text", text: "three" },
          ],
        },
        hello,
        { role: "developer", content: "four" },
        { role: "system", content: "five", name: "n" },
      ),
    );
    expect(request.system).toEqual([
      { type: "text", text: "one" },
      { type: "text", text: "two" },
      { type: "text", text: "three" },
    ]);
    expect(request.messages).toEqual([
      { role: "user", content: [{ type: "text", text: "Hello" }] },
      { role: "system", content: [{ type: "text", text: "four" }], developer: true },
      {
        role: "system",
        content: [{ type: "text", text: "five" }],
        extra: { family, fields: { name: "n" } },
      },
    ]);
  });

  test("a user message in all kinds of parts", () => {
    expect(
      messagesOf({
        role: "user",
        name: "ann",
        content: [
          { type: "text", text: "look", cache_control: { type: "ephemeral" } },
          { type: "image_url", image_url: { url: `data:image/png;base64,${PNG}`, detail: "low" } },
          { type: "image_url", image_url: { url: "https://example.com/a.png" } },
          { type: "input_audio", input_audio: { data: "AAAA", format: "mp3" } },
          {
            type: "file",
            file: { file_data: "data:application/pdf;base64,JVBERi0=", filename: "a.pdf" },
          },
          { type: "file", file: { file_id: "file-1" } },
          { type: "video_url", video_url: { url: "https://example.com/a.mp4" } },
        ],
      }),
    ).toEqual([
      {
        role: "user",
        name: "ann",
        content: [
          {
            type: "text",
            text: "look",
            extra: { family, fields: { cache_control: { type: "ephemeral" } } },
          },
          { type: "image", source: { kind: "data", mediaType: "image/png", data: PNG }, detail: "low" },
          { type: "image", source: { kind: "url", url: "https://example.com/a.png" } },
          {
            type: "file",
            source: { kind: "data", mediaType: "audio/mpeg", data: "AAAA" },
            mediaType: "audio/mpeg",
          },
          {
            type: "file",
            source: { kind: "data", mediaType: "application/pdf", data: "JVBERi0=" },
            mediaType: "application/pdf",
            name: "a.pdf",
          },
          {
            type: "file",
            source: { kind: "id", family, id: "file-1" },
            mediaType: "application/octet-stream",
          },
          {
            type: "raw",
            family,
            block: { type: "video_url", video_url: { url: "https://example.com/a.mp4" } },
          },
        ],
      },
    ]);
  });

  test.each([
    ["text in a data URL", { file_data: "data:text/plain,a%20b" }, "text/plain", "YSBi"],
    [
      "base64 without a data URL",
      { file_data: "JVBERi0=", filename: "x.PDF" },
      "application/pdf",
      "JVBERi0=",
    ],
    [
      "base64 without padding, in lines",
      { file_data: "JVBE\r\nRi0" },
      "application/octet-stream",
      "JVBERi0=",
    ],
  ])("a file as %s", (_, file, mediaType, data) => {
    const [message] = messagesOf({ role: "user", content: [{ type: "file", file }] });
    expect(message?.content[0]).toMatchObject({ source: { kind: "data", mediaType, data }, mediaType });
  });

  test("an image's bytes decide over its label", () => {
    const [message] = messagesOf({
      role: "user",
      content: [{ type: "image_url", image_url: { url: `DATA:image/png;charset=x;base64,${JPEG}` } }],
    });
    expect(message?.content[0]).toEqual({
      type: "image",
      source: { kind: "data", mediaType: "image/jpeg", data: JPEG },
    });
  });

  test("a nested object with a field of its own goes along whole", () => {
    const image_url = { url: "https://example.com/a.png", ratio: 2 };
    const [message] = messagesOf({ role: "user", content: [{ type: "image_url", image_url }] });
    expect(message?.content[0]).toEqual({
      type: "image",
      source: { kind: "url", url: image_url.url },
      extra: { family, fields: { image_url } },
    });
  });

  test("assistant messages as clients replay them", () => {
    expect(
      messagesOf(
        hello,
        { role: "assistant", content: "Hi", refusal: null, annotations: [], audio: null, parsed: null },
        {
          role: "assistant",
          content: null,
          refusal: null,
          reasoning_content: "hm",
          tool_calls: [
            { index: 0, ...call("c1", "look", '{"a":1}'), extra_content: { google: { s: "x" } } },
            { id: "c2", type: "custom", custom: { name: "free", input: "go" } },
          ],
        },
        { role: "tool", tool_call_id: "c1", name: "look", content: "seen" },
        { role: "tool", tool_call_id: "c2", content: [{ type: "text", text: "went" }] },
        { role: "assistant", content: null, refusal: "No." },
        {
          role: "assistant",
          name: "bob",
          content: [
            { type: "text", text: "I" },
            { type: "refusal", refusal: "won't" },
          ],
          reasoning: "why",
          audio: { id: "audio_1" },
        },
      ),
    ).toEqual([
      { role: "user", content: [{ type: "text", text: "Hello" }] },
      { role: "assistant", content: [{ type: "text", text: "Hi" }] },
      {
        role: "assistant",
        content: [
          { type: "reasoning", text: "hm" },
          {
            type: "call",
            id: "c1",
            name: "look",
            args: '{"a":1}',
            extra: { family, fields: { extra_content: { google: { s: "x" } } } },
          },
          { type: "call", id: "c2", name: "free", args: "go", freeform: true },
        ],
      },
      { role: "tool", callId: "c1", name: "look", content: [{ type: "text", text: "seen" }] },
      { role: "tool", callId: "c2", content: [{ type: "text", text: "went" }] },
      { role: "assistant", content: [{ type: "refusal", text: "No." }] },
      {
        role: "assistant",
        name: "bob",
        content: [
          { type: "reasoning", text: "why" },
          { type: "text", text: "I" },
          { type: "refusal", text: "won't" },
        ],
        extra: { family, fields: { audio: { id: "audio_1" } } },
      },
    ]);
  });

  test("an empty text says nothing beside calls, and stays where it is all", () => {
    const messages = messagesOf(
      { role: "assistant", content: "", tool_calls: [call("a")] },
      { role: "tool", tool_call_id: "a", content: "" },
      { role: "assistant", content: "", tool_calls: [] },
    );
    expect(messages.map((message) => message.content.map((part) => part.type))).toEqual([
      ["call"],
      ["text"],
      ["text"],
    ]);
  });

  test("the deprecated functions become tools and calls", () => {
    const decoded = decode({
      model: "m",
      messages: [
        hello,
        { role: "assistant", content: null, function_call: { name: "f", arguments: "{}" } },
        { role: "function", name: "f", content: "1" },
        { role: "assistant", content: null, function_call: { name: "f", arguments: "[]" } },
        { role: "function", name: "f", content: null },
      ],
      functions: [{ name: "f", parameters: { type: "object" }, hint: 1 }],
      function_call: { name: "f" },
    });
    expect(decoded.echo).toEqual({ includeUsage: false, legacyFunctions: true });
    expect(decoded.request).toMatchObject({
      tools: [
        {
          kind: "function",
          name: "f",
          parameters: { type: "object" },
          extra: {
            family,
            fields: { function: { name: "f", parameters: { type: "object" }, hint: 1 } },
          },
        },
      ],
      toolChoice: { type: "tool", name: "f" },
      parallelTools: false,
    });
    expect(decoded.request.messages.slice(1)).toEqual([
      { role: "assistant", content: [{ type: "call", id: "call_function_0", name: "f", args: "{}" }] },
      { role: "tool", callId: "call_function_0", name: "f", content: [{ type: "text", text: "1" }] },
      { role: "assistant", content: [{ type: "call", id: "call_function_1", name: "f", args: "[]" }] },
      { role: "tool", callId: "call_function_1", name: "f", content: [{ type: "text", text: "" }] },
    ]);
  });

  test("in a session, results may answer calls that only the server has", () => {
    const body = say({ role: "tool", tool_call_id: "earlier", content: "42" });
    expect(failure(body).param).toBe("messages[0].tool_call_id");
    expect(decode(body, { "x-session-id": "new" }).request.messages).toEqual([
      { role: "tool", callId: "earlier", content: [{ type: "text", text: "42" }] },
    ]);
  });
});

describe("tool choice", () => {
  const tools = [
    { type: "function", function: { name: "a" } },
    { type: "function", function: { name: "b" } },
    { type: "custom", custom: { name: "c" } },
    { type: "browser_search" },
  ];
  const names = (decoded: Decoded) => decoded.request.tools.map((tool) => tool.name);

  test.each(["auto", "none", "required"])("%s", (word) => {
    expect(decode(ask({ tools, tool_choice: word })).request.toolChoice).toEqual({ type: word });
  });

  test("a named custom tool", () => {
    const tool_choice = { type: "custom", custom: { name: "c" } };
    expect(decode(ask({ tools, tool_choice })).request.toolChoice).toEqual({ type: "tool", name: "c" });
  });

  test("allowed tools leave the others out", () => {
    const allowed_tools = {
      mode: "required",
      tools: [
        { type: "function", function: { name: "b" } },
        { type: "custom", custom: { name: "c" } },
        { type: "browser_search" },
      ],
    };
    const decoded = decode(ask({ tools, tool_choice: { type: "allowed_tools", allowed_tools } }));
    expect(names(decoded)).toEqual(["b", "c", "browser_search"]);
    expect(decoded.request.toolChoice).toEqual({ type: "required" });
  });
});

const image = (url: string) => say({ role: "user", content: [{ type: "image_url", image_url: { url } }] });
const file = (value: object) => say({ role: "user", content: [{ type: "file", file: value }] });
const tool = (name: string) => ({ type: "function", function: { name } });
const calling = (...ids: string[]) => ({ role: "assistant", tool_calls: ids.map((id) => call(id)) });
const result = (id: string) => ({ role: "tool", tool_call_id: id, content: "ok" });

test.each<[string, unknown, string, string]>([
  ["no messages", ask({ messages: [] }), "messages", "at least 1 entry"],
  ["no model", { messages: [hello] }, "model", "model is missing"],
  ["an unknown role", say({ role: "robot", content: "x" }), "messages[0].role", '"robot"'],
  ["no content", say({ role: "user" }), "messages[0].content", "missing"],
  ["null content", say({ role: "user", content: null }), "messages[0].content", "null"],
  [
    "an assistant who says nothing",
    say({ role: "assistant", content: null }),
    "messages[0].content",
    "refusal",
  ],
  ["empty parts", say({ role: "user", content: [] }), "messages[0].content", "at least 1 entry"],
  [
    "a wrong type deep inside",
    say(hello, { role: "user", content: [{ type: "image_url", image_url: { url: 3 } }] }),
    "messages[1].content[0].image_url.url",
    "a string, but it is 3",
  ],
  [
    "an image in a system message",
    say({ role: "system", content: [{ type: "image_url", image_url: { url: "x" } }] }),
    "messages[0].content[0].type",
    '"text"',
  ],
  [
    "a data URL without base64",
    image("data:image/png,abc"),
    "messages[0].content[0].image_url.url",
    "data:image/png;base64",
  ],
  ["a data URL without a comma", image("data:image/png"), "messages[0].content[0].image_url.url", "base64"],
  [
    "an image that is a PDF",
    image("data:application/pdf;base64,AAAA"),
    "messages[0].content[0].image_url.url",
    "pdf",
  ],
  [
    "an image that is none",
    image("data:image/png;base64,aGVsbG8gd29ybGQh"),
    "messages[0].content[0].image_url.url",
    "not an image",
  ],
  [
    "an SVG",
    image("data:image/svg+xml;base64,PHN2Zz48L3N2Zz4="),
    "messages[0].content[0].image_url.url",
    "not an image",
  ],
  [
    "an image in broken base64",
    image("data:image/png;base64,iVBO*"),
    "messages[0].content[0].image_url.url",
    "not valid base64",
  ],
  ["an empty image", image("data:image/png;base64,"), "messages[0].content[0].image_url.url", "empty"],
  ["an image by path", image("file:///etc/passwd"), "messages[0].content[0].image_url.url", "http(s) URL"],
  ["a URL that is none", image("https://"), "messages[0].content[0].image_url.url", "http(s) URL"],
  ["an empty file", file({}), "messages[0].content[0].file", "file_id"],
  [
    "a broken file",
    file({ file_data: "data:text/plain,%E0%A4" }),
    "messages[0].content[0].file.file_data",
    "well-formed",
  ],
  [
    "broken audio",
    say({ role: "user", content: [{ type: "input_audio", input_audio: { data: "%", format: "wav" } }] }),
    "messages[0].content[0].input_audio.data",
    "not valid base64",
  ],
  ["a result without its call", say(hello, result("x")), "messages[1].tool_call_id", '"x"'],
  [
    "a call without its result",
    say({ role: "system", content: "s" }, hello, calling("a", "b"), result("a"), hello),
    "messages[2].tool_calls",
    '"b"',
  ],
  ["two results", say(calling("a"), result("a"), result("a")), "messages[2].tool_call_id", "already"],
  ["a call id twice", say(calling("a", "a"), result("a")), "messages[0].tool_calls", "second time"],
  [
    "a function's result without its call",
    say(hello, { role: "function", name: "f", content: "" }),
    "messages[1]",
    "function_call",
  ],
  [
    "a function call without its result",
    say({ role: "assistant", function_call: { name: "f", arguments: "" } }, hello),
    "messages[0].function_call",
    "no result",
  ],
  [
    "arguments as an object",
    say({
      role: "assistant",
      tool_calls: [{ id: "a", type: "function", function: { name: "f", arguments: {} } }],
    }),
    "messages[0].tool_calls[0].function.arguments",
    "a string",
  ],
  ["n of 0", ask({ n: 0 }), "n", "at least 1"],
  ["n of 129", ask({ n: 129 }), "n", "at most 128"],
  ["a temperature in words", ask({ temperature: "hot" }), "temperature", "a number"],
  ["two output limits", ask({ max_tokens: 1, max_completion_tokens: 2 }), "max_tokens", "differ"],
  ["top_logprobs alone", ask({ top_logprobs: 3 }), "top_logprobs", "logprobs"],
  ["a tool with a bad name", ask({ tools: [tool("a b")] }), "tools[0].function.name", '"a b"'],
  ["a tool without a name", ask({ tools: [tool("")] }), "tools[0].function.name", '""'],
  ["two tools of one name", ask({ tools: [tool("a"), tool("a")] }), "tools[1].function.name", "another tool"],
  [
    "a tool in another interface's form",
    ask({ tools: [{ type: "function", name: "a" }] }),
    "tools[0].function",
    "missing",
  ],
  ["tools and functions", ask({ tools: [tool("a")], functions: [{ name: "b" }] }), "functions", "tools"],
  ["a choice that is none", ask({ tools: [tool("a")], tool_choice: "any" }), "tool_choice", '"any"'],
  ["a choice without tools", ask({ tool_choice: "required" }), "tool_choice", "no tools"],
  [
    "a choice of a tool that is not there",
    ask({ tools: [tool("a")], tool_choice: { type: "function", function: { name: "b" } } }),
    "tool_choice.function.name",
    '"b"',
  ],
  [
    "allowed tools that are not there",
    ask({
      tools: [tool("a")],
      tool_choice: { type: "allowed_tools", allowed_tools: { mode: "auto", tools: [tool("b")] } },
    }),
    "tool_choice.allowed_tools.tools[0]",
    '"b"',
  ],
  [
    "a function that is not there",
    ask({ functions: [{ name: "a" }], function_call: { name: "b" } }),
    "function_call.name",
    '"b"',
  ],
  ["an unknown format", ask({ response_format: { type: "yaml" } }), "response_format.type", '"yaml"'],
])("%s is refused", (_, body, param, part) => {
  const { code, status, param: at, message } = failure(body);
  expect({ code, status, at }).toEqual({ code: "invalid_request", status: 400, at: param });
  expect(message).toContain(param);
  expect(message).toContain(part);
});

test("spoken replies are refused by name", () => {
  const { code, status, param, message } = failure(ask({ modalities: ["text", "audio"] }));
  expect({ code, status, param }).toEqual({ code: "unsupported_field", status: 400, param: "modalities" });
  expect(message).toContain('"audio"');
});

/** Bodies that are nearly right: every field holds a value of any kind, or one of its own. */
const anything = fc.oneof(
  { depthSize: "small" },
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom<unknown>("user", "tool", "function", "auto", "text", 1, true, null, [], {}),
);
const part = fc.record(
  {
    type: fc.oneof(fc.constantFrom("text", "image_url", "input_audio", "file", "refusal", "other"), anything),
    text: fc.oneof(fc.string(), anything),
    image_url: fc.oneof(
      fc.record({
        url: fc.oneof(
          fc.constantFrom(
            "https://e.x/a",
            "data:image/png;base64,AA",
            "data:",
            `data:image/png;base64,${PNG}`,
          ),
          fc.string(),
          anything,
        ),
      }),
      anything,
    ),
    input_audio: fc.oneof(
      fc.record({ data: fc.oneof(fc.base64String(), anything), format: anything }),
      anything,
    ),
    file: fc.oneof(fc.record({ file_data: fc.oneof(fc.base64String(), fc.string(), anything) }), anything),
    refusal: anything,
  },
  { requiredKeys: [] },
);
const ids = fc.constantFrom("a", "b");
const message = fc.record(
  {
    role: fc.oneof(fc.constantFrom("system", "developer", "user", "assistant", "tool", "function"), anything),
    content: fc.oneof(fc.string(), fc.array(part, { maxLength: 2 }), anything),
    name: anything,
    tool_call_id: fc.oneof(ids, anything),
    tool_calls: fc.oneof(
      fc.array(
        fc.record({
          id: ids,
          type: fc.constantFrom("function", "custom"),
          function: fc.constant({ name: "f", arguments: "" }),
        }),
        { maxLength: 2 },
      ),
      anything,
    ),
    function_call: fc.oneof(fc.constant({ name: "f", arguments: "" }), anything),
    refusal: anything,
    reasoning: anything,
  },
  { requiredKeys: ["role"] },
);
const wireTool = fc.oneof(
  fc.record({
    type: fc.constantFrom("function", "custom", "other"),
    function: fc.oneof(fc.record({ name: fc.oneof(ids, anything), parameters: anything }), anything),
    custom: fc.oneof(fc.record({ name: fc.oneof(ids, anything) }), anything),
  }),
  anything,
);
const body = fc.oneof(
  anything,
  fc.record(
    {
      model: fc.oneof(fc.constant("m"), anything),
      messages: fc.oneof(fc.array(message, { minLength: 1, maxLength: 3 }), anything),
      tools: fc.oneof(fc.array(wireTool, { maxLength: 3 }), anything),
      tool_choice: anything,
      functions: anything,
      function_call: anything,
      response_format: anything,
      stop: anything,
      n: anything,
      top_logprobs: anything,
      modalities: anything,
      other: anything,
    },
    { requiredKeys: ["model", "messages"] },
  ),
);

test("whatever is sent is decoded or refused with a sentence", () => {
  let accepted = 0;
  const users = fc.record({
    model: fc.constant("m"),
    messages: fc.array(
      fc.record({
        role: fc.constant("user"),
        content: fc.oneof(fc.string(), fc.array(part, { minLength: 1 })),
      }),
      { minLength: 1, maxLength: 3 },
    ),
  });
  fc.assert(
    fc.property(fc.oneof(body, users), (value) => {
      try {
        const { request } = decode(value);
        expect(request.messages.length + request.system.length).toBeGreaterThan(0);
        accepted++;
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        expect(error.status).toBe(400);
        expect(error.message.length).toBeGreaterThan(10);
      }
    }),
    { numRuns: 3000 },
  );
  expect(accepted).toBeGreaterThan(0);
});
