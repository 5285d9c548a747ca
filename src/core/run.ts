/**
 * A run as the store keeps it: enough to go on with it on any replica. What it says is in its session's messages; what
 * it does is in its calls; what its readers saw is in its frames.
 */
import type { Fault } from "../errors.ts";
import type { RunOutcome } from "./event.ts";
import type { Unattended } from "./jobs.ts";
import type { Message, ProviderName, StopReason, ToolResultMessage, Usage } from "./message.ts";
import type { ModelRequest } from "./model.ts";
import type { PolicyRule } from "./policy.ts";
import type { MemberSpec, SwarmSpec } from "./swarm.ts";
import type { Risk } from "./tool.ts";

/** `running` under a lease, `paused` for a decision, or how it ended. */
export type RunStatus = "running" | RunOutcome;

/** What it takes to go on, but for the messages and the key. */
export interface RunSpec {
  /** Where it came from: `chat`, `chat-completions`, `messages`, `swarm`. */
  door: string;
  provider: ProviderName;
  /** null is the bare model. */
  agent: string | null;
  /** The model and all settings; `messages` stands empty, `tools` are the client's. The agent's prompt is included. */
  request: ModelRequest;
  /** Names of the agent's own tools that were offered. */
  tools: string[];
  maxSteps?: number | undefined;
  /** Nothing is asked: what would ask is allowed. */
  autoApprove?: boolean | undefined;
  /** Of a named agent: they narrow the operator's policy. */
  rules?: PolicyRule[] | undefined;
  /** It may delegate. */
  swarm?: SwarmSpec | undefined;
  /** It was delegated. */
  member?: MemberSpec | undefined;
  /** The key was the caller's: without it nobody goes on, least of all with the operator's. */
  callersKey?: boolean | undefined;
  /** Nobody watches it: a job's. */
  unattended?: Unattended | undefined;
}

export interface RunRecord {
  id: string;
  owner: string;
  sessionId: string;
  /** Of a member of a swarm: the run that all of it hangs from. */
  root?: string | undefined;
  status: RunStatus;
  /** Once it has ended, without what it was told and offered. */
  spec: RunSpec;
  /** The caller's provider key, encrypted for this server; null once the run has ended, or when it is the operator's. */
  sealedKey: string | null;
  /** Session position of the last message in front of what the run itself made. */
  historySeq: number;
  /** Model calls made so far. */
  steps: number;
  /** Number of the last event that readers were given and that is stored. */
  lastEvent: number;
  /** How often another holder has gone on after a crash. */
  recoveries: number;
  usage: Usage;
  stop?: StopReason | undefined;
  fault?: Fault | undefined;
  createdAt: Date;
  updatedAt: Date;
  endedAt?: Date | undefined;
}

/**
 * `pending` waits for a person; `allowed` may start; `started` has, and may have had effects; `done` has a result.
 * `denied`, `expired` and `cancelled` will never run; `unknown` was started and nobody knows how it ended.
 */
export type CallState =
  | "pending"
  | "allowed"
  | "denied"
  | "expired"
  | "cancelled"
  | "started"
  | "done"
  | "unknown";

export interface CallRecord {
  runId: string;
  sessionId: string;
  callId: string;
  step: number;
  /** Among the calls of its message, from 0. */
  position: number;
  name: string;
  /** As the model wrote them: what runs is this. */
  args: string;
  risk: Risk;
  state: CallState;
  /** SHA-256 of the short code that decides it from a chat, hex; null where nobody was given one. */
  codeHash: string | null;
  /** When a pending call becomes `expired`. */
  expiresAt: Date | null;
  decidedAt: Date | null;
  result: ToolResultMessage | null;
}

/** A call, and the member of a swarm that has made it; none for the agent that leads. */
export type NamedCall = CallRecord & { agent?: string | undefined };

/** A piece of a run's event stream as its readers get it: whole events, consecutive, in the native door's words. */
export interface Frames {
  /** Number of the first and of the last event in it. */
  first: number;
  last: number;
  /** SSE text, byte for byte. */
  text: string;
}

export interface NewRun {
  id: string;
  sessionId: string;
  spec: RunSpec;
  sealedKey: string | null;
  holder: string;
  leaseUntil: Date;
  /** The session is made with the run. `unlisted`: the record of a run whose client keeps the history, not listed. */
  newSession?: { unlisted: boolean } | undefined;
  /** Of a member of a swarm: see {@link RunRecord.root}. Its calls are decided in that run's session. */
  root?: string | undefined;
}

/** What one commit changes; everything in it, or nothing. */
export interface RunChange {
  /** Appended to the session, in order. */
  messages?: Message[] | undefined;
  /** The ids of `messages`, in their order; without them the store makes its own. */
  messageIds?: string[] | undefined;
  /** New calls, or calls whose state or result changed. */
  calls?: CallRecord[] | undefined;
  frames?: Frames | undefined;
  steps?: number | undefined;
  usage?: Usage | undefined;
  /** Leaves `running`: the lease is given up and, unless `paused`, the key is forgotten and the session is free. */
  end?: { status: RunOutcome; stop: StopReason; fault?: Fault | undefined } | undefined;
}

export interface RunPage {
  runs: RunRecord[];
  /** Opaque; null at the end. */
  next: string | null;
}

/**
 * Every method is one conditional batch. Another owner's run or session is one that is not there.
 *
 * A session has at most one run that is `running` or `paused`: its turn.
 */
export interface Runs {
  /**
   * Begins a turn: the run's row and its first messages, if the session has no turn. Otherwise the id of the run in
   * the way, and nothing is written. A `running` turn whose lease has run out is still in the way.
   */
  begin(
    owner: string,
    run: NewRun,
    messages: Message[],
  ): Promise<{ historySeq: number } | { inTheWay: RunRecord }>;
  /** false: the lease is lost, nothing was written, and the caller must stop. */
  commit(owner: string, runId: string, holder: string, change: RunChange): Promise<boolean>;
  /** `paused` -> `running` for one caller; null for all others. */
  resume(owner: string, runId: string, holder: string, leaseUntil: Date): Promise<RunRecord | null>;
  /** Takes over a `running` run whose lease has run out, counting the recovery; null when another was faster. */
  takeOver(runId: string, holder: string, now: Date, leaseUntil: Date): Promise<RunRecord | null>;
  /** Runs whose lease has run out, oldest first. Members of swarms are not among them: their leads see to them. */
  abandoned(now: Date, limit: number): Promise<string[]>;
  /** Extends the leases of a holder, all or those of `only`. Returns those of its runs that somebody has asked to stop. */
  renew(holder: string, leaseUntil: Date, only?: readonly string[]): Promise<string[]>;
  /** Marks a running run to be stopped by its holder. false when it is not running. */
  askToStop(owner: string, runId: string): Promise<boolean>;
  /** Ends a paused run: its pending calls become `cancelled`; every call without a result gets the one given, and all results of
   * the turn are appended to the session in order. false when it is not paused. */
  cancelPaused(
    owner: string,
    runId: string,
    result: (call: CallRecord) => ToolResultMessage,
    fault: Fault,
  ): Promise<boolean>;

  get(owner: string, runId: string): Promise<RunRecord | null>;
  /** Newest first. */
  list(
    owner: string,
    options: { sessionId?: string | undefined; limit: number; cursor?: string | undefined },
  ): Promise<RunPage>;
  /** In order of step and position. */
  calls(owner: string, runId: string): Promise<CallRecord[]>;
  /** All members of a run's swarm, also those of its members, oldest first. */
  members(owner: string, root: string): Promise<RunRecord[]>;
  /** Members that are left: paused, or running under a lease that has run out, while the run they hang from has ended. */
  orphans(now: Date, limit: number): Promise<{ owner: string; runId: string }[]>;
  /** Calls of the session that wait for a decision, expired ones marked so first. */
  pending(owner: string, sessionId: string, now: Date): Promise<CallRecord[]>;
  /** Calls of all sessions that wait for a decision and can still get one, those that expire first in front. */
  waiting(owner: string, now: Date, limit: number): Promise<CallRecord[]>;
  /** The calls that a code decides, whatever their state; one code decides all that a turn asked for. */
  byCode(owner: string, codeHash: string): Promise<CallRecord[]>;
  /** The newest record of each call id in the session. */
  callsById(owner: string, sessionId: string, callIds: string[]): Promise<CallRecord[]>;
  /**
   * Decides calls that are pending and not expired; all others keep what they have. Returns all of them as they are now,
   * and which of them this call has decided.
   */
  decide(
    owner: string,
    runId: string,
    callIds: string[],
    decision: "allowed" | "denied",
    now: Date,
  ): Promise<{ calls: CallRecord[]; decided: string[] }>;
  /** Parked runs with calls of theirs, or of their members, that were allowed or denied and not acted on yet, oldest first. */
  decided(limit: number): Promise<{ owner: string; runId: string }[]>;
  /** Pending calls beyond their time become `expired`. Returns the runs they belong to; for a member's the one it hangs from. */
  expire(now: Date, limit: number): Promise<{ owner: string; runId: string }[]>;
  /** Stored frames behind an event number, oldest first. */
  frames(owner: string, runId: string, after: number, limit: number): Promise<Frames[]>;
}
