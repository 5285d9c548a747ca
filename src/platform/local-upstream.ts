/**
 * What providers are asked through on Node: node:http with connections that are kept. As `fetch` has it, but a stream
 * takes a fifth of the memory and a third of the time that it takes there.
 */
import {
  Agent,
  type ClientRequest,
  request as http,
  type IncomingMessage,
  type RequestOptions,
} from "node:http";
import { request as https, Agent as SecureAgent } from "node:https";
import { pipeline, type Readable } from "node:stream";
import { constants, createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import type { UpstreamFetch } from "../core/platform.ts";

/** A connection that nobody uses is kept this long, or shorter where the server says so. Milliseconds. */
const KEPT_MS = 30_000;
/** Of a body, read ahead of whoever reads it. Bytes. */
const READ_AHEAD = 64 * 1024;
const NO_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

/**
 * For bodies of text and for none: others go to `fetch`. Redirects are never followed. Rejects with what node:http says,
 * or the reason of the signal.
 */
export function createUpstreamFetch(): UpstreamFetch {
  const options = { keepAlive: true, timeout: KEPT_MS, proxyEnv: proxies() };
  const agents = { "http:": new Agent(options), "https:": new SecureAgent(options) };
  return (input, init = {}) => {
    const url = input instanceof Request ? null : new URL(input);
    const agent = url && agents[url.protocol as keyof typeof agents];
    const plain = init.redirect === "manual" && (init.body == null || typeof init.body === "string");
    return agent && plain ? ask(url, init, agent) : fetch(input, init);
  };
}

/** As for `fetch`: proxies of the environment only where Node has been told to. */
function proxies(): NodeJS.ProcessEnv | undefined {
  return process.env.NODE_USE_ENV_PROXY === "1" ? process.env : undefined;
}

async function ask(url: URL, init: RequestInit, agent: Agent, again = true): Promise<Response> {
  const body = typeof init.body === "string" ? Buffer.from(init.body) : undefined;
  const method = init.method ?? "GET";
  const headers: Record<string, string> = { "accept-encoding": "identity", "user-agent": "dragoman" };
  new Headers(init.headers).forEach((value, name) => {
    headers[name] = value;
  });
  if (body || method === "POST") headers["content-length"] = String(body?.length ?? 0);
  const signal = init.signal ?? undefined;
  signal?.throwIfAborted();
  const outgoing = (url.protocol === "https:" ? https : http)(url, {
    agent,
    method,
    headers,
  } as RequestOptions);
  const abort = () => outgoing.destroy(signal?.reason);
  signal?.addEventListener("abort", abort, { once: true });
  const ended = () => signal?.removeEventListener("abort", abort);
  try {
    const message = await head(outgoing, body);
    message.once("close", ended);
    return toResponse(message, method, signal);
  } catch (error) {
    ended();
    signal?.throwIfAborted();
    // The server had given up the connection just when it was used again.
    if (again && outgoing.reusedSocket && isReset(error)) return ask(url, init, agent, false);
    throw error;
  }
}

function head(outgoing: ClientRequest, body: Buffer | undefined): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    outgoing.once("response", resolve);
    // Later failures are the body's.
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

function isReset(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === "ECONNRESET" || code === "EPIPE";
}

function toResponse(message: IncomingMessage, method: string, signal: AbortSignal | undefined): Response {
  const status = message.statusCode as number;
  const headers = new Headers();
  const { rawHeaders } = message;
  for (let at = 0; at + 1 < rawHeaders.length; at += 2)
    headers.append(rawHeaders[at] as string, rawHeaders[at + 1] as string);
  if (method === "HEAD" || NO_BODY.has(status)) {
    message.resume();
    return new Response(null, { status, headers });
  }
  const decoder = decoderOf(headers.get("content-encoding") ?? "");
  if (!decoder) return new Response(toStream(message, signal), { status, headers });
  for (const name of ["content-encoding", "content-length"]) headers.delete(name);
  // Ends both when one of them ends; what went wrong is for the reader of the last.
  const content = pipeline(message, decoder, () => {});
  return new Response(toStream(content, signal), { status, headers });
}

/** Not asked for, but some servers compress whatever they are asked. */
function decoderOf(encoding: string) {
  if (/^(x-)?gzip$/i.test(encoding)) return createGunzip({ flush: constants.Z_SYNC_FLUSH });
  if (/^deflate$/i.test(encoding)) return createInflate({ flush: constants.Z_SYNC_FLUSH });
  if (/^br$/i.test(encoding)) return createBrotliDecompress({ flush: constants.BROTLI_OPERATION_FLUSH });
  return undefined;
}

/** Read ahead a little; whoever reads slowly slows down the server. */
function toStream(
  content: Readable,
  signal: AbortSignal | undefined,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  let open = true;
  return new ReadableStream(
    {
      start(controller) {
        const end = (error?: unknown) => {
          if (!open) return;
          open = false;
          if (error === undefined) controller.close();
          else controller.error(signal?.aborted ? signal.reason : error);
        };
        content.on("data", (chunk: Buffer<ArrayBuffer>) => {
          if (!open) return;
          controller.enqueue(chunk);
          if ((controller.desiredSize ?? 0) <= 0) content.pause();
        });
        content.once("end", () => end());
        content.on("error", end);
        content.once("close", () => end(new Error("The connection was closed.")));
      },
      pull() {
        if (content.isPaused()) content.resume();
      },
      cancel() {
        open = false;
        content.destroy();
      },
    },
    { highWaterMark: READ_AHEAD, size: (chunk) => chunk.byteLength },
  );
}
