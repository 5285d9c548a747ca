/**
 * Whatever a model says in the core's words comes back the same when a door writes it and the opposite adapter reads it.
 *
 * What a protocol has no place for is taken out of the expectation, and nothing else:
 * - both: when a part closes is not said, only that it has, so closes are compared by part and not by position; a call
 *   without arguments comes back with `{}`; ids of the reply, service fields and counters of one family are the door's.
 * - chat completions: no seals, no withheld reasoning, no empty text; neighbouring parts of the same kind are one; of the
 *   stops `stop-sequence` and `pause` are a stop, `context-window` is a length, a refusal without words a filter.
 * - messages: one block at a time, so parallel calls come one after the other; a refusal's words are text; a filter is a
 *   refusal; no free-text calls.
 */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { AgentEvent, ModelEvent, PartStart } from "../src/core/event.ts";
import { fold } from "../src/core/fold.ts";
import type { AssistantMessage, ProviderName, StopReason, Usage } from "../src/core/message.ts";
import type { ModelAdapter, ModelRequest } from "../src/core/model.ts";
import type { Fault } from "../src/errors.ts";
import { anthropicMessages } from "../src/protocols/anthropic-messages.ts";
import type { Codec, ReplyMeta } from "../src/protocols/codec.ts";
import { openaiChat } from "../src/protocols/openai-chat.ts";
import { createAnthropicAdapter } from "../src/providers/anthropic.ts";
import { createOpenAIAdapter } from "../src/providers/openai.ts";
import type { AdapterOptions } from "../src/providers/upstream.ts";
import { assertModelStream, collect } from "./providers/model-stream.ts";

const MODEL = "model-1";
const REQUEST: ModelRequest = {
  model: MODEL,
  system: [],
  messages: [{ role: "user", content: [{ type: "text", text: "hi" }] }],
  tools: [],
  settings: {},
};

type Done = Extract<ModelEvent, { type: "done" }>;
type Said = Exclude<ModelEvent, { type: "failed" }>;

interface Pair {
  name: string;
  codec: Codec<never>;
  provider: ProviderName;
  carriesSeals: boolean;
  create(options: AdapterOptions): ModelAdapter;
  echo: unknown;
  /** What is left of a stream that goes through. */
  carried(events: Said[]): Said[];
  /** Free-text calls have a place. */
  freeform: boolean;
}

const PAIRS: Pair[] = [
  {
    name: "chat completions",
    codec: openaiChat as Codec<never>,
    provider: "openai",
    carriesSeals: false,
    create: createOpenAIAdapter,
    echo: { includeUsage: true, legacyFunctions: false },
    carried: (events) => withStop(merged(withoutSeals(events)), chatStop),
    freeform: true,
  },
  {
    name: "messages",
    codec: anthropicMessages as Codec<never>,
    provider: "anthropic",
    carriesSeals: true,
    create: createAnthropicAdapter,
    echo: {},
    carried: (events) => withStop(oneByOne(events.map(refusalAsText)), messagesStop),
    freeform: false,
  },
];

// What models say.

const words = fc.oneof(
  fc.string({ minLength: 1, maxLength: 12 }),
  fc.string({ unit: "binary", minLength: 1, maxLength: 12 }),
  fc.constantFrom("\n\n", "data: [DONE]\n\n", "\r\n", "\u2028", '"', "\\", "\ud800", "event: error\n", "🌻"),
);
const pieces = fc.array(words, { maxLength: 5 });
const name = fc.stringMatching(/^[a-zA-Z_][a-zA-Z0-9_-]{0,20}$/);
const seal = fc.option(fc.string({ minLength: 1, maxLength: 40 }), { nil: undefined });

/** Parts that are open at the same time, each with its deltas, in which order these come, and what closes it. */
interface Segment {
  parts: { part: PartStart; deltas: string[]; seal?: string | undefined }[];
  /** Chooses, for every delta, among the parts that have some left. */
  turns: number[];
}

function voice(kind: "text" | "refusal"): fc.Arbitrary<Segment> {
  return pieces.map((deltas) => ({ parts: [{ part: { kind }, deltas }], turns: [] }));
}

const reasoning: fc.Arbitrary<Segment> = fc.oneof(
  fc.record({ deltas: pieces, seal }).map(({ deltas, seal }) => ({
    parts: [{ part: { kind: "reasoning" as const }, deltas, seal }],
    turns: [],
  })),
  fc.string({ minLength: 1 }).map((seal) => ({
    parts: [{ part: { kind: "reasoning" as const, redacted: true }, deltas: [], seal }],
    turns: [],
  })),
);

/** JSON text of an object, cut anywhere. */
const jsonPieces = fc
  .tuple(fc.dictionary(fc.string({ maxLength: 6 }), fc.jsonValue({ maxDepth: 2 })), fc.array(fc.nat(30)))
  .map(([value, cuts]) => {
    const json = JSON.stringify(value);
    const edges = [...new Set([0, ...cuts.filter((at) => at < json.length), json.length])].sort(
      (a, b) => a - b,
    );
    return edges.slice(1).map((end, i) => json.slice(edges[i], end));
  });

function calls(freeform: boolean): fc.Arbitrary<Segment> {
  const plain = fc.tuple(name, fc.oneof(jsonPieces, fc.constant<string[]>([])));
  const free = fc.tuple(name, fc.array(words, { minLength: 1, maxLength: 4 }));
  const one = fc.oneof(
    plain.map(([name, deltas]) => ({ part: { kind: "call" as const, id: "", name }, deltas })),
    ...(freeform
      ? [free.map(([name, deltas]) => ({ part: { kind: "call" as const, id: "", name, freeform }, deltas }))]
      : []),
  );
  return fc.record({ parts: fc.array(one, { minLength: 1, maxLength: 3 }), turns: fc.array(fc.nat(2)) });
}

const usage: fc.Arbitrary<Usage> = fc
  .record(
    {
      fresh: fc.nat(100_000),
      output: fc.nat(),
      cacheRead: fc.nat(1000),
      cacheWrite: fc.nat(1000),
      reasoning: fc.nat(),
    },
    { requiredKeys: ["fresh", "output"] },
  )
  .map(({ fresh, ...rest }) => ({ ...rest, input: fresh + (rest.cacheRead ?? 0) + (rest.cacheWrite ?? 0) }));

const QUIET_STOPS = [
  "stop",
  "stop-sequence",
  "length",
  "refusal",
  "content-filter",
  "pause",
  "context-window",
] as const;

/** A whole stream of one model call; sealed reasoning included, since each pair takes out what it does not carry. */
function streams(freeform: boolean): fc.Arbitrary<Said[]> {
  const talk = fc
    .record({
      segments: fc.array(fc.oneof(voice("text"), reasoning), { maxLength: 4 }),
      stop: fc.constantFrom(...QUIET_STOPS),
      refusal: fc.option(voice("refusal"), { nil: undefined }),
    })
    .map(({ segments, stop, refusal }) => ({
      segments: stop === "refusal" && refusal ? [...segments, refusal] : segments,
      stop: stop as StopReason,
    }));
  const act = fc.record({
    segments: fc
      .tuple(fc.array(fc.oneof(voice("text"), reasoning, calls(freeform)), { maxLength: 4 }), calls(freeform))
      .map(([before, last]) => [...before, last]),
    stop: fc.constantFrom<StopReason>("tool-calls", "length"),
  });
  return fc
    .tuple(fc.oneof(talk, act), usage, words)
    .map(([{ segments, stop }, usage, word]) => [
      { type: "open", model: MODEL },
      ...eventsOf(segments),
      { type: "done", stop, usage, ...(stop === "stop-sequence" ? { stopSequence: word } : {}) },
    ]);
}

function eventsOf(segments: Segment[]): Said[] {
  const out: Said[] = [];
  let next = 0;
  for (const { parts, turns } of segments) {
    const open = parts.map(({ part, deltas, seal }) => ({ part, deltas: [...deltas], seal, index: next++ }));
    for (const { part, index } of open)
      out.push({
        type: "part-open",
        index,
        part: part.kind === "call" ? { ...part, id: `call_${index}_of_the_round_trip` } : part,
      });
    for (let turn = 0; open.some(({ deltas }) => deltas.length > 0); turn++) {
      const left = open.filter(({ deltas }) => deltas.length > 0);
      const { deltas, index } = left[(turns[turn] ?? 0) % left.length]!;
      out.push({ type: "part-delta", index, delta: deltas.shift()! });
    }
    for (const { index, seal } of open) out.push({ type: "part-close", index, ...(seal ? { seal } : {}) });
  }
  return out;
}

// What a protocol has no place for.

function withoutSeals(events: Said[]): Said[] {
  return events.map((event) =>
    event.type === "part-close" ? { type: "part-close", index: event.index } : event,
  );
}

/** Parts without a word are nothing; neighbours of one kind are one; numbers are as they come out then. */
function merged(events: Said[]): Said[] {
  const spoken = new Set(events.flatMap((event) => (event.type === "part-delta" ? [event.index] : [])));
  const numbers = new Map<number, number>();
  const out: Said[] = [];
  let count = 0;
  let last: string | undefined;
  for (const event of events) {
    if (!("index" in event)) out.push(event);
    else if (event.type !== "part-open") {
      const index = numbers.get(event.index);
      if (index !== undefined) out.push({ ...event, index });
    } else if (event.part.kind === "call" || spoken.has(event.index)) {
      const joins = event.part.kind !== "call" && event.part.kind === last;
      if (!joins) out.push({ ...event, index: count++ });
      numbers.set(event.index, count - 1);
      last = event.part.kind;
    }
  }
  return out;
}

function refusalAsText(event: Said): Said {
  return event.type === "part-open" && event.part.kind === "refusal"
    ? { ...event, part: { kind: "text" } }
    : event;
}

function oneByOne(events: Said[]): Said[] {
  const place = (event: Said) =>
    "index" in event ? event.index : event.type === "done" ? Number.POSITIVE_INFINITY : -1;
  return [...events].sort((a, b) => place(a) - place(b) || 0);
}

function withStop(events: Said[], word: (done: Done, events: Said[]) => Done): Said[] {
  return events.map((event) => (event.type === "done" ? word(event, events) : event));
}

function chatStop({ stop, usage }: Done, events: Said[]): Done {
  const refused = events.some((event) => event.type === "part-open" && event.part.kind === "refusal");
  const words: Partial<Record<StopReason, StopReason>> = {
    "stop-sequence": "stop",
    pause: "stop",
    "context-window": "length",
    ...(refused ? {} : { refusal: "content-filter" }),
  };
  const { cacheRead = 0, reasoning = 0, ...rest } = usage;
  return { type: "done", stop: words[stop] ?? stop, usage: { ...rest, cacheRead, reasoning } };
}

function messagesStop(done: Done): Done {
  const { cacheRead = 0, cacheWrite = 0, ...rest } = done.usage;
  const stop = done.stop === "content-filter" ? "refusal" : done.stop;
  return { ...done, stop, usage: { ...rest, cacheRead, cacheWrite } };
}

/** Opens and deltas in their order, and how each part closed; without what is the door's own. */
function comparable(events: readonly ModelEvent[]) {
  const order: unknown[] = [];
  const closed: Record<number, string | undefined> = {};
  const empty = new Set<number>();
  for (const event of events) {
    if (event.type === "part-close") {
      closed[event.index] = event.seal;
      if (empty.has(event.index)) order.push({ type: "part-delta", index: event.index, delta: "{}" });
    } else if (event.type === "open") order.push({ type: "open", model: event.model });
    else if (event.type === "done") {
      const { extra: _, ...usage } = event.usage;
      order.push({ type: "done", stop: event.stop, stopSequence: event.stopSequence, usage });
    } else {
      order.push(event);
      if (event.type === "part-open" && event.part.kind === "call") empty.add(event.index);
      else if (event.type === "part-delta") empty.delete(event.index);
    }
  }
  return { order, closed };
}

// There and back.

function meta(echo: unknown): ReplyMeta {
  return {
    model: MODEL,
    requestId: "req_round_trip_0000000000000000",
    createdAt: new Date(1_790_000_000_000),
    choices: 1,
    agentEvents: false,
    echo,
  };
}

/** The stream of one step as a run; `fault` breaks it off at its end. */
function runOf(events: Said[], provider: ProviderName, fault?: Fault): AgentEvent[] {
  const done = events.find((event) => event.type === "done");
  const close: AgentEvent = fault
    ? { type: "run-close", outcome: "failed", stop: "stop", usage: { input: 0, output: 0 }, fault }
    : {
        type: "run-close",
        outcome: done!.stop === "tool-calls" ? "handed-back" : "completed",
        stop: done!.stop,
        usage: done!.usage,
        stopSequence: done!.stopSequence,
      };
  return [
    { type: "run-open", runId: "run_round_trip", provider, model: MODEL },
    ...events.map((event): AgentEvent => ({ type: "model", step: 0, event })),
    close,
  ];
}

function encode({ codec, echo }: Pair, run: AgentEvent[]): string {
  const encoder = codec.encoder(meta(echo));
  return run.map((event) => encoder.push(event)).join("");
}

async function read({ create }: Pair, body: string, type: string): Promise<ModelEvent[]> {
  const adapter = create({
    key: "sk-test",
    baseUrl: "http://127.0.0.1:9",
    limits: { firstByteMs: 10_000, idleMs: 10_000, retries: 0 },
    fetch: async () => new Response(body, { headers: { "content-type": type } }),
  });
  const events = await collect(adapter.stream(REQUEST, new AbortController().signal));
  assertModelStream(events);
  return events;
}

/** What a message says, whatever the order of its kinds: in one piece a protocol may sort them. */
function said({ content }: AssistantMessage, withSeals: boolean) {
  const texts = (type: string) =>
    content.map((part) => (part.type === type && "text" in part ? part.text : "")).join("");
  const json = (args: string, freeform?: boolean): unknown => (freeform ? args : JSON.parse(args));
  return {
    text: texts("text"),
    reasoning: texts("reasoning"),
    refusal: texts("refusal"),
    seals: content.flatMap((part) => (withSeals && part.type === "reasoning" ? [part.seal] : [])),
    calls: content.flatMap((part) =>
      part.type === "call" ? [{ ...part, extra: undefined, args: json(part.args, part.freeform) }] : [],
    ),
  };
}

/** The words, without the arguments of calls: parallel ones wait for each other on the way. */
function heard(events: readonly ModelEvent[]): string {
  const calls = new Set(
    events.flatMap((event) =>
      event.type === "part-open" && event.part.kind === "call" ? [event.index] : [],
    ),
  );
  return events
    .map((event) => (event.type === "part-delta" && !calls.has(event.index) ? event.delta : ""))
    .join("");
}

/** Statuses that both protocols have a word for. */
const FAULTS = [400, 401, 403, 404, 413, 429, 500, 529];

describe.each(PAIRS)("$name, there and back", (pair) => {
  const { provider, codec, echo, freeform, carriesSeals } = pair;

  test("a stream is the same stream", async () => {
    await fc.assert(
      fc.asyncProperty(streams(freeform), async (events) => {
        const sse = encode(pair, runOf(events, provider));
        const back = await read(pair, sse, "text/event-stream");
        const { order, closed } = comparable(back);
        const expected = comparable(pair.carried(events));
        expect(order).toEqual(expected.order);
        if (carriesSeals) expect(closed).toEqual(expected.closed);
      }),
      { numRuns: 300 },
    );
  });

  test("the reply in one piece says what the stream says", async () => {
    await fc.assert(
      fc.asyncProperty(streams(freeform), async (events) => {
        const run = runOf(events, provider);
        const collector = codec.collector(meta(echo));
        for (const event of run) collector.push(event);
        const whole = fold(await read(pair, JSON.stringify(collector.body()), "application/json"));
        const streamed = fold(await read(pair, encode(pair, run), "text/event-stream"));
        expect(said(whole, carriesSeals)).toEqual(said(streamed, carriesSeals));
        expect(whole).toMatchObject({ stop: streamed.stop, usage: streamed.usage });
      }),
      { numRuns: 200 },
    );
  });

  test("a fault comes back with its sentence and its status, after all that was said before", async () => {
    const broken = fc.tuple(streams(freeform), fc.nat(20), fc.constantFrom(...FAULTS), words);
    await fc.assert(
      fc.asyncProperty(broken, async ([events, at, status, word]) => {
        const before = events.slice(0, 1 + Math.min(at, events.length - 2));
        const message = `It broke: ${word}.`;
        const sse = encode(pair, runOf(before, provider, { code: "upstream_error", message, status }));
        const back = await read(pair, sse, "text/event-stream");
        expect(back.at(-1)).toMatchObject({ type: "failed", fault: { status, message } });
        expect(heard(back)).toBe(heard(before));
      }),
      { numRuns: 200 },
    );
  });
});
