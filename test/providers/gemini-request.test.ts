import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Message } from "../../src/core/message.ts";
import type { ModelRequest, ToolSpec } from "../../src/core/model.ts";
import { AppError } from "../../src/errors.ts";
import { createGeminiAdapter } from "../../src/providers/gemini.ts";
import { generationOf } from "../../src/providers/gemini-model.ts";
import { SIGNATURE, TEXT } from "./gemini-recordings.ts";
import { replyOf, request } from "./model-stream.ts";

/** The JSON body that goes out for a request. */
async function body(part: Partial<ModelRequest>): Promise<Record<string, unknown>> {
  let sent: unknown;
  const adapter = createGeminiAdapter({
    key: "AIza-test",
    limits: { firstByteMs: 5_000, idleMs: 5_000, retries: 0 },
    fetch: async (_, init) => {
      sent = JSON.parse(String(init?.body));
      return new Response(TEXT, { headers: { "content-type": "text/event-stream" } });
    },
  });
  const events = adapter.stream(
    request({ model: "gemini-2.5-flash", ...part }),
    new AbortController().signal,
  );
  const { end } = await replyOf(events);
  if (end.type === "failed") throw new AppError(end.fault.code, end.fault.message, end.fault);
  return sent as Record<string, unknown>;
}
const contents = async (messages: Message[], model = "gemini-2.5-flash") =>
  (await body({ messages, model })).contents as { role: string; parts: Record<string, unknown>[] }[];
const config = async (part: Partial<ModelRequest>) =>
  ((await body(part)).generationConfig ?? {}) as Record<string, unknown>;

const user = (text: string): Message => ({ role: "user", content: [{ type: "text", text }] });
const assistant = (text: string): Message => ({ role: "assistant", content: [{ type: "text", text }] });
const call = (id: string, name: string, args: string, seal?: string) =>
  ({ type: "call", id, name, args, seal }) as const;
const result = (callId: string, text: string, name?: string): Message => ({
  role: "tool",
  callId,
  name,
  content: [{ type: "text", text }],
});

const NOW: ToolSpec = { kind: "function", name: "now" };

test("a whole request", async () => {
  expect(
    await body({
      model: "gemini-3-flash",
      system: [
        { type: "text", text: "You are terse." },
        { type: "text", text: "" },
        { type: "text", text: "You are kind." },
      ],
      messages: [user("Weather?")],
      tools: [
        {
          kind: "function",
          name: "get_weather",
          description: "The weather in a city.",
          parameters: {
            $schema: "http://json-schema.org/draft-07/schema#",
            type: "object",
            properties: { city: { type: "string" } },
            required: ["city"],
          },
        },
        NOW,
        { kind: "builtin", family: "gemini", name: "googleSearch", entry: { googleSearch: {} } },
      ],
      toolChoice: { type: "tool", name: "get_weather" },
      format: { type: "schema", name: "x", schema: { type: "object", properties: { a: { const: 1 } } } },
      reasoning: { effort: "medium" },
      settings: {
        maxTokens: 100,
        temperature: 0,
        topP: 0.9,
        topK: 40,
        stop: ["END"],
        seed: 7,
        presencePenalty: 0.1,
        frequencyPenalty: 0.2,
      },
    }),
  ).toEqual({
    systemInstruction: { parts: [{ text: "You are terse." }, { text: "You are kind." }] },
    contents: [{ role: "user", parts: [{ text: "Weather?" }] }],
    tools: [
      {
        functionDeclarations: [
          {
            name: "get_weather",
            description: "The weather in a city.",
            parametersJsonSchema: {
              type: "object",
              properties: { city: { type: "string" } },
              required: ["city"],
            },
          },
          { name: "now" },
        ],
      },
      { googleSearch: {} },
    ],
    toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["get_weather"] } },
    generationConfig: {
      maxOutputTokens: 100,
      temperature: 0,
      topP: 0.9,
      topK: 40,
      stopSequences: ["END"],
      seed: 7,
      presencePenalty: 0.1,
      frequencyPenalty: 0.2,
      responseMimeType: "application/json",
      responseJsonSchema: { type: "object", properties: { a: { enum: [1] } } },
      thinkingConfig: { thinkingLevel: "MEDIUM", includeThoughts: true },
    },
  });
});

test("nothing is sent that was not asked for", async () => {
  expect(await body({})).toEqual({
    contents: [{ role: "user", parts: [{ text: "hi" }] }],
    generationConfig: {},
  });
});

test("fields and headers of the same family go along, and those of others stay", async () => {
  const fields = { cachedContent: "cachedContents/x", generationConfig: { mediaResolution: "LOW" } };
  expect(await body({ extra: { family: "gemini", fields }, settings: { topK: 1 } })).toMatchObject({
    cachedContent: "cachedContents/x",
    generationConfig: { topK: 1, mediaResolution: "LOW" },
  });
  expect(await body({ extra: { family: "openai-chat", fields } })).not.toHaveProperty("cachedContent");
});

describe("contents", () => {
  test("neighbours of one role become one content, empty texts none", async () => {
    expect(
      await contents([user("a"), user("b"), assistant("c"), assistant(""), assistant("d"), user("")]),
    ).toEqual([
      { role: "user", parts: [{ text: "a" }, { text: "b" }] },
      { role: "model", parts: [{ text: "c" }, { text: "d" }] },
    ]);
  });

  test("an instruction in mid-conversation stays at its place, marked", async () => {
    const note: Message = { role: "system", content: [{ type: "text", text: "Be quick now." }] };
    expect(await contents([user("a"), assistant("b"), note, user("c")])).toEqual([
      { role: "user", parts: [{ text: "a" }] },
      { role: "model", parts: [{ text: "b" }] },
      { role: "user", parts: [{ text: "<system>\nBe quick now.\n</system>" }, { text: "c" }] },
    ]);
  });

  test("a history that begins with the model gets a beginning", async () => {
    expect((await contents([assistant("b"), user("c")])).map(({ role }) => role)).toEqual([
      "user",
      "model",
      "user",
    ]);
  });

  test("instructions alone are the prompt; nothing at all is refused", async () => {
    const sent = await body({ system: [{ type: "text", text: "Say hi." }], messages: [] });
    expect(sent).toMatchObject({ contents: [{ role: "user", parts: [{ text: "Say hi." }] }] });
    expect(sent).not.toHaveProperty("systemInstruction");
    await expect(body({ messages: [user("")] })).rejects.toMatchObject({
      code: "invalid_request",
      param: "messages",
    });
  });

  test("parallel calls and their results, which find their names", async () => {
    expect(
      await contents([
        user("go"),
        {
          role: "assistant",
          content: [
            { type: "text", text: "I look." },
            call("c1", "f", '{"a":1}', SIGNATURE),
            call("c2", "g", ""),
          ],
        },
        result("c1", "one"),
        { ...result("c2", "no such thing", "named"), failed: true } as Message,
        user("and?"),
      ]),
    ).toEqual([
      { role: "user", parts: [{ text: "go" }] },
      {
        role: "model",
        parts: [
          { text: "I look." },
          { functionCall: { id: "c1", name: "f", args: { a: 1 } }, thoughtSignature: SIGNATURE },
          { functionCall: { id: "c2", name: "g", args: {} } },
        ],
      },
      {
        role: "user",
        parts: [
          { functionResponse: { id: "c1", name: "f", response: { output: "one" } } },
          { functionResponse: { id: "c2", name: "named", response: { error: "no such thing" } } },
        ],
      },
      { role: "user", parts: [{ text: "and?" }] },
    ]);
  });

  test("from the third generation on the first call of each step is signed, by itself or by a stand-in", async () => {
    const history: Message[] = [
      user("go"),
      { role: "assistant", content: [call("c1", "f", "{}"), call("c2", "f", "{}")] },
      result("c1", "1"),
      result("c2", "2"),
      { role: "assistant", content: [call("c3", "f", "{}", SIGNATURE), call("c4", "f", "{}")] },
      result("c3", "3"),
      result("c4", "4"),
    ];
    const signatures = async (model: string) =>
      (await contents(history, model))
        .flatMap(({ parts }) => parts)
        .filter((part) => part.functionCall)
        .map((part) => part.thoughtSignature);
    const none = undefined;
    expect(await signatures("gemini-3-pro-preview")).toEqual([
      "skip_thought_signature_validator",
      none,
      SIGNATURE,
      none,
    ]);
    expect(await signatures("gemini-2.5-pro")).toEqual([none, none, SIGNATURE, none]);
  });

  test.each([
    ['{"a":[1,null]}', { a: [1, null] }],
    ["  ", {}],
    ["[1]", { arguments: [1] }],
    ['"x"', { arguments: "x" }],
    ['{"a":', { arguments: '{"a":' }],
  ])("arguments %j", async (args, expected) => {
    const sent = await contents([user("go"), { role: "assistant", content: [call("c", "f", args)] }]);
    expect(sent[1]?.parts[0]?.functionCall).toEqual({ id: "c", name: "f", args: expected });
  });

  test("thoughts go back with their signature or not at all; other families' blocks never", async () => {
    const sent = await contents([
      user("go"),
      {
        role: "assistant",
        content: [
          { type: "reasoning", text: "unsigned" },
          { type: "reasoning", text: "signed", seal: "S1" },
          { type: "raw", family: "anthropic-messages", block: { type: "server_tool_use" } },
          { type: "raw", family: "gemini", block: { executableCode: { code: "1" }, thoughtSignature: "S2" } },
          { type: "text", text: "", seal: "S3" },
          { type: "refusal", text: "I will not." },
        ],
      },
    ]);
    expect(sent[1]?.parts).toEqual([
      { text: "signed", thought: true, thoughtSignature: "S1" },
      { executableCode: { code: "1" }, thoughtSignature: "S2" },
      { text: "", thoughtSignature: "S3" },
      { text: "I will not." },
    ]);
  });

  test("images, sounds and documents, by value and by address", async () => {
    const [sent] = await contents([
      {
        role: "user",
        content: [
          { type: "image", source: { kind: "data", mediaType: "image/png", data: "AAAA" } },
          { type: "image", source: { kind: "url", url: "https://example.org/a.JPG?x=1.png" } },
          { type: "image", source: { kind: "url", url: "https://example.org/image" } },
          { type: "image", source: { kind: "id", family: "gemini", id: "files/abc" } },
          {
            type: "file",
            mediaType: "audio/wav",
            source: { kind: "data", mediaType: "audio/wav", data: "BBBB" },
          },
          {
            type: "file",
            mediaType: "text/markdown; charset=utf-8",
            source: { kind: "data", mediaType: "text/markdown", data: "CCCC" },
          },
          {
            type: "file",
            mediaType: "application/pdf",
            source: { kind: "url", url: "https://example.org/a.pdf" },
          },
        ],
      },
    ]);
    expect(sent?.parts).toEqual([
      { inlineData: { mimeType: "image/png", data: "AAAA" } },
      { fileData: { fileUri: "https://example.org/a.JPG?x=1.png", mimeType: "image/jpeg" } },
      { fileData: { fileUri: "https://example.org/image" } },
      { fileData: { fileUri: "files/abc" } },
      { inlineData: { mimeType: "audio/wav", data: "BBBB" } },
      { inlineData: { mimeType: "text/plain", data: "CCCC" } },
      { fileData: { fileUri: "https://example.org/a.pdf", mimeType: "application/pdf" } },
    ]);
  });

  test("an image in a result is inside it where the model reads it there, and beside it elsewhere", async () => {
    const history: Message[] = [
      user("go"),
      { role: "assistant", content: [call("c", "shot", "{}", "S1")] },
      {
        role: "tool",
        callId: "c",
        content: [
          { type: "text", text: "Here." },
          { type: "image", source: { kind: "data", mediaType: "image/png", data: "AAAA" } },
        ],
      },
    ];
    const inlineData = { mimeType: "image/png", data: "AAAA" };
    const functionResponse = { id: "c", name: "shot", response: { output: "Here." } };
    expect((await contents(history, "gemini-3-flash"))[2]?.parts).toEqual([
      { functionResponse: { ...functionResponse, parts: [{ inlineData }] } },
    ]);
    expect((await contents(history))[2]?.parts).toEqual([{ functionResponse }, { inlineData }]);
  });

  test("signatures come back byte for byte", async () => {
    const bytes = fc.uint8Array({ minLength: 1, maxLength: 300 });
    await fc.assert(
      fc.asyncProperty(bytes, fc.boolean(), async (signature, urlSafe) => {
        const seal = Buffer.from(signature).toString(urlSafe ? "base64url" : "base64");
        const sent = await contents(
          [user("go"), { role: "assistant", content: [call("c", "f", "{}", seal)] }],
          "gemini-3-flash",
        );
        expect(sent[1]?.parts[0]?.thoughtSignature).toBe(seal);
      }),
      { numRuns: 30 },
    );
  });
});

describe("tools and formats", () => {
  const mode = async (part: Partial<ModelRequest>) =>
    (await body({ tools: [NOW], ...part })).toolConfig as unknown;

  test("tool choice", async () => {
    expect(await mode({})).toBeUndefined();
    expect(await mode({ toolChoice: { type: "auto" } })).toBeUndefined();
    expect(await mode({ toolChoice: { type: "none" } })).toEqual({ functionCallingConfig: { mode: "NONE" } });
    expect(await mode({ toolChoice: { type: "required" } })).toEqual({
      functionCallingConfig: { mode: "ANY" },
    });
    expect(await mode({ tools: [], toolChoice: { type: "none" } })).toBeUndefined();
    expect(await mode({ tools: [{ ...NOW, strict: true } as ToolSpec] })).toEqual({
      functionCallingConfig: { mode: "VALIDATED" },
    });
  });

  test("JSON beside functions is asked for in words where the model refuses it otherwise", async () => {
    const schema = { type: "object", properties: { a: { type: "string" } } };
    const format = { type: "schema", name: "x", schema, description: "A thing." } as const;
    const second = await body({ tools: [NOW], format, system: [{ type: "text", text: "Be kind." }] });
    expect(second.generationConfig).toEqual({});
    const parts = (second.systemInstruction as { parts: { text: string }[] }).parts;
    expect(parts).toHaveLength(2);
    expect(parts[1]?.text).toContain(JSON.stringify(schema));
    expect(parts[1]?.text).toContain("A thing.");
    expect((await body({ tools: [NOW], format: { type: "json" } })).generationConfig).toEqual({});
    expect(await config({ tools: [NOW], format, model: "gemini-3-flash" })).toEqual({
      responseMimeType: "application/json",
      responseJsonSchema: schema,
    });
    expect(await config({ format: { type: "json" } })).toEqual({ responseMimeType: "application/json" });
    expect(await config({ format: { type: "text" } })).toEqual({});
  });

  test.each<[string, Partial<ModelRequest>, string, RegExp]>([
    ["logit bias", { settings: { logitBias: { "50256": -100 } } }, "logit_bias", /logit_bias/],
    ["logprobs", { settings: { logprobs: { top: 2 } } }, "logprobs", /logprobs/],
    ["a freeform tool", { tools: [{ kind: "freeform", name: "apply_patch" }] }, "tools", /apply_patch/],
    [
      "a tool of another family",
      {
        tools: [{ kind: "builtin", family: "anthropic-messages", name: "web_search", entry: {} }],
      },
      "tools",
      /web_search/,
    ],
    [
      "a file id of another family",
      {
        messages: [
          {
            role: "user",
            content: [{ type: "image", source: { kind: "id", family: "openai-chat", id: "file-1" } }],
          },
        ],
      },
      "messages",
      /file-1/,
    ],
  ])("%s is refused by name", async (_, part, param, message) => {
    await expect(body(part)).rejects.toMatchObject({
      code: "unsupported_field",
      status: 400,
      param,
      message: expect.stringMatching(message),
    });
  });

  test("an empty logit bias is none", async () => {
    expect(await config({ settings: { logitBias: {} } })).toEqual({});
  });
});

describe("thinking", () => {
  const thinking = async (model: string, reasoning: ModelRequest["reasoning"]) =>
    (await config({ model, reasoning })).thinkingConfig;
  const shown = { includeThoughts: true };

  test.each<[string, ModelRequest["reasoning"], unknown]>([
    ["gemini-2.5-flash", undefined, undefined],
    ["gemini-2.5-flash", { effort: "high" }, { thinkingBudget: 24_576, ...shown }],
    ["gemini-2.5-flash", { effort: "max" }, { thinkingBudget: 24_576, ...shown }],
    ["gemini-2.5-pro", { effort: "max" }, { thinkingBudget: 32_768, ...shown }],
    ["gemini-2.5-flash", { effort: "none" }, { thinkingBudget: 0 }],
    ["gemini-2.5-pro", { effort: "none" }, { thinkingBudget: 128 }],
    ["gemini-2.5-flash", { budget: 0 }, { thinkingBudget: 0 }],
    ["gemini-2.5-flash-lite", { budget: 100 }, { thinkingBudget: 512, ...shown }],
    ["gemini-2.5-flash", { budget: 128_000 }, { thinkingBudget: 24_576, ...shown }],
    ["gemini-2.5-flash", { adaptive: true }, { thinkingBudget: -1, ...shown }],
    ["gemini-2.5-flash", { adaptive: true, display: "omitted" }, { thinkingBudget: -1 }],
    ["models/gemini-3-flash", { effort: "none" }, { thinkingLevel: "MINIMAL" }],
    ["gemini-3-flash", { effort: "xhigh" }, { thinkingLevel: "HIGH", ...shown }],
    ["gemini-3-pro-preview", { effort: "medium" }, { thinkingLevel: "HIGH", ...shown }],
    ["gemini-3.1-pro-preview", { effort: "medium" }, { thinkingLevel: "MEDIUM", ...shown }],
    ["gemini-3.1-pro-preview", { effort: "minimal" }, { thinkingLevel: "LOW", ...shown }],
    ["gemini-3.8-flash", { budget: 2_000 }, { thinkingLevel: "LOW", ...shown }],
    ["gemini-3.8-flash", { budget: 60_000 }, { thinkingLevel: "HIGH", ...shown }],
    ["gemini-3.8-flash", { adaptive: true }, shown],
    ["gemini-flash-latest", { effort: "newer" }, { thinkingLevel: "NEWER", ...shown }],
    ["gemini-2.0-flash", { effort: "high" }, undefined],
    ["gemma-4-31b", { adaptive: true }, undefined],
    ["gemma-4-31b", { effort: "high" }, { thinkingLevel: "HIGH", ...shown }],
  ])("%s %j", async (model, reasoning, expected) => {
    expect(await thinking(model, reasoning)).toEqual(expected);
  });

  test("generations", () => {
    expect(generationOf("gemini-10-flash")).toBe(10);
    expect(generationOf("gemini-2.5-pro-latest")).toBe(2.5);
    expect(generationOf("gemini-pro-latest")).toBe(Number.POSITIVE_INFINITY);
    expect(generationOf("tunedModels/gemini-3")).toBeUndefined();
  });
});
