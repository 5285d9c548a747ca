/** Speech through the service as it is run, on every runtime: each provider's double, the official SDK, the embedded voice. */
import { once } from "node:events";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { monoFormat, wavHeader } from "../src/core/wav.ts";
import { canRun, RUNTIMES, type Service, startService } from "./service.ts";
import { glue, RATE, readWav, tone } from "./speech-audio.ts";
import { type SpeechDouble, startSpeechDouble } from "./speech-double.ts";
import { sqldNote } from "./sqld.ts";
import { frames, reply, stream, type UpstreamRequest } from "./upstream-server.ts";

const OPENAI_KEY = "sk-proj-0123456789abcdef";
const GROQ_KEY = "gsk_0123456789abcdef";
const GEMINI_KEY = "AIzaSy0123456789abcdefghijklmnopqrstuvw";
const ANTHROPIC_KEY = "sk-ant-api03-0123456789abcdef";
const PCM = { contentType: `audio/L16;codec=pcm;rate=${RATE}` };
const sound = tone(440, 0.5);
const wav = glue([wavHeader(monoFormat(RATE), sound.length), sound]);
const mp3 = new Uint8Array(4_000).map((_, i) => (i * 7) % 251);
const SETTINGS = {
  LOG_LEVEL: "warning",
  UPSTREAM_RETRIES: "1",
  UPSTREAM_FIRST_BYTE_TIMEOUT: "1.5",
  UPSTREAM_IDLE_TIMEOUT: "1.5",
};

describe.each(RUNTIMES)("%s", (runtime) => {
  describe.skipIf(!canRun(runtime))(runtime === "workerd" ? sqldNote : "", () => {
    let service: Service;
    let double: SpeechDouble;
    beforeAll(async () => {
      double = await startSpeechDouble();
      service = await startService({ runtime, env: { ...SETTINGS, ...double.env } });
    });
    afterAll(async () => {
      await service.stop();
      await double[Symbol.asyncDispose]();
    });

    /** With AUTH=key, as on Workers, a request of `/api` has to show a key too. */
    const tts = (body: object, key = OPENAI_KEY, signal?: AbortSignal) =>
      fetch(`${service.url}/api/tts`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          ...(runtime === "workerd" ? { authorization: `Bearer ${key}` } : {}),
        },
        body: JSON.stringify({ ...(key && runtime !== "workerd" ? { api_key: key } : {}), ...body }),
        ...(signal ? { signal } : {}),
      });
    const sdk = (apiKey: string, headers: Record<string, string> = {}) =>
      new OpenAI({ apiKey, baseURL: `${service.url}/v1`, maxRetries: 0, defaultHeaders: headers });
    const bytesOf = async (response: Response) => new Uint8Array(await response.arrayBuffer());
    const sent = () => double.front.requests as UpstreamRequest[];

    test("OpenAI speaks in its own format", async () => {
      double.says(mp3, { format: "mp3" });
      const response = await tts({ text: "Good morning.", voice: "nova", speed: 1.5 });
      expect([response.status, response.headers.get("content-type")]).toEqual([200, "audio/mpeg"]);
      expect(response.headers.get("x-upstream-model")).toBe("gpt-4o-mini-tts");
      expect(await bytesOf(response)).toEqual(mp3);
      expect(sent()).toHaveLength(1);
      expect(sent()[0]).toMatchObject({
        path: "/v1/audio/speech",
        headers: { authorization: `Bearer ${OPENAI_KEY}` },
        body: {
          model: "gpt-4o-mini-tts",
          input: "Good morning.",
          voice: "nova",
          response_format: "mp3",
          speed: 1.5,
        },
      });
    });

    test("Groq's parts become one file", async () => {
      double.says(wav, { format: "wav" });
      const text = `${"The first sentence of many is here. ".repeat(6)}And one more ends it.`;
      const response = await tts({ text }, GROQ_KEY);
      expect([response.status, response.headers.get("content-type")]).toEqual([200, "audio/wav"]);
      const read = readWav(await bytesOf(response));
      expect(read).toMatchObject({ rate: RATE, channels: 1, bits: 16 });
      expect(read.data).toEqual(glue([sound, sound]));
      const inputs = sent().map(({ path, body }) => [
        path,
        body.model,
        body.response_format,
        body.voice,
        body.input,
      ]);
      expect(inputs.map(([path]) => path)).toEqual(["/openai/v1/audio/speech", "/openai/v1/audio/speech"]);
      expect(inputs.map((each) => each.at(-1)).join("")).toBe(text);
      expect(inputs[0]?.slice(1, 4)).toEqual(["canopylabs/orpheus-v1-english", "wav", "troy"]);
    });

    test("Gemini's samples are wrapped", async () => {
      double.says(sound, PCM);
      const response = await tts({ text: "Good morning.", voice: "Puck" }, GEMINI_KEY);
      expect([response.status, response.headers.get("content-type")]).toEqual([200, "audio/wav"]);
      expect(readWav(await bytesOf(response))).toMatchObject({
        rate: RATE,
        channels: 1,
        bits: 16,
        data: sound,
      });
      const [request] = sent();
      expect(request?.path).toBe("/v1beta/models/gemini-3.8-flash-tts:streamGenerateContent?alt=sse");
      expect(request?.body).toMatchObject({
        contents: [{ parts: [{ text: "Say: Good morning." }] }],
        generationConfig: {
          responseModalities: ["AUDIO"],
          speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName: "Puck" } } },
        },
      });
    });

    test("what a provider cannot do is a 400 that names it, and it is not asked", async () => {
      double.says(sound, PCM);
      const refused = async (body: object, key: string) => {
        const response = await tts(body, key);
        return [response.status, ((await response.json()) as { param: string }).param];
      };
      expect(await refused({ text: "x", format: "mp3" }, GEMINI_KEY)).toEqual([400, "format"]);
      expect(await refused({ text: "x", speed: 2 }, GEMINI_KEY)).toEqual([400, "speed"]);
      expect(await refused({ text: "x", format: "opus" }, GROQ_KEY)).toEqual([400, "format"]);
      expect(await refused({ text: "x", format: "flac" }, GROQ_KEY)).toEqual([400, "format"]);
      expect(await refused({ text: "x", provider: "claude" }, ANTHROPIC_KEY)).toEqual([400, "provider"]);
      expect(sent()).toEqual([]);
    });

    test("the official SDK hears it as it is made", async () => {
      double.answer(async (response) => {
        response.writeHead(200, { "content-type": "audio/mpeg" });
        response.write(mp3.subarray(0, 1_000));
        await once(gate, "go");
        response.end(mp3.subarray(1_000));
      });
      const speech = await sdk(OPENAI_KEY).audio.speech.create({
        model: "tts-1",
        voice: { id: "voice_mine" },
        input: "Good morning.",
        instructions: "Softly.",
        response_format: "mp3",
      });
      const reader = (speech.body as ReadableStream<Uint8Array>).getReader();
      const first = (await reader.read()).value as Uint8Array;
      expect(first).toEqual(mp3.subarray(0, first.length));
      gate.dispatchEvent(new Event("go"));
      const rest: Uint8Array[] = [];
      for (let next = await reader.read(); !next.done; next = await reader.read()) rest.push(next.value);
      expect(glue([first, ...rest])).toEqual(mp3);
      expect(sent()[0]?.body).toMatchObject({
        model: "tts-1",
        voice: { id: "voice_mine" },
        instructions: "Softly.",
      });
    });

    test("the official SDK hears events, with the usage", async () => {
      const events = [
        { type: "speech.audio.delta", audio: Buffer.from(mp3.subarray(0, 100)).toString("base64") },
        { type: "speech.audio.delta", audio: Buffer.from(mp3.subarray(100)).toString("base64") },
        { type: "speech.audio.done", usage: { input_tokens: 4, output_tokens: 21, total_tokens: 25 } },
      ];
      const data = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
      double.answer(stream(frames(data)));
      const speech = await sdk(OPENAI_KEY).audio.speech.create({
        ...{ model: "gpt-4o-mini-tts", voice: "alloy", input: "Good morning.", stream_format: "sse" },
      });
      expect(speech.headers.get("content-type")).toContain("text/event-stream");
      const heard = (await speech.text()).split("\n\n").filter((frame) => frame !== "");
      const read = heard.map((frame) => JSON.parse(frame.slice(6)) as (typeof events)[number]);
      expect(
        glue(read.slice(0, -1).map(({ audio = "" }) => new Uint8Array(Buffer.from(audio, "base64")))),
      ).toEqual(mp3);
      expect(read.at(-1)).toEqual(events.at(-1));
      expect(sent()[0]?.body.stream_format).toBe("sse");
    });

    test("the official SDK sees an upstream's own status", async () => {
      const said = {
        error: {
          message: "No such voice.",
          type: "invalid_request_error",
          param: "voice",
          code: "bad_voice",
        },
      };
      double.answer(reply(404, said));
      const ask = (key: string) => sdk(key).audio.speech.create({ model: "tts-1", voice: "x", input: "x" });
      await expect(ask(OPENAI_KEY)).rejects.toBeInstanceOf(OpenAI.NotFoundError);
      await expect(ask(OPENAI_KEY)).rejects.toMatchObject({ status: 404, code: "bad_voice", param: "voice" });
      double.answer(reply(429, said, { "retry-after": "17" }));
      const refusal = await ask(GROQ_KEY).catch(
        (error: unknown) => error as InstanceType<typeof OpenAI.APIError>,
      );
      expect(refusal).toBeInstanceOf(OpenAI.RateLimitError);
      expect((refusal as { headers: Headers }).headers.get("retry-after")).toBe("17");
      await expect(ask(ANTHROPIC_KEY)).rejects.toBeInstanceOf(OpenAI.BadRequestError);
    });

    test("R5: a fault before the first byte is repeated once, then told; after it the connection breaks", async () => {
      double.answer((response, request, n) =>
        n === 0
          ? reply(503, { error: { message: "Busy." } }, { "retry-after": "0" })(response, request, n)
          : stream([mp3], "end", "audio/mpeg")(response, request, n),
      );
      expect(await bytesOf(await tts({ text: "x" }))).toEqual(mp3);
      const told = async () => {
        const response = await tts({ text: "x" });
        const { code } = (await response.json()) as { code: string };
        return [response.status, code];
      };
      double.answer(reply(200, "<html>Hello</html>"));
      expect(await told()).toEqual([502, "upstream_unreachable"]);
      double.answer(stream([], "end", "audio/mpeg"));
      expect(await told()).toEqual([502, "upstream_unreachable"]);
      double.answer(stream([], "hang", "audio/mpeg"));
      expect(await told()).toEqual([504, "upstream_timeout"]);
      double.answer(async (response) => {
        response.writeHead(200, { "content-type": "audio/mpeg" });
        response.write(mp3);
        await once(gate, "go");
        response.destroy();
      });
      const broken = (await tts({ text: "x" })).body?.getReader();
      expect((await broken?.read())?.value).toEqual(mp3);
      gate.dispatchEvent(new Event("go"));
      await expect(broken?.read()).rejects.toThrow();
      expect(sent()).toHaveLength(1);
    });

    test("a client that goes ends the upstream's work", async () => {
      // To workerd a client that has gone is one that still listens, until something is written to it.
      double.answer((response) => {
        response.writeHead(200, { "content-type": "audio/mpeg" });
        const timer = setInterval(() => response.write(mp3), 5);
        response.on("close", () => clearInterval(timer));
      });
      const client = new AbortController();
      const response = await tts({ text: "x" }, OPENAI_KEY, client.signal);
      await response.body?.getReader().read();
      client.abort();
      const request = await double.front.request(0);
      expect(await request.closed).toBe(false);
    });

    test.skipIf(runtime === "workerd")("with no key the embedded voice speaks", async () => {
      for (const body of [
        { text: "Hello from Dragoman." },
        { text: "Hello from Dragoman.", api_key: ANTHROPIC_KEY },
      ]) {
        const response = await tts(body, "");
        expect([response.status, response.headers.get("content-type")]).toEqual([200, "audio/wav"]);
        expect(response.headers.get("x-upstream-model")).toBe("espeak-ng");
        const read = readWav(await bytesOf(response));
        expect(read.announced).toBe(read.data.length);
        expect(read.seconds).toBeGreaterThan(0.8);
        expect(read.seconds).toBeLessThan(4);
        expect(read.loudness).toBeGreaterThan(0.02);
      }
      const speech = await sdk("none", { "x-provider": "embedded" }).audio.speech.create({
        ...{ model: "dragoman", voice: "de", input: "Guten Morgen. ".repeat(40) },
      });
      expect(readWav(await bytesOf(speech)).seconds).toBeGreaterThan(20);
      const ask = sdk("none", { "x-provider": "embedded" }).audio.speech.create({
        ...{ model: "tts-1", voice: "alloy", input: "x" },
      });
      await expect(ask).rejects.toMatchObject({ status: 400, param: "model" });
    });

    test.skipIf(runtime !== "workerd")("there is no embedded voice here, and it says so", async () => {
      const response = await tts({ text: "x", provider: "embedded" });
      expect(response.status).toBe(501);
      expect(await response.json()).toMatchObject({ code: "not_implemented", param: "provider" });
      expect((await tts({ text: "x" }, ANTHROPIC_KEY)).status).toBe(400);
    });
  });
});

/** Lets the second half of a reply go. */
const gate = new EventTarget();
