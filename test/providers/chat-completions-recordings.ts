/** Streams of chat completions as real servers send them, with what they say. */
import type { Recording } from "./contract.ts";

/** One SSE frame for each value; strings go out as they are. */
export function sse(...values: unknown[]): string {
  return values
    .map((value) => `data: ${typeof value === "string" ? value : JSON.stringify(value)}\n\n`)
    .join("");
}

export function chunk(delta: unknown, finish: string | null = null, more: Record<string, unknown> = {}) {
  return {
    id: "chatcmpl-C1",
    object: "chat.completion.chunk",
    created: 1_780_000_000,
    model: "gpt-5-mini-2026-02-01",
    service_tier: "default",
    system_fingerprint: "fp_44709d6fcb",
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
    ...more,
  };
}

export function call(index: number, id: string | undefined, name: string | undefined, args: string) {
  return {
    tool_calls: [
      {
        index,
        ...(id === undefined ? {} : { id, type: "function" }),
        function: { ...(name === undefined ? {} : { name }), arguments: args },
      },
    ],
  };
}

const USAGE = {
  prompt_tokens: 19,
  completion_tokens: 12,
  total_tokens: 31,
  prompt_tokens_details: { cached_tokens: 8, audio_tokens: 0 },
  completion_tokens_details: {
    reasoning_tokens: 4,
    audio_tokens: 0,
    accepted_prediction_tokens: 0,
    rejected_prediction_tokens: 0,
  },
};

export const OPENAI_RECORDINGS: { text: Recording; calls: Recording } & Record<string, Recording> = {
  text: {
    sse: sse(
      chunk({ role: "assistant", content: "", refusal: null }, null, { usage: null, obfuscation: "K2d" }),
      chunk({ content: "Grüße" }, null, { usage: null, obfuscation: "x" }),
      chunk({ content: ", 世界 " }, null, { usage: null, obfuscation: "pQ" }),
      chunk({ content: "🌻!" }, null, { usage: null, obfuscation: "" }),
      chunk({}, "stop", { usage: null }),
      chunk(null, null, { choices: [], usage: USAGE }),
      "[DONE]",
    ),
    content: [{ type: "text", text: "Grüße, 世界 🌻!" }],
    stop: "stop",
    usage: { input: 19, output: 12, cacheRead: 8, reasoning: 4 },
    needs: 5,
  },
  calls: {
    sse: sse(
      chunk({ role: "assistant", content: null }),
      chunk({ content: "Both." }),
      chunk(call(0, "call_a1", "get_weather", "")),
      chunk(call(0, undefined, undefined, '{"ci')),
      chunk(call(0, undefined, undefined, 'ty":"Bonn"}')),
      chunk(call(1, "call_b2", "get_time", "")),
      chunk(call(1, undefined, undefined, '{"zone":"CET"}')),
      chunk({}, "tool_calls"),
      chunk(null, null, { choices: [], usage: USAGE }),
      "[DONE]",
    ),
    content: [
      { type: "text", text: "Both." },
      { type: "call", id: "call_a1", name: "get_weather", args: '{"city":"Bonn"}' },
      { type: "call", id: "call_b2", name: "get_time", args: '{"zone":"CET"}' },
    ],
    stop: "tool-calls",
    usage: { input: 19, output: 12 },
    needs: 8,
  },
  openrouter: {
    sse:
      ": OPENROUTER PROCESSING\n\n" +
      sse(
        chunk({
          role: "assistant",
          content: "",
          reasoning: "Let me ",
          reasoning_details: [
            { type: "reasoning.text", text: "Let me ", format: "anthropic-claude-v1", index: 0 },
          ],
        }),
        chunk({
          content: "",
          reasoning: "see.",
          reasoning_details: [{ type: "reasoning.text", text: "see.", format: null, index: 0 }],
        }),
        chunk({
          content: "",
          reasoning: null,
          reasoning_details: [{ type: "reasoning.text", signature: "c2ln", index: 0 }],
        }),
        chunk({ content: "42" }),
        chunk({ content: "" }, "stop", { usage: { prompt_tokens: 5, completion_tokens: 3, cost: 0.0012 } }),
        "[DONE]",
      ),
    content: [
      {
        type: "reasoning",
        text: "Let me see.",
        seal: '[{"type":"reasoning.text","text":"Let me see.","format":"anthropic-claude-v1","index":0,"signature":"c2ln"}]',
      },
      { type: "text", text: "42" },
    ],
    stop: "stop",
    usage: { input: 5, output: 3, extra: { family: "openai-chat", fields: { cost: 0.0012 } } },
    needs: 6,
  },
};

export const GROQ_RECORDINGS: { text: Recording; calls: Recording } & Record<string, Recording> = {
  text: {
    sse: sse(
      chunk({ role: "assistant", content: "" }, null, { x_groq: { id: "req_01" } }),
      chunk({ content: "Grüße" }),
      chunk({ content: " 🌻" }),
      chunk({ content: "!" }),
      chunk({}, "stop", {
        x_groq: {
          id: "req_01",
          usage: {
            queue_time: 0.01,
            prompt_tokens: 11,
            prompt_time: 0.002,
            completion_tokens: 6,
            total_tokens: 17,
          },
        },
      }),
      "[DONE]",
    ),
    content: [{ type: "text", text: "Grüße 🌻!" }],
    stop: "stop",
    usage: {
      input: 11,
      output: 6,
      extra: { family: "openai-chat", fields: { queue_time: 0.01, prompt_time: 0.002 } },
    },
    needs: 5,
  },
  calls: {
    sse: sse(
      chunk({ role: "assistant", content: null }, null, { x_groq: { id: "req_02" } }),
      chunk({ reasoning: "Two " }),
      chunk({ reasoning: "cities." }),
      chunk({
        tool_calls: [
          {
            index: 0,
            id: "fc_1",
            type: "function",
            function: { name: "get_weather", arguments: '{"city":"Bonn"}' },
          },
          {
            index: 1,
            id: "fc_2",
            type: "function",
            function: { name: "get_weather", arguments: '{"city":"Rome"}' },
          },
        ],
      }),
      chunk({}, "tool_calls", {
        x_groq: { id: "req_02", usage: { prompt_tokens: 3, completion_tokens: 4 } },
      }),
      "[DONE]",
    ),
    content: [
      { type: "reasoning", text: "Two cities.", seal: "reasoning" },
      { type: "call", id: "fc_1", name: "get_weather", args: '{"city":"Bonn"}' },
      { type: "call", id: "fc_2", name: "get_weather", args: '{"city":"Rome"}' },
    ],
    stop: "tool-calls",
    usage: { input: 3, output: 4 },
    needs: 5,
  },
};
