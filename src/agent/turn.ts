/** What turns are made of and handed to: the services they use, what is asked of them, what they give back. */
import type { NamedAgent } from "../core/agents.ts";
import type { Unattended } from "../core/jobs.ts";
import type { Recall } from "../core/memory.ts";
import type { ModelAdapter, ModelRegistry, ModelRequest } from "../core/model.ts";
import type { Platform } from "../core/platform.ts";
import type { PolicyFile, PolicyRule } from "../core/policy.ts";
import type { Frames } from "../core/run.ts";
import type { Store } from "../core/store.ts";
import type { MemberSpec, SwarmSpec } from "../core/swarm.ts";
import type { Toolbox } from "../core/tool.ts";
import type { Swarm } from "./delegate.ts";
import type { FrameEncoder, Passed } from "./journal.ts";
import type { KeyVault } from "./key-vault.ts";
import type { RunLimits } from "./limits.ts";
import type { RunInput } from "./run-input.ts";
import type { ToolSelection } from "./select-tools.ts";
import type { SwarmShare } from "./swarm-share.ts";
import type { Target } from "./target.ts";
import type { ModelWindow } from "./windows.ts";

export interface AgentServices {
  platform: Platform;
  store: Store;
  models: ModelRegistry;
  tools: Toolbox;
  approval: PolicyFile;
  limits: RunLimits;
  windows: readonly ModelWindow[];
  /** What is remembered of the owner, for the prompt of a run that has tools of the agent's own. */
  recall?: Recall | undefined;
  /** Told of every turn that begins in a session of an agent's. Never throws; nobody waits for it. */
  noteTurn?(turn: SessionTurn): void;
  /** Absent where the server has no secret: then a run cannot be taken over, nor wait for an approval, with a caller's key. */
  vault: KeyVault | undefined;
  /** This process, among all that share the store. */
  holder: string;
  /** How long a run is another's only after its holder has gone silent. Milliseconds. */
  leaseMs: number;
  /** How long a turn waits for the one before it in its session. Milliseconds. */
  patienceMs: number;
  /** A run was stopped: what it has left behind ends too. */
  onStop?(owner: string, runId: string): void;
  /** Absent where no run may delegate. */
  swarm?: Swarm | undefined;
  /** The native door's stream, which every stored run has. */
  encoder(run: StreamStart): FrameEncoder;
}

/** A turn in a session, and whose model it has. */
export interface SessionTurn {
  owner: string;
  sessionId: string;
  provider: string;
  model: string;
  key: string;
  callersKey: boolean;
}

/** Where a run's stream begins, or goes on. */
export interface StreamStart {
  runId: string;
  sessionId: string;
  /** Number of the last event so far. */
  after: number;
  /** What readers have had, where the run goes on. */
  earlier: readonly Frames[];
  /** The run goes on in mid-stream, rather than behind a pause. */
  interrupted: boolean;
  /** The assistant's last message so far. */
  messageId: string | null;
  /** Names that were asked for and are not there. */
  unavailableTools: readonly string[];
}

export interface Ask {
  runId: string;
  owner: string;
  /** For the usage row: `chat`, `chat-completions`, `messages`. */
  door: string;
  adapter: ModelAdapter;
  /** The key in use, and whether the caller brought it: one of the operator's is not stored. */
  key: string;
  callersKey: boolean;
  target: Target;
  /** Absent for the default agent. */
  agent?: NamedAgent | undefined;
  /** In place of the agent's own rules. */
  rules?: PolicyRule[] | undefined;
  /** It may delegate, unless policy denies it. `allowed` follows from the selection where it is absent. */
  swarm?: (Omit<SwarmSpec, "allowed"> & Partial<Pick<SwarmSpec, "allowed">>) | undefined;
  /** It was delegated. */
  member?: MemberSpec | undefined;
  /** Of the swarm that it belongs to. */
  share?: SwarmShare | undefined;
  /** As the door decoded it. `model` is replaced by the target's. */
  request: ModelRequest;
  selection: ToolSelection;
  /** A session's reference; undefined for a stateless run. */
  session: string | undefined;
  /** See Decoded.carriesSeals. */
  carriesSeals: boolean;
  asking: RunInput["asking"];
  maxSteps?: number | undefined;
  /** Nobody watches it: a job's. `asking` says the same. */
  unattended?: Unattended | undefined;
  /** Aborted when nobody waits for the turn to begin any more; default the run's own signal. */
  client?: AbortSignal | undefined;
}

/** A run under way. Nothing is sent upstream before the events are read. */
export interface Turn {
  runId: string;
  sessionId: string | undefined;
  /**
   * Journalled: what comes out is stored as far as it has to be. Ends by itself when the signal is aborted, and has to be
   * read to its end: a stored run would be left without one.
   */
  events: AsyncGenerator<Passed, void, void>;
  /** Number of the first event that it may give its readers. */
  firstSeq: number;
  /** Number of the last one that is stored. */
  storedSeq(): number;
}

/** Told of a turn's life by whoever reads its events. */
export interface TurnWatch {
  /** It has a row now, and a lease that has to be kept. */
  onRow?(): void;
  /** Its events are over. `unstored`: why its end could not be stored, where it could not. */
  onEnd?(unstored: unknown): void;
}
