/** The cells in which all goes well. */
import { expect } from "vitest";
import { stream } from "../upstream-server.ts";
import type { Row } from "./cell.ts";
import type { ClientTool } from "./doors.ts";
import { outline } from "./outline.ts";

const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
const GREETING = "Grüße aus dem Süden 🌻, und mehr davon.";
const WEATHER: ClientTool = {
  name: "get_weather",
  description: "The weather in a city.",
  schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};
const TIME: ClientTool = {
  name: "get_time",
  description: "The time in a zone.",
  schema: { type: "object", properties: { zone: { type: "string" } }, required: ["zone"] },
};
const CONTENT = 'Größe: 12 €\n\ttab and "quotes"\n';

/** A path that no cell has used before, and the call that makes a file there. */
function newFile() {
  const path = `notes/${crypto.randomUUID()}.txt`;
  return { path, create: { name: "create_file", arguments: JSON.stringify({ path, content: CONTENT }) } };
}

export const USES: Row[] = [
  [
    "plain",
    async ({ double, door, chat, upstream }) => {
      double.script({ content: GREETING });
      const talk = chat();
      talk.user("Say hello.");
      const answer = await talk.ask();
      expect(answer).toMatchObject({ text: GREETING, calls: [], stop: door.stops.end });
      expect(double.sent).toHaveLength(1);
      expect(double.sent[0]?.path).toMatch(upstream.path);
      expect(outline(double.histories()[0])).toEqual(["user: Say hello."]);
    },
  ],
  [
    "stream",
    async ({ double, door, chat, service, upstream }) => {
      double.script({ content: GREETING }, { content: GREETING });
      const talk = chat();
      talk.user("Say hello.");
      const pieces: string[] = [];
      const answer = await talk.ask({ stream: true, onText: (piece) => pieces.push(piece) });
      expect(answer).toMatchObject({ text: GREETING, stop: door.stops.end });
      expect(pieces.length).toBeGreaterThan(2);
      expect(pieces.join("")).toBe(GREETING);

      const { key, model } = upstream;
      const raw = await door.raw({ url: service.url, key, model }, "Say hello.");
      expect(raw.headers.get("content-type")).toMatch("text/event-stream");
      expect(door.check(await raw.text())).toBe("end");
    },
  ],
  [
    "usage",
    async ({ double, chat }) => {
      const usage = {
        ...{ prompt_tokens: 31, completion_tokens: 8, total_tokens: 39 },
        ...{ input_tokens: 31, output_tokens: 8 },
        ...{ promptTokenCount: 31, candidatesTokenCount: 8, totalTokenCount: 39 },
      };
      double.script({ content: "Hello.", usage }, { content: "Again.", usage });
      const talk = chat();
      talk.user("Say hello.");
      expect((await talk.ask()).usage).toEqual({ input: 31, output: 8 });
      talk.user("And again.");
      expect((await talk.ask({ stream: true })).usage).toEqual({ input: 31, output: 8 });
    },
  ],
  [
    "client tools, two in one turn",
    async ({ double, door, chat }) => {
      const calls = [
        { name: "get_weather", arguments: '{"city":"Köln"}' },
        { name: "get_time", arguments: '{"zone":"CET"}' },
      ];
      for (const streamed of [false, true]) {
        double.script({ toolCalls: calls }, { content: "Rain at noon." });
        const talk = chat();
        talk.user("Weather and time?");
        const first = await talk.ask({ stream: streamed, tools: [WEATHER, TIME] });
        expect(first.stop).toBe(door.stops.calls);
        expect(first.calls).toMatchObject([
          { name: "get_weather", args: { city: "Köln" } },
          { name: "get_time", args: { zone: "CET" } },
        ]);
        const [weather, time] = first.calls;
        talk.results({ id: weather!.id, output: "rain" }, { id: time!.id, output: "noon" });
        const second = await talk.ask({ stream: streamed, tools: [WEATHER, TIME] });
        expect(second).toMatchObject({ text: "Rain at noon.", calls: [], stop: door.stops.end });
        expect(outline(double.histories()[1])).toEqual([
          "user: Weather and time?",
          'call get_weather {"city":"Köln"}',
          'call get_time {"zone":"CET"}',
          "tool: rain",
          "tool: noon",
        ]);
      }
    },
  ],
  [
    "server tools",
    async ({ double, door, chat, service }) => {
      for (const streamed of [false, true]) {
        const { path, create } = newFile();
        const count = {
          name: "run_terminal_command",
          arguments: JSON.stringify({ command: `wc -c ${path}` }),
        };
        const read = { name: "read_file", arguments: JSON.stringify({ path }) };
        double.script(
          { content: "I write it.", toolCalls: [create, count] },
          { toolCalls: [read] },
          { content: "Done." },
        );
        const talk = chat();
        talk.user("Write it, count it, read it.");
        const answer = await talk.ask({ stream: streamed });
        expect(answer).toMatchObject({ text: "I write it.\n\nDone.", calls: [], stop: door.stops.end });
        expect(await service.read(path)).toBe(CONTENT);
        const seen = outline(double.histories()[2]);
        expect(seen).toHaveLength(8);
        const bytes = new TextEncoder().encode(CONTENT).length;
        expect(seen[5]).toMatch(new RegExp(`^tool: [^]*\\b${bytes} ${path}`));
        expect(seen[7]).toContain("Größe: 12 €");
      }
    },
  ],
  [
    "a server's and a client's call in one turn",
    async ({ double, door, chat, service }) => {
      const weather = { name: "get_weather", arguments: '{"city":"Bonn"}' };
      for (const streamed of [false, true]) {
        const { path, create } = newFile();
        double.script({ content: "Both.", toolCalls: [create, weather] }, { content: "All done." });
        const talk = chat({ "x-agent-tools": "create_file" });
        talk.user("Write it, and look outside.");
        const first = await talk.ask({ stream: streamed, tools: [WEATHER] });
        expect(first).toMatchObject({ text: "Both.", stop: door.stops.calls });
        expect(first.calls).toMatchObject([{ name: "get_weather", args: { city: "Bonn" } }]);
        expect(await service.read(path)).toBe(CONTENT);
        talk.results({ id: first.calls[0]!.id, output: "rain" });
        const second = await talk.ask({ stream: streamed, tools: [WEATHER] });
        expect(second).toMatchObject({ text: "All done.", calls: [], stop: door.stops.end });
        expect(outline(double.histories()[1])).toEqual([
          "user: Write it, and look outside.",
          "assistant: Both.",
          `call create_file ${create.arguments}`,
          'call get_weather {"city":"Bonn"}',
          expect.stringMatching(`^tool: .*${path}`),
          "tool: rain",
        ]);
      }
    },
  ],
  [
    "a client's call after a turn of the server's own",
    async ({ double, door, chat }) => {
      const weather = { name: "get_weather", arguments: '{"city":"Bonn"}' };
      const look = { name: "list_files", arguments: '{"path":"notes"}' };
      for (const streamed of [false, true]) {
        const { path, create } = newFile();
        double.script(
          { content: "One.", toolCalls: [create] },
          { content: "Two.", toolCalls: [weather, look] },
          { content: "Three." },
        );
        const talk = chat({ "x-agent-tools": "all" });
        talk.user("Go.");
        const first = await talk.ask({ stream: streamed, tools: [WEATHER] });
        expect(first).toMatchObject({ text: "One.\n\nTwo.", stop: door.stops.calls });
        expect(first.calls).toHaveLength(1);
        talk.results({ id: first.calls[0]!.id, output: "rain" });
        expect((await talk.ask({ stream: streamed, tools: [WEATHER] })).text).toBe("Three.");
        expect(outline(double.histories()[2])).toEqual([
          "user: Go.",
          "assistant: One.",
          `call create_file ${create.arguments}`,
          expect.stringMatching(`^tool: .*${path}`),
          "assistant: Two.",
          'call get_weather {"city":"Bonn"}',
          'call list_files {"path":"notes"}',
          "tool: rain",
          expect.stringMatching(/^tool: /),
        ]);
      }
    },
  ],
  [
    "image",
    async ({ double, chat }) => {
      double.script({ content: "A pixel." });
      const talk = chat();
      talk.user("What is this?", { mediaType: "image/png", data: PIXEL });
      expect((await talk.ask()).text).toBe("A pixel.");
      const sent = JSON.stringify(double.sent[0]?.body);
      expect(sent).toContain(PIXEL);
      expect(sent).toContain("image/png");
    },
  ],
  [
    "JSON schema",
    async ({ double, chat }) => {
      const schema = {
        type: "object",
        properties: { zebra_count: { type: "integer" } },
        required: ["zebra_count"],
        additionalProperties: false,
      };
      double.script({ content: '{"zebra_count":3}' });
      const talk = chat({ "x-agent-tools": "none" });
      talk.user("How many zebras?");
      expect(JSON.parse((await talk.ask({ stream: true, schema })).text)).toEqual({ zebra_count: 3 });
      expect(JSON.stringify(double.sent[0]?.body)).toContain("zebra_count");
    },
  ],
  [
    "reasoning kept over a tool turn",
    async ({ double, door, chat, upstream }) => {
      for (const streamed of [false, true]) {
        const thinking = upstream.thinking(crypto.randomUUID().replaceAll("-", "").slice(0, 20));
        double.answer((response, request, n) =>
          stream(n === 0 ? thinking : upstream.saying("Rain at noon."))(response, request, n),
        );
        const talk = chat();
        talk.user("Weather and time?");
        const first = await talk.ask({ stream: streamed, tools: [WEATHER, TIME] });
        expect(first.stop).toBe(door.stops.calls);
        expect(first.reasoning).toBe("Two things.");
        const [weather, time] = first.calls;
        talk.results({ id: weather!.id, output: "rain" }, { id: time!.id, output: "noon" });
        const second = await talk.ask({ stream: streamed, tools: [WEATHER, TIME] });
        expect(second).toMatchObject({ text: "Rain at noon.", stop: door.stops.end });
        expect(upstream.thoughtsIn(double.sent[1]!.body)).toEqual(upstream.thoughts);
      }
    },
  ],
];
