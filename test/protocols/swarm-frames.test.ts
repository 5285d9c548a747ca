/** The stream of a swarm: whatever members do in between each other, each of them is told apart, in its order. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { AgentEvent } from "../../src/core/event.ts";
import { text } from "../../src/core/message.ts";
import type { MemberName } from "../../src/core/swarm.ts";
import type { ChatEvent } from "../../src/protocols/native-chat-events.ts";
import { parseFrames } from "../../src/protocols/native-chat-stream.ts";
import { RunFrames } from "../../src/protocols/run-frames.ts";

const USAGE = { input: 1, output: 1 };

interface Script {
  name: string;
  steps: { words: string[]; calls: boolean }[];
  end: "completed" | "failed" | "stopped";
  asks: boolean;
}

const words = fc.string({ minLength: 1, maxLength: 6, unit: "grapheme" });
const script = fc.record({
  steps: fc.array(fc.record({ words: fc.array(words, { maxLength: 3 }), calls: fc.boolean() }), {
    maxLength: 3,
  }),
  end: fc.constantFrom<Script["end"]>("completed", "failed", "stopped"),
  asks: fc.boolean(),
});

/** A model's reply, and the call that follows from it. */
function* modelled(
  step: number,
  { words, calls }: Script["steps"][number],
  id: string,
): Generator<AgentEvent> {
  const part = (event: Extract<AgentEvent, { type: "model" }>["event"], server?: boolean): AgentEvent => ({
    ...{ type: "model", step, event },
    ...(server ? { server } : {}),
  });
  yield part({ type: "open", model: "m" });
  yield part({ type: "part-open", index: 0, part: { kind: "text" } });
  for (const delta of words) yield part({ type: "part-delta", index: 0, delta });
  yield part({ type: "part-close", index: 0 });
  if (!calls) return;
  yield part({ type: "part-open", index: 1, part: { kind: "call", id, name: "look" } }, true);
  yield part({ type: "part-delta", index: 1, delta: "{}" }, true);
  yield part({ type: "part-close", index: 1 }, true);
  yield { type: "tool-start", step, callId: id, name: "look", args: "{}" };
  yield { type: "tool-progress", step, callId: id, delta: "…" };
  yield { type: "tool-end", step, callId: id, name: "look", output: [text("seen")], failed: false };
}

/** What a member does, in pieces that a crash does not cut: a step is made anew, or its end is stored. */
function pieces({ name, steps, end, asks }: Script): AgentEvent[][] {
  const member: MemberName = { runId: `run_${name}`, name, task: "t", parent: "dragoman" };
  const callId = "call_d";
  const theirs = (event: AgentEvent): AgentEvent => ({ type: "member", callId, member, event });
  const told = (status: "started" | "waiting" | Script["end"]): AgentEvent => ({
    ...{ type: "agent", callId, member, status },
    ...(status === "waiting"
      ? { calls: [{ id: `ask_${name}`, name: "write", args: "{}", agent: name }] }
      : {}),
  });
  return [
    [told("started"), theirs({ type: "run-open", runId: member.runId, provider: "openai", model: "m" })],
    ...steps.map((step, index) => [...modelled(index, step, `call_${name}_${index}`)].map(theirs)),
    ...(asks ? [[told("waiting")], [told("waiting")]] : []),
    [theirs({ type: "run-close", outcome: "completed", stop: "stop", usage: USAGE }), told(end)],
  ];
}

const played = (script: Script) => pieces(script).flat();

/** One of all orders in which each script keeps its own. */
function merged(all: AgentEvent[][], picks: number[]): AgentEvent[] {
  const queues = all.map((each) => [...each]);
  const out: AgentEvent[] = [];
  for (let at = 0; queues.some((queue) => queue.length > 0); at++) {
    const open = queues.filter((queue) => queue.length > 0);
    out.push(open[(picks[at % picks.length] as number) % open.length]?.shift() as AgentEvent);
  }
  return out;
}

const frames = (after: number, earlier: { first: number; last: number; text: string }[] = []) =>
  new RunFrames({
    ...{ runId: "run_r", sessionId: "ses_s", messageId: "msg_m", unavailableTools: [] },
    ...{ after, earlier, interrupted: earlier.length > 0 },
  });

const tell = (encoder: RunFrames, events: AgentEvent[]) =>
  events
    .flatMap((event) => encoder.push(event))
    .map((frame) => frame.text)
    .join("");

const of = (events: ChatEvent[], name: string) =>
  events.filter((event) => "agent" in event && event.agent === name);

const scene = fc
  .array(script, { minLength: 1, maxLength: 5 })
  .map((all) => all.map((each, index): Script => ({ ...each, name: `m${index}` })));
const picks = fc.array(fc.nat(), { minLength: 1, maxLength: 40 });
const lead = [
  { type: "run-open", runId: "run_r", provider: "openai", model: "m" } as AgentEvent,
  ...modelled(0, { words: ["I delegate."], calls: false }, ""),
];
const close: AgentEvent = { type: "run-close", outcome: "completed", stop: "stop", usage: USAGE };

function check(text: string, scripts: Script[]): void {
  const read = parseFrames(text);
  const events = read.map(({ event }) => event);
  for (const { name, steps, end, asks } of scripts) {
    const theirs = of(events, name);
    expect(theirs[0]).toMatchObject({ type: "agent", status: "started" });
    expect(theirs.at(-1)).toMatchObject({ type: "agent", status: end });
    const told = theirs.flatMap((event) => (event.type === "agent" ? [event.status] : []));
    expect(told).toEqual(["started", ...(asks ? ["waiting"] : []), end]);
    // What the steps have said, each behind an empty line.
    const said = theirs.flatMap((event) => (event.type === "content" ? [event.content] : [])).join("");
    const wanted = steps.map(({ words }) => words.join("")).filter((each) => each !== "");
    expect(said.replaceAll(/\s/g, "")).toBe(wanted.join("").replaceAll(/\s/g, ""));
    const open = new Set<string>();
    for (const event of theirs) {
      if (event.type === "tool_call") open.add(event.id);
      if (event.type === "tool_progress") expect(open).toContain(event.id);
      if (event.type === "tool_result") expect(open.delete(event.id)).toBe(true);
    }
    expect(open.size).toBe(0);
  }
  const own = events.flatMap((event) =>
    event.type === "content" && event.agent === undefined ? [event.content] : [],
  );
  expect(events.filter(({ type }) => type === "done" || type === "error")).toHaveLength(1);
  expect(events.at(-1)).toMatchObject({ type: "done", reply: own.join("") });
  expect(own.join("")).toBe("I delegate.\n\nAll in all.");
}

const last = modelled.bind(null, 1, { words: ["All in all."], calls: false }, "");

test("R2: members in between each other: numbers without a gap, each from its start to its end, and only the lead's words are the reply", () => {
  fc.assert(
    fc.property(scene, picks, (scripts, order) => {
      const events = merged(scripts.map(played), order);
      const text = tell(frames(0), [...lead, ...events, ...last(), close]);
      expect(parseFrames(text).map(({ seq }) => seq)).toEqual(parseFrames(text).map((_, index) => index + 1));
      check(text, scripts);
    }),
  );
});

test("R1: gone on with after a crash, what is said again is not shown again", () => {
  const cuts = fc.array(fc.nat(8), { minLength: 5, maxLength: 5 });
  fc.assert(
    fc.property(scene, picks, cuts, (scripts, order, cuts) => {
      const done = scripts.map((script, index) => pieces(script).slice(0, cuts[index]).flat());
      const rest = scripts.map((script, index) => {
        // Who had begun says so again, and so does who had ended.
        const again = (done[index] as AgentEvent[]).filter(({ type }) => type === "agent");
        return [...again, ...pieces(script).slice(cuts[index]).flat()];
      });
      const before = tell(frames(0), [...lead, ...merged(done, order)]);
      const first = { first: 1, last: parseFrames(before).length, text: before };
      const after = tell(frames(first.last, [first]), [...merged(rest, order), ...last(), close]);
      check(before + after, scripts);
    }),
  );
});
