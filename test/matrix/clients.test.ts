/** What clients do besides asking: where their SDKs send requests, sessions, agents by name, lists of models, counting tokens. */
import Anthropic from "@anthropic-ai/sdk";
import Groq from "groq-sdk";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Service, startService } from "../service.ts";
import { reply, stream } from "../upstream-server.ts";
import { chatCompletions, messages } from "./doors.ts";
import { type Double, startDouble } from "./double.ts";
import { outline } from "./outline.ts";
import { UPSTREAMS } from "./upstreams.ts";

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

const [openai, anthropic, groq, gemini] = UPSTREAMS as [
  (typeof UPSTREAMS)[0],
  (typeof UPSTREAMS)[0],
  (typeof UPSTREAMS)[0],
  (typeof UPSTREAMS)[0],
];
const HELLO = [{ role: "user" as const, content: "Say hello." }];

function openaiClient(upstream = openai, headers: Record<string, string> = {}): OpenAI {
  return new OpenAI({
    baseURL: `${service.url}/v1`,
    apiKey: upstream.key,
    maxRetries: 0,
    defaultHeaders: headers,
  });
}

function anthropicClient(upstream = anthropic, path = "", headers: Record<string, string> = {}): Anthropic {
  return new Anthropic({
    baseURL: service.url + path,
    apiKey: upstream.key,
    maxRetries: 0,
    defaultHeaders: headers,
  });
}

const toolsSent = () =>
  ((double.sent[0]?.body.tools ?? []) as { function: { name: string } }[]).map((tool) => tool.function.name);

describe("where SDKs send their requests", () => {
  test("groq-sdk puts a path of its own behind the base URL", async () => {
    const client = new Groq({ baseURL: service.url, apiKey: groq.key, maxRetries: 0 });
    double.script({ content: "Hello." }, { content: "Hello again." });
    const whole = await client.chat.completions.create({ model: groq.model, messages: HELLO });
    expect(whole.choices[0]?.message.content).toBe("Hello.");
    let said = "";
    const stream = await client.chat.completions.create({
      model: groq.model,
      messages: HELLO,
      stream: true,
    });
    for await (const chunk of stream) said += chunk.choices[0]?.delta.content ?? "";
    expect(said).toBe("Hello again.");
    expect(double.sent.map(({ path }) => path)).toEqual([groq.path, groq.path]);
  });

  test("an Anthropic client whose base URL ends in /v1", async () => {
    double.script({ content: "Hello." });
    const client = anthropicClient(anthropic, "/v1");
    const message = await client.messages.create({
      model: anthropic.model,
      max_tokens: 10,
      messages: HELLO,
    });
    expect(message.content).toMatchObject([{ type: "text", text: "Hello." }]);
  });

  test("x-api-key, as older SDKs send it", async () => {
    double.script({ content: "Hello." });
    const response = await fetch(`${service.url}/v1/messages`, {
      method: "POST",
      headers: {
        "x-api-key": anthropic.key,
        "anthropic-version": "2023-06-01",
        "content-type": "application/json",
      },
      body: JSON.stringify({ model: anthropic.model, max_tokens: 10, messages: HELLO }),
    });
    expect(response.status).toBe(200);
    expect(response.headers.get("request-id")).toBe(response.headers.get("x-request-id"));
    expect(response.headers.get("x-run-id")).toMatch(/^run_/);
  });
});

describe("who answers", () => {
  test.each([
    ["openai", openai],
    ["claude", anthropic],
    ["groq", groq],
    ["google", gemini],
  ])("x-provider: %s wins over the key's prefix", async (name, upstream) => {
    double.script({ content: "Hello." });
    const other = upstream === openai ? groq : openai;
    const client = openaiClient(other, { "x-provider": name });
    await client.chat.completions.create({ model: upstream.model, messages: HELLO });
    expect(double.sent[0]?.path).toMatch(upstream.path);
  });

  test("an unknown x-provider is a 400", async () => {
    const client = openaiClient(openai, { "x-provider": "acme" });
    const asked = client.chat.completions.create({ model: "m", messages: HELLO });
    await expect(asked).rejects.toThrow(OpenAI.BadRequestError);
    await expect(asked).rejects.toThrow(/x-provider/);
  });

  test("no key is a 401 that names the header", async () => {
    const response = await fetch(`${service.url}/v1/messages`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "m", max_tokens: 10, messages: HELLO }),
    });
    expect(response.status).toBe(401);
    expect(await response.json()).toMatchObject({
      type: "error",
      error: { type: "authentication_error", message: expect.stringContaining("x-api-key") },
    });
  });

  test("dragoman is the agent on the provider's default model, and the response says which", async () => {
    double.script({ content: "Hello." });
    const { data, response } = await openaiClient()
      .chat.completions.create({ model: "dragoman", messages: HELLO })
      .withResponse();
    expect(data.model).toBe("dragoman");
    expect(double.sent[0]?.body.model).toBe(response.headers.get("x-upstream-model"));
    expect(toolsSent()).toContain("run_terminal_command");
    expect(JSON.stringify(double.sent[0]?.body.messages)).toContain("You are Dragoman");
  });

  test("dragoman/raw@ is the bare model", async () => {
    double.script({ content: "Hello." });
    await openaiClient().chat.completions.create({ model: `dragoman/raw@${openai.model}`, messages: HELLO });
    expect(double.sent[0]?.body).toMatchObject({ model: openai.model, messages: HELLO });
    expect(double.sent[0]?.body).not.toHaveProperty("tools");
  });

  test("an agent that is not there is a 404", async () => {
    const asked = openaiClient().chat.completions.create({ model: "dragoman/nobody", messages: HELLO });
    await expect(asked).rejects.toThrow(OpenAI.NotFoundError);
  });
});

describe("which of the agent's tools join", () => {
  const theirs = {
    type: "function" as const,
    function: { name: "read_file", description: "The client's own.", parameters: { type: "object" } },
  };

  test.each([
    ["all of them for a client without tools", undefined, false, ["create_file", "read_file"], []],
    ["none of the workspace for a client with tools", undefined, true, ["read_file"], ["create_file"]],
    ["x-agent-tools: all", "all", true, ["create_file", "list_files", "read_file"], []],
    ["x-agent-tools: none", "none", false, [], ["create_file", "read_file"]],
    ["x-agent-tools: names", "list_files, read_file", false, ["list_files", "read_file"], ["create_file"]],
  ])("%s", async (_, header, brings, present, absent) => {
    double.script({ content: "Hello." });
    const client = openaiClient(openai, header ? { "x-agent-tools": header } : {});
    await client.chat.completions.create({
      model: openai.model,
      messages: HELLO,
      ...(brings ? { tools: [theirs] } : {}),
    });
    const names = toolsSent();
    expect(names).toEqual(expect.arrayContaining(present));
    for (const name of absent) expect(names).not.toContain(name);
    expect(new Set(names).size).toBe(names.length);
    if (brings) expect(JSON.stringify(double.sent[0]?.body.tools)).toContain("The client's own.");
  });

  test("what the server does shows on the wire when it is asked for, and only then", async () => {
    const create = { name: "list_files", arguments: "{}" };
    const show = { "x-agent-events": "1" };
    for (const door of [chatCompletions, messages])
      for (const headers of [{}, show]) {
        double.script({ toolCalls: [create] }, { content: "Done." });
        const { key, model } = openai;
        const raw = await door.raw({ url: service.url, key, model, headers }, "Look around.");
        const sse = await raw.text();
        expect(door.check(sse)).toBe("end");
        expect(sse.includes("list_files")).toBe(headers === show);
      }
  });
});

describe("sessions", () => {
  test("a label is a session of its own, in every door and with every provider", async () => {
    const headers = { "x-session-id": `trip-${crypto.randomUUID()}` };
    double.script({ content: "Nice to meet you." }, { content: "Your name is Ada." });
    const { response } = await openaiClient(openai, headers)
      .chat.completions.create({ model: openai.model, messages: [{ role: "user", content: "I am Ada." }] })
      .withResponse();
    expect(response.headers.get("x-session-id")).toMatch(/^ses_/);
    const client = anthropicClient(gemini, "", headers);
    await client.messages.create({
      model: gemini.model,
      max_tokens: 50,
      messages: [{ role: "user", content: "Who am I?" }],
    });
    expect(outline(double.histories()[1])).toEqual([
      "user: I am Ada.",
      "assistant: Nice to meet you.",
      "user: Who am I?",
    ]);
  });

  test("new makes one, and its id goes on with it, tool turns included", async () => {
    double.script({ toolCalls: [{ name: "list_files", arguments: "{}" }] }, { content: "Nothing." });
    const begun = openaiClient(groq, { "x-session-id": "new" });
    const { response } = await begun.chat.completions
      .create({ model: groq.model, messages: [{ role: "user", content: "What is there?" }] })
      .withResponse();
    const id = response.headers.get("x-session-id") ?? "";
    expect(id).toMatch(/^ses_/);

    double.script({ content: "Still nothing." });
    const stream = await openaiClient(groq, { "x-session-id": id }).chat.completions.create({
      model: groq.model,
      messages: [{ role: "user", content: "And now?" }],
      stream: true,
    });
    let said = "";
    for await (const chunk of stream) said += chunk.choices[0]?.delta.content ?? "";
    expect(said).toBe("Still nothing.");
    expect(outline(double.histories()[0])).toEqual([
      "user: What is there?",
      "call list_files {}",
      expect.stringMatching(/^tool: /),
      "assistant: Nothing.",
      "user: And now?",
    ]);
  });

  test("a client that sends its whole copy of the conversation is not doubled", async () => {
    const headers = { "x-session-id": `copy-${crypto.randomUUID()}` };
    const talk = chatCompletions.chat({
      url: service.url,
      key: anthropic.key,
      model: anthropic.model,
      headers,
    });
    double.script({ content: "One." }, { content: "Two." });
    talk.user("First.");
    await talk.ask();
    talk.user("Second.");
    await talk.ask({ stream: true });
    expect(outline(double.histories()[1])).toEqual(["user: First.", "assistant: One.", "user: Second."]);
  });

  test("client tools in a session: only the result comes back", async () => {
    const headers = { "x-session-id": `tools-${crypto.randomUUID()}` };
    const tool = { name: "get_weather", description: "Weather.", input_schema: { type: "object" as const } };
    double.script(
      { toolCalls: [{ name: "get_weather", arguments: '{"city":"Bonn"}' }] },
      { content: "Rain." },
    );
    const client = anthropicClient(openai, "", headers);
    const first = await client.messages.create({
      model: openai.model,
      max_tokens: 50,
      messages: [{ role: "user", content: "Weather?" }],
      tools: [tool],
    });
    const call = first.content.find((block) => block.type === "tool_use");
    const second = await client.messages.create({
      model: openai.model,
      max_tokens: 50,
      messages: [
        { role: "user", content: [{ type: "tool_result", tool_use_id: call!.id, content: "rain" }] },
      ],
      tools: [tool],
    });
    expect(second.content).toMatchObject([{ type: "text", text: "Rain." }]);
    expect(outline(double.histories()[1])).toEqual([
      "user: Weather?",
      'call get_weather {"city":"Bonn"}',
      "tool: rain",
    ]);
  });

  test("an id that is not there is a 404", async () => {
    const client = openaiClient(openai, { "x-session-id": "ses_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" });
    const asked = client.chat.completions.create({ model: openai.model, messages: HELLO });
    await expect(asked).rejects.toThrow(OpenAI.NotFoundError);
  });
});

describe("x-on-disconnect: continue", () => {
  test.each([chatCompletions, messages])(
    "$name: the run ends in its session, without its client",
    async (door) => {
      const finished = Promise.withResolvers<void>();
      const frames = openai.saying("Hello", " world");
      const split = frames.findIndex((frame) => frame.includes("Hello")) + 1;
      double.answer(async (response, request, n) => {
        await stream(frames.slice(0, split), "hang")(response, request, n);
        await finished.promise;
        response.end(frames.slice(split).join(""));
      });
      const headers = { "x-session-id": `left-${crypto.randomUUID()}`, "x-on-disconnect": "continue" };
      const talk = door.chat({ url: service.url, key: openai.key, model: openai.model, headers });
      const gone = new AbortController();
      talk.user("Say hello.");
      const left = talk.ask({ stream: true, signal: gone.signal, onText: () => gone.abort() });
      await expect(left).rejects.toThrow(door.sdk.APIUserAbortError);
      const { closed } = await double.request(0);
      finished.resolve();
      expect(await closed).toBe(true);

      await expect.poll(() => historyOf(headers["x-session-id"])).toEqual(["Say hello.", "Hello world"]);
    },
  );
});

/** What a session holds, as the next request to it shows. */
async function historyOf(session: string): Promise<string[]> {
  double.script({ content: "Well." });
  await openaiClient(openai, { "x-session-id": session }).chat.completions.create({
    model: openai.model,
    messages: [{ role: "user", content: "What was said?" }],
  });
  return outline(double.histories()[0])
    .map((line) => line.slice(line.indexOf(" ") + 1))
    .filter((line) => line !== "What was said?" && line !== "Well.");
}

describe("several replies to one request", () => {
  test("n = 2 on OpenAI, whole and streamed", async () => {
    double.script({ content: "One." }, { content: "One." }, { content: "One." }, { content: "One." });
    const ask = { model: openai.model, messages: HELLO, n: 2 };
    const whole = await openaiClient().chat.completions.create(ask);
    expect(whole.choices.map(({ index, message }) => [index, message.content])).toEqual([
      [0, "One."],
      [1, "One."],
    ]);
    const streamed = await openaiClient().chat.completions.stream(ask).finalChatCompletion();
    expect(streamed.choices.map(({ message }) => message.content)).toEqual(["One.", "One."]);
  });

  test.each([anthropic, groq, gemini])("n = 2 on $provider is a 400 that names it", async (upstream) => {
    const asked = openaiClient(upstream).chat.completions.create({
      model: upstream.model,
      messages: HELLO,
      n: 2,
    });
    await expect(asked).rejects.toThrow(OpenAI.BadRequestError);
    await expect(asked).rejects.toMatchObject({ param: "n" });
  });
});

describe("models", () => {
  const LISTS = [
    [openai, { object: "list", data: [{ id: openai.model, object: "model", created: 5, owned_by: "me" }] }],
    [groq, { object: "list", data: [{ id: groq.model, object: "model", created: 5, owned_by: "me" }] }],
    [
      anthropic,
      {
        data: [{ type: "model", id: anthropic.model, display_name: "C", created_at: "2026-01-01T00:00:00Z" }],
        has_more: false,
        first_id: anthropic.model,
        last_id: anthropic.model,
      },
    ],
    [
      gemini,
      { models: [{ name: `models/${gemini.model}`, supportedGenerationMethods: ["generateContent"] }] },
    ],
  ] as const;

  test.each(LISTS)("of $provider, in both shapes", async (upstream, list) => {
    double.answer(reply(200, list as never));
    const seen: string[] = [];
    for await (const model of openaiClient(upstream).models.list()) seen.push(model.id);
    expect(seen).toEqual(["dragoman", upstream.model]);
    const known: string[] = [];
    for await (const model of anthropicClient(upstream).models.list()) known.push(model.id);
    expect(known).toEqual(["dragoman", upstream.model]);
    expect(await openaiClient(upstream).models.retrieve(upstream.model)).toMatchObject({
      id: upstream.model,
      object: "model",
    });
    expect(await anthropicClient(upstream).models.retrieve("dragoman")).toMatchObject({
      id: "dragoman",
      type: "model",
    });
    await expect(openaiClient(upstream).models.retrieve("nothing")).rejects.toThrow(OpenAI.NotFoundError);
    // Asked once, then remembered.
    expect(double.sent).toHaveLength(1);
  });

  test.each(["100%25", "a%2Fb%252F..", "%F0%9F%8C%BB"])("an id that is not there, as %s", async (id) => {
    const response = await fetch(`${service.url}/v1/models/${id}`);
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({ error: { param: "model", code: "model_not_found" } });
  });

  test("without a key the agents alone", async () => {
    const response = await fetch(`${service.url}/v1/models`);
    expect(await response.json()).toMatchObject({ object: "list", data: [{ id: "dragoman" }] });
  });
});

describe("counting tokens", () => {
  const ask = { messages: [{ role: "user" as const, content: "How long is this, in tokens?" }] };

  test.each([
    [anthropic, { input_tokens: 77 }, "/v1/messages/count_tokens"],
    [gemini, { totalTokens: 77 }, `${gemini.path}${gemini.model}:countTokens`],
  ] as const)("by $provider's own counter", async (upstream, answer, path) => {
    double.answer(reply(200, answer));
    const { data, response } = await anthropicClient(upstream)
      .messages.countTokens({ model: upstream.model, ...ask })
      .withResponse();
    expect(data.input_tokens).toBe(77);
    expect(response.headers.get("x-estimated")).toBeNull();
    expect(double.sent[0]?.path).toMatch(path);
  });

  test.each([openai, groq])("an estimate for $provider, which has none", async (upstream) => {
    const { data, response } = await anthropicClient(upstream)
      .messages.countTokens({ model: upstream.model, ...ask })
      .withResponse();
    expect(data.input_tokens).toBeGreaterThan(3);
    expect(data.input_tokens).toBeLessThan(30);
    expect(response.headers.get("x-estimated")).toBe("1");
  });
});
