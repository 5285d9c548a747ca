/** Replies as Anthropic's Messages API streams them, with what they say. */
import type { Recording } from "./contract.ts";

/** Events as the service frames them: a named event, one line of data, a blank line. */
export function sse(events: readonly Record<string, unknown>[]): string {
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
}

export function messageStart(usage: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    type: "message_start",
    message: {
      model: "claude-opus-4-8",
      id: "msg_01Xk2mPq7",
      type: "message",
      role: "assistant",
      content: [],
      container: null,
      stop_reason: null,
      stop_sequence: null,
      stop_details: null,
      usage: {
        input_tokens: 21,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 0,
        cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
        output_tokens: 1,
        service_tier: "standard",
        inference_geo: null,
        ...usage,
      },
    },
  };
}

export function block(
  index: number,
  start: Record<string, unknown>,
  ...deltas: Record<string, unknown>[]
): Record<string, unknown>[] {
  return [
    { type: "content_block_start", index, content_block: start },
    ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
    { type: "content_block_stop", index },
  ];
}

export function messageEnd(
  stop_reason: string,
  usage: Record<string, unknown>,
  rest: Record<string, unknown> = {},
): Record<string, unknown>[] {
  return [
    {
      type: "message_delta",
      delta: { stop_reason, stop_sequence: null, stop_details: null, container: null, ...rest },
      usage,
    },
    { type: "message_stop" },
  ];
}

const TEXT = { type: "text", text: "", citations: null };
const THINKING = { type: "thinking", thinking: "", signature: "" };
const textDelta = (text: string) => ({ type: "text_delta", text });
const jsonDelta = (partial_json: string) => ({ type: "input_json_delta", partial_json });
/** Base64 with every character that could suffer on its way. */
export const SIGNATURE = "EqQBCgIYAhIM+1gbcDa9GJwZA2b3hGgw/BdjrzgLYzkr0Ew==+/0a";
const REDACTED = "EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlxh0L5L8rLVyIw==";

export const text: Recording = {
  sse: sse([
    messageStart({ input_tokens: 12, cache_read_input_tokens: 30, cache_creation_input_tokens: 8 }),
    { type: "content_block_start", index: 0, content_block: TEXT },
    { type: "ping" },
    { type: "content_block_delta", index: 0, delta: textDelta("Grüße") },
    { type: "content_block_delta", index: 0, delta: textDelta(" aus dem Süden 🌻,") },
    { type: "content_block_delta", index: 0, delta: textDelta(" sagt 猫.") },
    { type: "content_block_stop", index: 0 },
    ...messageEnd("end_turn", {
      input_tokens: 12,
      cache_creation_input_tokens: 8,
      cache_read_input_tokens: 30,
      output_tokens: 17,
      output_tokens_details: { thinking_tokens: 0 },
      server_tool_use: null,
    }),
  ]),
  content: [{ type: "text", text: "Grüße aus dem Süden 🌻, sagt 猫." }],
  stop: "stop",
  usage: {
    input: 50,
    output: 17,
    cacheRead: 30,
    cacheWrite: 8,
    reasoning: 0,
    extra: {
      family: "anthropic-messages",
      fields: {
        cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
        service_tier: "standard",
      },
    },
  },
};

const direct = { caller: { type: "direct" } };
export const calls: Recording = {
  sse: sse([
    messageStart(),
    ...block(0, TEXT, textDelta("I look "), textDelta("both up.")),
    ...block(
      1,
      { type: "tool_use", id: "toolu_01A09q90", name: "get_weather", input: {}, ...direct },
      jsonDelta(""),
      jsonDelta('{"ci'),
      jsonDelta('ty": "Kö'),
      jsonDelta('ln"}'),
    ),
    ...block(
      2,
      { type: "tool_use", id: "toolu_01B7x2", name: "get_weather", input: {}, ...direct },
      jsonDelta(""),
      jsonDelta('{"city": "Rome"}'),
    ),
    ...block(3, { type: "tool_use", id: "toolu_01C", name: "now", input: {}, ...direct }, jsonDelta("")),
    ...messageEnd("tool_use", { output_tokens: 88 }),
  ]),
  content: [
    { type: "text", text: "I look both up." },
    { type: "call", id: "toolu_01A09q90", name: "get_weather", args: '{"city": "Köln"}' },
    { type: "call", id: "toolu_01B7x2", name: "get_weather", args: '{"city": "Rome"}' },
    { type: "call", id: "toolu_01C", name: "now", args: "{}" },
  ],
  stop: "tool-calls",
  usage: { input: 21, output: 88 },
};

export const thinking: Recording = {
  sse: sse([
    messageStart(),
    ...block(
      0,
      THINKING,
      { type: "thinking_delta", thinking: "Six times seven" },
      { type: "thinking_delta", thinking: " is forty-two." },
      { type: "signature_delta", signature: SIGNATURE },
    ),
    ...block(1, { type: "redacted_thinking", data: REDACTED }),
    ...block(2, TEXT, textDelta("42")),
    ...messageEnd("end_turn", { output_tokens: 40, output_tokens_details: { thinking_tokens: 31 } }),
  ]),
  content: [
    { type: "reasoning", text: "Six times seven is forty-two.", seal: SIGNATURE },
    { type: "reasoning", text: "", redacted: true, seal: REDACTED },
    { type: "text", text: "42" },
  ],
  stop: "stop",
  usage: { input: 21, output: 40, reasoning: 31 },
};

/** `display: "omitted"`: no thinking, only its signature, and an estimate of its length. */
export const hidden: Recording = {
  sse: sse([
    messageStart(),
    ...block(
      0,
      THINKING,
      { type: "thinking_delta", thinking: "", estimated_tokens: 64 },
      { type: "signature_delta", signature: SIGNATURE },
    ),
    ...block(1, TEXT, textDelta("Done.")),
    ...messageEnd("end_turn", { output_tokens: 70 }),
  ]),
  content: [
    { type: "reasoning", text: "", seal: SIGNATURE },
    { type: "text", text: "Done." },
  ],
  stop: "stop",
  usage: { input: 21, output: 70 },
};

const searchResult = {
  type: "web_search_tool_result",
  tool_use_id: "srvtoolu_01W",
  caller: { type: "direct" },
  content: [
    {
      type: "web_search_result",
      title: "Shannon",
      url: "https://example.com/s",
      encrypted_content: "Eqg+/=",
      page_age: null,
    },
  ],
};
const citation = {
  type: "web_search_result_location",
  cited_text: "born on April 30, 1916",
  url: "https://example.com/s",
  title: "Shannon",
  encrypted_index: "Eo8B+/=",
};
export const search: Recording = {
  sse: sse([
    messageStart(),
    ...block(
      0,
      {
        type: "server_tool_use",
        id: "srvtoolu_01W",
        name: "web_search",
        input: {},
        caller: { type: "direct" },
      },
      jsonDelta(""),
      jsonDelta('{"query": "Claude '),
      jsonDelta('Shannon birth"}'),
    ),
    ...block(1, searchResult),
    ...block(2, { type: "text", text: "", citations: [] }, textDelta("In 1916."), {
      type: "citations_delta",
      citation,
    }),
    ...messageEnd("pause_turn", {
      input_tokens: 9000,
      output_tokens: 60,
      server_tool_use: { web_search_requests: 1, web_fetch_requests: 0 },
    }),
  ]),
  content: [
    {
      type: "raw",
      family: "anthropic-messages",
      block: {
        type: "server_tool_use",
        id: "srvtoolu_01W",
        name: "web_search",
        input: { query: "Claude Shannon birth" },
        caller: { type: "direct" },
      },
    },
    { type: "raw", family: "anthropic-messages", block: searchResult },
    {
      type: "text",
      text: "In 1916.",
      extra: { family: "anthropic-messages", fields: { citations: [citation] } },
    },
  ],
  stop: "pause",
  usage: {
    input: 9000,
    output: 60,
    extra: {
      family: "anthropic-messages",
      fields: {
        cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
        service_tier: "standard",
        server_tool_use: { web_search_requests: 1, web_fetch_requests: 0 },
      },
    },
  },
};

/** A tool that code in the sandbox calls, a block and a delta of a kind that nobody knows yet. */
export const unknown: Recording = {
  sse: sse([
    messageStart(),
    ...block(
      0,
      { type: "compaction", content: null },
      { type: "compaction_delta", content: "Summary so far.", encrypted_content: "Zm9v" },
    ),
    ...block(
      1,
      {
        type: "tool_use",
        id: "toolu_01P",
        name: "query",
        input: {},
        caller: { type: "code_execution_20260120", tool_id: "srvtoolu_9" },
      },
      jsonDelta('{"q":1}'),
    ),
    { type: "telemetry", note: "an event that is newer than this program" },
    ...messageEnd("tool_use", { output_tokens: 5 }),
  ]),
  content: [
    {
      type: "raw",
      family: "anthropic-messages",
      block: { type: "compaction", content: "Summary so far.", encrypted_content: "Zm9v" },
    },
    {
      type: "call",
      id: "toolu_01P",
      name: "query",
      args: '{"q":1}',
      extra: {
        family: "anthropic-messages",
        fields: { caller: { type: "code_execution_20260120", tool_id: "srvtoolu_9" } },
      },
    },
  ],
  stop: "tool-calls",
  usage: { input: 21, output: 5 },
};
