/** Clients of the messages door that ask for more than its documentation's first page: Claude Code, and the SDK's tool runner. */
import Anthropic from "@anthropic-ai/sdk";
import { betaZodTool } from "@anthropic-ai/sdk/helpers/beta/zod";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as z from "zod";
import { type Service, startService } from "../service.ts";
import { type Double, startDouble } from "./double.ts";
import { outline } from "./outline.ts";
import { UPSTREAMS, type Upstream } from "./upstreams.ts";

let service: Service;
let double: Double;
beforeAll(async () => {
  double = await startDouble();
  const env = { APPROVAL: "auto", LOG_LEVEL: "warning", UPSTREAM_RETRIES: "0", ...double.env };
  service = await startService({ runtime: "node", env });
});
afterAll(async () => {
  await service.stop();
  await double.stop();
});

const client = ({ key }: Upstream) => new Anthropic({ baseURL: service.url, apiKey: key, maxRetries: 0 });

const MODEL = "claude-opus-5-5";
const BETAS = [
  "claude-code-20250219",
  "interleaved-thinking-2025-05-14",
  "context-management-2025-06-27",
  "prompt-caching-scope-2026-01-05",
  "advanced-tool-use-2025-11-20",
  "effort-2025-11-24",
  "structured-outputs-2025-12-15",
  "mid-conversation-system-2026-04-07",
  "of-a-day-to-come-2031-01-01",
];
const CACHE = { type: "ephemeral" as const };

function tool(name: string, properties: Record<string, unknown>, more: Record<string, unknown> = {}) {
  return {
    name,
    description: `${name}, as the client has it.`,
    input_schema: {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object" as const,
      properties,
      additionalProperties: false,
    },
    ...more,
  };
}

const TEXT = { type: "string", description: "Some text." };
const TOOLS = [
  tool("Bash", { command: TEXT, timeout: { type: "number" } }),
  tool("Read", { file_path: TEXT, offset: { type: "integer", minimum: 0 } }),
  tool("Edit", { file_path: TEXT, old_string: TEXT, new_string: TEXT }),
  tool("Write", { file_path: TEXT, content: TEXT }),
  tool("Glob", { pattern: TEXT }),
  tool("Grep", { pattern: TEXT, "-A": { type: "number" } }),
  tool("Task", { prompt: TEXT, model: { enum: ["sonnet", "opus"] } }),
  tool("WebFetch", { url: { type: "string", format: "uri" } }),
  tool("TodoWrite", { todos: { type: "array", items: { type: "object", properties: { content: TEXT } } } }),
  tool("Skill", { skill: TEXT }, { type: "custom" }),
  tool("AskUserQuestion", { questions: { type: "array", minItems: 1, items: TEXT } }, { type: "custom" }),
  tool("mcp__issues__search", { query: TEXT }, { defer_loading: true }),
];

/** One turn of Claude Code. */
function turn(messages: Record<string, unknown>[]) {
  return {
    model: MODEL,
    max_tokens: 128_000,
    system: [
      { type: "text", text: "x-billing: cc_version=3.0; cc_entrypoint=cli;" },
      { type: "text", text: "You are a coding agent in a terminal.", cache_control: CACHE },
      { type: "text", text: "# How to work\nBe brief.", cache_control: { ...CACHE, ttl: "1h" } },
    ],
    messages,
    tools: TOOLS,
    thinking: { type: "adaptive", display: "omitted" },
    output_config: { effort: "high" },
    context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
    metadata: { user_id: '{"device_id":"d","account_uuid":"","session_id":"s"}' },
  };
}

const FIRST = [
  {
    role: "user",
    content: [
      { type: "text", text: "<system-reminder>\nIt is Friday.\n</system-reminder>" },
      { type: "text", text: "What is in here?", cache_control: CACHE },
    ],
  },
  { role: "system", content: "The user prefers short answers." },
];

async function ask(
  upstream: Upstream,
  body: ReturnType<typeof turn>,
  headers: Record<string, string> = {},
): Promise<Anthropic.Beta.BetaMessage> {
  const stream = client(upstream).beta.messages.stream({ ...body, betas: BETAS } as never, { headers });
  return stream.finalMessage();
}

describe("Claude Code", () => {
  const call = { name: "Bash", arguments: '{"command":"ls"}' };

  test("with Anthropic: nothing of its request is lost, and what is added are the agent's own tools", async () => {
    double.script({ content: "I look.", toolCalls: [call] });
    const body = turn(FIRST);
    await ask(UPSTREAMS[1]!, body);
    const { system, tools } = double.sent[0]!.body as ReturnType<typeof turn>;
    expect(system.slice(-body.system.length)).toEqual(body.system);
    const names = tools.map((each) => each.name);
    expect(names).toEqual(expect.arrayContaining(TOOLS.map((each) => each.name)));
    // Its own shell and files are not doubled.
    expect(names).toContain("search_web");
    expect(names).not.toContain("run_terminal_command");
    expect(names).not.toContain("read_file");
  });

  test("with Anthropic and without the agent's tools: nothing of its request is lost or added", async () => {
    double.script({
      content: "I look.",
      toolCalls: [call],
      reasoning: "Hm.",
      reasoningSignature: "c2lnbmF0dXJl+/=",
    });
    const body = turn(FIRST);
    const message = await ask(UPSTREAMS[1]!, body, { "x-agent-tools": "none" });
    expect(message.stop_reason).toBe("tool_use");
    const sent = double.sent[0]!;
    expect(sent.path).toBe("/v1/messages?beta=true");
    // Two words have another spelling: a string is one text block, and `custom` is what a tool is unless it says so.
    const [question, reminder] = FIRST;
    expect(sent.body).toEqual({
      ...body,
      messages: [question, { ...reminder, content: [{ type: "text", text: reminder!.content }] }],
      tools: TOOLS.map((tool) => ({ ...tool, type: undefined })),
      stream: true,
    });
    expect(String(sent.headers["anthropic-beta"]).split(/\s*,\s*/)).toEqual(expect.arrayContaining(BETAS));
    expect(message.content).toContainEqual(
      expect.objectContaining({ type: "thinking", signature: "c2lnbmF0dXJl+/=" }),
    );
  });

  test.each(UPSTREAMS)("with $provider: a tool turn", async (upstream) => {
    double.script({ content: "I look.", toolCalls: [call] }, { content: "Two files." });
    const first = await ask(upstream, turn(FIRST));
    expect(first.stop_reason).toBe("tool_use");
    const use = first.content.find((block) => block.type === "tool_use");
    expect(use).toMatchObject({ name: "Bash", input: { command: "ls" } });
    const second = await ask(
      upstream,
      turn([
        ...FIRST,
        { role: "assistant", content: first.content },
        {
          role: "user",
          content: [
            {
              type: "tool_result",
              tool_use_id: use!.id,
              content: [{ type: "text", text: "a.txt\nb.txt" }],
              is_error: false,
              cache_control: CACHE,
            },
            { type: "text", text: "<system-reminder>Go on.</system-reminder>" },
          ],
        },
      ]),
    );
    expect(second).toMatchObject({
      stop_reason: "end_turn",
      content: [{ type: "text", text: "Two files." }],
    });
    const seen = outline(double.histories()[1]);
    const told = seen.join("\n");
    expect(told).toContain("What is in here?");
    expect(seen).toContain('call Bash {"command":"ls"}');
    expect(seen).toContain("tool: a.txt\nb.txt");
    expect(told).toContain("Go on.");
    const sent = JSON.stringify(double.sent[1]!.body);
    expect(sent).toContain("The user prefers short answers.");
    expect(sent).toContain("You are a coding agent in a terminal.");
    expect(sent).toContain("mcp__issues__search");
    // The client has a shell and files of its own: no tool of that name goes along.
    expect(sent).not.toContain('"run_terminal_command"');
  });

  test.each(UPSTREAMS)("with $provider: an answer to a schema, for its own use", async (upstream) => {
    const schema = {
      type: "object",
      properties: { title: { type: "string" } },
      required: ["title"],
      additionalProperties: false,
    };
    double.script({ content: '{"title":"Files"}' });
    const { tools: _, thinking: __, ...rest } = turn(FIRST);
    const message = await ask(upstream, {
      ...rest,
      output_config: { effort: "low", format: { type: "json_schema", schema } },
    } as never);
    expect(message.content).toMatchObject([{ type: "text", text: '{"title":"Files"}' }]);
    expect(JSON.stringify(double.sent[0]!.body)).toContain('"title"');
  });
});

describe("the SDK's tool runner, which opens a thread", () => {
  test.each(UPSTREAMS.flatMap((upstream) => [false, true].map((stream) => ({ upstream, stream }))))(
    "with $upstream.provider, streamed: $stream",
    async ({ upstream, stream }) => {
      const ran: string[] = [];
      const weather = betaZodTool({
        name: "get_weather",
        description: "The weather in a city.",
        inputSchema: z.object({ city: z.string() }),
        run: ({ city }) => {
          ran.push(city);
          return `rain in ${city}`;
        },
      });
      double.script(
        {
          toolCalls: [
            { name: "get_weather", arguments: '{"city":"Bonn"}' },
            { name: "get_weather", arguments: '{"city":"Rome"}' },
          ],
        },
        { toolCalls: [{ name: "get_weather", arguments: '{"city":"Oslo"}' }] },
        { content: "Rain everywhere." },
      );
      const runner = client(upstream).beta.messages.toolRunner({
        model: upstream.model,
        max_tokens: 500,
        messages: [{ role: "user", content: "Weather?" }],
        tools: [weather],
        stream,
      });
      const last = await runner.runUntilDone();
      expect(last.content).toMatchObject([{ type: "text", text: "Rain everywhere." }]);
      expect(ran).toEqual(["Bonn", "Rome", "Oslo"]);
      expect(outline(double.histories()[2])).toEqual([
        "user: Weather?",
        'call get_weather {"city":"Bonn"}',
        'call get_weather {"city":"Rome"}',
        "tool: rain in Bonn",
        "tool: rain in Rome",
        'call get_weather {"city":"Oslo"}',
        "tool: rain in Oslo",
      ]);
    },
  );
});
