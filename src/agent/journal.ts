/**
 * What a run does, made durable before it is shown. The loop says what has happened; the journal puts as much as it can
 * into one batch: a plain turn is written twice, when it begins and when it ends.
 */
import type { AgentEvent } from "../core/event.ts";
import { createId } from "../core/id.ts";
import type { Message, Usage } from "../core/message.ts";
import type { CallRecord, Frames, NewRun, RunChange, RunRecord, Runs } from "../core/run.ts";
import { AppError, type Fault, toFault } from "../errors.ts";

export type RunClose = Extract<AgentEvent, { type: "run-close" }>;

/** What one step changes. */
export interface Progress {
  calls: CallRecord[];
  steps: number;
  usage: Usage;
  /** The event that tells of it, and comes next: readers are given it if, and only if, the rest is stored. */
  shown?: AgentEvent | undefined;
}

export interface Journal {
  /** Messages that the next commit stores. They need not be durable before it: without them the step is done again. */
  add(messages: Message[]): void;
  /** Durable when it resolves. Throws AppError: what cannot be stored must not happen. */
  commit(progress: Progress): Promise<void>;
}

/** An event as the readers of a run's stream get it. */
export interface Frame {
  /** Its number in the run, from 1. */
  seq: number;
  /** SSE text. */
  text: string;
  /** What the text says, while it is new: readers who want it parsed need not parse it. */
  event?: unknown;
}

/** Agent events -> frames, numbered from where the run's stored frames end. */
export interface FrameEncoder {
  /** The id of the last message that the assistant has made so far; its end names it. */
  messageId: string | null;
  /** Whether readers have had the result of a call. */
  hasShown(callId: string): boolean;
  push(event: AgentEvent): Frame[];
  /** In place of the frames of a `run-close` that could not be stored. */
  failed(fault: Fault): Frame[];
}

export interface RunStart {
  run: NewRun;
  /** Stored with the row. */
  messages: Message[];
}

export interface JournalOptions {
  runs: Runs;
  owner: string;
  /** What the row begins with. Called once, when the run first needs one; null when it has one already. */
  start: (() => Promise<RunStart>) | null;
  encoder(run: Pick<NewRun, "id" | "sessionId">): FrameEncoder;
  /** The run has its row, and with it a lease that somebody has to keep. */
  onRow?: (() => void) | undefined;
  /** Model calls made before, where the run goes on. */
  steps?: number | undefined;
}

/** An event as the journal has let it pass. */
export interface Passed {
  event: AgentEvent;
  frames: Frame[];
  /** Why the run's end could not be stored: its row says that it still runs. */
  unstored?: unknown;
}

const NOTHING: Frame[] = [];

/** Characters of frames that wait for a commit at most; a run that says much and does nothing is stored in between. */
const FRAMES_LIMIT = 64 * 1024;
/** What all runs of the process may let wait together: beyond it each of them gets along with a small share. */
const FRAMES_LIMIT_OF_ALL = 4 * 1024 * 1024;
const FRAMES_SHARE = 4 * 1024;
let waitingOfAll = 0;

/** The journal of a run that has a row, or gets one when it first does something. */
export class RunJournal implements Journal {
  readonly #options: JournalOptions;
  #run: Pick<NewRun, "id" | "sessionId" | "holder"> | null;
  #encoder: FrameEncoder | undefined;
  /** What happened before there was a row. */
  #backlog: AgentEvent[] = [];
  #messages: Message[] = [];
  #messageIds: string[] = [];
  #historySeq: number | undefined;
  #storedSeq = 0;
  #frames: Frame[] = [];
  #framesLength = 0;
  /** Grows while the store does not take anything, so that not every event asks it. */
  #leniency = 1;
  /** The event that was stored with the last commit. */
  #early: Passed | undefined;
  #lastMessageId: string | null = null;
  #steps: number;
  #usage: Usage | undefined;

  constructor(options: JournalOptions, run: Pick<NewRun, "id" | "sessionId" | "holder"> | null = null) {
    this.#options = options;
    this.#run = run;
    this.#steps = options.steps ?? 0;
    if (run) this.#encoder = options.encoder(run);
  }

  /** The session of the run, once it has one. */
  get sessionId(): string | undefined {
    return this.#run?.sessionId;
  }

  /** Messages of the session up to and with those that the run began with; undefined before it has begun. */
  get historySeq(): number | undefined {
    return this.#historySeq;
  }

  /** Number of the last frame that is stored. */
  get storedSeq(): number {
    return this.#storedSeq;
  }

  /** Makes the row. The run that has the session's turn where there is one: nothing is written then. */
  async begin(): Promise<RunRecord | null> {
    if (this.#run || !this.#options.start) return null;
    const { run, messages } = await this.#options.start();
    const answer = await this.#options.runs.begin(this.#options.owner, run, messages);
    if ("inTheWay" in answer) return answer.inTheWay;
    this.#run = run;
    this.#historySeq = answer.historySeq;
    this.#encoder = this.#options.encoder(run);
    const backlog = this.#backlog;
    this.#backlog = [];
    for (const event of backlog) this.#show(this.#encoder.push(event));
    this.#options.onRow?.();
    return null;
  }

  add(messages: Message[]): void {
    for (const message of messages) {
      const id = createId("msg");
      this.#messages.push(message);
      this.#messageIds.push(id);
      if (message.role === "assistant") this.#lastMessageId = id;
    }
    if (this.#encoder && this.#lastMessageId !== null) this.#encoder.messageId = this.#lastMessageId;
  }

  async commit({ calls, steps, usage, shown }: Progress): Promise<void> {
    this.#steps = steps;
    this.#usage = usage;
    if (!this.#run && (await this.begin()) !== null) throw lost();
    if (this.#encoder && shown) this.#early = { event: shown, frames: this.#show(this.#encoder.push(shown)) };
    const { sessionId = "" } = this;
    await this.#write({ calls: calls.map((call) => ({ ...call, sessionId })) });
  }

  /**
   * Takes an event in before anybody else sees it, and returns what readers of the stream are shown of it. A `run-close`
   * is stored when this resolves; when it cannot be, the fault is returned as the run's end instead.
   */
  see(event: AgentEvent): Passed | Promise<Passed> {
    if (event.type === "model" && event.event.type === "done") this.#steps++;
    if (!this.#encoder) {
      if (this.#options.start) this.#backlog.push(event);
      return { event, frames: NOTHING };
    }
    if (event.type === "run-close") return this.#close(event);
    if (this.#early?.event === event) return this.#early;
    const frames = this.#show(this.#encoder.push(event));
    const limit = (waitingOfAll > FRAMES_LIMIT_OF_ALL ? FRAMES_SHARE : FRAMES_LIMIT) * this.#leniency;
    return this.#framesLength > limit ? this.#spill(event, frames) : { event, frames };
  }

  /** What cannot be stored now goes with the next commit, which has to succeed. */
  async #spill(event: AgentEvent, frames: Frame[]): Promise<Passed> {
    await this.#write({}).catch(() => {
      this.#leniency *= 2;
    });
    return { event, frames };
  }

  async #close(event: RunClose): Promise<Passed> {
    const frames = this.#show(this.#encoder?.push(event) ?? NOTHING);
    this.#usage = event.usage;
    const { outcome: status, stop, fault } = event;
    try {
      await this.#write({ end: { status, stop, fault: status === "completed" ? undefined : fault } });
      return { event, frames };
    } catch (error) {
      const failed = toFault(error);
      this.#forget();
      return {
        event: { ...event, outcome: "failed", fault: failed },
        frames: this.#encoder?.failed(failed) ?? NOTHING,
        unstored: error,
      };
    }
  }

  #show(frames: Frame[]): Frame[] {
    for (const frame of frames) {
      this.#frames.push(frame);
      this.#framesLength += frame.text.length;
      waitingOfAll += frame.text.length;
    }
    return frames;
  }

  /** The loop waits for each write, so that nothing comes in meanwhile; what could not be stored goes with the next. */
  async #write(change: RunChange): Promise<void> {
    const { runs, owner } = this.#options;
    if (!this.#run) return;
    const messages = this.#messages;
    const messageIds = this.#messageIds;
    const frames = joined(this.#frames);
    const stored = await runs.commit(owner, this.#run.id, this.#run.holder, {
      ...change,
      ...(messages.length > 0 ? { messages, messageIds } : {}),
      ...(frames ? { frames } : {}),
      steps: this.#steps,
      usage: this.#usage,
    });
    if (!stored) throw lost();
    this.#messages = [];
    this.#messageIds = [];
    this.#forget();
    this.#leniency = 1;
    if (frames) this.#storedSeq = frames.last;
  }

  #forget(): void {
    waitingOfAll -= this.#framesLength;
    this.#frames = [];
    this.#framesLength = 0;
  }
}

function joined(frames: readonly Frame[]): Frames | undefined {
  const first = frames[0];
  const last = frames.at(-1);
  if (!first || !last) return undefined;
  return { first: first.seq, last: last.seq, text: frames.map((frame) => frame.text).join("") };
}

function lost(): AppError {
  return new AppError(
    "conflict",
    "This run is in other hands by now: another process goes on with it, or has ended it.",
  );
}
