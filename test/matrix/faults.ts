/** The cells in which the upstream fails, or the client goes away. */
import type { ServerResponse } from "node:http";
import { expect } from "vitest";
import { type Answer as Play, stream } from "../upstream-server.ts";
import type { Row } from "./cell.ts";
import { outline } from "./outline.ts";
import { UPSTREAMS, type Upstream } from "./upstreams.ts";

/** Which class of both SDKs a status is. */
const STATUSES = [
  [400, "BadRequestError"],
  [401, "AuthenticationError"],
  [404, "NotFoundError"],
  [429, "RateLimitError"],
  [500, "InternalServerError"],
  [529, "InternalServerError"],
] as const;

export interface SdkError {
  status: number | undefined;
  headers: Headers | undefined;
  message: string;
}

async function failureOf(work: Promise<unknown>, type: new (...args: never[]) => Error): Promise<SdkError> {
  const failure = await work.then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(failure).toBeInstanceOf(type);
  return failure as SdkError;
}

/** A stream up to and with the frame that says `word`. */
function upTo(frames: string[], word: string): string[] {
  return frames.slice(0, frames.findIndex((frame) => frame.includes(word)) + 1);
}

/** Says `Hello` and then no word more, or the same one over and over, on a connection that lives until `cut` is called. */
function talking({ saying }: Upstream, more?: "more"): { play: Play; cut(): void } {
  const open = new Set<ServerResponse>();
  const frames = saying("Hello", " world");
  const next = more ? frames.find((frame) => frame.includes(" world"))! : ": still here\n\n";
  return {
    async play(response, request, n) {
      open.add(response);
      await stream(upTo(frames, "Hello"), "hang")(response, request, n);
      const alive = setInterval(() => response.write(next), 100);
      response.on("close", () => clearInterval(alive));
    },
    cut() {
      for (const response of open) response.destroy();
    },
  };
}

export const FAULTS: Row[] = [
  ...STATUSES.map(
    ([status, type]): Row => [
      `status ${status}`,
      async ({ double, door, chat, upstream }) => {
        const error = {
          error: { message: `No luck with ${upstream.key} today.`, type: "some_error" },
          status,
          ...(status === 429 ? { retryAfter: 7 } : {}),
        };
        double.script(error, error);
        for (const streamed of [false, true]) {
          const talk = chat();
          talk.user("Say hello.");
          const failure = await failureOf(talk.ask({ stream: streamed }), door.sdk[type]);
          expect(failure.status).toBe(status);
          expect(failure.message).toContain("No luck with");
          expect(failure.message).not.toContain(upstream.key);
          if (status === 429) expect(failure.headers?.get("retry-after")).toBe("7");
        }
        expect(double.sent).toHaveLength(2);
      },
    ],
  ),
  [
    "cut stream",
    async ({ double, door, chat, service, upstream }) => {
      const { play, cut } = talking(upstream);
      double.answer(play);
      const talk = chat();
      talk.user("Say hello.");
      let heard = "";
      const onText = (piece: string) => {
        heard += piece;
        cut();
      };
      await failureOf(talk.ask({ stream: true, onText }), door.sdk.APIError);
      expect(heard).toBe("Hello");
      expect(double.sent).toHaveLength(1);

      const { key, model } = upstream;
      const raw = await door.raw({ url: service.url, key, model }, "Say hello.");
      expect(raw.status).toBe(200);
      cut();
      expect(door.check(await raw.text())).toBe("error");

      double.answer(stream(upTo(upstream.saying("Hello", " world"), "Hello"), "cut"));
      expect((await failureOf(talk.ask(), door.sdk.InternalServerError)).status).toBe(502);
    },
  ],
  [
    "a session after a cut stream",
    async ({ double, door, chat, upstream }) => {
      const headers = { "x-session-id": crypto.randomUUID() };
      const { play, cut } = talking(upstream);
      double.answer(play);
      const broken = chat(headers);
      broken.user("One.");
      await failureOf(broken.ask({ stream: true, onText: cut }), door.sdk.APIError);
      double.script({ content: "Well." });
      const talk = chat(headers);
      talk.user("Two.");
      expect((await talk.ask()).text).toBe("Well.");
      expect(outline(double.histories()[0])).toEqual(["user: One.", "assistant: Hello", "user: Two."]);
    },
  ],
  [
    "disconnect",
    async ({ double, door, runtime, upstream, chat }) => {
      // To workerd a connection that the client has closed is one that still listens, until something is written to it.
      const deaf = runtime === "workerd";
      double.answer(talking(upstream, deaf ? "more" : undefined).play);
      const gone = new AbortController();
      const talk = chat();
      talk.user("Say hello.");
      const streamed = talk.ask({ stream: true, signal: gone.signal, onText: () => gone.abort() });
      await failureOf(streamed, door.sdk.APIUserAbortError);
      expect(await (await double.request(0)).closed).toBe(false);
      if (deaf) return;

      const left = new AbortController();
      const whole = failureOf(talk.ask({ signal: left.signal }), door.sdk.APIUserAbortError);
      const { closed } = await double.request(1);
      left.abort();
      await whole;
      expect(await closed).toBe(false);
    },
  ],
];

/** Upstreams that fall silent take their time, so all of them do it at once. */
export const SILENCES = [
  ["before its first byte", "nothing"],
  ["in the middle of its reply", "hello"],
] as const;

export const SILENT: Play = (response, request, n) => {
  if (JSON.stringify(request.body).includes("Say nothing.")) return;
  const upstream = UPSTREAMS.find(({ path }) => request.path.startsWith(path))!;
  return stream(upTo(upstream.saying("Hello", " world"), "Hello"), "hang")(response, request, n);
};
