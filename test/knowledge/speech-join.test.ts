import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { SpeechBytes, SpeechFormat, SpeechUsage } from "../../src/core/speech.ts";
import { monoFormat, wavHeader } from "../../src/core/wav.ts";
import { joinAudio } from "../../src/knowledge/speech-join.ts";
import { cut, glue, RATE, readWav, tone } from "../speech-audio.ts";

type Spoken = Record<string, Uint8Array>;

let closed: string[] = [];
async function* said(name: string, pieces: readonly Uint8Array[]): SpeechBytes {
  try {
    yield* pieces;
    return { input: 1, output: pieces.length };
  } finally {
    closed.push(name);
  }
}

async function join(format: SpeechFormat, spoken: Spoken, lengths: readonly number[]) {
  closed = [];
  const audio = joinAudio(format, Object.keys(spoken), (name) =>
    said(name, cut(spoken[name] as Uint8Array, lengths)),
  );
  const out: Uint8Array[] = [];
  let usage: SpeechUsage | undefined;
  for (let next = await audio.next(); ; next = await audio.next()) {
    if (next.done) usage = next.value;
    else out.push(next.value);
    if (next.done) return { bytes: glue(out), usage };
  }
}

const lengths = fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 1, maxLength: 6 });
const wav = (data: Uint8Array, rate = RATE, known = true) =>
  glue([wavHeader(monoFormat(rate), known ? data.length : undefined), data]);
/** What some writers put before and behind the sound. */
const list = (bytes: number) => {
  const chunk = new Uint8Array(8 + bytes).fill(7);
  chunk.set(new TextEncoder().encode("LIST"));
  new DataView(chunk.buffer).setUint32(4, bytes, true);
  return chunk;
};

describe("WAVE", () => {
  const [a, b, c] = [tone(440, 0.01), tone(880, 0.02), tone(220, 0.005)];

  test("parts have one header, however their bytes arrive", async () => {
    const whole = wav(b as Uint8Array);
    const decorated = glue([whole.subarray(0, 36), list(10), whole.subarray(36), list(6)]);
    await fc.assert(
      fc.asyncProperty(lengths, async (pieces) => {
        const spoken = { a: wav(a as Uint8Array), b: decorated, c: wav(c as Uint8Array, RATE, false) };
        const { bytes, usage } = await join("wav", spoken, pieces);
        const read = readWav(bytes);
        expect(read.data).toEqual(glue([a, b, c] as Uint8Array[]));
        expect(read).toMatchObject({ rate: RATE, channels: 1, bits: 16, announced: 0xffffffff });
        expect(usage?.input).toBe(3);
        expect(closed).toEqual(["a", "b", "c"]);
      }),
    );
  });

  test("a single part stays as it came, with a true header", async () => {
    const spoken = wav(a as Uint8Array);
    expect((await join("wav", { a: spoken }, [13])).bytes).toEqual(spoken);
    expect(readWav(spoken).announced).toBe(a?.length);
  });

  test("parts of other forms, or of no WAVE at all, are a fault", async () => {
    const spoken = { a: wav(a as Uint8Array), b: wav(b as Uint8Array, 44_100) };
    await expect(join("wav", spoken, [50])).rejects.toMatchObject({ code: "upstream_unreachable" });
    expect(closed).toEqual(["a", "b"]);
    const broken = { a: wav(a as Uint8Array), b: new Uint8Array(100).fill(65) };
    await expect(join("wav", broken, [50])).rejects.toMatchObject({ code: "upstream_unreachable" });
    const short = { a: wav(a as Uint8Array), b: wav(b as Uint8Array).subarray(0, 30) };
    await expect(join("wav", short, [50])).rejects.toMatchObject({ code: "upstream_unreachable" });
  });
});

describe("MP3", () => {
  /** MPEG 1 layer III, 128 kbit/s, 44.1 kHz, stereo: 417 bytes. */
  const frame = (fill: number) => {
    const bytes = new Uint8Array(417).fill(fill);
    bytes.set([0xff, 0xfb, 0x90, 0x00]);
    return bytes;
  };
  const count = frame(0);
  count.set(new TextEncoder().encode("Xing"), 36);
  /** 200 bytes behind its head. */
  const id3 = new Uint8Array(210);
  id3.set([73, 68, 51, 4, 0, 0, 0, 0, 1, 72]);

  test("parts lose tags and counts of frames, and nothing else, however their bytes arrive", async () => {
    const [x, y, z] = [frame(1), frame(2), frame(3)];
    await fc.assert(
      fc.asyncProperty(lengths, async (pieces) => {
        const spoken = { a: glue([id3, count, x, y]), b: glue([count, z]), c: glue([x]) };
        expect((await join("mp3", spoken, pieces)).bytes).toEqual(glue([x, y, z, x]));
      }),
    );
  });

  test("what is no frame passes as it is", async () => {
    const odd = { a: new Uint8Array([1, 2, 3]), b: new Uint8Array(40).fill(9) };
    expect((await join("mp3", odd, [7])).bytes).toEqual(glue([odd.a, odd.b]));
  });
});

test("samples and Ogg streams follow one another", async () => {
  const spoken = { a: new Uint8Array([1, 2]), b: new Uint8Array([3]) };
  for (const format of ["pcm", "opus", "aac"] as const)
    expect((await join(format, spoken, [1])).bytes).toEqual(new Uint8Array([1, 2, 3]));
});

test("who stops reading stops the part that speaks, and the next is not begun", async () => {
  closed = [];
  const audio = joinAudio("wav", ["a", "b"], (name) => said(name, cut(wav(tone(440, 0.1)), [100])));
  await audio.next();
  await audio.return(undefined);
  expect(closed).toEqual(["a"]);
});
