/** The messages door: what a run looks like as a stream and in one piece, and that the official SDK agrees. */
import Anthropic from "@anthropic-ai/sdk";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { AgentEvent, ModelEvent, PartStart } from "../../src/core/event.ts";
import { fold } from "../../src/core/fold.ts";
import type { AssistantPart, ProviderName, StopReason, Usage } from "../../src/core/message.ts";
import { AppError, toFault } from "../../src/errors.ts";
import { anthropicMessages } from "../../src/protocols/anthropic-messages.ts";
import { messagesRequest } from "../../src/protocols/anthropic-messages-request.ts";
import type { ReplyMeta } from "../../src/protocols/codec.ts";

const META: ReplyMeta = {
  model: "claude-x",
  requestId: "req_1",
  createdAt: new Date(0),
  choices: 1,
  agentEvents: false,
};

type Step = Exclude<ModelEvent, { type: "failed" }>;
type Close = Extract<AgentEvent, { type: "run-close" }>;

const opened = (provider: ProviderName = "openai"): AgentEvent => ({
  type: "run-open",
  runId: "run_1",
  provider,
  model: "up",
});
const step = (event: Step, n = 0, server = false): AgentEvent => ({
  type: "model",
  step: n,
  event,
  ...(server ? { server } : {}),
});
const closed = (fields: Partial<Close> = {}): AgentEvent => ({
  type: "run-close",
  outcome: "completed",
  stop: "stop",
  usage: { input: 10, output: 5 },
  ...fields,
});
const open: Step = { type: "open", model: "up" };
const done: Step = { type: "done", stop: "stop", usage: { input: 10, output: 5 } };
const start = (index: number, part: PartStart): Step => ({ type: "part-open", index, part });
const piece = (index: number, delta: string): Step => ({ type: "part-delta", index, delta });
const end = (index: number, seal?: string): Step => ({ type: "part-close", index, seal });
const family = (fields: Record<string, unknown>) => ({ family: "anthropic-messages" as const, fields });

function encode(events: AgentEvent[], meta: Partial<ReplyMeta> = {}): string {
  const encoder = anthropicMessages.encoder({ ...META, ...meta });
  return events.map((event) => encoder.push(event)).join("");
}

function collect(events: AgentEvent[], meta: Partial<ReplyMeta> = {}): Record<string, unknown> {
  const collector = anthropicMessages.collector({ ...META, ...meta });
  for (const event of events) collector.push(event);
  return collector.body();
}

/** The stream's data objects; every event's name is its data's type. */
function frames(sse: string): Record<string, unknown>[] {
  expect(sse.endsWith("\n\n")).toBe(true);
  return sse
    .slice(0, -2)
    .split("\n\n")
    .map((frame) => {
      const match = /^event: (\w+)\ndata: (.*)$/.exec(frame);
      const data = JSON.parse(match?.[2] as string);
      expect(data.type).toBe(match?.[1]);
      return data;
    });
}

/** Frames between the head and the tail that every reply has. */
const blocks = (sse: string) => frames(sse).slice(2, -2);

async function throughSdk(sse: string) {
  const client = new Anthropic({
    apiKey: "k",
    baseURL: "http://door.test",
    maxRetries: 0,
    fetch: async () => new Response(sse, { headers: { "content-type": "text/event-stream" } }),
  });
  const stream = client.messages.stream({
    model: "claude-x",
    max_tokens: 10,
    messages: [{ role: "user", content: "hi" }],
  });
  // `parsed_output` is the SDK's own addition.
  const { parsed_output: _, ...message } = JSON.parse(JSON.stringify(await stream.finalMessage()));
  return message;
}

test("a plain reply", async () => {
  const events = [
    opened(),
    step(open),
    step(start(0, { kind: "text" })),
    step(piece(0, 'Hel"')),
    step(piece(0, "lo\n")),
    step(end(0)),
    step(done),
    closed(),
  ];
  const sse = encode(events);
  expect(frames(sse)).toEqual([
    {
      type: "message_start",
      message: {
        id: "msg_1",
        type: "message",
        role: "assistant",
        model: "claude-x",
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: {
          input_tokens: 0,
          cache_creation_input_tokens: 0,
          cache_read_input_tokens: 0,
          output_tokens: 0,
        },
      },
    },
    { type: "ping" },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: 'Hel"' } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "lo\n" } },
    { type: "content_block_stop", index: 0 },
    {
      type: "message_delta",
      delta: { stop_reason: "end_turn", stop_sequence: null },
      usage: {
        input_tokens: 10,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 0,
        output_tokens: 5,
      },
    },
    { type: "message_stop" },
  ]);
  expect(collect(events)).toEqual({
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "claude-x",
    content: [{ type: "text", text: 'Hel"lo\n' }],
    stop_reason: "end_turn",
    stop_sequence: null,
    usage: { input_tokens: 10, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 5 },
  });
  expect(await throughSdk(sse)).toEqual(collect(events));
});

test("parallel calls that interleave become one block after the other", () => {
  const events = [
    opened(),
    step(open),
    step(start(0, { kind: "call", id: "a", name: "f" })),
    step(start(1, { kind: "call", id: "b", name: "g" })),
    step(piece(1, '{"y"')),
    step(piece(0, '{"x":1}')),
    step(piece(1, ":2}")),
    step(start(2, { kind: "call", id: "c", name: "h" })),
    step(end(1)),
    step(end(0)),
    step(end(2)),
    step({ ...done, stop: "tool-calls" } as Step),
    closed({ outcome: "handed-back", stop: "tool-calls" }),
  ];
  expect(blocks(encode(events))).toEqual([
    {
      type: "content_block_start",
      index: 0,
      content_block: { type: "tool_use", id: "a", name: "f", input: {} },
    },
    { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: '{"x":1}' } },
    { type: "content_block_stop", index: 0 },
    {
      type: "content_block_start",
      index: 1,
      content_block: { type: "tool_use", id: "b", name: "g", input: {} },
    },
    { type: "content_block_delta", index: 1, delta: { type: "input_json_delta", partial_json: '{"y"' } },
    { type: "content_block_delta", index: 1, delta: { type: "input_json_delta", partial_json: ":2}" } },
    { type: "content_block_stop", index: 1 },
    {
      type: "content_block_start",
      index: 2,
      content_block: { type: "tool_use", id: "c", name: "h", input: {} },
    },
    { type: "content_block_stop", index: 2 },
  ]);
  expect(collect(events)).toMatchObject({
    stop_reason: "tool_use",
    content: [
      { type: "tool_use", id: "a", name: "f", input: { x: 1 } },
      { type: "tool_use", id: "b", name: "g", input: { y: 2 } },
      { type: "tool_use", id: "c", name: "h", input: {} },
    ],
  });
});

describe("a run of several steps", () => {
  const events = [
    opened("gemini"),
    step(open),
    step(start(0, { kind: "reasoning" })),
    step(piece(0, "hm")),
    step(end(0, "s1")),
    step(start(1, { kind: "call", id: "srv", name: "read_file" }), 0, true),
    step(piece(1, "{}"), 0, true),
    step(end(1), 0, true),
    step({ ...done, stop: "tool-calls" } as Step),
    { type: "tool-start", step: 0, callId: "srv", name: "read_file", args: "{}" },
    { type: "tool-progress", step: 0, callId: "srv", delta: "…" },
    {
      type: "tool-end",
      step: 0,
      callId: "srv",
      name: "read_file",
      output: [{ type: "text", text: "file" }],
      failed: false,
    },
    step(open, 1),
    step(start(0, { kind: "text" }), 1),
    step(piece(0, "it says file"), 1),
    step(end(0), 1),
    step(done, 1),
    closed(),
  ] satisfies AgentEvent[];

  test("is one message with dense blocks, and the server's own calls are not in it", async () => {
    const sse = encode(events);
    expect(blocks(sse)).toEqual([
      {
        type: "content_block_start",
        index: 0,
        content_block: { type: "thinking", thinking: "", signature: "" },
      },
      { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "hm" } },
      {
        type: "content_block_delta",
        index: 0,
        delta: { type: "signature_delta", signature: "dragoman.gemini.s1" },
      },
      { type: "content_block_stop", index: 0 },
      { type: "content_block_start", index: 1, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index: 1, delta: { type: "text_delta", text: "it says file" } },
      { type: "content_block_stop", index: 1 },
    ]);
    expect(await throughSdk(sse)).toEqual(collect(events));
    expect(collect(events)).toMatchObject({ stop_reason: "end_turn" });
  });

  test("shows them in pings to those who ask", async () => {
    const sse = encode(events, { agentEvents: true });
    const shown = frames(sse).flatMap((frame) => frame.agent_event ?? []);
    expect(shown).toEqual([
      { type: "tool-start", step: 0, call_id: "srv", name: "read_file", args: "{}" },
      { type: "tool-progress", step: 0, call_id: "srv", delta: "…" },
      { type: "tool-end", step: 0, call_id: "srv", name: "read_file", output: "file", failed: false },
    ]);
    expect(await throughSdk(sse)).toEqual(collect(events));
  });

  test("and that a summary stands for the oldest messages", async () => {
    const compacted = {
      type: "compacted",
      step: 0,
      messages: 12,
      tokensBefore: 900,
      tokensAfter: 300,
    } as const;
    const all: AgentEvent[] = [...events.slice(0, 1), compacted, ...events.slice(1)];
    expect(encode(all)).toBe(encode(events));
    expect(collect(all)).toEqual(collect(events));
    const sse = encode(all, { agentEvents: true });
    expect(frames(sse).find((frame) => frame.agent_event)?.agent_event).toEqual({
      ...{ type: "compacted", step: 0, messages: 12, tokens_before: 900, tokens_after: 300 },
    });
    expect(await throughSdk(sse)).toEqual(collect(events));
  });
});

describe("thinking", () => {
  const run = (provider: ProviderName, part: PartStart, seal: string | undefined, hideThinking = false) => {
    const events = [
      opened(provider),
      step(open),
      step(start(0, part)),
      ...(part.kind === "reasoning" && part.redacted ? [] : [step(piece(0, "hm"))]),
      step(end(0, seal)),
      step(done),
      closed(),
    ];
    const meta = { echo: { hideThinking } };
    const fromStream = blocks(encode(events, meta));
    return { content: collect(events, meta).content, first: fromStream[0], count: fromStream.length };
  };

  test.each([
    ["anthropic", "c2ln", "c2ln"],
    ["groq", "x.y", "dragoman.groq.x.y"],
    ["openai", undefined, ""],
  ] as const)("of %s with the seal %s", (provider, seal, signature) => {
    expect(run(provider, { kind: "reasoning" }, seal).content).toEqual([
      { type: "thinking", thinking: "hm", signature },
    ]);
  });

  test("that is redacted comes whole in its start", () => {
    const block = { type: "redacted_thinking", data: "dragoman.gemini.s" };
    expect(run("gemini", { kind: "reasoning", redacted: true }, "s")).toEqual({
      content: [block],
      first: { type: "content_block_start", index: 0, content_block: block },
      count: 2,
    });
    expect(run("gemini", { kind: "reasoning", redacted: true }, undefined)).toMatchObject({
      content: [],
      count: 0,
    });
  });

  test("that the client wants omitted keeps its seal, and without one is not there", () => {
    expect(run("gemini", { kind: "reasoning" }, "s", true)).toMatchObject({
      content: [{ type: "thinking", thinking: "", signature: "dragoman.gemini.s" }],
      count: 3,
    });
    expect(run("openai", { kind: "reasoning" }, undefined, true)).toMatchObject({ content: [], count: 0 });
  });
});

test("what only the family has goes through: citations, hosted tools, counters, container", async () => {
  const citation = { type: "char_location", cited_text: "x" };
  const search = { type: "server_tool_use", id: "s", name: "web_search", input: {} };
  const extra = (fields: Record<string, unknown>): Step => ({
    type: "part-delta",
    index: 0,
    delta: "",
    extra: family(fields),
  });
  const events = [
    opened("anthropic"),
    step({
      ...open,
      extra: family({ usage: { input_tokens: 7, output_tokens: 1, service_tier: "standard" } }),
    } as Step),
    step(start(0, { kind: "raw", family: "anthropic-messages", block: search })),
    step(extra({ type: "input_json_delta", partial_json: '{"query":"q"}' })),
    step({ type: "part-close", index: 0, block: { ...search, input: { query: "q" } } }),
    step(start(1, { kind: "raw", family: "gemini", block: { executableCode: {} } })),
    step(end(1)),
    step(start(2, { kind: "text" })),
    step(piece(2, "so")),
    step({
      type: "part-delta",
      index: 2,
      delta: "",
      extra: family({ type: "citations_delta", citation }),
    }),
    step({ type: "part-close", index: 2, extra: family({ citations: [citation, citation] }) }),
    step({ ...start(3, { kind: "reasoning" }) } as Step),
    step({
      type: "part-delta",
      index: 3,
      delta: "",
      extra: family({ type: "thinking_delta", thinking: "", estimated_tokens: 50 }),
    }),
    step(end(3, "c2ln")),
    step(
      start(4, { kind: "call", id: "c", name: "f", extra: family({ caller: { type: "x", tool_id: "s" } }) }),
    ),
    step(piece(4, "{}")),
    step({ type: "part-close", index: 4, extra: family({ caller: { type: "x", tool_id: "s" } }) }),
    step(done),
    closed({
      outcome: "handed-back",
      stop: "tool-calls",
      usage: {
        input: 107,
        output: 9,
        cacheRead: 90,
        cacheWrite: 10,
        reasoning: 4,
        trimmedMessages: 2,
        extra: family({ service_tier: "standard", server_tool_use: { web_search_requests: 1 } }),
      },
      extra: family({ container: { id: "k" }, context_management: { applied_edits: [] } }),
    }),
  ];
  const sse = encode(events);
  expect(blocks(sse).map((frame) => frame.delta ?? frame.content_block ?? frame.index)).toEqual([
    search,
    { type: "input_json_delta", partial_json: '{"query":"q"}' },
    0,
    { type: "text", text: "" },
    { type: "text_delta", text: "so" },
    { type: "citations_delta", citation },
    { type: "citations_delta", citation },
    1,
    { type: "thinking", thinking: "", signature: "" },
    { type: "thinking_delta", thinking: "", estimated_tokens: 50 },
    { type: "signature_delta", signature: "c2ln" },
    2,
    { caller: { type: "x", tool_id: "s" }, type: "tool_use", id: "c", name: "f", input: {} },
    { type: "input_json_delta", partial_json: "{}" },
    3,
  ]);
  expect(frames(sse)[0]).toMatchObject({
    message: { usage: { input_tokens: 7, output_tokens: 1, service_tier: "standard" } },
  });
  const usage = {
    input_tokens: 7,
    cache_creation_input_tokens: 10,
    cache_read_input_tokens: 90,
    output_tokens: 9,
    output_tokens_details: { thinking_tokens: 4 },
    service_tier: "standard",
    server_tool_use: { web_search_requests: 1 },
    trimmed_messages: 2,
  };
  expect(frames(sse).at(-2)).toEqual({
    type: "message_delta",
    delta: { stop_reason: "tool_use", stop_sequence: null, container: { id: "k" } },
    usage,
    context_management: { applied_edits: [] },
  });
  const body = collect(events);
  expect(body).toMatchObject({
    content: [
      { ...search, input: { query: "q" } },
      { type: "text", text: "so", citations: [citation, citation] },
      { type: "thinking", thinking: "", signature: "c2ln" },
      { type: "tool_use", id: "c", name: "f", input: {}, caller: { type: "x", tool_id: "s" } },
    ],
    container: { id: "k" },
    context_management: { applied_edits: [] },
    usage,
  });
  expect((await throughSdk(sse)).content).toEqual(body.content);
});

describe("the end", () => {
  const call: Step[] = [start(0, { kind: "call", id: "a", name: "f" }), end(0)];
  const ended = (fields: Partial<Close>, parts: Step[] = []) => {
    const events = [opened(), step(open), ...parts.map((part) => step(part)), step(done), closed(fields)];
    const body = collect(events);
    expect(frames(encode(events)).at(-2)?.delta).toEqual({
      stop_reason: body.stop_reason,
      stop_sequence: body.stop_sequence,
    });
    return body.stop_reason;
  };

  test.each([
    ["stop", "end_turn"],
    ["stop-sequence", "stop_sequence"],
    ["length", "max_tokens"],
    ["tool-calls", "end_turn"],
    ["refusal", "refusal"],
    ["content-filter", "refusal"],
    ["pause", "pause_turn"],
    ["context-window", "model_context_window_exceeded"],
  ] as [StopReason, string][])("%s is %s", (stop, wire) => {
    expect(ended({ stop })).toBe(wire);
  });

  test("calls, refusals and the upstream's own words", () => {
    expect(ended({ stop: "tool-calls" }, call)).toBe("tool_use");
    expect(ended({ stop: "stop", outcome: "handed-back" }, call)).toBe("tool_use");
    expect(ended({}, [start(0, { kind: "refusal" }), piece(0, "No."), end(0)])).toBe("refusal");
    expect(ended({ stop: "pause", extra: family({ stop_reason: "compaction" }) })).toBe("compaction");
    expect(ended({ stop: "stop-sequence", stopSequence: "END" })).toBe("stop_sequence");
    expect(collect([opened(), closed({ stop: "stop-sequence", stopSequence: "END" })]).stop_sequence).toBe(
      "END",
    );
  });

  test("a refusal is text", () => {
    const parts = [start(0, { kind: "refusal" }), piece(0, "No."), end(0)];
    const events = [opened(), ...[open, ...parts, done].map((event) => step(event)), closed()];
    expect(collect(events).content).toEqual([{ type: "text", text: "No." }]);
    expect(blocks(encode(events))[1]).toMatchObject({ delta: { type: "text_delta", text: "No." } });
  });

  test("of a run that breaks is an error event", async () => {
    const fault = toFault(new AppError("upstream_error", "Overloaded.", { status: 529 }));
    const events = [
      opened(),
      step(open),
      step(start(0, { kind: "text" })),
      step(piece(0, "half")),
      closed({ outcome: "failed", fault }),
    ];
    const body = {
      type: "error",
      error: { type: "overloaded_error", message: "Overloaded." },
      request_id: "req_1",
    };
    const sse = encode(events);
    expect(frames(sse).at(-1)).toEqual(body);
    expect(collect(events)).toEqual(body);
    await expect(throughSdk(sse)).rejects.toThrow("Overloaded.");
  });

  test("of a run that is stopped is an error event, too", () => {
    expect(frames(encode([opened(), step(open), closed({ outcome: "stopped" })])).at(-1)).toEqual({
      type: "error",
      error: { type: "api_error", message: "The run was stopped." },
      request_id: "req_1",
    });
  });

  test("closes a part that was left open", async () => {
    const events = [
      opened(),
      step(start(0, { kind: "text" })),
      step(piece(0, "limit")),
      step(start(1, { kind: "text" })),
      step(piece(1, "!")),
      closed({ stop: "length" }),
    ];
    expect(await throughSdk(encode(events))).toEqual(collect(events));
  });
});

test("argument text that is no object is kept under _raw in one piece", () => {
  const events = (args: string) => [
    opened(),
    ...[open, start(0, { kind: "call", id: "a", name: "f" }), piece(0, args), end(0), done].map((event) =>
      step(event),
    ),
    closed(),
  ];
  expect(collect(events('{"a":'))).toMatchObject({ content: [{ input: { _raw: '{"a":' } }] });
  expect(collect(events("[1]"))).toMatchObject({ content: [{ input: { _raw: "[1]" } }] });
  expect(collect(events('{"a":[]}'))).toMatchObject({ content: [{ input: { a: [] } }] });
});

describe("a fault before the first byte", () => {
  test.each([
    [400, "invalid_request_error"],
    [401, "authentication_error"],
    [402, "billing_error"],
    [403, "permission_error"],
    [404, "not_found_error"],
    [408, "timeout_error"],
    [409, "conflict_error"],
    [413, "request_too_large"],
    [415, "invalid_request_error"],
    [422, "invalid_request_error"],
    [429, "rate_limit_error"],
    [500, "api_error"],
    [502, "api_error"],
    [503, "api_error"],
    [504, "timeout_error"],
    [529, "overloaded_error"],
  ])("%i is %s", (status, type) => {
    const fault = toFault(new AppError("upstream_error", "Why.", { status }));
    expect(anthropicMessages.fault(fault, "req_9")).toEqual({
      status,
      body: { type: "error", error: { type, message: "Why." }, request_id: "req_9" },
      headers: { "request-id": "req_9" },
    });
  });

  test("tells when to come back, in whole seconds, and the details", () => {
    const fault = toFault(
      new AppError("rate_limited", "Slow down.", { retryAfter: 1.2, details: { error_code: "x" } }),
    );
    const reply = anthropicMessages.fault(fault, "r");
    expect(reply.headers).toEqual({ "request-id": "r", "retry-after": "2" });
    expect(reply.body.error).toMatchObject({ details: { error_code: "x" } });
  });
});

/** One model stream: parts of any kind, their deltas interleaved, some closed late. */
function modelStream(provider: ProviderName): fc.Arbitrary<{ events: Step[]; parts: AssistantPart[] }> {
  const sealed = fc.option(fc.stringMatching(/^[A-Za-z0-9+/=.]{1,20}$/), { nil: undefined });
  const words = fc.array(fc.string({ minLength: 1 }), { maxLength: 4 });
  const part = fc.oneof(
    fc.record({
      start: fc.constant<PartStart>({ kind: "text" }),
      pieces: words,
      seal: fc.constant(undefined),
    }),
    fc.record({ start: fc.constant<PartStart>({ kind: "reasoning" }), pieces: words, seal: sealed }),
    fc.record({
      start: fc.constant<PartStart>({ kind: "reasoning", redacted: true }),
      pieces: fc.constant<string[]>([]),
      seal: fc.stringMatching(/^[A-Za-z0-9+/=]{1,20}$/),
    }),
    fc
      .record({
        name: fc.stringMatching(/^[a-z_]{1,10}$/),
        input: fc.dictionary(fc.string(), fc.jsonValue()),
        cut: fc.nat(20),
      })
      .map(({ name, input, cut }) => {
        const args = JSON.stringify(JSON.parse(JSON.stringify(input)));
        return {
          start: { kind: "call", id: "", name } as PartStart,
          pieces: [args.slice(0, cut), args.slice(cut)].filter((text) => text !== ""),
          seal: undefined,
        };
      }),
  );
  return fc
    .tuple(fc.array(part, { maxLength: 5 }), fc.array(fc.nat(), { minLength: 40, maxLength: 40 }))
    .map(([drafts, picks]) => {
      const events: Step[] = [open];
      const queues = drafts.map((draft, index): Step[] => [
        start(index, draft.start.kind === "call" ? { ...draft.start, id: `call_${index}` } : draft.start),
        ...draft.pieces.map((text) => piece(index, text)),
        end(index, draft.seal),
      ]);
      let next = 0;
      for (let turn = 0; queues.some((queue) => queue.length > 0); turn++) {
        const live = queues.filter((queue, index) => queue.length > 0 && index <= next);
        const queue = live[(picks[turn % picks.length] as number) % live.length] as Step[];
        const event = queue.shift() as Step;
        if (event.type === "part-open") next = Math.max(next, event.index + 1);
        events.push(event);
      }
      events.push(done);
      return { events, parts: fold(events, { provider }).content };
    });
}

describe("properties", () => {
  const usage: fc.Arbitrary<Usage> = fc
    .record({
      fresh: fc.nat(1000),
      output: fc.nat(1000),
      cacheRead: fc.option(fc.nat(100), { nil: undefined }),
      cacheWrite: fc.option(fc.nat(100), { nil: undefined }),
      reasoning: fc.option(fc.nat(100), { nil: undefined }),
    })
    .map(({ fresh, ...rest }) => ({
      ...rest,
      input: fresh + (rest.cacheRead ?? 0) + (rest.cacheWrite ?? 0),
    }));
  const provider = fc.constantFrom<ProviderName>("anthropic", "gemini", "openai", "groq");
  const run = provider.chain((name) =>
    fc.record({
      provider: fc.constant(name),
      steps: fc.array(modelStream(name), { minLength: 1, maxLength: 3 }),
      usage,
      hideThinking: fc.boolean(),
    }),
  );

  test("the SDK makes of the stream what the collector makes of the run", async () => {
    await fc.assert(
      fc.asyncProperty(run, async ({ provider, steps, usage, hideThinking }) => {
        const events = [
          opened(provider),
          ...steps.flatMap(({ events }, n) => events.map((event) => step(event, n))),
          closed({ usage }),
        ];
        const meta = { echo: { hideThinking } };
        const sse = encode(events, meta);
        expect(await throughSdk(sse)).toEqual(JSON.parse(JSON.stringify(collect(events, meta))));
        let index = -1;
        let isOpen = false;
        for (const frame of blocks(sse)) {
          if (frame.type === "content_block_start") {
            expect(isOpen).toBe(false);
            isOpen = true;
            index++;
          }
          expect([isOpen, frame.index]).toEqual([true, index]);
          if (frame.type === "content_block_stop") isOpen = false;
        }
        expect(isOpen).toBe(false);
      }),
      { numRuns: 150 },
    );
  });

  test("what a client replays has the same parts and seals again", () => {
    fc.assert(
      fc.property(
        provider.chain((name) => fc.tuple(fc.constant(name), modelStream(name))),
        ([name, { events, parts }]) => {
          const body = collect([opened(name), ...events.map((event) => step(event)), closed()]);
          const ids = parts.flatMap((part) => (part.type === "call" ? part.id : []));
          const wire = {
            model: "m",
            max_tokens: 1,
            messages: [
              { role: "user", content: "x" },
              { role: "assistant", content: JSON.parse(JSON.stringify(body.content)) },
              { role: "user", content: ids.map((id) => ({ type: "tool_result", tool_use_id: id })) },
            ],
          };
          const context = { headers: new Headers(), query: new URLSearchParams() };
          const { messages } = anthropicMessages.decode(messagesRequest.parse(wire), context).request;
          const calls = (content: AssistantPart[]) =>
            content.map((part) => (part.type === "call" ? { ...part, args: JSON.parse(part.args) } : part));
          const replayed = messages[1];
          expect(replayed?.role).toBe("assistant");
          if (replayed?.role !== "assistant") return;
          expect(calls(replayed.content)).toEqual(calls(parts));
          const sealed = parts.some((part) => part.type === "reasoning" && part.seal !== undefined);
          expect(replayed.origin).toEqual(sealed ? { provider: name } : undefined);
        },
      ),
      { numRuns: 300 },
    );
  });
});
