/** The stream of a run that is kept: what the native door shows of it, numbered through pauses and crashes. */
import type { AgentEvent } from "../core/event.ts";
import type { Frames } from "../core/run.ts";
import type { Fault } from "../errors.ts";
import { type Frame, NativeEncoder, parseFrames } from "./native-chat-stream.ts";
import { noMembers, type ShownMembers } from "./native-chat-view.ts";

export interface RunFramesOptions {
  runId: string;
  sessionId: string;
  /** Number of the last event so far. */
  after: number;
  /** What readers have had. */
  earlier: readonly Frames[];
  /** The run goes on in mid-stream: readers have had its `session` event. */
  interrupted: boolean;
  /** The assistant's last message so far. */
  messageId: string | null;
  unavailableTools: readonly string[];
}

/** What earlier parts of a run have shown. */
interface Earlier {
  said: string;
  /** Calls without a result, by id. */
  open: Map<string, { id: string; name: string; args: string }>;
  settled: Set<string>;
  members: ShownMembers;
}

export class RunFrames {
  readonly #options: RunFramesOptions;
  readonly #encoder: NativeEncoder;
  readonly #settled: Set<string>;
  #messageId: string | null;
  #closed = false;

  constructor(options: RunFramesOptions) {
    this.#options = options;
    this.#messageId = options.messageId;
    const { said, open, settled, members } = read(options.earlier);
    this.#settled = settled;
    const { runId, sessionId, unavailableTools } = options;
    this.#encoder = new NativeEncoder({
      ...{ runId, sessionId, unavailableTools, members, before: said, calls: [...open.values()] },
      messageId: options.messageId ?? undefined,
      announce: !options.interrupted,
      firstSeq: options.after + 1,
    });
  }

  get messageId(): string | null {
    return this.#messageId;
  }

  set messageId(id: string | null) {
    this.#messageId = id;
    if (id !== null) this.#encoder.messageId = id;
  }

  /** Whether readers have had the result of a call before. */
  hasShown(callId: string): boolean {
    return this.#settled.has(callId);
  }

  push(event: AgentEvent): Frame[] {
    if (event.type === "run-close") this.#closed = true;
    return this.#encoder.push(event);
  }

  /** In place of the frames of an end that could not be stored: they have been shown to nobody. */
  failed(fault: Fault): Frame[] {
    const { runId, sessionId, interrupted } = this.#options;
    const next = this.#encoder.nextSeq;
    const encoder = new NativeEncoder({
      ...{ runId, sessionId, firstSeq: this.#closed ? next - 1 : next },
      announce: !this.#closed && !interrupted,
    });
    const usage = { input: 0, output: 0 };
    return encoder.push({ type: "run-close", outcome: "failed", stop: "stop", usage, fault });
  }
}

function read(frames: readonly Frames[]): Earlier {
  const members = noMembers();
  const earlier: Earlier = { said: "", open: new Map(), settled: new Set(), members };
  for (const { text } of frames)
    for (const { event } of parseFrames(text)) {
      if (event.type === "agent" && event.status === "waiting")
        for (const { id } of event.pending_calls ?? []) members.asked.add(id);
      else if (event.type === "agent")
        (event.status === "started" ? members.started : members.ended).add(event.run_id);
      else if (event.type === "content" && event.agent !== undefined)
        members.said.set(event.agent, (members.said.get(event.agent) ?? "") + event.content);
      else if (event.type === "content") earlier.said += event.content;
      else if (event.type === "tool_call") {
        const { id, name, args } = event;
        earlier.open.set(id, { id, name, args: JSON.stringify(args) });
      } else if (event.type === "tool_result") {
        earlier.open.delete(event.id);
        earlier.settled.add(event.id);
      }
    }
  return earlier;
}
