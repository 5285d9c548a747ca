import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ModelEvent } from "../../src/core/event.ts";
import { fold } from "../../src/core/fold.ts";
import { ChatDecoder } from "../../src/providers/chat-completions-stream.ts";
import { call, chunk } from "./chat-completions-recordings.ts";
import { assertModelStream } from "./model-stream.ts";

/** Decodes chunks that an orderly end follows. */
function decode(...values: unknown[]): ModelEvent[] {
  const decoder = new ChatDecoder("openai", "asked-for");
  const out: ModelEvent[] = [];
  for (const value of values)
    decoder.push({ event: "", data: typeof value === "string" ? value : JSON.stringify(value) }, out);
  decoder.end(out);
  return out;
}

function said(...values: unknown[]) {
  const events = decode(...values);
  assertModelStream(events);
  const end = events.at(-1);
  if (end?.type !== "done") throw new Error("not done");
  return { ...fold(events), end, events };
}

const STOP = chunk({}, "stop");

describe("the events of one reply", () => {
  test("whole", () => {
    expect(
      decode(
        chunk({ role: "assistant", content: "" }),
        chunk({ reasoning_content: "Hm." }),
        chunk({ content: "Yes" }),
        chunk(call(0, "call_1", "look", '{"a"')),
        chunk(call(0, undefined, undefined, ":1}")),
        chunk({}, "tool_calls"),
        chunk(null, null, { choices: [], usage: { prompt_tokens: 3, completion_tokens: 4 } }),
        "[DONE]",
      ),
    ).toEqual([
      {
        type: "open",
        model: "gpt-5-mini-2026-02-01",
        id: "chatcmpl-C1",
        extra: {
          family: "openai-chat",
          fields: { system_fingerprint: "fp_44709d6fcb", service_tier: "default" },
        },
      },
      { type: "part-open", index: 0, part: { kind: "reasoning" } },
      { type: "part-delta", index: 0, delta: "Hm." },
      { type: "part-close", index: 0, seal: "reasoning_content" },
      { type: "part-open", index: 1, part: { kind: "text" } },
      { type: "part-delta", index: 1, delta: "Yes" },
      { type: "part-close", index: 1 },
      { type: "part-open", index: 2, part: { kind: "call", id: "call_1", name: "look" } },
      { type: "part-delta", index: 2, delta: '{"a"' },
      { type: "part-delta", index: 2, delta: ":1}" },
      { type: "part-close", index: 2 },
      {
        type: "done",
        stop: "tool-calls",
        usage: { input: 3, output: 4 },
        extra: { family: "openai-chat", fields: { service_tier: "default" } },
      },
    ]);
  });

  test("a refusal", () => {
    const { content, end } = said(chunk({ refusal: "I can" }), chunk({ refusal: "not." }), STOP);
    expect(content).toEqual([{ type: "refusal", text: "I cannot." }]);
    expect(end.stop).toBe("refusal");
  });

  test("log probabilities travel with their text", () => {
    const logprobs = { content: [{ token: "Yes", logprob: -0.1, bytes: null, top_logprobs: [] }] };
    const one = chunk({ content: "Yes" });
    const { events } = said({ ...one, choices: [{ ...one.choices[0], logprobs }] }, STOP);
    expect(events[2]).toEqual({
      type: "part-delta",
      index: 0,
      delta: "Yes",
      extra: { family: "openai-chat", fields: { logprobs } },
    });
  });

  test.each([
    ["stop", "stop"],
    ["length", "length"],
    ["content_filter", "content-filter"],
    ["eos", "stop"],
    ["tool_calls", "stop"],
  ])("finish_reason %s without calls", (finish, stop) => {
    expect(said(chunk({ content: "x" }), chunk({}, finish)).end.stop).toBe(stop);
  });

  test.each(["stop", "tool_calls", "function_call"])("finish_reason %s with a call", (finish) => {
    expect(said(chunk(call(0, "c", "f", "{}")), chunk({}, finish)).end.stop).toBe("tool-calls");
  });

  test("a stop sequence, where the server names it", () => {
    const last = chunk({}, "stop");
    const { end } = said(chunk({ content: "x" }), {
      ...last,
      choices: [{ ...last.choices[0], stop_reason: "HALT" }],
    });
    expect(end).toMatchObject({ stop: "stop-sequence", stopSequence: "HALT" });
  });

  test("usage with its details", () => {
    const usage = {
      prompt_tokens: 100,
      completion_tokens: 20,
      total_tokens: 120,
      prompt_tokens_details: { cached_tokens: 64, audio_tokens: 3 },
      completion_tokens_details: { reasoning_tokens: 12, accepted_prediction_tokens: 2 },
    };
    expect(said(chunk({ content: "x" }), chunk({}, "stop", { usage })).end.usage).toEqual({
      input: 100,
      output: 20,
      cacheRead: 64,
      reasoning: 12,
      extra: {
        family: "openai-chat",
        fields: {
          prompt_tokens_details: { audio_tokens: 3 },
          completion_tokens_details: { accepted_prediction_tokens: 2 },
        },
      },
    });
  });

  test("no usage at all", () => {
    expect(said(chunk({ content: "x" }), STOP).end.usage).toEqual({ input: 0, output: 0 });
  });

  test("the model asked for stands where the server names none", () => {
    expect(said(chunk({ content: "x" }, null, { model: "" }), STOP).events[0]).toMatchObject({
      model: "asked-for",
    });
  });

  test("bare chunks before the first choice say nothing", () => {
    const bare = { id: "", object: "", model: "", choices: [], prompt_filter_results: [] };
    expect(decode(bare, chunk({ content: "x" }), STOP)).toEqual(decode(chunk({ content: "x" }), STOP));
  });

  test("another choice than the first is left out", () => {
    const other = chunk({ content: "other" });
    const { content } = said(
      chunk({ content: "x" }),
      { ...other, choices: [{ ...other.choices[0], index: 1 }] },
      STOP,
    );
    expect(content).toEqual([{ type: "text", text: "x" }]);
  });

  test("[DONE] without finish_reason is an orderly end; a body that just ends is none", () => {
    expect(decode(chunk({ content: "x" }), "[DONE]").at(-1)?.type).toBe("done");
    expect(decode(chunk({ content: "x" })).at(-1)?.type).toBe("part-delta");
    expect(decode("[DONE]")).toEqual([]);
  });

  test("what comes after the end is not read", () => {
    const events = decode(chunk({ content: "x" }), STOP, "[DONE]", "{broken");
    expect(events.at(-1)?.type).toBe("done");
  });
});

describe("calls as servers send them", () => {
  const names = (...values: unknown[]) =>
    said(...values, chunk({}, "tool_calls")).content.map((part) =>
      part.type === "call" ? [part.id, part.name, part.args] : [part.type],
    );

  test("interleaved by index", () => {
    expect(
      names(
        chunk(call(0, "a", "f", "")),
        chunk(call(1, "b", "g", "")),
        chunk(call(0, undefined, undefined, "{}")),
        chunk(call(1, undefined, undefined, "[")),
        chunk(call(1, undefined, undefined, "]")),
      ),
    ).toEqual([
      ["a", "f", "{}"],
      ["b", "g", "[]"],
    ]);
  });

  test("without an index, in one chunk and in several", () => {
    const bare = (id: string, name: string) => ({
      id,
      type: "function",
      function: { name, arguments: "{}" },
    });
    expect(
      names(chunk({ tool_calls: [bare("a", "f"), bare("b", "g")] }), chunk({ tool_calls: [bare("c", "h")] })),
    ).toEqual([
      ["a", "f", "{}"],
      ["b", "g", "{}"],
      ["c", "h", "{}"],
    ]);
  });

  test("every one with index 0", () => {
    expect(names(chunk(call(0, "a", "f", "{}")), chunk(call(0, "b", "f", "{}")))).toEqual([
      ["a", "f", "{}"],
      ["b", "f", "{}"],
    ]);
  });

  test("id and name repeated in each chunk", () => {
    expect(names(chunk(call(0, "a", "f", '{"x"')), chunk(call(0, "a", "f", ":1}")))).toEqual([
      ["a", "f", '{"x":1}'],
    ]);
  });

  test("the id after the name, the name after the arguments", () => {
    expect(names(chunk(call(0, undefined, "f", "")), chunk(call(0, "a", undefined, "{}")))).toEqual([
      ["a", "f", "{}"],
    ]);
    expect(names(chunk(call(0, "a", undefined, "{")), chunk(call(0, undefined, "f", "}")))).toEqual([
      ["a", "f", "{}"],
    ]);
  });

  test("without ids, or with the same id twice, each gets one of its own", () => {
    const made = names(chunk(call(0, undefined, "f", "{}")), chunk(call(1, undefined, "f", "{}")));
    expect(new Set(made.map(([id]) => id)).size).toBe(2);
    expect(made[0]?.[0]).toMatch(/^call_/);
    const twice = names(chunk(call(0, "a", "f", "{}")), chunk(call(1, "a", "g", "{}")));
    expect(twice.map(([, name]) => name)).toEqual(["f", "g"]);
    expect(twice[1]?.[0]).not.toBe("a");
  });

  test("arguments as an object, and the old function_call", () => {
    expect(
      names(chunk({ tool_calls: [{ index: 0, id: "a", function: { name: "f", arguments: { x: 1 } } }] })),
    ).toEqual([["a", "f", '{"x":1}']]);
    expect(
      names(
        chunk({ function_call: { name: "f", arguments: "" } }),
        chunk({ function_call: { arguments: "{}" } }),
      ),
    ).toEqual([[expect.stringMatching(/^call_/), "f", "{}"]]);
  });

  test("a custom tool", () => {
    const { content } = said(
      chunk({
        tool_calls: [{ index: 0, id: "a", type: "custom", custom: { name: "sql", input: "SELECT" } }],
      }),
      chunk({ tool_calls: [{ index: 0, custom: { input: " 1" } }] }),
      chunk({}, "tool_calls"),
    );
    expect(content).toEqual([{ type: "call", id: "a", name: "sql", args: "SELECT 1", freeform: true }]);
  });

  test("one that never gets a name fails the stream", () => {
    expect(() => decode(chunk(call(0, "a", undefined, "{}")), chunk({}, "tool_calls"))).toThrow(
      /without a name/,
    );
  });

  test("property: however calls are cut and interleaved, each comes out whole and in order", () => {
    const argument = fc.array(fc.string({ minLength: 1, maxLength: 6 }), { maxLength: 5 });
    fc.assert(
      fc.property(
        fc.array(argument, { minLength: 1, maxLength: 4 }),
        fc.infiniteStream(fc.nat()),
        (calls, picks) => {
          const queues = calls.map((pieces, index) => [
            call(index, `id${index}`, `tool${index}`, ""),
            ...pieces.map((piece) => call(index, undefined, undefined, piece)),
          ]);
          const chunks: unknown[] = queues.map((queue) => chunk(queue.shift()));
          for (;;) {
            const left = queues.filter((queue) => queue.length > 0);
            if (left.length === 0) break;
            chunks.push(chunk(left[(picks.next().value as number) % left.length]?.shift()));
          }
          expect(names(...chunks)).toEqual(
            calls.map((pieces, index) => [`id${index}`, `tool${index}`, pieces.join("")]),
          );
        },
      ),
    );
  });
});

describe("reasoning as servers send it", () => {
  test("encrypted details alone are withheld thinking", () => {
    const detail = { type: "reasoning.encrypted", data: "abc", id: "rs_1", index: 0 };
    const { content } = said(chunk({ reasoning_details: [detail] }), chunk({ content: "x" }), STOP);
    expect(content).toEqual([
      { type: "reasoning", text: "", redacted: true, seal: JSON.stringify([detail]) },
      { type: "text", text: "x" },
    ]);
  });

  test("details that come after the text are kept", () => {
    const detail = { type: "reasoning.encrypted", data: "abc", index: 0 };
    const { content } = said(
      chunk({ content: "x" }),
      chunk({ content: "", reasoning_details: [detail] }),
      STOP,
    );
    expect(content).toEqual([
      { type: "text", text: "x" },
      { type: "reasoning", text: "", redacted: true, seal: JSON.stringify([detail]) },
    ]);
  });

  test("under both names at once it is said once", () => {
    const { content } = said(chunk({ reasoning_content: "Hm.", reasoning: "Hm." }), STOP);
    expect(content).toMatchObject([{ type: "reasoning", text: "Hm." }]);
  });

  test("blocks of thinking and text", () => {
    const { content } = said(
      chunk({ content: [{ type: "thinking", thinking: [{ type: "text", text: "Hm." }] }] }),
      chunk({ content: [{ type: "text", text: "x" }] }),
      STOP,
    );
    expect(content).toMatchObject([
      { type: "reasoning", text: "Hm." },
      { type: "text", text: "x" },
    ]);
  });
});

describe("errors in the stream", () => {
  test.each([
    [{ error: { message: "Slow.", code: 429 } }, { status: 429, message: "Slow." }],
    [
      { error: { message: "Slow.", code: "rate_limit_exceeded" } },
      { status: 429, upstreamCode: "rate_limit_exceeded" },
    ],
    [
      { error: { message: "Long.", type: "invalid_request_error" } },
      { status: 400, upstreamType: "invalid_request_error" },
    ],
    [{ error: { message: "Bad.", type: "x", status_code: 400 } }, { status: 400 }],
    [{ error: "Out of memory." }, { status: 502, message: "Out of memory." }],
    [
      { object: "error", message: "Too long.", type: "BadRequestError", code: 400 },
      { status: 400, message: "Too long." },
    ],
    [chunk({ content: "" }, "error"), { status: 502 }],
  ])("%j", (value, fault) => {
    let thrown: unknown;
    try {
      decode(chunk({ content: "x" }), value);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toMatchObject({ name: "AppError", code: "upstream_error", ...fault });
  });
});

test("property: chunks of any shape never cost more than their own stream", () => {
  const odd = fc.oneof(fc.jsonValue(), fc.constantFrom("x", 0, null, [], {}, [null], { text: 1 }));
  const delta = fc.record(
    {
      content: odd,
      refusal: odd,
      reasoning: odd,
      reasoning_content: odd,
      reasoning_details: odd,
      tool_calls: fc.oneof(
        odd,
        fc.array(fc.record({ index: odd, id: odd, function: odd, custom: odd }, { requiredKeys: [] })),
      ),
      function_call: odd,
      annotations: odd,
    },
    { requiredKeys: [] },
  );
  const choice = fc.record(
    {
      index: odd,
      delta: fc.oneof(delta, odd),
      message: odd,
      finish_reason: odd,
      logprobs: odd,
      stop_reason: odd,
    },
    { requiredKeys: [] },
  );
  const value = fc.oneof(
    odd,
    fc.record(
      { id: odd, model: odd, choices: fc.oneof(fc.array(choice), odd), usage: odd, error: odd, x_groq: odd },
      { requiredKeys: [] },
    ),
  );
  fc.assert(
    fc.property(fc.array(value), (values) => {
      const decoder = new ChatDecoder("openai", "m");
      const out: ModelEvent[] = [];
      try {
        for (const one of values) decoder.push({ event: "", data: JSON.stringify(one) }, out);
        decoder.push({ event: "", data: JSON.stringify(STOP) }, out);
        decoder.end(out);
        assertModelStream(out);
      } catch (error) {
        expect(error).toMatchObject({ name: "AppError" });
      }
    }),
    { numRuns: 2_000 },
  );
});

test("a whole reply stands for its stream", () => {
  const out: ModelEvent[] = [];
  const tool = { id: "a", type: "function", function: { name: "f", arguments: "{}" } };
  new ChatDecoder("openai", "m").whole(
    {
      id: "x",
      model: "local",
      choices: [
        {
          index: 0,
          message: { content: "Hi", reasoning_content: "Hm.", tool_calls: [tool, { ...tool, id: "b" }] },
          finish_reason: "tool_calls",
        },
      ],
      usage: { prompt_tokens: 1, completion_tokens: 2 },
    },
    out,
  );
  assertModelStream(out);
  expect(fold(out).content).toMatchObject([
    { type: "reasoning", text: "Hm." },
    { type: "text", text: "Hi" },
    { type: "call", id: "a" },
    { type: "call", id: "b" },
  ]);
  expect(out.at(-1)).toMatchObject({ type: "done", stop: "tool-calls", usage: { input: 1, output: 2 } });
  expect(() => new ChatDecoder("openai", "m").whole({ hello: 1 }, [])).toThrow(/no chat completion/);
});
