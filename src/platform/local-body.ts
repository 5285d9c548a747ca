/** Bodies from node:http as web streams: decoded, pulled piece by piece, and ended when nobody wants them. */
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { pipeline, type Readable, Transform } from "node:stream";
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  type ZlibOptions,
} from "node:zlib";
import { nameOf } from "../core/egress.ts";
import { AppError } from "../errors.ts";
import { tooLarge } from "./guarded-fetch.ts";

export const ACCEPT_ENCODING = "gzip, deflate, br";

/** As browsers do: what there is of a compressed body without its end is shown. That the transfer was whole, HTTP tells. */
const LENIENT: ZlibOptions = { flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH };
const LENIENT_BROTLI = {
  flush: constants.BROTLI_OPERATION_FLUSH,
  finishFlush: constants.BROTLI_OPERATION_FLUSH,
};

/**
 * `encoding`: of the content, lower case, empty for none. One at most: a bomb inside a bomb unfolds before it can be
 * counted. Throws AppError `unreachable` for one that is not known.
 */
export function openBody(
  message: IncomingMessage,
  encoding: string,
  url: URL,
  maxBytes: number,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  if (!/^(|identity|(x-)?gzip|deflate|br)$/.test(encoding)) {
    message.destroy();
    throw new AppError(
      "unreachable",
      `${nameOf(url)} answers in the encoding '${encoding.slice(0, 40)}', which was not asked for and cannot be read.`,
    );
  }
  let pieces: AsyncIterator<Buffer> | undefined;
  return new ReadableStream(
    {
      async pull(controller) {
        pieces ??= (await decode(message, encoding, url, maxBytes))[Symbol.asyncIterator]();
        const { done, value } = await pieces.next();
        if (done) controller.close();
        else
          controller.enqueue(new Uint8Array(value.buffer as ArrayBuffer, value.byteOffset, value.byteLength));
      },
      cancel() {
        message.destroy();
      },
    },
    { highWaterMark: 0 },
  );
}

async function decode(
  message: IncomingMessage,
  encoding: string,
  url: URL,
  maxBytes: number,
): Promise<Readable> {
  if (encoding === "" || encoding === "identity") return message;
  const decoder = await decoderOf(message, encoding);
  // Compressed data can be endless and unfold to nothing.
  let total = 0;
  const count = new Transform({
    transform(chunk: Buffer, _encoding, next) {
      total += chunk.length;
      next(total > maxBytes ? tooLarge(url, maxBytes) : null, chunk);
    },
  });
  // The reader of the last one gets the failure of any.
  pipeline(message, count, decoder, () => {});
  return decoder;
}

async function decoderOf(message: IncomingMessage, encoding: string): Promise<Transform> {
  if (encoding === "br") return createBrotliDecompress(LENIENT_BROTLI);
  if (encoding !== "deflate") return createGunzip(LENIENT);
  // Some servers leave out the two bytes that belong in front.
  await once(message, "readable");
  const first: Buffer | null = message.read();
  if (first === null) return createInflate(LENIENT);
  message.unshift(first);
  return ((first[0] as number) & 0x0f) === 0x08 ? createInflate(LENIENT) : createInflateRaw(LENIENT);
}
