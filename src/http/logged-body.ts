/** A response body whose failure is in the log: all that runtimes do about it is to drop the connection. */
import type { Log } from "../core/platform.ts";

/** The same bytes, pulled as they are asked for; it fails as `body` does. */
export function loggedBody(body: ReadableStream<Uint8Array>, log: Log): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (done) controller.close();
          else controller.enqueue(value);
        } catch (error) {
          log("error", "a response stream broke", { error: String(error) });
          controller.error(error);
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}
