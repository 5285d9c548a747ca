import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { AgentEvent, ModelEvent, PartStart } from "../../src/core/event.ts";
import { STOP_REASONS, type Usage } from "../../src/core/message.ts";
import { AppError } from "../../src/errors.ts";
import { type ChatEvent, chatEvent } from "../../src/protocols/native-chat-events.ts";
import { chatReply } from "../../src/protocols/native-chat-records.ts";
import { ReplyCollector } from "../../src/protocols/native-chat-reply.ts";
import {
  type Frame,
  NativeEncoder,
  parseFrames,
  type StreamOptions,
  textAfter,
} from "../../src/protocols/native-chat-stream.ts";
import { openaiChat } from "../../src/protocols/openai-chat.ts";

const usage: Usage = { input: 10, output: 5, cacheRead: 4, reasoning: 2 };
const wireUsage = { input_tokens: 10, output_tokens: 5, cache_read_tokens: 4, reasoning_tokens: 2 };

const options: StreamOptions = { runId: "run_1", sessionId: "ses_1", firstSeq: 1, messageId: "msg_1" };
const session = { type: "session", session_id: "ses_1", run_id: "run_1" };
const doneEvent = (reply: string, fields: object = {}) => ({
  type: "done",
  reply,
  session_id: "ses_1",
  run_id: "run_1",
  message_id: "msg_1",
  auth_required: false,
  usage: wireUsage,
  stop_reason: "stop",
  ...fields,
});

const runOpen: AgentEvent = { type: "run-open", runId: "run_1", provider: "openai", model: "gpt" };
const at = (step: number, event: Exclude<ModelEvent, { type: "failed" }>, server?: boolean): AgentEvent =>
  server ? { type: "model", step, event, server } : { type: "model", step, event };
const part = (step: number, index: number, start: PartStart, deltas: string[], server?: boolean) => [
  at(step, { type: "part-open", index, part: start }, server),
  ...deltas.map((delta) => at(step, { type: "part-delta", index, delta }, server)),
  at(step, { type: "part-close", index }, server),
];
const model = (step: number, ...parts: AgentEvent[][]) => [
  at(step, { type: "open", model: "gpt" }),
  ...parts.flat(),
  at(step, { type: "done", stop: "stop", usage }),
];
const say = (step: number, index: number, ...deltas: string[]) => part(step, index, { kind: "text" }, deltas);
const call = (step: number, index: number, id: string, deltas: string[], server = true) =>
  part(step, index, { kind: "call", id, name: `do_${id}` }, deltas, server);
const close = (fields: Partial<Extract<AgentEvent, { type: "run-close" }>> = {}): AgentEvent => ({
  type: "run-close",
  outcome: "completed",
  stop: "stop",
  usage,
  ...fields,
});
const started = (step: number, id: string, args: string): AgentEvent => ({
  type: "tool-start",
  step,
  callId: id,
  name: `do_${id}`,
  args,
});
const ended = (step: number, id: string, output: string, failed = false): AgentEvent => ({
  type: "tool-end",
  step,
  callId: id,
  name: `do_${id}`,
  output: [{ type: "text", text: output }],
  failed,
});

function framesOf(events: AgentEvent[], fields: Partial<StreamOptions> = {}): Frame[] {
  const encoder = new NativeEncoder({ ...options, ...fields });
  return events.flatMap((event) => encoder.push(event));
}
const eventsOf = (events: AgentEvent[], fields: Partial<StreamOptions> = {}): ChatEvent[] =>
  framesOf(events, fields).map(({ event }) => event);

function bodyOf(events: ChatEvent[]) {
  const collector = new ReplyCollector();
  for (const event of events) collector.push(event);
  return collector.body();
}

describe("a stream", () => {
  test("of a plain reply, byte for byte", () => {
    const events = [
      runOpen,
      ...model(0, say(0, 0, "Hel", 'lo\n"'), part(0, 1, { kind: "raw", family: "gemini", block: {} }, [])),
      close(),
    ];
    expect(
      framesOf(events)
        .map(({ text }) => text)
        .join(""),
    ).toBe(
      [
        'id: 1\ndata: {"type":"session","session_id":"ses_1","run_id":"run_1"}\n\n',
        'id: 2\ndata: {"type":"content","content":"Hel"}\n\n',
        'id: 3\ndata: {"type":"content","content":"lo\\n\\""}\n\n',
        'id: 4\ndata: {"type":"done","reply":"Hello\\n\\"","session_id":"ses_1","run_id":"run_1","message_id":"msg_1",',
        '"auth_required":false,"usage":{"input_tokens":10,"output_tokens":5,"cache_read_tokens":4,"reasoning_tokens":2},"stop_reason":"stop"}\n\n',
      ].join(""),
    );
  });

  test("of a run with tools: each call once when it is complete, each result with its call", () => {
    const events = [
      runOpen,
      ...model(
        0,
        part(0, 0, { kind: "reasoning" }, ["Hm."]),
        say(0, 1, "Let me look."),
        call(0, 2, "a", ['{"path"', ':"x"}']),
        call(0, 3, "b", []),
      ),
      started(0, "a", '{"path":"x"}'),
      started(0, "b", ""),
      { type: "tool-progress", step: 0, callId: "b", delta: "10 %" } as AgentEvent,
      ended(0, "b", "no", true),
      ended(0, "a", "yes"),
      ...model(1, part(1, 0, { kind: "reasoning" }, ["So."]), say(1, 1, "It is", " there.")),
      close(),
    ];
    expect(eventsOf(events, { unavailableTools: ["gone__tool"] })).toEqual([
      { ...session, unavailable_tools: ["gone__tool"] },
      { type: "reasoning", content: "Hm." },
      { type: "content", content: "Let me look." },
      { type: "tool_call", id: "a", name: "do_a", args: { path: "x" } },
      { type: "tool_call", id: "b", name: "do_b", args: {} },
      { type: "tool_progress", id: "b", content: "10 %" },
      { type: "tool_result", id: "b", name: "do_b", args: {}, output: "no", is_error: true },
      { type: "tool_result", id: "a", name: "do_a", args: { path: "x" }, output: "yes", is_error: false },
      { type: "reasoning", content: "\n\nSo." },
      { type: "content", content: "\n\nIt is" },
      { type: "content", content: " there." },
      doneEvent("Let me look.\n\nIt is there."),
    ]);
  });

  test("says that a summary stands for the oldest messages", () => {
    const compacted = { step: 0, messages: 12, tokensBefore: 9000, tokensAfter: 3000 };
    const events: AgentEvent[] = [
      { type: "compacted", ...compacted },
      ...call(0, 0, "a", ["{}"]),
      { type: "compacted", ...compacted, step: 1, messages: 1 },
    ];
    const shown = { type: "compaction", messages: 12, tokens_before: 9000, tokens_after: 3000 };
    expect(eventsOf(events)).toEqual([
      session,
      shown,
      { type: "tool_call", id: "a", name: "do_a", args: {} },
      { ...shown, messages: 1 },
    ]);
    expect(chatEvent.parse(shown)).toEqual(shown);
  });

  test("shows interleaved calls, broken arguments, outputs that are no text, and nothing of client tools", () => {
    const open = (index: number, id: string) =>
      at(0, { type: "part-open", index, part: { kind: "call", id, name: `do_${id}` } }, true);
    const delta = (index: number, text: string) => at(0, { type: "part-delta", index, delta: text }, true);
    const deep = `{"a":${"[".repeat(20_000)}${"]".repeat(20_000)}}`;
    const events = [
      open(0, "a"),
      open(1, "b"),
      delta(1, "[1]"),
      delta(0, '{"a":'),
      at(0, { type: "part-close", index: 1 }, true),
      at(0, { type: "part-close", index: 0 }, true),
      ...call(0, 2, "c", [deep]),
      ...call(0, 3, "theirs", ["{}"], false),
      {
        type: "tool-end",
        step: 0,
        callId: "a",
        name: "do_a",
        output: [
          { type: "text", text: "x\ny" },
          { type: "image", source: { kind: "url", url: "https://a.b/c" } },
          {
            type: "file",
            source: { kind: "url", url: "https://a.b/c" },
            mediaType: "text/plain",
            name: "n.txt",
          },
          { type: "raw", family: "gemini", block: {} },
        ],
        failed: false,
      } as AgentEvent,
    ];
    expect(eventsOf(events)).toEqual([
      session,
      { type: "tool_call", id: "b", name: "do_b", args: { _raw: "[1]" } },
      { type: "tool_call", id: "a", name: "do_a", args: { _raw: '{"a":' } },
      { type: "tool_call", id: "c", name: "do_c", args: { _raw: deep } },
      {
        type: "tool_result",
        id: "a",
        name: "do_a",
        args: { _raw: '{"a":' },
        output: "x\ny\n[image]\n[file n.txt]\n[data]",
        is_error: false,
      },
    ]);
  });

  test("a refusal is what the agent says", () => {
    expect(
      eventsOf([runOpen, ...model(0, part(0, 0, { kind: "refusal" }, ["No."])), close({ stop: "refusal" })]),
    ).toEqual([session, { type: "content", content: "No." }, doneEvent("No.", { stop_reason: "refusal" })]);
  });

  test.each([
    [
      close({
        outcome: "failed",
        fault: { code: "upstream_error", message: "Busy.", status: 529, retryAfter: 3 },
      }),
      { type: "error", error: "Busy.", code: "upstream_error", status: 529, retry_after: 3 },
    ],
    [
      close({
        outcome: "failed",
        fault: { code: "invalid_request", message: "No.", status: 400, param: "model" },
      }),
      { type: "error", error: "No.", code: "invalid_request", status: 400, param: "model" },
    ],
    [
      close({ outcome: "stopped" }),
      { type: "error", error: "The run was stopped.", code: "cancelled", status: 499 },
    ],
    [
      close({ stop: "length", fault: { code: "limit_reached", message: "50 steps.", status: 500 } }),
      doneEvent("", { stop_reason: "limit_reached" }),
    ],
    [close({ outcome: "handed-back", stop: "tool-calls" }), doneEvent("", { stop_reason: "tool_calls" })],
    [
      close({ usage: { input: 1, output: 0, cacheWrite: 2, trimmedMessages: 3 } }),
      doneEvent("", {
        usage: { input_tokens: 1, output_tokens: 0, cache_write_tokens: 2, trimmed_messages: 3 },
      }),
    ],
  ])("%#: ends as the run does, and then is silent", (end, event) => {
    expect(eventsOf([runOpen, end, end, ...say(0, 0, "x")])).toEqual([session, event]);
  });

  test("has a word for every stop reason", () => {
    const words = STOP_REASONS.map(
      (stop) => (eventsOf([close({ stop })])[1] as { stop_reason: string }).stop_reason,
    );
    expect(words).toEqual(
      "stop stop_sequence length tool_calls refusal content_filter pause context_window".split(" "),
    );
  });

  test("names the last message when it is known, or null", () => {
    const encoder = new NativeEncoder({ ...options, messageId: undefined });
    expect(encoder.push(runOpen)).toHaveLength(1);
    encoder.messageId = "msg_9";
    expect(encoder.push(close())[0]?.event).toEqual(doneEvent("", { message_id: "msg_9" }));
    expect(eventsOf([close()], { messageId: undefined })[1]).toEqual(doneEvent("", { message_id: null }));
  });
});

describe("a run that pauses", () => {
  const pending = { id: "a", name: "do_a", args: '{"x":"\u202e"}' };
  const first: AgentEvent[] = [
    runOpen,
    ...model(0, say(0, 0, "I will."), call(0, 1, "a", [pending.args])),
    {
      type: "approval-needed",
      step: 0,
      calls: [{ ...pending, risk: "write", expiresAt: "2026-11-21T10:00:00.000Z", code: "K7MPQ2XR" }],
    },
    close({ outcome: "paused", stop: "tool-calls" }),
  ];
  const second: AgentEvent[] = [runOpen, ended(0, "a", "ok"), ...model(1, say(1, 0, "Done.")), close()];
  const resumed = { firstSeq: 6, before: "I will.", calls: [pending] };

  const shownPending = {
    id: "a",
    name: "do_a",
    args: { x: "\u202e" },
    preview: 'do_a({\n  "x": "⟨U+202E⟩"\n})',
    risk: "write",
    expires_at: "2026-11-21T10:00:00.000Z",
  };

  test("asks, shows no code, and says that it is parked", () => {
    expect(eventsOf(first)).toEqual([
      session,
      { type: "content", content: "I will." },
      { type: "tool_call", id: "a", name: "do_a", args: { x: "\u202e" } },
      { type: "auth_required", pending_calls: [shownPending] },
      doneEvent("I will.", { auth_required: true, stop_reason: "tool_calls" }),
    ]);
    expect(
      eventsOf([{ type: "approval-needed", step: 0, calls: [{ ...pending, preview: "P" }] }])[1],
    ).toEqual({
      type: "auth_required",
      pending_calls: [{ ...shownPending, preview: "P", risk: null, expires_at: null }],
    });
  });

  test("goes on in a stream of its own, numbered on", () => {
    const frames = framesOf(second, resumed);
    expect(frames.map(({ seq }) => seq)).toEqual([6, 7, 8, 9]);
    expect(frames.map(({ event }) => event)).toEqual([
      session,
      { type: "tool_result", id: "a", name: "do_a", args: { x: "\u202e" }, output: "ok", is_error: false },
      { type: "content", content: "\n\nDone." },
      doneEvent("I will.\n\nDone."),
    ]);
  });

  test("goes on in the middle of a stream after a crash", () => {
    expect(eventsOf(second.slice(2), { ...resumed, announce: false })).toEqual([
      { type: "content", content: "\n\nDone." },
      doneEvent("I will.\n\nDone."),
    ]);
  });

  test("as one body, before and after", () => {
    const before = bodyOf(eventsOf(first));
    const reply = {
      session_id: "ses_1",
      run_id: "run_1",
      message_id: "msg_1",
      reply: "I will.",
      auth_required: true,
      pending_calls: [shownPending],
      tools: [],
      usage: wireUsage,
      stop_reason: "tool_calls",
    };
    expect(before).toEqual(reply);
    const tool = { id: "a", name: "do_a", args: { x: "\u202e" }, output: "ok", is_error: false };
    const after = { ...reply, auth_required: false, pending_calls: [], tools: [tool], stop_reason: "stop" };
    expect(bodyOf(eventsOf(second, resumed))).toEqual({ ...after, reply: "I will.\n\nDone." });
    expect(bodyOf([...eventsOf(first), ...eventsOf(second, resumed)])).toEqual({
      ...after,
      reply: "I will.\n\nDone.",
    });
    for (const body of [before, after]) expect(chatReply.parse(body)).toEqual(body);
  });
});

describe("a body", () => {
  test("of a run that failed is its fault", () => {
    const fault = {
      code: "rate_limited",
      message: "Wait.",
      status: 429,
      retryAfter: 7,
      param: "model",
    } as const;
    try {
      bodyOf(eventsOf([runOpen, close({ outcome: "failed", fault })]));
      throw new Error("nothing was thrown");
    } catch (error) {
      expect(error).toBeInstanceOf(AppError);
      expect(error).toMatchObject(fault);
    }
  });

  test("cannot be had while the run is under way", () => {
    expect(() => bodyOf(eventsOf([runOpen]))).toThrow("before its run had ended");
    expect(() => bodyOf([...eventsOf([close()]), ...eventsOf([runOpen])])).toThrow(
      "before its run had ended",
    );
  });
});

/** Segments of one run: any steps with any texts and calls, each segment but the last paused. */
const stepArb = fc.record({
  texts: fc.array(fc.array(fc.string({ unit: "binary", minLength: 1 }), { maxLength: 3 }), { maxLength: 3 }),
  calls: fc.array(fc.oneof(fc.string(), fc.json()), { maxLength: 3 }),
});
const segmentsArb = fc.array(fc.array(stepArb, { minLength: 1, maxLength: 3 }), {
  minLength: 1,
  maxLength: 3,
});
const endArb = fc.constantFrom("completed", "stopped", "failed", "handed-back") as fc.Arbitrary<
  "completed" | "stopped" | "failed" | "handed-back"
>;

function build(
  segments: { texts: string[][]; calls: string[] }[][],
  end: "completed" | "stopped" | "failed" | "handed-back",
): AgentEvent[][] {
  let step = 0;
  return segments.map((steps, position) => {
    const events: AgentEvent[] = [runOpen];
    for (const { texts, calls } of steps) {
      const parts = texts.map((deltas, index) => say(step, index, ...deltas));
      const named = calls.map((args, index) => ({ id: `c${step}_${index}`, args }));
      const made = named.map(({ id, args }, index) => call(step, texts.length + index, id, [args]));
      events.push(...model(step, ...parts, ...made));
      for (const { id, args } of named) events.push(started(step, id, args), ended(step, id, args));
      step++;
    }
    events.push(close({ outcome: position < segments.length - 1 ? "paused" : end }));
    return events;
  });
}

function encodeAll(runs: AgentEvent[][]): Frame[][] {
  let firstSeq = 1;
  let before = "";
  return runs.map((events) => {
    const frames = framesOf(events, { firstSeq, before });
    firstSeq += frames.length;
    for (const { event } of frames) if (event.type === "content") before += event.content;
    return frames;
  });
}

describe("any run", () => {
  test("is numbered without gaps, begins each stream with session and ends it once, in events of the schema", () => {
    fc.assert(
      fc.property(segmentsArb, endArb, (segments, end) => {
        const streams = encodeAll(build(segments, end));
        const all = streams.flat();
        expect(all.map(({ seq }) => seq)).toEqual(all.map((_, index) => index + 1));
        for (const stream of streams) {
          const types = stream.map(({ event }) => event.type);
          expect(types.indexOf("session")).toBe(0);
          expect(types.lastIndexOf("session")).toBe(0);
          expect(types.findIndex((type) => type === "done" || type === "error")).toBe(types.length - 1);
        }
        for (const { event } of all) expect(chatEvent.parse(event)).toEqual(event);
        const calls = all.flatMap(({ event }) => (event.type === "tool_call" ? [event.id] : []));
        const results = all.flatMap(({ event }) => (event.type === "tool_result" ? [event] : []));
        expect(calls).toEqual(results.map(({ id }) => id));
        expect(new Set(calls).size).toBe(calls.length);
      }),
    );
  });

  test("says in done what its content fragments say, pauses or not, and what chat completions would", () => {
    fc.assert(
      fc.property(segmentsArb, (segments) => {
        const all = encodeAll(build(segments, "completed")).flat();
        let said = "";
        for (const { event } of all) {
          if (event.type === "content") said += event.content;
          if (event.type === "done") expect(event.reply).toBe(said);
        }
        const [whole = []] = build([segments.flat()], "completed");
        expect(framesOf(whole).at(-1)?.event).toMatchObject({ reply: said });
        const chat = openaiChat.collector({
          model: "gpt",
          requestId: "req_1",
          createdAt: new Date(0),
          choices: 1,
          agentEvents: false,
        });
        for (const event of whole) chat.push(event);
        expect(chat.body()).toMatchObject({ choices: [{ message: { content: said } }] });
      }),
    );
  });

  test("is read back from its text, from any place on", () => {
    fc.assert(
      fc.property(segmentsArb, endArb, fc.nat(), (segments, end, cut) => {
        const all = encodeAll(build(segments, end)).flat();
        const text = all.map((frame) => frame.text).join("");
        for (const frame of all) expect(frame.text).toMatch(/^id: \d+\ndata: [^\n\r]+\n\n$/);
        expect(parseFrames(text)).toEqual(JSON.parse(JSON.stringify(all)));
        const after = cut % (all.length + 2);
        const rest = textAfter({ first: 1, last: all.length, text }, after);
        expect(rest).toBe(
          all
            .slice(after)
            .map((frame) => frame.text)
            .join(""),
        );
      }),
    );
  });
});
