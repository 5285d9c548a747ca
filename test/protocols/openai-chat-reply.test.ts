import fc from "fast-check";
import OpenAI, { APIError } from "openai";
import { describe, expect, test } from "vitest";
import type { AgentEvent, ModelEvent, PartStart } from "../../src/core/event.ts";
import type { StopReason, Usage } from "../../src/core/message.ts";
import type { Fault } from "../../src/errors.ts";
import type { ReplyMeta } from "../../src/protocols/codec.ts";
import { openaiChat } from "../../src/protocols/openai-chat.ts";

const family = "openai-chat" as const;
const usage: Usage = { input: 10, output: 5, cacheRead: 4, reasoning: 2 };

function meta(
  fields: Partial<ReplyMeta> & { includeUsage?: boolean; legacyFunctions?: boolean } = {},
): ReplyMeta {
  const { includeUsage = false, legacyFunctions = false, ...rest } = fields;
  return {
    model: "dragoman",
    requestId: "req_1",
    createdAt: new Date("2026-11-20T10:00:00.900Z"),
    choices: 1,
    agentEvents: false,
    echo: { includeUsage, legacyFunctions },
    ...rest,
  };
}

const runOpen: AgentEvent = { type: "run-open", runId: "run_1", provider: "openai", model: "gpt" };
const at = (step: number, event: Exclude<ModelEvent, { type: "failed" }>, server?: boolean): AgentEvent =>
  server ? { type: "model", step, event, server } : { type: "model", step, event };
const open = (step: number, fields: Record<string, unknown> = {}) =>
  at(step, { type: "open", model: "gpt", extra: { family, fields } });
const done = (step: number, stop: StopReason = "stop") => at(step, { type: "done", stop, usage });
const close = (fields: Partial<Extract<AgentEvent, { type: "run-close" }>> = {}): AgentEvent => ({
  type: "run-close",
  outcome: "completed",
  stop: "stop",
  usage,
  ...fields,
});
const part = (step: number, index: number, start: PartStart, deltas: string[], server?: boolean) => [
  at(step, { type: "part-open", index, part: start }, server),
  ...deltas.map((delta) => at(step, { type: "part-delta", index, delta }, server)),
  at(step, { type: "part-close", index }, server),
];
const say = (step: number, index: number, ...deltas: string[]) => part(step, index, { kind: "text" }, deltas);
const call = (step: number, index: number, id: string, deltas: string[], server?: boolean) =>
  part(step, index, { kind: "call", id, name: `do_${id}` }, deltas, server);

const plain = [runOpen, open(0), ...say(0, 0, "Hel", "lo"), done(0), close()];

function streamOf(events: AgentEvent[], of = meta()): string {
  const encoder = openaiChat.encoder(of);
  return events.map((event) => encoder.push(event)).join("");
}

type Chunk = Record<string, unknown> & { id?: string };

/** The data of each event; fails on anything else on the wire. */
function chunksOf(sse: string): (Chunk | "[DONE]")[] {
  if (sse === "") return [];
  expect(sse.endsWith("\n\n")).toBe(true);
  return sse
    .slice(0, -2)
    .split("\n\n")
    .map((event) => {
      expect(event).toMatch(/^data: [^\n]+$/);
      return event === "data: [DONE]" ? "[DONE]" : JSON.parse(event.slice(6));
    });
}

/** What is written, with the constant fields asserted and taken away. */
function written(events: AgentEvent[], of = meta()): unknown[] {
  const chunks = chunksOf(streamOf(events, of));
  const ids = new Set(chunks.flatMap((chunk) => (chunk === "[DONE]" || chunk.error ? [] : [chunk.id])));
  expect(ids.size).toBeLessThanOrEqual(1);
  return chunks.map((chunk) => {
    if (chunk === "[DONE]" || chunk.error) return chunk;
    const { id, object, created, model, ...rest } = chunk;
    expect(id).toMatch(/^chatcmpl-[a-z2-7]{32}$/);
    expect({ object, created, model }).toEqual({
      object: "chat.completion.chunk",
      created: 1795168800,
      model: "dragoman",
    });
    return rest;
  });
}

const chunk = (delta: unknown, finish_reason: string | null = null, more: object = {}, index = 0) => ({
  system_fingerprint: null,
  choices: [{ index, delta, logprobs: null, finish_reason }],
  ...more,
});
const role = { role: "assistant", content: "" };

function bodyOf(events: AgentEvent[], of = meta()): Record<string, unknown> {
  const collector = openaiChat.collector(of);
  for (const event of events) collector.push(event);
  return collector.body();
}

const usageOnWire = {
  prompt_tokens: 10,
  completion_tokens: 5,
  total_tokens: 15,
  prompt_tokens_details: { audio_tokens: 0, cached_tokens: 4 },
  completion_tokens_details: {
    audio_tokens: 0,
    accepted_prediction_tokens: 0,
    rejected_prediction_tokens: 0,
    reasoning_tokens: 2,
  },
};

describe("a stream", () => {
  test("of a plain reply", () => {
    expect(written(plain)).toEqual([
      chunk(role),
      chunk({ content: "Hel" }),
      chunk({ content: "lo" }),
      chunk({}, "stop"),
      "[DONE]",
    ]);
  });

  test("with usage when it was asked for", () => {
    const none = { usage: null };
    expect(written(plain, meta({ includeUsage: true }))).toEqual([
      chunk(role, null, none),
      chunk({ content: "Hel" }, null, none),
      chunk({ content: "lo" }, null, none),
      chunk({}, "stop", none),
      { system_fingerprint: null, choices: [], usage: usageOnWire },
      "[DONE]",
    ]);
  });

  test("with what the upstream tells of itself", () => {
    const events = [
      runOpen,
      open(0, { system_fingerprint: "fp_1", service_tier: "flex", other: 1 }),
      close(),
    ];
    const own = { system_fingerprint: "fp_1", service_tier: "flex" };
    expect(written(events)).toEqual([chunk(role, null, own), chunk({}, "stop", own), "[DONE]"]);
  });

  test("with reasoning, a refusal and parallel calls whose fragments interleave", () => {
    const events = [
      runOpen,
      open(0),
      ...part(0, 0, { kind: "reasoning" }, ["let me", " see"]),
      ...part(0, 1, { kind: "refusal" }, ["not that"]),
      at(0, { type: "part-open", index: 2, part: { kind: "call", id: "a", name: "f" } }),
      at(0, { type: "part-open", index: 3, part: { kind: "call", id: "b", name: "g" } }),
      at(0, { type: "part-delta", index: 3, delta: '{"x"' }),
      at(0, { type: "part-delta", index: 2, delta: "{}" }),
      at(0, { type: "part-delta", index: 3, delta: ":1}" }),
      at(0, { type: "part-close", index: 2 }),
      at(0, { type: "part-close", index: 3 }),
      ...part(0, 4, { kind: "call", id: "c", name: "free", freeform: true }, ["go\n"]),
      done(0, "tool-calls"),
      close({ outcome: "handed-back", stop: "tool-calls" }),
    ];
    const fragment = (index: number, fields: object) => chunk({ tool_calls: [{ index, ...fields }] });
    expect(written(events)).toEqual([
      chunk(role),
      chunk({ reasoning_content: "let me" }),
      chunk({ reasoning_content: " see" }),
      chunk({ refusal: "not that" }),
      fragment(0, { id: "a", type: "function", function: { name: "f", arguments: "" } }),
      fragment(1, { id: "b", type: "function", function: { name: "g", arguments: "" } }),
      fragment(1, { function: { arguments: '{"x"' } }),
      fragment(0, { function: { arguments: "{}" } }),
      fragment(1, { function: { arguments: ":1}" } }),
      fragment(2, { id: "c", type: "custom", custom: { name: "free", input: "" } }),
      fragment(2, { custom: { input: "go\n" } }),
      chunk({}, "tool_calls"),
      "[DONE]",
    ]);
  });

  test("never shows the server's calls or foreign blocks, and separates what different steps say", () => {
    const events: AgentEvent[] = [
      runOpen,
      open(0),
      ...part(0, 0, { kind: "reasoning" }, ["hm"]),
      ...say(0, 1, "First."),
      ...part(0, 2, { kind: "raw", family: "anthropic-messages", block: { type: "server_tool_use" } }, ["x"]),
      ...call(0, 3, "s1", ["{}"], true),
      done(0, "tool-calls"),
      { type: "tool-start", step: 0, callId: "s1", name: "do_s1", args: "{}" },
      { type: "tool-end", step: 0, callId: "s1", name: "do_s1", output: [], failed: false },
      open(1),
      ...part(1, 0, { kind: "reasoning" }, ["so"]),
      ...say(1, 1, "Then", " this.\n"),
      ...call(1, 2, "s2", ["{}"], true),
      done(1, "tool-calls"),
      open(2),
      ...say(2, 0, "Last."),
      ...say(2, 1, " Really."),
      ...call(2, 2, "s3", ["{}"], true),
      ...call(2, 3, "mine", []),
      done(2, "tool-calls"),
      close({ outcome: "handed-back", stop: "tool-calls" }),
    ];
    expect(written(events)).toEqual([
      chunk(role),
      chunk({ reasoning_content: "hm" }),
      chunk({ content: "First." }),
      chunk({ reasoning_content: "\n\nso" }),
      chunk({ content: "\n\nThen" }),
      chunk({ content: " this.\n" }),
      chunk({ content: "Last." }),
      chunk({ content: " Really." }),
      chunk({
        tool_calls: [
          { index: 0, id: "mine", type: "function", function: { name: "do_mine", arguments: "" } },
        ],
      }),
      chunk({ tool_calls: [{ index: 0, function: { arguments: "{}" } }] }),
      chunk({}, "tool_calls"),
      "[DONE]",
    ]);
  });

  test("that ends in words of the agent's own, without a model call", () => {
    const events = [
      runOpen,
      open(0),
      ...say(0, 0, "A"),
      done(0),
      ...say(1, 0, "Gave up."),
      close({ stop: "length" }),
    ];
    expect(written(events).slice(1)).toEqual([
      chunk({ content: "A" }),
      chunk({ content: "\n\nGave up." }),
      chunk({}, "length"),
      "[DONE]",
    ]);
  });

  test("with log probabilities where the upstream gives them", () => {
    const logprobs = {
      content: [{ token: "Hi", logprob: -0.1, bytes: [72, 105], top_logprobs: [] }],
      refusal: null,
    };
    const events = [
      runOpen,
      open(0),
      at(0, { type: "part-open", index: 0, part: { kind: "text" } }),
      at(0, { type: "part-delta", index: 0, delta: "Hi", extra: { family, fields: { logprobs } } }),
      at(0, { type: "part-delta", index: 0, delta: "", extra: { family, fields: { logprobs } } }),
      at(0, { type: "part-close", index: 0 }),
      done(0),
      close(),
    ];
    const withLogprobs = (content: string) => ({
      system_fingerprint: null,
      choices: [{ index: 0, delta: { content }, logprobs, finish_reason: null }],
    });
    expect(written(events)).toEqual([
      chunk(role),
      withLogprobs("Hi"),
      withLogprobs(""),
      chunk({}, "stop"),
      "[DONE]",
    ]);
    expect(bodyOf(events).choices).toEqual([
      {
        index: 0,
        message: { role: "assistant", content: "Hi", refusal: null, annotations: [] },
        logprobs: { content: [...logprobs.content, ...logprobs.content], refusal: null },
        finish_reason: "stop",
      },
    ]);
  });

  test("with the annotations and the late tier of its upstream", () => {
    const annotations = [{ type: "url_citation", url_citation: { url: "https://example.com" } }];
    const events: AgentEvent[] = [
      runOpen,
      at(0, { type: "open", model: "gpt" }),
      at(0, { type: "part-open", index: 0, part: { kind: "text" } }),
      at(0, { type: "part-delta", index: 0, delta: "It says", extra: { family, fields: { annotations } } }),
      at(0, { type: "part-close", index: 0 }),
      at(0, { type: "done", stop: "stop", usage, extra: { family, fields: { service_tier: "flex" } } }),
      close(),
    ];
    expect(written(events)).toEqual([
      chunk(role),
      chunk({ content: "It says", annotations }),
      chunk({}, "stop", { service_tier: "flex" }),
      "[DONE]",
    ]);
    const body = bodyOf(events);
    expect(body.service_tier).toBe("flex");
    expect(body.choices).toMatchObject([{ message: { content: "It says", annotations } }]);
  });

  test("shows what the server does to a client that asks for it", () => {
    const events: AgentEvent[] = [
      runOpen,
      open(0),
      ...call(0, 0, "s", ["{}"], true),
      done(0, "tool-calls"),
      { type: "tool-start", step: 0, callId: "s", name: "run", args: "{}" },
      { type: "tool-progress", step: 0, callId: "s", delta: "1\n" },
      {
        type: "tool-end",
        step: 0,
        callId: "s",
        name: "run",
        output: [{ type: "text", text: "1\n2" }],
        failed: true,
      },
      open(1),
      ...say(1, 0, "ok"),
      done(1),
      close(),
    ];
    const activity = (agent_event: unknown) => chunk({}, null, { usage: null, agent_event });
    expect(written(events, meta({ agentEvents: true, includeUsage: true })).slice(0, -3)).toEqual([
      chunk(role, null, { usage: null }),
      activity({ type: "model-step", step: 0, model: "gpt" }),
      activity({ type: "tool-start", step: 0, call_id: "s", name: "run", args: "{}" }),
      activity({ type: "tool-progress", step: 0, call_id: "s", delta: "1\n" }),
      activity({ type: "tool-end", step: 0, call_id: "s", name: "run", output: "1\n2", failed: true }),
      activity({ type: "model-step", step: 1, model: "gpt" }),
      chunk({ content: "ok" }, null, { usage: null }),
    ]);
  });

  test("and that a summary stands for the oldest messages", () => {
    const compacted = {
      type: "compacted",
      step: 0,
      messages: 12,
      tokensBefore: 900,
      tokensAfter: 300,
    } as const;
    const events: AgentEvent[] = [runOpen, compacted, open(0), ...say(0, 0, "ok"), done(0), close()];
    const without = events.filter((event) => event !== compacted);
    expect(written(events)).toEqual(written(without));
    expect({ ...bodyOf(events), id: "" }).toEqual({ ...bodyOf(without), id: "" });
    expect(written(events, meta({ agentEvents: true })).slice(0, 2)).toEqual([
      chunk(role),
      chunk({}, null, {
        agent_event: { type: "compacted", step: 0, messages: 12, tokens_before: 900, tokens_after: 300 },
      }),
    ]);
  });

  test("in the deprecated form has room for one call", () => {
    const events = [
      runOpen,
      open(0),
      ...call(0, 0, "a", ['{"x":', "1}"]),
      ...call(0, 1, "b", ["{}"]),
      done(0, "tool-calls"),
      close({ outcome: "handed-back", stop: "tool-calls" }),
    ];
    expect(written(events, meta({ legacyFunctions: true }))).toEqual([
      chunk(role),
      chunk({ function_call: { name: "do_a", arguments: "" } }),
      chunk({ function_call: { arguments: '{"x":' } }),
      chunk({ function_call: { arguments: "1}" } }),
      chunk({}, "function_call"),
      "[DONE]",
    ]);
    expect(bodyOf(events, meta({ legacyFunctions: true })).choices).toEqual([
      {
        index: 0,
        message: {
          role: "assistant",
          content: null,
          refusal: null,
          annotations: [],
          function_call: { name: "do_a", arguments: '{"x":1}' },
        },
        logprobs: null,
        finish_reason: "function_call",
      },
    ]);
  });

  const broken: Fault = {
    code: "upstream_error",
    message: "It broke.",
    status: 529,
    upstreamType: "overloaded_error",
  };

  test("that fails ends with an error and no [DONE]", () => {
    const events = [...plain.slice(0, 4), close({ outcome: "failed", fault: broken }), ...say(0, 1, "never")];
    expect(written(events)).toEqual([
      chunk(role),
      chunk({ content: "Hel" }),
      { error: { message: "It broke.", type: "overloaded_error", param: null, code: "upstream_error" } },
    ]);
    expect(written([runOpen, close({ outcome: "stopped" })])).toEqual([
      {
        error: {
          message: "The run was stopped.",
          type: "invalid_request_error",
          param: null,
          code: "cancelled",
        },
      },
    ]);
    expect(() => bodyOf(events)).toThrow("It broke.");
  });

  test.each<[StopReason, string]>([
    ["stop", "stop"],
    ["stop-sequence", "stop"],
    ["length", "length"],
    ["context-window", "length"],
    ["content-filter", "content_filter"],
    ["refusal", "content_filter"],
    ["pause", "stop"],
    ["tool-calls", "stop"],
  ])("that stops for %s finishes with %s", (stop, finish) => {
    expect(written([runOpen, open(0), done(0, stop), close({ stop })]).at(-2)).toEqual(chunk({}, finish));
  });

  test("of a refusal in words, or of a run that waits, simply stops", () => {
    const refusal = [
      ...part(0, 0, { kind: "refusal" }, ["No."]),
      done(0, "refusal"),
      close({ stop: "refusal" }),
    ];
    expect(written([runOpen, open(0), ...refusal]).at(-2)).toEqual(chunk({}, "stop"));
    expect(written([runOpen, open(0), close({ outcome: "paused" })]).at(-2)).toEqual(chunk({}, "stop"));
  });

  test("of several choices has one id, one end and the sum of usage", () => {
    const encoder = openaiChat.encoder(meta({ choices: 2, includeUsage: true }));
    const collector = openaiChat.collector(meta({ choices: 2 }));
    const pushed: [AgentEvent, number][] = [
      [open(0), 1],
      [open(0), 0],
      ...say(0, 0, "one").map((event): [AgentEvent, number] => [event, 1]),
      [close({ stop: "length", usage: { ...usage, trimmedMessages: 3 } }), 1],
      ...say(0, 0, "zero").map((event): [AgentEvent, number] => [event, 0]),
      [close(), 0],
    ];
    const sse = pushed.map(([event, choice]) => encoder.push(event, choice)).join("");
    for (const [event, choice] of pushed) collector.push(event, choice);
    const chunks = chunksOf(sse);
    expect(new Set(chunks.map((each) => (each === "[DONE]" ? "" : each.id))).size).toBe(2);
    const none = { usage: null };
    const sum = {
      prompt_tokens: 20,
      completion_tokens: 10,
      total_tokens: 30,
      prompt_tokens_details: { audio_tokens: 0, cached_tokens: 8 },
      completion_tokens_details: { ...usageOnWire.completion_tokens_details, reasoning_tokens: 4 },
      trimmed_messages: 3,
    };
    expect(
      chunks.map((each) => (each === "[DONE]" ? each : { choices: each.choices, usage: each.usage })),
    ).toEqual([
      ...[
        chunk(role, null, none, 1),
        chunk(role, null, none, 0),
        chunk({ content: "one" }, null, none, 1),
        chunk({}, "length", none, 1),
        chunk({ content: "zero" }, null, none, 0),
        chunk({}, "stop", none, 0),
      ].map(({ system_fingerprint: _, ...rest }) => rest),
      { choices: [], usage: sum },
      "[DONE]",
    ]);
    const body = collector.body() as {
      choices: { index: number; message: { content: string } }[];
      usage: unknown;
    };
    expect(body.choices.map(({ index, message }) => [index, message.content])).toEqual([
      [0, "zero"],
      [1, "one"],
    ]);
    expect(body.usage).toEqual(sum);
  });
});

describe("a whole reply", () => {
  test("of text and reasoning", () => {
    const events = [
      runOpen,
      open(0, { system_fingerprint: "fp", service_tier: "default" }),
      ...part(0, 0, { kind: "reasoning" }, ["hm", "m"]),
      ...say(0, 1, "Hel", "lo"),
      done(0),
      close({
        usage: {
          ...usage,
          cacheWrite: 1,
          trimmedMessages: 2,
          extra: {
            family,
            fields: { queue_time: 0.1, prompt_tokens_details: { audio_tokens: 3, cached_tokens: 99 } },
          },
        },
      }),
    ];
    const body = bodyOf(events);
    expect(body).toEqual({
      id: expect.stringMatching(/^chatcmpl-[a-z2-7]{32}$/),
      object: "chat.completion",
      created: 1795168800,
      model: "dragoman",
      choices: [
        {
          index: 0,
          message: {
            role: "assistant",
            content: "Hello",
            refusal: null,
            annotations: [],
            reasoning_content: "hmm",
          },
          logprobs: null,
          finish_reason: "stop",
        },
      ],
      usage: {
        ...usageOnWire,
        queue_time: 0.1,
        prompt_tokens_details: { audio_tokens: 3, cached_tokens: 4, cache_write_tokens: 1 },
        trimmed_messages: 2,
      },
      service_tier: "default",
      system_fingerprint: "fp",
    });
  });

  test("of calls alone, and of a refusal, has null content", () => {
    const events = [
      runOpen,
      open(0),
      ...call(0, 0, "a", ["{", "}"]),
      ...part(0, 1, { kind: "call", id: "b", name: "free", freeform: true }, ["x"]),
      done(0, "tool-calls"),
      close({ outcome: "handed-back", stop: "tool-calls" }),
    ];
    expect(bodyOf(events).choices).toEqual([
      {
        index: 0,
        message: {
          role: "assistant",
          content: null,
          refusal: null,
          annotations: [],
          tool_calls: [
            { id: "a", type: "function", function: { name: "do_a", arguments: "{}" } },
            { id: "b", type: "custom", custom: { name: "free", input: "x" } },
          ],
        },
        logprobs: null,
        finish_reason: "tool_calls",
      },
    ]);
    const refusal = [
      runOpen,
      open(0),
      ...part(0, 0, { kind: "refusal" }, ["No."]),
      close({ stop: "refusal" }),
    ];
    expect(bodyOf(refusal).choices).toMatchObject([
      { message: { content: null, refusal: "No." }, finish_reason: "stop" },
    ]);
  });

  test("of nothing at all is an empty text", () => {
    expect(bodyOf([runOpen, open(0), close()]).choices).toMatchObject([{ message: { content: "" } }]);
  });

  test("is not there before the run has closed", () => {
    expect(() => bodyOf(plain.slice(0, -1))).toThrow("before all of its runs had closed");
  });
});

describe("a fault", () => {
  test.each<[number, string]>([
    [400, "invalid_request_error"],
    [401, "authentication_error"],
    [403, "permission_error"],
    [404, "not_found_error"],
    [409, "invalid_request_error"],
    [413, "request_too_large"],
    [415, "invalid_request_error"],
    [429, "rate_limit_error"],
    [499, "invalid_request_error"],
    [500, "api_error"],
    [502, "api_error"],
    [529, "overloaded_error"],
  ])("of status %i has the type %s", (status, type) => {
    expect(
      openaiChat.fault(
        { code: "upstream_error", message: "M.", status, upstreamType: "RESOURCE_EXHAUSTED" },
        "req_1",
      ),
    ).toEqual({
      status,
      body: { error: { message: "M.", type, param: null, code: "upstream_error" } },
      headers: {},
    });
  });

  test("keeps the upstream's words and tells when to come again", () => {
    expect(
      openaiChat.fault(
        {
          code: "upstream_error",
          message: "M.",
          status: 429,
          param: "model",
          upstreamType: "insufficient_quota",
          upstreamCode: "quota",
          retryAfter: 1.2,
        },
        "req_1",
      ),
    ).toEqual({
      status: 429,
      body: { error: { message: "M.", type: "insufficient_quota", param: "model", code: "quota" } },
      headers: { "retry-after": "2", "retry-after-ms": "1200" },
    });
  });
});

/** Runs of up to three steps, each of a few parts with their deltas one after another. */
const word = fc.string({ minLength: 1, maxLength: 8, unit: "grapheme" });
const somePart = fc.record({
  kind: fc.constantFrom("text", "reasoning", "refusal", "call", "freeform", "server", "raw"),
  deltas: fc.array(fc.oneof(word, fc.constantFrom("\n", '"', "\u2028", "\r\n", "\ud83d")), { maxLength: 4 }),
});
const someRun = fc
  .tuple(
    fc.array(fc.array(somePart, { maxLength: 4 }), { minLength: 1, maxLength: 3 }),
    fc.constantFrom<StopReason>("stop", "length", "content-filter", "refusal"),
  )
  .map(([steps, stop]) => {
    let calls = 0;
    const events: AgentEvent[] = [runOpen];
    steps.forEach((parts, step) => {
      events.push(open(step));
      parts.forEach(({ kind, deltas }, index) => {
        if (kind === "text" || kind === "reasoning" || kind === "refusal")
          events.push(...part(step, index, { kind }, deltas));
        else if (kind === "raw")
          events.push(...part(step, index, { kind, family: "gemini", block: {} }, deltas));
        else {
          const start: PartStart = {
            kind: "call",
            id: `c${calls++}`,
            name: "f",
            freeform: kind === "freeform",
          };
          events.push(...part(step, index, start, deltas, kind === "server"));
        }
      });
      events.push(done(step));
    });
    events.push(close({ stop }));
    return events;
  });

interface Message {
  content: string | null;
  refusal: string | null;
  reasoning_content?: string;
  tool_calls?: Record<string, unknown>[];
}

type Fragment = {
  index: number;
  id?: string;
  type?: string;
  function?: { name?: string; arguments: string };
  custom?: { name?: string; input: string };
};

/** What any client of the stream puts together from it. */
function assembled(sse: string): { message: Message; finish: unknown } {
  const message = { content: "", refusal: "", reasoning_content: "" };
  const calls: Record<string, { id: unknown; type: unknown; name: string; args: string }> = {};
  let finish: unknown = null;
  for (const each of chunksOf(sse)) {
    if (each === "[DONE]") continue;
    const [choice] = each.choices as { delta: Record<string, string | Fragment[]>; finish_reason: unknown }[];
    if (!choice) continue;
    for (const key of ["content", "refusal", "reasoning_content"] as const)
      message[key] += (choice.delta[key] as string | undefined) ?? "";
    for (const { index, id, type, ...rest } of (choice.delta.tool_calls ?? []) as Fragment[]) {
      calls[index] ??= { id, type, name: (rest.function ?? rest.custom)?.name ?? "", args: "" };
      calls[index].args += rest.function?.arguments ?? rest.custom?.input ?? "";
    }
    finish = choice.finish_reason ?? finish;
  }
  const tool_calls = Object.values(calls).map(({ id, type, name, args }) =>
    type === "custom"
      ? { id, type, custom: { name, input: args } }
      : { id, type, function: { name, arguments: args } },
  );
  const silent = message.content === "" && (tool_calls.length > 0 || message.refusal !== "");
  return {
    message: {
      content: silent ? null : message.content,
      refusal: message.refusal === "" ? null : message.refusal,
      ...(message.reasoning_content && { reasoning_content: message.reasoning_content }),
      ...(tool_calls.length > 0 && { tool_calls }),
    },
    finish,
  };
}

test("what a stream adds up to is the whole reply", () => {
  fc.assert(
    fc.property(someRun, (events) => {
      const [choice] = bodyOf(events).choices as {
        message: Message & { role: string; annotations: unknown };
        finish_reason: string;
      }[];
      const { role: _, annotations: __, ...message } = choice!.message;
      expect(assembled(streamOf(events))).toEqual({ message, finish: choice!.finish_reason });
    }),
    { numRuns: 500 },
  );
});

describe("the official SDK", () => {
  const clientOf = (sse: string) =>
    new OpenAI({
      apiKey: "k",
      baseURL: "http://stub/v1",
      maxRetries: 0,
      fetch: async () => new Response(sse, { headers: { "content-type": "text/event-stream" } }),
    });
  const params = { model: "dragoman", messages: [{ role: "user" as const, content: "x" }] };

  test("assembles the reply", async () => {
    const events = [
      runOpen,
      open(0),
      ...say(0, 0, "Look: ", "ünï \u2028 ✓\n"),
      ...call(0, 1, "a", ['{"q":', '"1"}']),
      ...call(0, 2, "b", []),
      done(0, "tool-calls"),
      close({ outcome: "handed-back", stop: "tool-calls" }),
    ];
    const sse = streamOf(events, meta({ includeUsage: true, agentEvents: true }));
    const reply = await clientOf(sse).chat.completions.stream(params).finalChatCompletion();
    expect(reply.choices[0]?.finish_reason).toBe("tool_calls");
    expect(reply.choices[0]?.message.content).toBe("Look: ünï \u2028 ✓\n");
    expect(
      reply.choices[0]?.message.tool_calls?.map((each) =>
        each.type === "function" ? [each.id, each.function.name, each.function.arguments] : each,
      ),
    ).toEqual([
      ["a", "do_a", '{"q":"1"}'],
      ["b", "do_b", "{}"],
    ]);
    expect(reply.usage).toEqual(usageOnWire);
  });

  test("throws the error that ends a broken stream", async () => {
    const fault: Fault = { code: "upstream_unreachable", message: "It was cut.", status: 502 };
    const sse = streamOf([...plain.slice(0, 4), close({ outcome: "failed", fault })]);
    const seen: string[] = [];
    const read = async () => {
      const stream = await clientOf(sse).chat.completions.create({ ...params, stream: true });
      for await (const each of stream) seen.push(each.choices[0]?.delta.content ?? "");
    };
    const error = await read().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(APIError);
    expect(error).toMatchObject({ message: "It was cut.", type: "api_error", code: "upstream_unreachable" });
    expect(seen).toEqual(["", "Hel"]);
  });
});
