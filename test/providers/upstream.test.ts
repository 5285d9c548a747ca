import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { ModelEvent } from "../../src/core/event.ts";
import { AppError } from "../../src/errors.ts";
import {
  streamUpstream,
  type UpstreamCall,
  type UpstreamDecoder,
  type UpstreamLimits,
} from "../../src/providers/upstream.ts";
import { redact, retryAfterOf, upstreamError } from "../../src/providers/upstream-error.ts";
import { collect } from "./model-stream.ts";

/** A dialect of four words: `open`, `end`, `done` (which does not wait for the body's end), `bad`; others are text. */
function decoder(): UpstreamDecoder {
  let ended = false;
  const done: ModelEvent = { type: "done", stop: "stop", usage: { input: 0, output: 0 } };
  return {
    push({ data }, out) {
      if (data === "open") out.push({ type: "open", model: "m" });
      else if (data === "end") ended = true;
      else if (data === "done") out.push(done);
      else if (data === "bad") throw new AppError("upstream_error", "Bad.", { status: 500 });
      else out.push({ type: "part-delta", index: 0, delta: data });
    },
    end(out) {
      if (ended) out.push(done);
    },
  };
}

/** A body that the test writes by hand. */
class Body {
  cancelled = false;
  #controller!: ReadableStreamDefaultController<Uint8Array>;
  readonly stream = new ReadableStream<Uint8Array>({
    start: (controller) => {
      this.#controller = controller;
    },
    cancel: () => {
      this.cancelled = true;
    },
  });

  say(...words: string[]): this {
    for (const word of words) this.#controller.enqueue(new TextEncoder().encode(`data: ${word}\n\n`));
    return this;
  }

  end(): this {
    this.#controller.close();
    return this;
  }

  fail(): void {
    this.#controller.error(new TypeError("terminated"));
  }

  /** The response over it; its body fails when the request is aborted, as fetch has it. */
  response(signal?: AbortSignal, type = "text/event-stream"): Response {
    signal?.addEventListener("abort", () => {
      try {
        this.#controller.error(signal.reason);
      } catch {}
    });
    return new Response(this.stream, { headers: { "content-type": type } });
  }
}

const LIMITS: UpstreamLimits = { firstByteMs: 60_000, idleMs: 120_000, retries: 2 };
const never = new AbortController().signal;

function run(open: UpstreamCall["open"], signal = never, limits = LIMITS) {
  return streamUpstream({ provider: "openai", key: "sk-secret", open, decoder }, limits, signal);
}

const rejected = (
  status: number,
  headers: Record<string, string> = {},
  error: unknown = { message: "No." },
) => Object.assign(new Error(`${status} No.`), { status, headers: new Headers(headers), error });

describe("the clock", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }));
  afterEach(() => void vi.useRealTimers());

  test("nothing before the first byte", async () => {
    const ended = collect(
      run(
        (signal) =>
          new Promise((_, reject) => {
            signal.addEventListener("abort", () => reject(signal.reason));
          }),
      ),
    );
    await vi.advanceTimersByTimeAsync(59_999);
    await vi.advanceTimersByTimeAsync(2);
    expect(await ended).toMatchObject([
      {
        type: "failed",
        fault: { code: "upstream_timeout", message: expect.stringContaining("60 s before the first") },
      },
    ]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("every byte gives the upstream its whole time again", async () => {
    const body = new Body().say("open");
    const ended = collect(run(async (signal) => body.response(signal)));
    for (const word of ["a", "b", "c"]) {
      await vi.advanceTimersByTimeAsync(100_000);
      body.say(word);
    }
    await vi.advanceTimersByTimeAsync(121_000);
    const events = await ended;
    expect(events.map((event) => event.type)).toEqual([
      "open",
      "part-delta",
      "part-delta",
      "part-delta",
      "failed",
    ]);
    expect(events.at(-1)).toMatchObject({
      fault: { message: expect.stringContaining("120 s before the next") },
    });
  });

  test("a pause of the consumer is not the upstream's silence", async () => {
    const body = new Body().say("open", "a", "b");
    const events = run(async (signal) => body.response(signal));
    await events.next();
    await vi.advanceTimersByTimeAsync(600_000);
    body.say("end").end();
    const rest = await collect(events);
    expect(rest.at(-1)?.type).toBe("done");
  });

  test("silence after all that matters is no failure", async () => {
    const body = new Body().say("open", "a", "end");
    const ended = collect(run(async (signal) => body.response(signal)));
    await vi.advanceTimersByTimeAsync(121_000);
    expect((await ended).at(-1)?.type).toBe("done");
  });

  test("retry-after is waited for, then the request is sent again", async () => {
    let sent = 0;
    const ended = collect(
      run(async () => {
        if (sent++ === 0) throw rejected(429, { "retry-after": "3" });
        return new Body().say("open", "end").end().response();
      }),
    );
    await vi.advanceTimersByTimeAsync(2_999);
    expect(sent).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(await ended).toMatchObject([{ type: "open" }, { type: "done" }]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("without retry-after the waits grow", async () => {
    const random = vi.spyOn(Math, "random").mockReturnValue(0.5);
    let sent = 0;
    const ended = collect(
      run(async () => {
        sent++;
        throw rejected(503);
      }),
    );
    const sentAfter = async (ms: number) => {
      await vi.advanceTimersByTimeAsync(ms);
      return sent;
    };
    expect([await sentAfter(249), await sentAfter(1)]).toEqual([1, 2]);
    expect([await sentAfter(499), await sentAfter(1)]).toEqual([2, 3]);
    expect(await ended).toMatchObject([{ type: "failed", fault: { status: 503 } }]);
    random.mockRestore();
  });

  test("a connection is closed before the wait for the next", async () => {
    const bodies = [new Body().say("bad"), new Body().say("open", "done")];
    let sent = 0;
    const ended = collect(run(async () => bodies[sent++]!.response()));
    await vi.advanceTimersByTimeAsync(100);
    expect([sent, bodies[0]?.cancelled]).toEqual([1, true]);
    await vi.advanceTimersByTimeAsync(1_000);
    expect((await ended).at(-1)?.type).toBe("done");
  });

  test("a finished reply may end by itself for a second, so that its connection lives on", async () => {
    const body = new Body().say("open", "done");
    let asked: AbortSignal | undefined;
    await collect(
      run(async (signal) => {
        asked = signal;
        return body.response(signal);
      }),
    );
    expect([body.cancelled, asked?.aborted]).toEqual([false, false]);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(asked?.aborted).toBe(true);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("a reply that has ended leaves no timer", async () => {
    let asked: AbortSignal | undefined;
    await collect(
      run(async (signal) => {
        asked = signal;
        return new Body().say("open", "done").end().response(signal);
      }),
    );
    await vi.advanceTimersByTimeAsync(0);
    expect([asked?.aborted, vi.getTimerCount()]).toEqual([false, 0]);
  });
});

describe("what is asked again", () => {
  const count = async (error: unknown, limits = { ...LIMITS, retryWaitMs: 0 }) => {
    let sent = 0;
    const events = await collect(
      run(
        async () => {
          sent++;
          throw error;
        },
        never,
        limits,
      ),
    );
    expect(events).toHaveLength(1);
    return sent;
  };

  test.each([408, 429, 500, 502, 503, 504, 529])("status %i", async (status) => {
    expect(await count(rejected(status))).toBe(3);
  });

  test.each([400, 401, 403, 404, 409, 413, 422, 501])("not status %i", async (status) => {
    expect(await count(rejected(status))).toBe(1);
  });

  test("not an empty account, nor a long wait, nor what we refuse ourselves", async () => {
    expect(await count(rejected(429, {}, { message: "No.", code: "insufficient_quota" }))).toBe(1);
    expect(await count(rejected(429, { "retry-after": "6" }))).toBe(1);
    expect(await count(new AppError("unsupported_field", "No."))).toBe(1);
  });

  test("a connection that could not be made", async () => {
    expect(await count(new TypeError("fetch failed", { cause: { code: "ECONNREFUSED" } }))).toBe(3);
  });

  test("never after the first event", async () => {
    let sent = 0;
    const events = await collect(
      run(async () => {
        sent++;
        return new Body().say("open", "bad").response();
      }),
    );
    expect(sent).toBe(1);
    expect(events).toMatchObject([{ type: "open" }, { type: "failed", fault: { status: 500 } }]);
  });
});

describe("the body", () => {
  test("a connection that breaks after all that matters has done no harm", async () => {
    const body = new Body().say("open", "a\n\ndata: end");
    const events: ModelEvent[] = [];
    for await (const event of run(async () => body.response())) {
      events.push(event);
      if (event.type === "part-delta") body.fail();
    }
    expect(events.at(-1)?.type).toBe("done");
  });

  test("one that breaks before is a failure", async () => {
    const body = new Body().say("open", "a");
    const events: ModelEvent[] = [];
    for await (const event of run(async () => body.response())) {
      events.push(event);
      if (event.type === "part-delta") body.fail();
    }
    expect(events.at(-1)).toMatchObject({
      type: "failed",
      fault: { code: "upstream_unreachable", message: expect.stringContaining("closed the connection") },
    });
  });

  test("a consumer that leaves cancels it", async () => {
    const body = new Body().say("open", "a");
    const events = run(async () => body.response());
    await events.next();
    await events.return();
    expect(body.cancelled).toBe(true);
  });

  test.each(["text/plain", "", "application/octet-stream"])(
    "an event stream under the type %j is read",
    async (type) => {
      const body = new Body().say("open", "end").end();
      expect((await collect(run(async () => body.response(undefined, type)))).at(-1)?.type).toBe("done");
    },
  );

  test.each(["text/html; charset=utf-8", "application/json"])(
    "%s without a reader for it is refused",
    async (type) => {
      const response = new Response("<h1>Hello, your key is sk-secret</h1>", {
        headers: { "content-type": type },
      });
      expect(await collect(run(async () => response))).toMatchObject([
        {
          type: "failed",
          fault: {
            code: "upstream_unreachable",
            message: `OpenAI answered with ${type} instead of an event stream. Check the base URL configured for it. It began: <h1>Hello, your key is [key]</h1>`,
          },
        },
      ]);
    },
  );

  test("plain text that is no event stream says so", async () => {
    const response = new Response("404 page not found", { headers: { "content-type": "text/plain" } });
    expect(await collect(run(async () => response))).toMatchObject([
      {
        fault: {
          code: "upstream_unreachable",
          message: expect.stringContaining("instead of an event stream"),
        },
      },
    ]);
  });
});

describe("errors", () => {
  test("an SDK's error keeps its status, words and wait", () => {
    const error = rejected(
      429,
      { "retry-after": "20" },
      { message: "Slow, sk-secret.", type: "tokens", code: "rate_limit_exceeded", param: "x" },
    );
    expect(upstreamError(error, "openai", "sk-secret")).toMatchObject({
      code: "upstream_error",
      status: 429,
      message: "Slow, [key].",
      upstreamType: "tokens",
      upstreamCode: "rate_limit_exceeded",
      param: "x",
      retryAfter: 20,
    });
  });

  test("the wrapper of the body may be there or not, and the error may be a bare sentence", () => {
    const message = (error: unknown) => upstreamError(rejected(400, {}, error), "groq", "k").message;
    expect(message({ error: { message: "A." } })).toBe("A.");
    expect(message({ message: "B." })).toBe("B.");
    expect(message("C.")).toBe("C.");
    expect(message({ error: "D." })).toBe("D.");
    expect(message(null)).toBe("400 No.");
  });

  test("a redirect or an odd status is a bad gateway", () => {
    expect(upstreamError(rejected(302), "openai", "k").status).toBe(502);
    expect(upstreamError(rejected(600), "openai", "k").status).toBe(502);
  });

  test("what could not be sent names its cause", () => {
    const error = new Error("Connection error.", { cause: { cause: { code: "ENOTFOUND" } } });
    expect(upstreamError(error, "gemini", "k")).toMatchObject({
      code: "upstream_unreachable",
      message: expect.stringMatching(/^Gemini could not be reached \(ENOTFOUND\)/),
    });
  });

  test("anything may be thrown", () => {
    for (const thrown of [undefined, null, "x", 7, {}])
      expect(upstreamError(thrown, "openai", "k").code).toBe("upstream_unreachable");
  });

  test("redact", () => {
    expect(redact("a sk-1 b sk-1", "sk-1")).toBe("a [key] b [key]");
    expect(redact("every word stays", "e")).toBe("every word stays");
  });

  test("retryAfterOf", () => {
    const now = Date.parse("2026-11-17T10:00:00Z");
    const of = (headers: Record<string, string>) => retryAfterOf(new Headers(headers), now);
    expect(of({ "retry-after": "7" })).toBe(7);
    expect(of({ "retry-after-ms": "1500", "retry-after": "9" })).toBe(1.5);
    expect(of({ "retry-after": "Tue, 17 Nov 2026 10:00:30 GMT" })).toBe(30);
    expect(of({ "retry-after": "Tue, 17 Nov 2026 09:00:00 GMT" })).toBe(0);
    expect(of({ "retry-after": "soon" })).toBeUndefined();
    expect(of({})).toBeUndefined();
    expect(retryAfterOf({ "retry-after": "7" }, now)).toBe(7);
    expect(retryAfterOf(undefined, now)).toBeUndefined();
  });
});
