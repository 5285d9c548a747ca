/** The native door's events as server-sent events, numbered through the run, and the way back from their text. */
import type { AgentEvent } from "../core/event.ts";
import type { Frames } from "../core/run.ts";
import type { ChatEvent } from "./native-chat-events.ts";
import { NativeView, type ViewOptions } from "./native-chat-view.ts";

export interface Frame {
  /** Number of the event in its run. */
  seq: number;
  /** Complete SSE text: an `id:` line, one `data:` line, an empty line. */
  text: string;
  event: ChatEvent;
}

export interface StreamOptions extends ViewOptions {
  /** Number of the first event: 1 for a new run, otherwise the one behind the last that readers were given. */
  firstSeq: number;
}

const NOTHING: Frame[] = [];

/**
 * One stream of a run, numbered without gaps. Each pause ends a stream and each decision begins one, with a `session`
 * event of its own, so that all of them in a row are the run's whole history.
 */
export class NativeEncoder {
  readonly #view: NativeView;
  #next: number;

  constructor(options: StreamOptions) {
    this.#view = new NativeView(options);
    this.#next = options.firstSeq;
  }

  /** Number that the next event will get. */
  get nextSeq(): number {
    return this.#next;
  }

  /** Names the assistant's last message; has to come before the run closes. */
  set messageId(id: string) {
    this.#view.messageId = id;
  }

  /** The complete frames that the event gives; none after the end. */
  push(event: AgentEvent): Frame[] {
    const events = this.#view.push(event);
    return events.length === 0 ? NOTHING : events.map((each) => this.#frame(each));
  }

  #frame(event: ChatEvent): Frame {
    const seq = this.#next++;
    return { seq, event, text: `id: ${seq}\ndata: ${JSON.stringify(event)}\n\n` };
  }
}

/** The frames in text that {@link NativeEncoder} has written. */
export function parseFrames(text: string): Frame[] {
  return text
    .split("\n\n")
    .slice(0, -1)
    .map((frame) => {
      const end = frame.indexOf("\n");
      const seq = Number(frame.slice("id: ".length, end));
      const event = JSON.parse(frame.slice(end + "\ndata: ".length)) as ChatEvent;
      return { seq, event, text: `${frame}\n\n` };
    });
}

/** What of a stored piece a reader who has had event `after` still lacks, byte for byte. */
export function textAfter({ first, last, text }: Frames, after: number): string {
  if (after < first) return text;
  if (after >= last) return "";
  // JSON holds no raw line end, so the id line of an event is found nowhere else.
  return text.slice(text.indexOf(`\n\nid: ${after + 1}\n`) + 2);
}
