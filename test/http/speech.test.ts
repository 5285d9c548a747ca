/** Who speaks, and what of it a client that does not listen costs. The providers themselves are in test/speech.test.ts. */
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { createApp } from "../../src/app.ts";
import type { LocalVoice, SpeechBytes } from "../../src/core/speech.ts";
import { audioBody } from "../../src/http/audio-body.ts";
import type { SpeechAudio } from "../../src/knowledge/speech.ts";
import { createEmbeddedSpeaker } from "../../src/knowledge/speech-embedded.ts";
import { scriptedModel } from "../scripted-model.ts";
import { type SpeechDouble, startSpeechDouble } from "../speech-double.ts";
import { createHome, createService, json, type TestHome, type TestService } from "./service.ts";

const mp3 = new Uint8Array(600).fill(9);
let home: TestHome;
let double: SpeechDouble;
const open: TestService[] = [];

beforeAll(async () => {
  home = await createHome();
  double = await startSpeechDouble();
});
afterAll(async () => {
  for (const service of open) await service.close();
  await home.close();
  await double[Symbol.asyncDispose]();
});

const silence: LocalVoice = {
  speak: async () => ({ samples: new Uint8Array(200), rate: 22_050 }),
  close: async () => {},
};

/** With the operator's keys in `env`; `mute`: without the embedded voice. */
async function serve(env: Record<string, string>, mute = false) {
  const keys = { OPENAI_API_KEY: "", LOG_LEVEL: "silent", UPSTREAM_RETRIES: "0" };
  const service = await createService(home, {
    model: scriptedModel([{ text: "hello" }]),
    env: { ...double.env, ...keys, ...env },
  });
  open.push(service);
  const speech = { ...service.services.speech, embedded: mute ? undefined : createEmbeddedSpeaker(silence) };
  const app = createApp({ ...service.services, speech });
  // Read to its end: audio that nobody reads is under way until it is given up.
  const send = async (path: string, body: unknown, headers: Record<string, string> = {}) => {
    const response = await app.request(`http://127.0.0.1:8000${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
    return new Response(await response.arrayBuffer(), response);
  };
  return { service, send };
}

/** Which keys the provider has seen since the last answer was set. */
const shown = () =>
  double.front.requests.map(({ headers }) => headers.authorization ?? headers["x-goog-api-key"]);

describe("who speaks", () => {
  const text = "Hello.";

  test("the key's provider; without a key the operator's; without any the embedded voice", async () => {
    const { send } = await serve({ OPENAI_API_KEY: "sk-operator", ANTHROPIC_API_KEY: "sk-ant-operator" });
    double.says(mp3, { format: "mp3" });
    expect((await send("/api/tts", { text })).headers.get("content-type")).toBe("audio/mpeg");
    await send("/api/tts", { text, api_key: "sk-caller" });
    await send("/api/tts", { text, provider: "openai" });
    expect(shown()).toEqual(["Bearer sk-operator", "Bearer sk-caller", "Bearer sk-operator"]);
    const embedded = await send("/api/tts", { text, provider: "Embedded", api_key: "sk-caller" });
    expect(embedded.headers.get("x-upstream-model")).toBe("espeak-ng");

    const poor = await serve({ ANTHROPIC_API_KEY: "sk-ant-operator" });
    expect((await poor.send("/api/tts", { text })).headers.get("content-type")).toBe("audio/wav");
    expect((await poor.send("/api/tts", { text, api_key: "sk-ant-x" })).status).toBe(200);
    expect(shown()).toHaveLength(3);
  });

  test("a named provider or the OpenAI door gets no other voice in its place", async () => {
    const { send } = await serve({});
    expect((await send("/api/tts", { text, provider: "gemini" })).status).toBe(401);
    expect((await send("/api/tts", { text, provider: "anthropic", api_key: "sk-ant-x" })).status).toBe(400);
    expect(await json(await send("/api/tts", { text, provider: "other" }))).toMatchObject({
      param: "provider",
    });
    const door = await send("/v1/audio/speech", { model: "tts-1", voice: "alloy", input: text });
    expect([door.status, (await json(door)).error.type]).toEqual([401, "authentication_error"]);
    const named = await send(
      "/v1/audio/speech",
      { model: "dragoman", input: text },
      { "x-provider": "embedded" },
    );
    expect(named.headers.get("content-type")).toBe("audio/wav");
  });

  test("without the embedded voice: a sentence that says what to send", async () => {
    const { send } = await serve({}, true);
    expect((await send("/api/tts", { text })).status).toBe(401);
    expect((await send("/api/tts", { text, api_key: "sk-ant-x" })).status).toBe(400);
    const response = await send("/api/tts", { text, provider: "embedded" });
    expect([response.status, (await json(response)).code]).toEqual([501, "not_implemented"]);
  });

  test("the model is the caller's, an alias's or the setting's", async () => {
    const { send } = await serve({ OPENAI_TTS_MODEL: "my-voice", MODEL_ALIASES: "tts-1*=other-voice" });
    double.says(mp3, { format: "mp3" });
    for (const model of [undefined, "dragoman", "tts-1-hd", "x"])
      await send("/api/tts", { text, model, api_key: "sk-caller" });
    expect(double.front.requests.map(({ body }) => body.model)).toEqual([
      "my-voice",
      "my-voice",
      "other-voice",
      "x",
    ]);
  });

  test("a field that nobody knows reaches OpenAI as it came", async () => {
    const { send } = await serve({});
    double.says(mp3, { format: "mp3" });
    const body = {
      model: "tts-1",
      voice: "alloy",
      input: text,
      emotion: { calm: 1 },
      stream_format: "audio",
    };
    await send("/openai/v1/audio/speech", body, { authorization: "Bearer sk-caller" });
    expect(double.front.requests[0]?.body).toEqual({
      ...{ model: "tts-1", voice: "alloy", input: text, response_format: "mp3", emotion: { calm: 1 } },
    });
  });
});

describe("what is asked", () => {
  test.each([
    [{}, "text"],
    [{ text: "" }, "text"],
    [{ text: "\n \u0007" }, "text"],
    [{ text: "é".repeat(4097) }, "text"],
    [{ text: "x", format: "aac" }, "format"],
    [{ text: "x", speed: 0.1 }, "speed"],
    [{ text: "x", speed: "fast" }, "speed"],
    [{ text: "x", voice: "" }, "voice"],
    [{ text: "x", model: "tts-1" }, "model"],
  ])("%j is a 400 about %s %s", async (body, param) => {
    const { send } = await serve({});
    const response = await send("/api/tts", body);
    expect([response.status, (await json(response)).param]).toEqual([400, param]);
    const { text, format, ...rest } = body as Record<string, unknown>;
    const twin = await send(
      "/v1/audio/speech",
      {
        model: "dragoman",
        ...rest,
        ...(text === undefined ? {} : { input: text }),
        response_format: format === "aac" ? "mp9" : undefined,
      },
      { "x-provider": "embedded" },
    );
    const twins = { text: "input", format: "response_format" }[param] ?? param;
    expect([twin.status, (await json(twin)).error.param]).toEqual([400, twins]);
  });

  test("K2: a key that the provider quotes is in no error and no log", async () => {
    const { send, service } = await serve({});
    const key = "sk-canary-0123456789";
    double.answer((response) => {
      response.writeHead(401, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: { message: `Wrong key ${key}.`, code: key } }));
    });
    const response = await send("/api/tts", { text: "x", api_key: key });
    expect(response.status).toBe(401);
    expect(await response.text()).not.toContain(key);
    expect(JSON.stringify(service.logged)).not.toContain(key);
  });
});

describe("a body", () => {
  async function* endless(): SpeechBytes {
    for (;;) yield new Uint8Array(10);
  }
  const audioOf = (bytes: SpeechAudio["bytes"]) => {
    const close = vi.fn();
    return { audio: { contentType: "audio/mpeg", bytes, close, ended: Promise.resolve() }, close };
  };

  test("R7: is given up when nobody reads it, before the first byte and later", async () => {
    for (const reads of [0, 3]) {
      const { audio, close } = audioOf(endless());
      const reader = audioBody(audio, { log: () => {}, stuckMs: 5 }).getReader();
      for (let n = 0; n < reads; n++) expect((await reader.read()).value).toHaveLength(10);
      await expect(reader.closed).rejects.toThrow(/has not read/);
      expect(close).toHaveBeenCalledTimes(1);
    }
  });

  test("asks for no more than is read, and closes what its reader leaves", async () => {
    let made = 0;
    async function* counted(): SpeechBytes {
      for (;;) yield new Uint8Array(++made);
    }
    const { audio, close } = audioOf(counted());
    const reader = audioBody(audio, { log: () => {} }).getReader();
    expect(made).toBe(0);
    await reader.read();
    await reader.read();
    expect(made).toBe(2);
    await reader.cancel();
    expect(close).toHaveBeenCalledTimes(1);
  });
});
