/** The embedded voice itself: the program, in its thread. */
import { execFile } from "node:child_process";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, describe, expect, test } from "vitest";
import { SpeechDesk } from "../../src/knowledge/speech.ts";
import { createEmbeddedSpeaker } from "../../src/knowledge/speech-embedded.ts";
import { createLocalVoice } from "../../src/platform/local-voice.ts";
import { glue, readWav } from "../speech-audio.ts";

const NEVER = new AbortController().signal;
const voice = createLocalVoice({ idleMs: 60_000 });
const speaker = createEmbeddedSpeaker(voice);
const names = { text: "text", format: "format" };
afterAll(() => voice.close());

async function spoken(text: string, more: { voice?: string; speed?: number } = {}) {
  const desk = new SpeechDesk();
  const audio = await desk.begin("ann", speaker, { text, model: "espeak-ng", names, ...more }, NEVER);
  const pieces: Uint8Array[] = [];
  for await (const piece of audio.bytes) pieces.push(piece);
  return readWav(glue(pieces));
}

const SENTENCE = "The quick brown fox jumps over the lazy dog. ";

describe("what it says", () => {
  test("is sound, as long as the text, in a file whose header is true", async () => {
    const one = await spoken(SENTENCE);
    expect(one).toMatchObject({ rate: 22_050, channels: 1, bits: 16, announced: one.data.length });
    // Nine words at 175 a minute.
    expect(one.seconds).toBeGreaterThan(2);
    expect(one.seconds).toBeLessThan(5);
    expect(one.loudness).toBeGreaterThan(0.02);
    expect(one.loudness).toBeLessThan(0.5);
    // Several parts under one header.
    const twelve = await spoken(SENTENCE.repeat(12));
    expect(twelve.announced).toBe(0xffffffff);
    expect(twelve.seconds / one.seconds).toBeGreaterThan(10);
    expect(twelve.seconds / one.seconds).toBeLessThan(14);
    expect(twelve.loudness).toBeCloseTo(one.loudness, 1);
  });

  test("is faster where that is asked for, and other where the voice is", async () => {
    const [plain, fast, german, high] = await Promise.all([
      spoken(SENTENCE),
      spoken(SENTENCE, { speed: 2 }),
      spoken(SENTENCE, { voice: "de" }),
      spoken(SENTENCE, { voice: "en-us+f3" }),
    ]);
    expect(fast.seconds).toBeLessThan(plain.seconds * 0.7);
    expect(german.data).not.toEqual(plain.data);
    expect(high.data).not.toEqual(plain.data);
    await expect(spoken(SENTENCE, { speed: 4 })).rejects.toMatchObject({ status: 400, param: "speed" });
  });

  test("is the text and no option, whatever it looks like", async () => {
    for (const text of ["-v --voices", "--help", "@/etc/passwd", "<speak>hi</speak>", "$(reboot)"])
      expect((await spoken(text)).loudness).toBeGreaterThan(0.01);
    expect((await spoken("日本語", { voice: "ja" })).seconds).toBeGreaterThan(0.3);
  });
});

test.each(["klingon", "../../etc/passwd", "-w", "en us", ""])(
  "a voice that is none, %j: 400 with those there are",
  async (name) => {
    const refusal = await spoken("Hello.", { voice: name }).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ code: "invalid_request", param: "voice" });
    expect(String(refusal)).toMatch(/ de, el, .*en-gb,.* yue, each/);
  },
);

test("the event loop runs on while it speaks", async () => {
  let turns = 0;
  const timer = setInterval(() => turns++, 5);
  await Promise.all([1, 2, 3].map(() => spoken(SENTENCE.repeat(6))));
  clearInterval(timer);
  expect(turns).toBeGreaterThan(5);
});

describe("its thread", () => {
  const order = { text: "Hello.", voice: "en", wordsPerMinute: 175 };

  test("is there when it is asked for, and ends when nobody does for a while", async () => {
    const own = createLocalVoice({ idleMs: 1 });
    expect(own.loaded).toBe(false);
    await own.speak(order, NEVER);
    await expect.poll(() => own.loaded).toBe(false);
    expect((await own.speak(order, NEVER)).samples.length).toBeGreaterThan(10_000);
    await own.close();
    expect(own.loaded).toBe(false);
  });

  test("serves the next one when a client goes, and no more than it has room for", async () => {
    const own = createLocalVoice({ waiting: 2 });
    const client = new AbortController();
    const under = own.speak(order, client.signal);
    const waiting = own.speak(order, client.signal);
    const other = own.speak(order, NEVER);
    await expect(own.speak(order, NEVER)).rejects.toMatchObject({ status: 503, retryAfter: 2 });
    client.abort();
    await expect(under).rejects.toMatchObject({ code: "cancelled" });
    await expect(waiting).rejects.toMatchObject({ code: "cancelled" });
    expect((await other).rate).toBe(22_050);
    await expect(own.speak(order, client.signal)).rejects.toMatchObject({ code: "cancelled" });
    await own.close();
  });

  test("is given up where a text takes too long, and the next text has a new one", async () => {
    const own = createLocalVoice({ timeoutMs: 1 });
    await expect(own.speak(order, NEVER)).rejects.toThrow("it took too long");
    expect(own.loaded).toBe(false);
    await own.close();
  });
});

/** The voice alone, in a process of its own, below `folder`. */
async function apart(folder: string): Promise<string> {
  const program = `
    const { createLocalVoice } = await import(${JSON.stringify(join(folder, "src/platform/local-voice.ts"))});
    const order = { text: "Hello.", voice: "en", wordsPerMinute: 175 };
    const said = await createLocalVoice().speak(order, new AbortController().signal).catch((error) => error);
    console.log(said.code ?? said.rate, said.message ?? "");`;
  const args = ["--input-type=module", "-e", program];
  return (await promisify(execFile)(process.execPath, args, { timeout: 10_000 })).stdout.trim();
}

test("a process that has nothing else to do ends, with the thread still warm", async () => {
  expect(await apart(join(import.meta.dirname, "../.."))).toBe("22050");
});

test("where it is not installed it says what to install", async () => {
  const folder = await mkdtemp(join(tmpdir(), "dragoman-voice-"));
  try {
    const source = join(import.meta.dirname, "../../src");
    for (const file of ["errors.ts", "platform/local-voice.ts", "platform/local-voice-worker.ts"])
      await cp(join(source, file), join(folder, "src", file));
    expect(await apart(folder)).toMatch(/^not_implemented .*install the package espeak-ng/);
  } finally {
    await rm(folder, { recursive: true });
  }
});
