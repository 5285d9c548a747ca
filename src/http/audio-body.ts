/** Audio -> a response body that is pulled: what nobody reads is not made. */
import type { Log } from "../core/platform.ts";
import { toFault } from "../errors.ts";
import type { SpeechAudio } from "../knowledge/speech.ts";

/** A reader who takes nothing for this long is given up. Milliseconds. */
const STUCK_MS = 30_000;

export interface AudioBodyOptions {
  log: Log;
  stuckMs?: number;
}

/** When the audio fails, so does the body: the server drops the connection, and the client sees that it is not whole. */
export function audioBody(
  audio: SpeechAudio,
  { log, stuckMs = STUCK_MS }: AudioBodyOptions,
): ReadableStream<Uint8Array> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const watch = (controller: ReadableStreamDefaultController<Uint8Array>): void => {
    timer = setTimeout(() => {
      controller.error(new Error(`The reader has not read for ${stuckMs / 1000} s.`));
      audio.close();
    }, stuckMs);
  };
  const next = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
    try {
      const { done, value } = await audio.bytes.next();
      if (done) return controller.close();
      controller.enqueue(value);
      watch(controller);
    } catch (error) {
      // A client that has gone knows.
      if (toFault(error).code !== "cancelled") log("warning", "speech broke off", { error: String(error) });
      audio.close();
      controller.error(error);
    }
  };
  return new ReadableStream<Uint8Array>(
    {
      start: watch,
      pull(controller) {
        clearTimeout(timer);
        return next(controller);
      },
      cancel() {
        clearTimeout(timer);
        audio.close();
      },
    },
    { highWaterMark: 0 },
  );
}
