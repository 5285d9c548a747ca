/** What the providers' speech does when it does not go well. How it goes well is in test/speech.test.ts. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Credentials } from "../../src/core/model.ts";
import type { SpeechFormat, SpeechOrder, SpeechUsage } from "../../src/core/speech.ts";
import { createSpeakers } from "../../src/providers/speech.ts";
import { glue, readWav, tone } from "../speech-audio.ts";
import { type Answer, reply, startUpstream, stream, type UpstreamServer } from "../upstream-server.ts";

const KEY = "sk-secret-0123456789";
const OPENAI: Credentials = { provider: "openai", key: KEY };
const GEMINI: Credentials = { provider: "gemini", key: KEY };
let upstream: UpstreamServer;

beforeAll(async () => {
  upstream = await startUpstream();
});
afterAll(() => upstream[Symbol.asyncDispose]());

function speakers(limits: object = {}) {
  const baseUrl = upstream.url;
  return createSpeakers({
    providers: { openai: { baseUrl }, groq: { baseUrl }, gemini: { baseUrl } },
    models: { openai: "o", groq: "q", gemini: "g" },
    limits: { firstByteMs: 1_000, idleMs: 1_000, retries: 2, retryWaitMs: 1, ...limits },
  });
}

interface Heard {
  bytes: Uint8Array;
  usage?: SpeechUsage | undefined;
  fault?: { code: string; status: number; message: string; retryAfter?: number };
}

async function hear(
  who: Credentials,
  answer: Answer,
  order: Partial<SpeechOrder> = {},
  limits = {},
): Promise<Heard> {
  upstream.answer(answer);
  const speaker = await speakers(limits).of(who);
  const format: SpeechFormat = who.provider === "gemini" ? "wav" : "mp3";
  const audio = speaker.speak({ text: "Hi.", format, model: "m", ...order }, new AbortController().signal);
  const pieces: Uint8Array[] = [];
  try {
    for (let next = await audio.next(); ; next = await audio.next()) {
      if (next.done) return { bytes: glue(pieces), usage: next.value };
      pieces.push(next.value);
    }
  } catch (error) {
    return { bytes: glue(pieces), fault: error as NonNullable<Heard["fault"]> };
  }
}

const data = (...values: object[]) => values.map((value) => `data: ${JSON.stringify(value)}\n\n`);
const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64");
const sound = tone(440, 0.01);
const L16 = "audio/L16;codec=pcm;rate=16000";

function chunk(bytes: Uint8Array | null, finishReason?: string, mimeType = L16) {
  const parts = bytes ? [{ inlineData: { mimeType, data: base64(bytes) } }] : [];
  const usageMetadata = { promptTokenCount: 3, candidatesTokenCount: 40 };
  return { candidates: [{ content: { parts }, ...(finishReason ? { finishReason } : {}) }], usageMetadata };
}

describe("Gemini", () => {
  test("samples come at the rate that it says, whatever the events cut", async () => {
    const pieces = [chunk(sound.subarray(0, 101)), chunk(sound.subarray(101)), chunk(null, "STOP")];
    const { bytes, usage, fault } = await hear(GEMINI, stream(data(...pieces)));
    expect(fault).toBeUndefined();
    expect(readWav(bytes)).toMatchObject({ rate: 16_000, data: sound });
    expect(usage).toEqual({ input: 3, output: 40 });
  });

  test("instructions stand before the text", async () => {
    await hear(GEMINI, stream(data(chunk(sound, "STOP"))), { instructions: "Whisper" });
    expect(upstream.requests[0]?.body.contents).toMatchObject([{ parts: [{ text: "Whisper: Hi." }] }]);
  });

  test("no audio is asked for again, and then a fault with its reason", async () => {
    const { fault } = await hear(GEMINI, stream(data(chunk(null, "OTHER"))));
    expect(fault).toMatchObject({ code: "upstream_unreachable", status: 502 });
    expect(fault?.message).toContain("(OTHER)");
    expect(upstream.requests).toHaveLength(3);
  });

  test.each([
    ["cut off", data(chunk(sound)), "before its audio was complete"],
    ["stopped early", data(chunk(sound, "SAFETY")), "(SAFETY)"],
    ["an error event", data(chunk(sound), { error: { message: "Gone wrong.", code: 500 } }), "Gone wrong."],
    ["no JSON", [...data(chunk(sound)), "data: {\n\n"], "not JSON"],
    [
      "no base64",
      data({ candidates: [{ content: { parts: [{ inlineData: { mimeType: L16, data: "*" } }] } }] }),
      "base64",
    ],
  ])("%s: what came has gone out, then a fault", async (_, frames, words) => {
    const { fault } = await hear(GEMINI, stream(frames), {}, { retries: 0 });
    expect(fault?.message).toContain(words);
  });

  test("audio of another kind is not taken for samples", async () => {
    const { fault, bytes } = await hear(GEMINI, stream(data(chunk(sound, "STOP", "audio/mpeg"))));
    expect([fault?.status, bytes.length]).toEqual([502, 0]);
    const pcm = await hear(GEMINI, stream(data(chunk(sound, "STOP"))), { format: "pcm" }, { retries: 0 });
    expect(pcm.fault?.message).toContain("16000 Hz");
  });
});

describe("OpenAI", () => {
  test("events without an end are a fault, and an error among them is told", async () => {
    const delta = { type: "speech.audio.delta", audio: base64(sound) };
    const cut = await hear(OPENAI, stream(data(delta)), { counted: true });
    expect([cut.bytes.length, cut.fault?.code]).toEqual([sound.length, "upstream_unreachable"]);
    const broken = await hear(OPENAI, stream(data(delta, { error: { message: `No, ${KEY}.` } })), {
      counted: true,
    });
    expect(broken.fault).toMatchObject({ code: "upstream_error", message: "No, [key]." });
  });

  test("JSON or a page in place of audio is a fault that quotes it, and is not asked for again", async () => {
    for (const body of ["<html>Log in</html>", { object: "list" }]) {
      const { fault } = await hear(OPENAI, reply(200, body));
      expect(fault).toMatchObject({ code: "upstream_unreachable", status: 502 });
      expect(fault?.message).toMatch(/Log in|list/);
      expect(upstream.requests).toHaveLength(1);
    }
  });

  test("R5: 429 and 5xx are repeated, at most twice and not after a long wait; other refusals never", async () => {
    const busy = (after: string) => reply(429, { error: { message: "Slow." } }, { "retry-after": after });
    expect((await hear(OPENAI, busy("0"))).fault).toMatchObject({ status: 429 });
    expect(upstream.requests).toHaveLength(3);
    expect((await hear(OPENAI, busy("60"))).fault).toMatchObject({ status: 429, retryAfter: 60 });
    expect(upstream.requests).toHaveLength(1);
    expect((await hear(OPENAI, reply(400, { error: { message: "Bad." } }))).fault?.status).toBe(400);
    expect(upstream.requests).toHaveLength(1);
  });

  test("R5: silence before the first byte and after it is a 504", async () => {
    const limits = { firstByteMs: 30, idleMs: 30 };
    const mute = await hear(OPENAI, stream([], "hang", "audio/mpeg"), {}, limits);
    expect([mute.fault?.status, upstream.requests.length]).toEqual([504, 1]);
    const stalled = await hear(OPENAI, stream([sound], "hang", "audio/mpeg"), {}, limits);
    expect([stalled.fault?.status, stalled.bytes.length]).toEqual([504, sound.length]);
  });

  test("nobody at the address is a sentence", async () => {
    const gone = createSpeakers({
      providers: { openai: { baseUrl: "http://127.0.0.1:1" }, groq: {}, gemini: {} },
      models: { openai: "o", groq: "q", gemini: "g" },
      limits: { firstByteMs: 1_000, idleMs: 1_000, retries: 0 },
    });
    const speaker = await gone.of(OPENAI);
    const audio = speaker.speak({ text: "Hi.", format: "mp3", model: "m" }, new AbortController().signal);
    await expect(audio.next()).rejects.toMatchObject({ code: "upstream_unreachable", status: 502 });
  });
});

test("a speaker is made once for a provider and a key", async () => {
  const all = speakers();
  expect(await all.of(OPENAI)).toBe(await all.of({ ...OPENAI }));
  expect(await all.of(OPENAI)).not.toBe(await all.of({ ...OPENAI, key: "sk-other" }));
  expect((await all.of({ ...OPENAI, provider: "groq" })).name).toBe("groq");
  await expect(all.of({ ...OPENAI, provider: "anthropic" })).rejects.toMatchObject({ status: 400 });
});
