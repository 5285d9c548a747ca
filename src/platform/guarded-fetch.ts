/**
 * The guarded fetch around what a runtime can do: each address checked before it is asked, redirects followed by hand,
 * one clock over all of it, the body counted as it comes.
 */
import { type Egress, nameOf } from "../core/egress.ts";
import type { GuardedFetch, GuardedInit } from "../core/fetch.ts";
import { AppError } from "../errors.ts";
import { firstHop, type Hop, nextHop } from "./redirects.ts";

const MAX_REDIRECTS = 5;
const MAX_BYTES = 10 * 1024 * 1024;
const TIMEOUT_MS = 30_000;

/**
 * One request without redirects, to an address that `Egress.checkUrl` has let pass. Its body streams, decoded. Rejects
 * with an AppError where there is a sentence for it; cancelling the body, or the signal, closes the connection.
 */
export type Send = (hop: Hop, signal: AbortSignal, maxBytes: number) => Promise<Response>;

export function createGuardedFetch(egress: Egress, send: Send): GuardedFetch {
  return async function guardedFetch(input, init = {}) {
    init.signal?.throwIfAborted();
    const hop = firstHop(parseUrl(input), init);
    const clock = startClock(hop.url, init);
    try {
      const { response, url, hops } = await clock.race(follow(hop, init, clock));
      clock.signal.throwIfAborted();
      clock.headArrived();
      const body = response.body && guardBody(response.body, url, init.maxBytes ?? MAX_BYTES, clock);
      if (body === null) clock.stop();
      return describe(new Response(body, response), url, hops > 0);
    } catch (error) {
      throw clock.fail(failureOf(error, hop.url));
    }
  };

  async function follow(first: Hop, init: GuardedInit, clock: Clock) {
    let hop = first;
    let via: URL | undefined;
    for (let hops = 0; ; hops++) {
      egress.checkUrl(hop.url, hop.trusted, via);
      const response = await send({ ...hop, via }, clock.signal, init.maxBytes ?? MAX_BYTES);
      const next = init.redirect === "manual" ? null : nextHop(hop, response);
      if (next === null) return { response, url: hop.url, hops };
      // Nobody reads it, and the connection is not used again.
      response.body?.cancel().catch(() => {});
      if (init.redirect === "error")
        throw new AppError(
          "unreachable",
          `${nameOf(hop.url)} redirects, which this request does not follow.`,
        );
      if (hops === MAX_REDIRECTS)
        throw new AppError(
          "unreachable",
          `${nameOf(first.url)} redirects more than ${MAX_REDIRECTS} times. Ask for the address that it ends at.`,
        );
      via = hop.url;
      hop = next;
    }
  }
}

function parseUrl(input: string | URL): URL {
  if (URL.canParse(String(input))) return new URL(input);
  throw new AppError(
    "invalid_request",
    "That is no address: give a whole one that begins with http:// or https://.",
  );
}

/** The time of one call, and its caller's will to wait. */
interface Clock {
  /** Aborted with what ends the call early: the caller's reason, our sentence about the time limit, or a failure. */
  signal: AbortSignal;
  /** The work, or the reason of the signal where that comes first. */
  race<T>(work: Promise<T>): Promise<T>;
  headArrived(): void;
  /** Nothing more to watch: the answer has ended. */
  stop(): void;
  /** Ends what is still open. Returns why the call fails: what came first, as its caller is to see it. */
  fail(error: unknown): unknown;
}

function startClock(url: URL, { signal: caller, timeoutMs }: GuardedInit): Clock {
  const limit = timeoutMs || TIMEOUT_MS;
  const controller = new AbortController();
  const { signal } = controller;
  const onAbort = (): void => void fail(caller?.reason);
  const timer = setTimeout(
    () =>
      fail(
        new AppError("unreachable", `${nameOf(url)} took longer than ${limit / 1000} s. Try again later.`),
      ),
    limit,
  );
  caller?.addEventListener("abort", onAbort, { once: true });

  function stop(): void {
    clearTimeout(timer);
    caller?.removeEventListener("abort", onAbort);
  }
  function fail(error: unknown): unknown {
    stop();
    controller.abort(error);
    return signal.reason;
  }
  return {
    ...{ signal, stop, fail },
    race: (work) =>
      new Promise((resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
        work.then(resolve, reject);
      }),
    headArrived() {
      if (timeoutMs === 0) clearTimeout(timer);
    },
  };
}

/** Pulls one piece at a time: nothing is read ahead of the reader. */
function guardBody(
  body: ReadableStream<Uint8Array>,
  url: URL,
  maxBytes: number,
  clock: Clock,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  let total = 0;
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        clock.signal.addEventListener(
          "abort",
          () => {
            controller.error(clock.signal.reason);
            reader.cancel(clock.signal.reason).catch(() => {});
          },
          { once: true },
        );
      },
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (clock.signal.aborted) return;
          total += value?.byteLength ?? 0;
          if (total > maxBytes) throw tooLarge(url, maxBytes);
          if (value) controller.enqueue(value);
          if (!done) return;
          clock.stop();
          controller.close();
        } catch (error) {
          clock.fail(failureOf(error, url));
        }
      },
      async cancel(reason) {
        clock.stop();
        await reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
}

export function tooLarge(url: URL, maxBytes: number): AppError {
  const size = maxBytes >= 1024 * 1024 ? `${Math.floor(maxBytes / 1024 / 1024)} MiB` : `${maxBytes} bytes`;
  return new AppError("payload_too_large", `What ${nameOf(url)} sends is larger than ${size}.`);
}

/** Where the body came from, which a Response made by hand does not say. */
function describe(response: Response, url: URL, redirected: boolean): Response {
  return Object.defineProperties(response, { url: { value: url.href }, redirected: { value: redirected } });
}

/** Our own errors as they are; all else is a connection that failed. */
function failureOf(error: unknown, url: URL): AppError {
  if (error instanceof AppError) return error;
  return new AppError(
    "unreachable",
    `The connection to ${nameOf(url)} failed. Check the address, or try again later.`,
    { cause: error },
  );
}
