/**
 * What happens, as it happens. Events carry ids and deltas only; `fold.ts` rebuilds messages from them.
 */
import type { Fault } from "../errors.ts";
import type { Extra, Family, ProviderName, ResultPart, StopReason, Usage } from "./message.ts";
import type { MemberName, MemberStatus } from "./swarm.ts";
import type { Risk } from "./tool.ts";

/** What a part is, known when it opens. */
export type PartStart =
  | { kind: "text" }
  | { kind: "reasoning"; redacted?: boolean | undefined }
  | { kind: "refusal" }
  /** `extra`: what the family's own clients have to see of a call from its start (who called it). */
  | { kind: "call"; id: string; name: string; freeform?: boolean | undefined; extra?: Extra | undefined }
  /** A whole block of one family; its deltas, if any, are `extra` of that family. */
  | { kind: "raw"; family: Family; block: Record<string, unknown> };

/**
 * The stream of one model call.
 *
 * Order: one `open`; then parts; then exactly one `done` or `failed`, and nothing after it. A stream that fails
 * before the upstream's first event is `failed` alone. Failures travel in the stream and are not thrown, nor is
 * cancellation: an aborted signal ends the stream with `failed` and the code `cancelled`.
 *
 * Parts are numbered from 0 in the order in which they open. Several may be open at once (parallel calls of
 * chat completions interleave); each is closed exactly once before `done`. Empty deltas are not sent unless they
 * carry `extra`.
 */
export type ModelEvent =
  | { type: "open"; model: string; id?: string | undefined; extra?: Extra | undefined }
  | { type: "part-open"; index: number; part: PartStart }
  /** Text, reasoning, refusal: more of it. Call: more of the argument text. */
  | { type: "part-delta"; index: number; delta: string; extra?: Extra | undefined }
  /**
   * `seal` arrives whole, here, since providers send it last. So do `extra`, what the part carries besides its text
   * (citations), and `block`, a raw part with all its deltas in it.
   */
  | {
      type: "part-close";
      index: number;
      seal?: string | undefined;
      extra?: Extra | undefined;
      block?: Record<string, unknown> | undefined;
    }
  | {
      type: "done";
      stop: StopReason;
      usage: Usage;
      stopSequence?: string | undefined;
      extra?: Extra | undefined;
    }
  | { type: "failed"; fault: Fault };

export type RunOutcome =
  /** The model ended its turn. */
  | "completed"
  /** Parked until somebody decides on a call. */
  | "paused"
  /** The model called a tool of the client's; the client's next request goes on. */
  | "handed-back"
  /** Cancelled by the client or by a stop. */
  | "stopped"
  | "failed";

export interface PendingCall {
  id: string;
  name: string;
  args: string;
  /** All that would run, as a person is shown it; see preview.ts. */
  preview?: string | undefined;
  risk?: Risk | undefined;
  /** ISO 8601, UTC. Later decisions come too late. */
  expiresAt?: string | undefined;
  /** The member of a swarm that asks; absent where the agent of the run itself does. */
  agent?: string | undefined;
  /** The short code that decides it from a chat, for doors that have no other way. Kept nowhere but as its hash. */
  code?: string | undefined;
}

/**
 * The stream of one run: any number of model calls and tool executions.
 *
 * Order: one `run-open`; steps, each a model stream without its `failed`, followed by its tools, with a `compacted` in
 * front where there was need; then exactly one `run-close`, and nothing after it. Like model streams it never throws.
 */
export type AgentEvent =
  | { type: "run-open"; runId: string; provider: ProviderName; model: string; sessionId?: string | undefined }
  /** `server`: the part is a call of the agent's own tool, which no client sees as a tool call. */
  | { type: "model"; step: number; event: Exclude<ModelEvent, { type: "failed" }>; server?: boolean }
  | { type: "tool-start"; step: number; callId: string; name: string; args: string }
  | { type: "tool-progress"; step: number; callId: string; delta: string }
  | { type: "tool-end"; step: number; callId: string; name: string; output: ResultPart[]; failed: boolean }
  | { type: "approval-needed"; step: number; calls: PendingCall[] }
  /**
   * A member of the swarm that a call has made starts, ends, or waits for a decision on `calls`. It may be said again when
   * the run goes on.
   */
  | { type: "agent"; callId: string; member: MemberName; status: MemberStatus; calls?: PendingCall[] }
  /** What a member does, between its start and its end; those of several members come in between each other. */
  | { type: "member"; callId: string; member: MemberName; event: AgentEvent }
  /** A summary stands in place of the oldest `messages` of the history from here on. Tokens of the history, as estimated. */
  | { type: "compacted"; step: number; messages: number; tokensBefore: number; tokensAfter: number }
  | {
      type: "run-close";
      outcome: RunOutcome;
      stop: StopReason;
      /** Added up over all steps. */
      usage: Usage;
      stopSequence?: string | undefined;
      extra?: Extra | undefined;
      /** Why, when `failed` or `stopped`. */
      fault?: Fault | undefined;
    };
