import * as fc from "fast-check";
import { expect, test } from "vitest";
import { streamBody } from "../../src/http/sse.ts";

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

async function chunksOf(stream: ReadableStream<Uint8Array>): Promise<string[]> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const chunks: string[] = [];
  for await (const chunk of stream) chunks.push(decoder.decode(chunk));
  return chunks;
}

/** Frames, with a turn of the event loop in front of those marked so. */
async function* script(steps: [string, boolean][]): AsyncGenerator<string, void, void> {
  for (const [frame, wait] of steps) {
    if (wait) await turn();
    yield frame;
  }
}

test("all frames arrive in order, however they are timed", async () => {
  const steps = fc.array(fc.tuple(fc.string({ unit: "grapheme" }), fc.boolean()), { maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(steps, async (given) => {
      const closed: boolean[] = [];
      const chunks = await chunksOf(
        streamBody(script(given), { onClose: (delivered) => closed.push(delivered) }),
      );
      expect(chunks.join("")).toBe(given.map(([frame]) => frame).join(""));
      expect(closed).toEqual([true]);
    }),
  );
});

test("frames of one turn leave as one chunk", async () => {
  const frames = script([
    ["a", true],
    ["b", false],
    ["c", false],
    ["d", true],
    ["e", false],
  ]);
  expect(await chunksOf(streamBody(frames))).toEqual(["abc", "de"]);
});

test("nothing is made before the body is read, and little while it is not", async () => {
  let made = 0;
  async function* endless(): AsyncGenerator<string, void, void> {
    for (;;) {
      made += 1;
      yield "x".repeat(1024);
      if (made % 7 === 0) await turn();
    }
  }
  const stream = streamBody(endless());
  for (let i = 0; i < 20; i++) await turn();
  expect(made).toBe(0);
  const reader = stream.getReader();
  await reader.read();
  for (let i = 0; i < 200; i++) await turn();
  const standing = made;
  expect(standing).toBeLessThan(200);
  for (let i = 0; i < 200; i++) await turn();
  expect(made).toBe(standing);
  await reader.read();
  for (let i = 0; i < 200; i++) await turn();
  expect(made).toBeGreaterThan(standing);
  await reader.cancel();
});

test("a generator that never waits does not starve the event loop", async () => {
  let stop = false;
  async function* busy(): AsyncGenerator<string, void, void> {
    while (!stop) yield "frame";
  }
  const reader = streamBody(busy()).getReader();
  expect((await reader.read()).value?.length).toBeGreaterThanOrEqual(64 * 1024);
  stop = true;
  await reader.cancel();
});

test("a reader who goes is told of before the generator is returned", async () => {
  const order: string[] = [];
  let release = () => {};
  const waiting = new Promise<void>((resolve) => {
    release = resolve;
  });
  const ended = Promise.withResolvers<void>();
  async function* frames(): AsyncGenerator<string, void, void> {
    try {
      yield "first";
      await waiting;
      yield "never sent";
    } finally {
      order.push("returned");
      ended.resolve();
    }
  }
  const onClose = (delivered: boolean) => {
    order.push(`closed ${delivered}`);
    release();
  };
  const reader = streamBody(frames(), { onClose }).getReader();
  await reader.read();
  await reader.cancel();
  await ended.promise;
  expect(order).toEqual(["closed false", "returned"]);
});

test("with hold the generator is left to whoever takes over", async () => {
  const made: string[] = [];
  async function* frames(): AsyncGenerator<string, void, void> {
    for (const frame of ["a", "b", "c"]) {
      made.push(frame);
      yield frame;
      await turn();
    }
  }
  const generator = frames();
  const taken = Promise.withResolvers<void>();
  const onClose = async () => {
    for await (const _ of generator);
    taken.resolve();
  };
  const reader = streamBody(generator, { hold: true, onClose }).getReader();
  await reader.read();
  await reader.cancel();
  await taken.promise;
  expect(made).toEqual(["a", "b", "c"]);
});

test("a reader who is there but does not read is dropped", async () => {
  const returned = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<boolean>();
  async function* endless(): AsyncGenerator<string, void, void> {
    try {
      for (;;) {
        yield "frame";
        await turn();
      }
    } finally {
      returned.resolve();
    }
  }
  const reader = streamBody(endless(), { stuckMs: 10, onClose: closed.resolve }).getReader();
  await reader.read();
  expect(await closed.promise).toBe(false);
  await returned.promise;
  await expect(reader.read()).rejects.toThrow("has not read");
});

test("a quiet stream gives signs of life once it has begun, and they break nothing", async () => {
  const beats = Promise.withResolvers<void>();
  async function* frames(): AsyncGenerator<string, void, void> {
    yield "a";
    await beats.promise;
    yield "b";
  }
  const decoder = new TextDecoder();
  const reader = streamBody(frames(), { heartbeat: ":\n\n", quietMs: 2 }).getReader();
  const next = async () => decoder.decode((await reader.read()).value);
  expect(await next()).toBe("a");
  expect(await next()).toBe(":\n\n");
  expect(await next()).toBe(":\n\n");
  beats.resolve();
  let last = await next();
  while (last === ":\n\n") last = await next();
  expect(last).toBe("b");
  expect((await reader.read()).done).toBe(true);
});

test("a generator that throws breaks the stream loudly", async () => {
  async function* broken(): AsyncGenerator<string, void, void> {
    yield "a";
    await turn();
    throw new Error("bug");
  }
  const lines: string[] = [];
  const ends: boolean[] = [];
  const stream = streamBody(broken(), {
    log: (level, message, fields) => lines.push(`${level} ${message} ${fields?.error}`),
    onClose: (delivered) => ends.push(delivered),
  });
  await expect(chunksOf(stream)).rejects.toThrow("bug");
  expect(lines).toEqual(["error a response stream broke Error: bug"]);
  expect(ends).toEqual([false]);
});
