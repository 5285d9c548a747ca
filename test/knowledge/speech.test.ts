import { describe, expect, test, vi } from "vitest";
import type { Speaker, SpeechOrder } from "../../src/core/speech.ts";
import { AppError } from "../../src/errors.ts";
import { SpeechDesk, type SpeechWish } from "../../src/knowledge/speech.ts";

const names = { text: "text", format: "format" };
const NEVER = new AbortController().signal;

function speakerOf(options: Partial<Speaker> = {}) {
  const orders: SpeechOrder[] = [];
  const ended = vi.fn();
  const speaker: Speaker = {
    name: "openai",
    model: "m",
    formats: ["mp3", "flac"],
    limit: { most: 20, unit: "chars" },
    honours: [],
    async *speak(order, signal) {
      orders.push(order);
      try {
        yield new TextEncoder().encode(order.text);
        if (signal.aborted) throw new AppError("cancelled", "Gone.");
        yield new Uint8Array([33]);
        return undefined;
      } finally {
        ended();
      }
    },
    ...options,
  };
  return { speaker, orders, ended };
}

const wish = (more: Partial<SpeechWish> = {}): SpeechWish => ({ text: "Hello.", model: "m", names, ...more });

describe("the desk", () => {
  test("speaks a long text piece by piece, and asks for a piece when that before it has ended", async () => {
    const desk = new SpeechDesk();
    const { speaker, orders } = speakerOf();
    const text = "One, two, three. Four, five, six. \n \n                          Seven.";
    const audio = await desk.begin("ann", speaker, wish({ text }), NEVER);
    expect(orders).toHaveLength(1);
    for await (const _ of audio.bytes);
    expect(orders.map((order) => order.text.trim())).toEqual([
      "One, two, three.",
      "Four, five, six.",
      "Seven.",
    ]);
    expect(orders[0]).toMatchObject({ format: "mp3", model: "m" });
    expect(desk.active).toBe(0);
  });

  test("refuses what the speaker cannot do, in the words of the door", async () => {
    const desk = new SpeechDesk();
    const { speaker, orders } = speakerOf();
    const refused = async (more: Partial<SpeechWish>) =>
      desk.begin("ann", speaker, wish(more), NEVER).then(
        () => "taken",
        (error: AppError) => [error.status, error.param],
      );
    expect(await refused({ speed: 2 })).toEqual([400, "speed"]);
    expect(await refused({ instructions: "Softly" })).toEqual([400, "instructions"]);
    expect(await refused({ voiceId: "voice_1" })).toEqual([400, "voice"]);
    expect(await refused({ counted: true })).toEqual([400, "stream_format"]);
    expect(await refused({ format: "wav" })).toEqual([400, "format"]);
    expect(await refused({ format: "aac", names: { ...names, format: "response_format" } })).toEqual([
      400,
      "response_format",
    ]);
    expect(await refused({ format: "flac", text: "This text is longer than one part. " })).toEqual([
      400,
      "format",
    ]);
    expect(await refused({ text: " \n\u0000\u200b".slice(0, 3) })).toEqual([400, "text"]);
    expect(await refused({ text: "😀".repeat(4097) })).toEqual([400, "text"]);
    expect(orders).toEqual([]);
    expect(desk.active).toBe(0);
    expect(await refused({ text: "😀".repeat(4096) })).toBe("taken");
    expect(await refused({ speed: 1 })).toBe("taken");
  });

  test("has room for so many, of one owner and of all; who goes makes room", async () => {
    const desk = new SpeechDesk({ ofOne: 2, ofAll: 3 });
    const { speaker, ended } = speakerOf();
    const client = new AbortController();
    const first = await desk.begin("ann", speaker, wish(), client.signal);
    const second = await desk.begin("ann", speaker, wish(), NEVER);
    await expect(desk.begin("ann", speaker, wish(), NEVER)).rejects.toMatchObject({
      status: 429,
      retryAfter: 2,
    });
    await desk.begin("bob", speaker, wish(), NEVER);
    await expect(desk.begin("cid", speaker, wish(), NEVER)).rejects.toMatchObject({
      status: 503,
      retryAfter: 2,
    });
    client.abort();
    expect(desk.active).toBe(2);
    await first.bytes.next();
    await expect(first.bytes.next()).rejects.toMatchObject({ code: "cancelled" });
    expect(ended).toHaveBeenCalledTimes(1);
    second.close();
    second.close();
    expect(desk.active).toBe(1);
  });

  test("a fault before the first byte is thrown, and leaves nothing behind", async () => {
    const desk = new SpeechDesk();
    const fault = new AppError("upstream_error", "No.", { status: 429 });
    const failing = speakerOf({
      // biome-ignore lint/correctness/useYield: it fails before it has anything.
      async *speak() {
        throw fault;
      },
    });
    await expect(desk.begin("ann", failing.speaker, wish(), NEVER)).rejects.toBe(fault);
    const silent = speakerOf({
      // biome-ignore lint/correctness/useYield: it has nothing to say.
      async *speak() {
        return undefined;
      },
    });
    await expect(desk.begin("ann", silent.speaker, wish(), NEVER)).rejects.toMatchObject({ status: 502 });
    expect(desk.active).toBe(0);
  });
});
