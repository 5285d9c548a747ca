/** The four upstreams of the matrix: which key leads there, and what their own wire looks like where aimock has no word for it. */
import type { ProviderName } from "../../src/core/message.ts";

export interface Upstream {
  provider: ProviderName;
  /** Its prefix chooses the provider. */
  key: string;
  model: string;
  /** How the paths of its requests begin. */
  path: string;
  /** A stream that says `text` and ends well, one frame each. */
  saying(...text: string[]): string[];
  /**
   * A stream that thinks, then calls `get_weather` for Bonn and `get_time` for CET in one turn. `turn`, 20 random
   * characters, makes the ids of its calls what they are in life: never the same twice.
   */
  thinking(turn: string): string[];
  /** What it has to get back of its thinking with the results, and where that stands in a request. */
  thoughts: unknown[];
  thoughtsIn(body: Record<string, unknown>): unknown[];
}

/** Base64 with every character that could suffer on its way. */
const SEAL = "EqQBCgIYAhIM+1gbcDa9GJwZA2b3hGgw/BdjrzgLYzkr0Ew==+/0a";
const OTHER_SEAL = "CtQBAePx3+8/abcXYZ0189+/AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

type Wire = Record<string, unknown>;

const data = (...values: unknown[]) =>
  values.map((value) => `data: ${typeof value === "string" ? value : JSON.stringify(value)}\n\n`);

function chunk(delta: Wire, finish: string | null = null): Wire {
  const choices = [{ index: 0, delta, logprobs: null, finish_reason: finish }];
  return { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1_790_000_000, model: "m", choices };
}

const CHAT_USAGE = { ...chunk({}), choices: [], usage: { prompt_tokens: 9, completion_tokens: 5 } };

function chatStream(...chunks: Wire[]): string[] {
  return data(chunk({ role: "assistant", content: "" }), ...chunks, CHAT_USAGE, "[DONE]");
}

function chatCall(index: number, id: string, name: string, args: string): Wire {
  return chunk({ tool_calls: [{ index, id, type: "function", function: { name, arguments: args } }] });
}

const chatCalls = (turn: string) => [
  chatCall(0, `call_${turn}0`, "get_weather", '{"city":"Bonn"}'),
  chatCall(1, `call_${turn}1`, "get_time", '{"zone":"CET"}'),
  chunk({}, "tool_calls"),
];

const assistantFields = (name: string) => (body: Wire) =>
  (body.messages as Wire[]).filter((m) => m.role === "assistant" && name in m).map((m) => m[name]);

const saying = (...text: string[]) =>
  chatStream(...text.map((content) => chunk({ content })), chunk({}, "stop"));

const openai: Upstream = {
  provider: "openai",
  path: "/v1/chat/completions",
  saying,
  key: "sk-proj-0123456789abcdef",
  model: "gpt-5-mini",
  thinking: (turn) =>
    chatStream(
      chunk({
        reasoning: "Two",
        reasoning_details: [{ type: "reasoning.text", text: "Two", format: "f", index: 0 }],
      }),
      chunk({
        reasoning: " things.",
        reasoning_details: [{ type: "reasoning.text", text: " things.", index: 0 }],
      }),
      chunk({ reasoning_details: [{ type: "reasoning.text", signature: SEAL, index: 0 }] }),
      ...chatCalls(turn),
    ),
  thoughts: [[{ type: "reasoning.text", text: "Two things.", format: "f", index: 0, signature: SEAL }]],
  thoughtsIn: assistantFields("reasoning_details"),
};

const groq: Upstream = {
  provider: "groq",
  path: "/openai/v1/chat/completions",
  saying,
  key: "gsk_0123456789abcdef",
  model: "openai/gpt-oss-120b",
  thinking: (turn) =>
    chatStream(chunk({ reasoning: "Two" }), chunk({ reasoning: " things." }), ...chatCalls(turn)),
  thoughts: ["Two things."],
  thoughtsIn: assistantFields("reasoning"),
};

const events = (...values: Wire[]) =>
  values.map((value) => `event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`);

function block(index: number, start: Wire, ...deltas: Wire[]): Wire[] {
  return [
    { type: "content_block_start", index, content_block: start },
    ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
    { type: "content_block_stop", index },
  ];
}

function messageStream(stop: string, ...blocks: Wire[]): string[] {
  const usage = { input_tokens: 9, output_tokens: 1 };
  const message = { id: "msg_1", type: "message", role: "assistant", model: "m", content: [], usage };
  return events(
    { type: "message_start", message: { ...message, stop_reason: null, stop_sequence: null } },
    ...blocks,
    {
      type: "message_delta",
      delta: { stop_reason: stop, stop_sequence: null },
      usage: { output_tokens: 5 },
    },
    { type: "message_stop" },
  );
}

function toolUse(index: number, id: string, name: string, args: string): Wire[] {
  const start = { type: "tool_use", id, name, input: {} };
  return block(index, start, { type: "input_json_delta", partial_json: args });
}

const anthropic: Upstream = {
  provider: "anthropic",
  path: "/v1/messages",
  key: "sk-ant-api03-0123456789abcdef",
  model: "claude-sonnet-4-6",
  saying: (...text) =>
    messageStream(
      "end_turn",
      ...block(0, { type: "text", text: "" }, ...text.map((t) => ({ type: "text_delta", text: t }))),
    ),
  thinking: (turn) =>
    messageStream(
      "tool_use",
      ...block(
        0,
        { type: "thinking", thinking: "", signature: "" },
        { type: "thinking_delta", thinking: "Two" },
        { type: "thinking_delta", thinking: " things." },
        { type: "signature_delta", signature: SEAL },
      ),
      ...block(1, { type: "redacted_thinking", data: OTHER_SEAL }),
      ...toolUse(2, `toolu_${turn}0`, "get_weather", '{"city":"Bonn"}'),
      ...toolUse(3, `toolu_${turn}1`, "get_time", '{"zone":"CET"}'),
    ),
  thoughts: [
    { type: "thinking", thinking: "Two things.", signature: SEAL },
    { type: "redacted_thinking", data: OTHER_SEAL },
  ],
  thoughtsIn: (body) =>
    (body.messages as { content: Wire[] | string }[]).flatMap(({ content }) =>
      typeof content === "string" ? [] : content.filter((b) => String(b.type).includes("thinking")),
    ),
};

function content(parts: Wire[], finishReason?: string): Wire {
  const usageMetadata = { promptTokenCount: 9, candidatesTokenCount: 3, thoughtsTokenCount: 2 };
  const candidate = {
    content: { role: "model", parts },
    index: 0,
    ...(finishReason ? { finishReason } : {}),
  };
  return { candidates: [candidate], usageMetadata, modelVersion: "m", responseId: "r1" };
}

const weather = { name: "get_weather", args: { city: "Bonn" } };
const time = { name: "get_time", args: { zone: "CET" } };

const gemini: Upstream = {
  provider: "gemini",
  path: "/v1beta/models/",
  key: "AIzaSy0123456789abcdefghijklmnopqrstuvw",
  model: "gemini-3-flash",
  saying: (...text) => data(...text.map((t) => content([{ text: t }])), content([{ text: "" }], "STOP")),
  thinking: () =>
    data(
      content([{ text: "Two things.", thought: true, thoughtSignature: SEAL }]),
      content([{ functionCall: weather, thoughtSignature: OTHER_SEAL }, { functionCall: time }]),
      content([{ text: "" }], "STOP"),
    ),
  thoughts: [
    { text: "Two things.", thought: true, thoughtSignature: SEAL },
    { functionCall: weather, thoughtSignature: OTHER_SEAL },
  ],
  thoughtsIn: (body) =>
    (body.contents as { parts: Wire[] }[])
      .flatMap(({ parts }) => parts)
      .filter((part) => "thoughtSignature" in part)
      // Ids of calls are the service's own.
      .map((part) =>
        part.functionCall ? { ...part, functionCall: { ...part.functionCall, id: undefined } } : part,
      ),
};

export const UPSTREAMS: readonly Upstream[] = [openai, anthropic, groq, gemini];
