/** Audio as the events that OpenAI's SDK reads with `stream_format: "sse"`. */
import type { SpeechBytes, SpeechUsage } from "../core/speech.ts";
import { toFault } from "../errors.ts";
import { openaiChat } from "../protocols/openai-chat.ts";

/** Bytes that become text at once; a call has room for so many arguments. */
const AT_ONCE = 8 * 1024;

export async function* speechFrames(
  bytes: SpeechBytes,
  requestId: string,
): AsyncGenerator<string, void, void> {
  try {
    for (let next = await bytes.next(); ; next = await bytes.next()) {
      if (!next.done) {
        yield frame({ type: "speech.audio.delta", audio: toBase64(next.value) });
        continue;
      }
      yield frame({ type: "speech.audio.done", ...(next.value ? { usage: toWire(next.value) } : {}) });
      return;
    }
  } catch (error) {
    yield frame(openaiChat.fault(toFault(error), requestId).body);
  } finally {
    await bytes.return(undefined);
  }
}

function toWire({ input, output }: SpeechUsage) {
  return { input_tokens: input, output_tokens: output, total_tokens: input + output };
}

function frame(event: unknown): string {
  return `data: ${JSON.stringify(event)}\n\n`;
}

function toBase64(bytes: Uint8Array): string {
  let binary = "";
  for (let at = 0; at < bytes.length; at += AT_ONCE)
    binary += String.fromCharCode(...bytes.subarray(at, at + AT_ONCE));
  return btoa(binary);
}
