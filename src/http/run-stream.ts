/** What a run shows, from some event on, as a stream of the native door or as one body. */
import type { Frame } from "../agent/journal.ts";
import { AppError } from "../errors.ts";
import type { ChatEvent } from "../protocols/native-chat-events.ts";
import type { ChatReply } from "../protocols/native-chat-records.ts";
import { ReplyCollector } from "../protocols/native-chat-reply.ts";
import { parseFrames } from "../protocols/native-chat-stream.ts";
import type { Services } from "../services.ts";
import { STREAM_HEADERS, streamBody } from "./sse.ts";

/** What tells proxies that the stream lives; clients of event streams leave comments out. */
const HEARTBEAT = ": still here\n\n";

export type Frames = (signal: AbortSignal) => AsyncGenerator<Frame, void, void>;

/** The run goes on whether anybody reads or not. */
export function streamRun(frames: Frames, headers: Record<string, string>, { platform }: Services): Response {
  const reader = new AbortController();
  const body = streamBody(texts(frames(reader.signal)), {
    heartbeat: HEARTBEAT,
    onClose: () => reader.abort(),
    log: platform.log,
  });
  return new Response(body, { headers: { ...headers, ...STREAM_HEADERS } });
}

async function* texts(frames: AsyncGenerator<Frame, void, void>): AsyncGenerator<string, void, void> {
  for await (const frame of frames) yield frame.text;
}

/** Throws the run's fault as an AppError. `signal`: nobody waits for it any more. `watch` sees each event as it comes. */
export async function collectRun(
  frames: Frames,
  signal: AbortSignal,
  watch?: (event: ChatEvent) => void,
): Promise<ChatReply> {
  const collector = new ReplyCollector();
  let ended = false;
  for await (const frame of frames(signal)) {
    const event = eventOf(frame);
    collector.push(event);
    watch?.(event);
    ended = event.type === "done" || event.type === "error";
  }
  if (!ended)
    throw new AppError("cancelled", "The connection was closed before the run had ended; it goes on.");
  try {
    return collector.body();
  } catch (error) {
    throw error instanceof AppError && !signal.aborted ? toWaiting(error) : error;
  }
}

/** The fault as a client gets it that still waits: a run that was stopped was stopped by somebody else. */
export function toWaiting(fault: AppError): AppError {
  if (fault.code !== "cancelled") return fault;
  return new AppError(
    "conflict",
    "The run was stopped before it had ended. What it had done until then is in its session; send the message again if it is still wanted.",
  );
}

export function eventOf(frame: Frame): ChatEvent {
  return (frame.event ?? parseFrames(frame.text)[0]?.event) as ChatEvent;
}
