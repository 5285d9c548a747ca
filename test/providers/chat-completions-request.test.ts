import { describe, expect, test } from "vitest";
import type { Message } from "../../src/core/message.ts";
import type { ModelRequest } from "../../src/core/model.ts";
import { writeRequest } from "../../src/providers/chat-completions-request.ts";
import { GROQ_DIALECT } from "../../src/providers/groq.ts";
import { openAIDialect } from "../../src/providers/openai.ts";
import { request } from "./model-stream.ts";

const OPENAI = openAIDialect("https://api.openai.com/v1");
const LOCAL = openAIDialect("http://127.0.0.1:11434/v1");

const write = (part: Partial<ModelRequest>, dialect = OPENAI) => writeRequest(request(part), dialect);
const sent = (messages: Message[], dialect = OPENAI) => write({ messages }, dialect).messages;
const text = (value: string) => ({ type: "text" as const, text: value });
const data = (mediaType: string, value = "AAAA") => ({ kind: "data" as const, mediaType, data: value });

test("which address is OpenAI's own", () => {
  for (const url of [
    "https://api.openai.com/v1",
    "https://eu.api.openai.com/v1",
    "https://x.openai.azure.com/openai/v1",
  ])
    expect(openAIDialect(url).official).toBe(true);
  for (const url of [
    "http://localhost:8080/v1",
    "https://openrouter.ai/api/v1",
    "https://evil-api.openai.com.example",
  ])
    expect(openAIDialect(url).official).toBe(false);
});

describe("messages", () => {
  test("a whole conversation", () => {
    expect(
      write({
        system: [text("One."), text("Two.")],
        messages: [
          { role: "user", content: [text("a"), text("b")], name: "Ann" },
          {
            role: "assistant",
            content: [
              text("I look."),
              { type: "call", id: "c1", name: "look", args: '{"x":1}' },
              { type: "call", id: "c2", name: "sql", args: "SELECT 1", freeform: true },
            ],
          },
          { role: "tool", callId: "c1", content: [text("seen")] },
          { role: "tool", callId: "c2", content: [] },
          { role: "system", content: [text("Be brief.")], developer: true },
          { role: "assistant", content: [{ type: "refusal", text: "No." }] },
        ],
      }).messages,
    ).toEqual([
      { role: "system", content: "One.\n\nTwo." },
      { role: "user", content: "a\nb", name: "Ann" },
      {
        role: "assistant",
        content: "I look.",
        tool_calls: [
          { id: "c1", type: "function", function: { name: "look", arguments: '{"x":1}' } },
          { id: "c2", type: "custom", custom: { name: "sql", input: "SELECT 1" } },
        ],
      },
      { role: "tool", tool_call_id: "c1", content: "seen" },
      { role: "tool", tool_call_id: "c2", content: "" },
      { role: "developer", content: "Be brief." },
      { role: "assistant", content: null, refusal: "No." },
    ]);
  });

  test("developer and refusal only where they are known", () => {
    const messages: Message[] = [
      { role: "system", content: [text("Be brief.")], developer: true },
      { role: "assistant", content: [{ type: "refusal", text: "No." }] },
    ];
    for (const dialect of [GROQ_DIALECT, LOCAL])
      expect(sent(messages, dialect)).toEqual([
        { role: "system", content: "Be brief." },
        { role: "assistant", content: "No." },
      ]);
  });

  test("images, sounds and documents", () => {
    expect(
      sent([
        {
          role: "user",
          content: [
            { type: "image", source: data("image/png"), detail: "low" },
            { type: "image", source: { kind: "url", url: "https://x.example/a.png" } },
            { type: "file", mediaType: "audio/mpeg", source: data("audio/mpeg") },
            { type: "file", mediaType: "application/pdf", source: data("application/pdf"), name: "a.pdf" },
            { type: "file", mediaType: "application/pdf", source: data("application/pdf") },
            {
              type: "file",
              mediaType: "application/pdf",
              source: { kind: "id", family: "openai-chat", id: "file-1" },
            },
            { type: "file", mediaType: "text/plain", source: data("text/plain", btoa("hey")), name: "a.txt" },
            { type: "raw", family: "openai-chat", block: { type: "video_url", video_url: { url: "x" } } },
            { type: "raw", family: "gemini", block: { other: 1 } },
          ],
        },
      ]),
    ).toEqual([
      {
        role: "user",
        content: [
          { type: "image_url", image_url: { url: "data:image/png;base64,AAAA", detail: "low" } },
          { type: "image_url", image_url: { url: "https://x.example/a.png" } },
          { type: "input_audio", input_audio: { data: "AAAA", format: "mp3" } },
          { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,AAAA" } },
          { type: "file", file: { filename: "document.pdf", file_data: "data:application/pdf;base64,AAAA" } },
          { type: "file", file: { file_id: "file-1" } },
          { type: "text", text: "a.txt:\nhey" },
          { type: "video_url", video_url: { url: "x" } },
        ],
      },
    ]);
  });

  test.each([
    [{ type: "file", mediaType: "application/pdf", source: data("application/pdf") }, GROQ_DIALECT],
    [{ type: "file", mediaType: "audio/wav", source: data("audio/wav") }, GROQ_DIALECT],
    [
      { type: "file", mediaType: "application/pdf", source: { kind: "url", url: "https://x.example/a.pdf" } },
      OPENAI,
    ],
    [
      { type: "file", mediaType: "application/pdf", source: { kind: "id", family: "gemini", id: "f" } },
      OPENAI,
    ],
    [{ type: "image", source: { kind: "id", family: "openai-chat", id: "f" } }, OPENAI],
  ] as const)("what a server cannot take is named: %j", (part, dialect) => {
    expect(() => sent([{ role: "user", content: [text("see"), part] }], dialect)).toThrow(
      expect.objectContaining({ code: "unsupported_field", param: "messages[0].content[1]", status: 400 }),
    );
  });

  test("images of tool results follow after the last result of the turn", () => {
    const image = { type: "image" as const, source: data("image/png") };
    const history: Message[] = [
      {
        role: "assistant",
        content: [
          { type: "call", id: "c1", name: "shot", args: "{}" },
          { type: "call", id: "c2", name: "look", args: "" },
        ],
      },
      { role: "tool", callId: "c1", name: "shot", content: [image] },
      { role: "tool", callId: "c2", content: [text("dark")] },
    ];
    const media = [
      { type: "text", text: "The result of the call shot (c1) also holds:" },
      { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } },
    ];
    const results = [
      { role: "tool", tool_call_id: "c1", content: "The result is in the next user message." },
      { role: "tool", tool_call_id: "c2", content: "dark" },
    ];
    expect((sent(history) as unknown[]).slice(1)).toEqual([...results, { role: "user", content: media }]);
    expect((sent([...history, { role: "user", content: [text("and?")] }]) as unknown[]).slice(1)).toEqual([
      ...results,
      { role: "user", content: [...media, { type: "text", text: "and?" }] },
    ]);
    expect(
      (sent([...history, { role: "assistant", content: [text("ok")] }]) as { role: string }[]).map(
        (m) => m.role,
      ),
    ).toEqual(["assistant", "tool", "tool", "user", "assistant"]);
  });

  test("broken arguments of the history stay broken for OpenAI and are wrapped elsewhere", () => {
    const messages: Message[] = [
      { role: "assistant", content: [{ type: "call", id: "c", name: "f", args: '{"x":' }] },
    ];
    const args = (dialect: typeof OPENAI) =>
      (sent(messages, dialect) as { tool_calls: { function: { arguments: string } }[] }[])[0]?.tool_calls[0]
        ?.function.arguments;
    expect(args(OPENAI)).toBe('{"x":');
    expect(args(LOCAL)).toBe('{"invalid_arguments":"{\\"x\\":"}');
    expect(args(GROQ_DIALECT)).toBe('{"invalid_arguments":"{\\"x\\":"}');
  });

  test("own fields of the family stand where they stood", () => {
    expect(
      sent([
        {
          role: "user",
          content: [
            {
              ...text("x"),
              extra: { family: "openai-chat", fields: { cache_control: { type: "ephemeral" } } },
            },
          ],
          extra: { family: "openai-chat", fields: { tag: 1 } },
        },
        { role: "user", content: [text("y")], extra: { family: "gemini", fields: { tag: 2 } } },
      ]),
    ).toEqual([
      { role: "user", content: [{ type: "text", text: "x", cache_control: { type: "ephemeral" } }], tag: 1 },
      { role: "user", content: "y" },
    ]);
  });
});

describe("reasoning of the history", () => {
  const turn = (seal?: string): Message[] => [
    { role: "user", content: [text("1")] },
    { role: "assistant", content: [{ type: "reasoning", text: "old" }, text("a")] },
    { role: "user", content: [text("2")] },
    {
      role: "assistant",
      content: [
        { type: "reasoning", text: "new", seal },
        { type: "call", id: "c", name: "f", args: "{}" },
      ],
    },
    { role: "tool", callId: "c", content: [text("r")] },
  ];
  const fields = (seal: string | undefined, dialect: typeof OPENAI) =>
    (sent(turn(seal), dialect) as Record<string, unknown>[])
      .filter((message) => message.role === "assistant")
      .map(({ reasoning, reasoning_content, reasoning_details }) => ({
        reasoning,
        reasoning_content,
        reasoning_details,
      }));

  test("OpenAI gets none", () => {
    expect(JSON.stringify(sent(turn("reasoning")))).not.toMatch(/reasoning|new|old/);
  });

  test("in the running tool turn it goes back under the name it came by", () => {
    expect(fields(undefined, GROQ_DIALECT)).toEqual([{}, { reasoning: "new" }]);
    expect(fields(undefined, LOCAL)).toEqual([{}, { reasoning_content: "new" }]);
    expect(fields("reasoning", LOCAL)).toEqual([{}, { reasoning: "new" }]);
  });

  test("details go back as they came", () => {
    expect(fields('[{"type":"reasoning.text","text":"new","signature":"s"}]', LOCAL)).toEqual([
      {},
      { reasoning_details: [{ type: "reasoning.text", text: "new", signature: "s" }] },
    ]);
  });
});

describe("the rest of the body", () => {
  test("every setting", () => {
    const body = write({
      settings: {
        maxTokens: 9,
        temperature: 0.5,
        topP: 0.25,
        stop: ["x"],
        seed: 7,
        presencePenalty: 1,
        frequencyPenalty: -1,
        logitBias: { "5": 1 },
        logprobs: { top: 3 },
      },
      format: { type: "schema", name: "s", schema: { type: "object" }, strict: true, description: "d" },
      reasoning: { effort: "high" },
      user: "u".repeat(70),
      extra: {
        family: "openai-chat",
        fields: {
          store: false,
          model: "other",
          stream: false,
          stream_options: { include_obfuscation: false },
        },
      },
    });
    expect(body).toEqual({
      model: "model-1",
      messages: [{ role: "user", content: "hi" }],
      stream: true,
      stream_options: { include_usage: true, include_obfuscation: false },
      store: false,
      max_completion_tokens: 9,
      temperature: 0.5,
      top_p: 0.25,
      stop: ["x"],
      seed: 7,
      presence_penalty: 1,
      frequency_penalty: -1,
      logit_bias: { "5": 1 },
      logprobs: true,
      top_logprobs: 3,
      response_format: {
        type: "json_schema",
        json_schema: { name: "s", schema: { type: "object" }, strict: true, description: "d" },
      },
      reasoning_effort: "high",
      user: "u".repeat(64),
    });
  });

  test("nothing more than asked for", () => {
    expect(Object.keys(write({ toolChoice: { type: "auto" }, parallelTools: false }))).toEqual([
      "model",
      "messages",
      "stream",
      "stream_options",
    ]);
  });

  test("the output limit's name", () => {
    expect(write({ settings: { maxTokens: 9 } }, LOCAL)).toMatchObject({ max_tokens: 9 });
    expect(write({ settings: { maxTokens: 9 } }, GROQ_DIALECT)).toMatchObject({ max_completion_tokens: 9 });
    const own = { family: "openai-chat" as const, fields: { max_completion_tokens: 8 } };
    const body = write({ settings: { maxTokens: 9 }, extra: own }, LOCAL);
    expect(body.max_completion_tokens).toBe(9);
    expect(body).not.toHaveProperty("max_tokens");
  });

  test("top_k goes where it is known and is refused elsewhere", () => {
    expect(write({ settings: { topK: 5 } }, LOCAL).top_k).toBe(5);
    for (const dialect of [OPENAI, GROQ_DIALECT])
      expect(() => write({ settings: { topK: 5 } }, dialect)).toThrow(
        expect.objectContaining({ code: "unsupported_field", param: "top_k" }),
      );
  });

  test("tools of each kind", () => {
    const body = write({
      tools: [
        { kind: "function", name: "f", description: "d", parameters: { type: "object" }, strict: true },
        { kind: "freeform", name: "sql", description: "d", format: { type: "text" } },
        { kind: "builtin", family: "openai-chat", name: "web", entry: { type: "web", size: 1 } },
      ],
      toolChoice: { type: "tool", name: "sql" },
      parallelTools: false,
    });
    expect(body.tools).toEqual([
      {
        type: "function",
        function: { name: "f", description: "d", parameters: { type: "object" }, strict: true },
      },
      { type: "custom", custom: { name: "sql", description: "d", format: { type: "text" } } },
      { type: "web", size: 1 },
    ]);
    expect(body.tool_choice).toEqual({ type: "custom", custom: { name: "sql" } });
    expect(body.parallel_tool_calls).toBe(false);
  });

  test.each([
    [{ kind: "freeform", name: "sql" }, GROQ_DIALECT],
    [{ kind: "builtin", family: "anthropic-messages", name: "bash", entry: {} }, OPENAI],
  ] as const)("a tool that the server does not know is named: %j", (tool, dialect) => {
    expect(() => write({ tools: [tool] }, dialect)).toThrow(
      expect.objectContaining({ code: "unsupported_field", param: "tools[0]" }),
    );
  });

  test.each([
    ["gpt-4o", { effort: "high" }, "high"],
    ["gpt-4o", { effort: "high", adaptive: true }, undefined],
    ["gpt-4o", { budget: 0 }, undefined],
    ["gpt-5.2", { adaptive: true }, undefined],
    ["gpt-5.2", { effort: "max", adaptive: true }, "xhigh"],
    ["gpt-5.2", { budget: 0 }, "none"],
    ["gpt-5-mini", { budget: 0 }, "minimal"],
    ["o3", { budget: 0 }, "low"],
    ["o3", { budget: 2_000 }, "low"],
    ["o3", { budget: 8_000 }, "medium"],
    ["openai/o4-mini", { budget: 32_000 }, "high"],
  ])("effort for %s from %j is %s", (model, reasoning, effort) => {
    expect(write({ model, reasoning }).reasoning_effort).toBe(effort);
  });

  test.each([
    ["qwen/qwen3-32b", { budget: 0 }, "none"],
    ["qwen/qwen3-32b", { budget: 9_000 }, "default"],
    ["openai/gpt-oss-20b", { budget: 0 }, "low"],
    ["llama-3.3-70b-versatile", { budget: 9_000 }, undefined],
  ])("effort for Groq's %s from %j is %s", (model, reasoning, effort) => {
    expect(write({ model, reasoning }, GROQ_DIALECT).reasoning_effort).toBe(effort);
  });
});
