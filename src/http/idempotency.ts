/**
 * `Idempotency-Key`: a request that is sent again, because its answer was lost, is answered with the first answer and
 * done once. A stream is answered with all that it said.
 */
import type { Context, MiddlewareHandler } from "hono";
import type { KeyVault } from "../agent/key-vault.ts";
import type { StoredAnswer } from "../core/store.ts";
import { AppError } from "../errors.ts";
import type { Services } from "../services.ts";
import { readJson } from "./body.ts";
import type { AppEnv } from "./env.ts";
import { problem } from "./problem.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
/** Beyond the longest run. Milliseconds. */
const HOLD_MARGIN_MS = 60_000;
const KEY = /^[\x21-\x7e]{1,255}$/;
/** Characters of an answer. */
const ANSWER_LIMIT = 4 * 1024 * 1024;
/** Headers that are part of the answer; the others belong to its transport. */
const KEPT_HEADERS = [
  "content-type",
  "location",
  "etag",
  "x-run-id",
  "x-session-id",
  "x-upstream-model",
  "cache-control",
];

export interface IdempotencyOptions {
  /** What a request asks for, where that is not its JSON. */
  asked?: ((c: Context<AppEnv>) => Promise<unknown>) | undefined;
  /** Its answers may show a secret: what is kept of them is encrypted (K1). */
  secret?: boolean | undefined;
}

export function idempotency(
  services: Services,
  { asked, secret = false }: IdempotencyOptions = {},
): MiddlewareHandler<AppEnv> {
  const { store, platform, config } = services;
  // Without a secret of its own a service makes none for others.
  const vault = secret ? services.agent.vault : undefined;
  const limits = { limit: config.body.v1Limit, timeoutMs: config.body.timeoutMs };

  return async function idempotency(c, next) {
    const key = c.req.header("idempotency-key");
    if (key === undefined || c.req.method !== "POST") return next();
    if (!KEY.test(key))
      throw new AppError(
        "invalid_request",
        "Idempotency-Key has to be 1 to 255 printable ASCII characters without blanks, for example a UUID.",
        { param: "Idempotency-Key" },
      );
    const owner = c.get("owner");
    const what = asked ? await asked(c) : await readJson(c.req.raw.clone() as Request, limits);
    const fingerprint = await fingerprintOf(c, what);
    const now = platform.now();
    const holdUntil = new Date(now.getTime() + config.run.timeoutMs + HOLD_MARGIN_MS);
    const taken = await store.idempotency.take(owner, key, fingerprint, now, holdUntil);
    switch (taken.state) {
      case "done":
        return replayed(vault ? await opened(vault, taken.answer) : taken.answer);
      case "busy":
        throw new AppError(
          "conflict",
          "The first request with this Idempotency-Key is still under way. Send it again once that has ended.",
          { retryAfter: 1 },
        );
      case "other":
        throw new AppError(
          "invalid_request",
          "This Idempotency-Key was used with another request. Take a new key for a new request.",
          { status: 422, param: "Idempotency-Key" },
        );
      case "new":
    }
    const keep = async (answer: StoredAnswer | null): Promise<void> => {
      const expiresAt = new Date(platform.now().getTime() + DAY_MS);
      if (!answer) return store.idempotency.release(owner, key);
      const kept = vault ? { ...answer, body: await vault.seal(answer.body) } : answer;
      await store.idempotency.finish(owner, key, kept, expiresAt);
    };
    try {
      await next();
    } catch (error) {
      await keep(null);
      throw error;
    }
    c.res = await answered(c, keep, platform.background);
  };
}

/** The route and what was asked. Only its hash is kept, since a body may hold a key. */
async function fingerprintOf(c: Context<AppEnv>, body: unknown): Promise<string> {
  const text = `${c.req.method} ${c.req.path}\n${JSON.stringify(body)}`;
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Throws AppError `conflict` where it was kept under another secret. */
async function opened(vault: KeyVault, answer: StoredAnswer): Promise<StoredAnswer> {
  const body = await vault.open(answer.body);
  if (body !== null) return { ...answer, body };
  throw new AppError(
    "conflict",
    "This request was done once, and its answer cannot be read any more: the server's secret has changed.",
  );
}

function replayed({ status, headers, body }: StoredAnswer): Response {
  const bodyless = status === 204 || status === 304;
  return new Response(bodyless ? null : body, {
    status,
    headers: { ...headers, "idempotency-replayed": "true" },
  });
}

/**
 * The answer, once it is stored; a stream is passed on at once and stored when it has ended, whoever has read it. What
 * was refused before anything was done is not stored: a better request may use the key.
 */
async function answered(
  c: Context<AppEnv>,
  keep: (answer: StoredAnswer | null) => Promise<void>,
  background: (work: Promise<unknown>) => void,
): Promise<Response> {
  const { res } = c;
  const done = res.status < 400 || (c.get("runId") !== undefined && c.get("retryable") !== true);
  if (!done) {
    await keep(null);
    return res;
  }
  const headers: Record<string, string> = {};
  for (const name of KEPT_HEADERS) {
    const value = res.headers.get(name);
    if (value !== null) headers[name] = value;
  }
  const { status, body } = res;
  if (!headers["content-type"]?.startsWith("text/event-stream") || !body) {
    const text = await res.text();
    await keep(bounded(c, { status, headers, body: text }));
    return new Response(body === null ? null : text, { status, headers: res.headers });
  }
  const [mine, theirs] = body.tee();
  const store = async (): Promise<void> => {
    const text = await readText(mine);
    await keep(text === null ? null : bounded(c, { status, headers, body: text }));
  };
  background(store());
  return new Response(theirs, { status, headers: res.headers });
}

/** null when it broke off. */
async function readText(body: ReadableStream<Uint8Array>): Promise<string | null> {
  const decoder = new TextDecoder();
  let text = "";
  try {
    for await (const piece of body as unknown as AsyncIterable<Uint8Array>)
      if (text.length <= ANSWER_LIMIT) text += decoder.decode(piece, { stream: true });
    return text + decoder.decode();
  } catch {
    return null;
  }
}

/** What is too long to be kept is answered with where it can be read. */
function bounded(c: Context<AppEnv>, answer: StoredAnswer): StoredAnswer {
  if (answer.body.length <= ANSWER_LIMIT) return answer;
  const runId = c.get("runId");
  const where = runId === undefined ? "" : ` What its run said is at GET /api/runs/${runId}/events.`;
  const message = `This request was done once, and its answer is too long to be sent again.${where}`;
  const reply = problem({ code: "conflict", message, status: 409 }, c.get("requestId"));
  return { status: reply.status, headers: reply.headers, body: JSON.stringify(reply.body) };
}
