/** Bytes of images in an S3-compatible bucket (AWS, MinIO, R2 and their like), with its path in the address. */
import type { GuardedFetch, GuardedInit } from "../core/fetch.ts";
import type { BlobStore } from "../core/notes.ts";
import { AppError } from "../errors.ts";
import { type Credentials, signRequest } from "./images-signature.ts";

export interface BucketOptions extends Credentials {
  /** `https://s3.example.org`, without a slash at the end. */
  endpoint: string;
  bucket: string;
  fetch: GuardedFetch;
  now(): Date;
}

/** Milliseconds for one request, its body included. */
const PATIENCE_MS = 60_000;
const RETRY_SECONDS = 5;
/** A bucket's own words say what is wrong, but may hold what nobody should see. */
const REASON = /<Code>(\w{1,60})<\/Code>/;

export function createBucket(options: BucketOptions): BlobStore {
  const { endpoint, bucket } = options;

  async function send(method: string, owner: string, id: string, init: GuardedInit = {}): Promise<Response> {
    const url = new URL(`${endpoint}/${encodeURIComponent(bucket)}/${await keyOf(owner, id)}`);
    const body = init.body as Uint8Array<ArrayBuffer> | undefined;
    const headers = await signRequest(
      { method, url, headers: init.headers as Record<string, string> | undefined, body },
      options,
      options.now(),
    );
    try {
      return await options.fetch(url, {
        ...{ method, headers, body, redirect: "manual", trusted: true, timeoutMs: PATIENCE_MS },
      });
    } catch (cause) {
      throw fault("cannot be reached", cause);
    }
  }

  return {
    name: "s3",

    async put(owner, id, bytes, type) {
      const response = await send("PUT", owner, id, { body: bytes, headers: { "content-type": type } });
      await finish(response, response.ok);
    },

    read(owner, id, { start, end }) {
      let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
      return new ReadableStream<Uint8Array>(
        {
          async pull(controller) {
            reader ??= (await open()).getReader();
            const { done, value } = await reader.read();
            if (done) controller.close();
            else controller.enqueue(value);
          },
          async cancel(reason) {
            await reader?.cancel(reason);
          },
        },
        { highWaterMark: 0 },
      );

      async function open(): Promise<ReadableStream<Uint8Array>> {
        const response = await send("GET", owner, id, { headers: { range: `bytes=${start}-${end - 1}` } });
        if (response.status !== 206 || response.body === null) await finish(response, false);
        return response.body as ReadableStream<Uint8Array>;
      }
    },

    async remove(owner, id) {
      const response = await send("DELETE", owner, id);
      await finish(response, response.ok || response.status === 404);
    },
  };
}

/** Owners are names of people or hashes of keys: a bucket need not know them. */
async function keyOf(owner: string, id: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(owner));
  const folder = Array.from(new Uint8Array(digest, 0, 8), (byte) => byte.toString(16).padStart(2, "0"));
  return `images/${folder.join("")}/${id}`;
}

async function finish(response: Response, good: boolean): Promise<void> {
  if (good) {
    await response.body?.cancel();
    return;
  }
  const text = await response.text().catch(() => "");
  const code = REASON.exec(text)?.[1];
  const said = `answered with ${response.status}${code === undefined ? "" : ` ${code}`}`;
  if (response.status === 403 || response.status === 401)
    throw fault(`${said}: check S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY and S3_REGION`);
  if (response.status === 404) throw fault(`${said}: check S3_BUCKET, and that nobody else empties it`);
  if (response.status === 507)
    throw new AppError("storage_full", "The bucket for images is full. Nothing was stored.");
  throw fault(said);
}

function fault(what: string, cause?: unknown): AppError {
  return new AppError("unavailable", `The bucket for images ${what}. Try again later.`, {
    cause,
    retryAfter: RETRY_SECONDS,
  });
}
