/** What the agent and the doors need of storage. Every row has an owner; another owner's id is an id that is not there. */
import type { Agents } from "./agents.ts";
import type { Automation } from "./automation.ts";
import type { McpServers } from "./mcp.ts";
import type { MemoryRows } from "./memory-rows.ts";
import type { Message, Usage } from "./message.ts";
import type { BlobStore, ImageRows, Notes } from "./notes.ts";
import type { PolicyRule } from "./policy.ts";
import type { Runs } from "./run.ts";

export interface Session {
  id: string;
  title: string;
  createdAt: Date;
  updatedAt: Date;
  messageCount: number;
}

export interface StoredMessage {
  id: string;
  /** Position in the session, from 1, without gaps in what was ever appended. */
  seq: number;
  message: Message;
  createdAt: Date;
}

export interface SessionPage {
  sessions: Session[];
  /** Opaque; null at the end. */
  next: string | null;
}

export interface MessagePage {
  messages: StoredMessage[];
  next: string | null;
}

export interface Sessions {
  /**
   * `new` makes a session. An id (`ses_…`) has to exist, otherwise AppError `not_found`. Any other word is a label of
   * the caller's: its session is made when it is first used.
   */
  open(owner: string, ref: string): Promise<Session & { lastSeq: number }>;
  /** A session that lists leave out until {@link list} is told otherwise: the record of a run whose client keeps the history. */
  createUnlisted(owner: string): Promise<Session & { lastSeq: number }>;
  /** Shows an unlisted session in lists from here on. */
  publish(owner: string, sessionId: string): Promise<void>;
  /** Throws AppError `not_found`. */
  get(owner: string, sessionId: string): Promise<Session & { lastSeq: number }>;
  /** Newest activity first. `query` searches titles and message texts. */
  list(
    owner: string,
    options: { query?: string | undefined; limit: number; cursor?: string | undefined },
  ): Promise<SessionPage>;
  /** Throws AppError `not_found`. */
  rename(owner: string, sessionId: string, title: string): Promise<Session>;
  /** A new session with the messages up to and with `messageId` (default all). Throws AppError `not_found`. */
  fork(owner: string, sessionId: string, messageId: string | undefined): Promise<Session>;
  /** With messages, runs, calls, frames, grants. Throws AppError `not_found`. */
  delete(owner: string, sessionId: string): Promise<void>;
  /** Deletes a message and what cannot stand without it: a message with calls goes with their results, a result with its calls' message. Returns the ids. Throws AppError `not_found`. */
  deleteMessage(owner: string, messageId: string): Promise<string[]>;
  /** Oldest first, after a cursor. */
  messages(
    owner: string,
    sessionId: string,
    options: { limit: number; cursor?: string | undefined },
  ): Promise<MessagePage>;
  /** Messages before a position (default the end), newest first. */
  page(
    owner: string,
    sessionId: string,
    options: { before?: number; limit: number },
  ): Promise<StoredMessage[]>;
  /**
   * Appends in one conditional statement. Returns the new last position, or null when another turn has appended
   * since `expectedSeq`: nothing is written then.
   */
  append(owner: string, sessionId: string, expectedSeq: number, messages: Message[]): Promise<number | null>;
  /** What a person has allowed for the rest of the session. */
  grants(owner: string, sessionId: string): Promise<PolicyRule[]>;
  grant(owner: string, sessionId: string, rules: PolicyRule[]): Promise<void>;
  /** Workspace path where the session's next command starts; empty is the root, as long as no command has left it. */
  directory(owner: string, sessionId: string): Promise<string>;
  /** Nothing happens where there is no such session. */
  setDirectory(owner: string, sessionId: string, path: string): Promise<void>;
  /** The newest summary of a session's beginning: it stands in place of the messages up to and with `upTo`. */
  summary(owner: string, sessionId: string): Promise<Summary | null>;
  /**
   * The messages stay. false: something that the summary was made `from` has been deleted meanwhile, and nothing is
   * written. Throws AppError `not_found`.
   */
  summarise(owner: string, sessionId: string, summary: Summary, from?: SummarySource): Promise<boolean>;
}

export interface Summary {
  /** Position of the last message that it stands for. */
  upTo: number;
  text: string;
}

/** What a summary tells of: so many messages behind a position, and the summary up to there where there was one. */
export interface SummarySource {
  after: number;
  messages: number;
  summary: boolean;
}

/** Answers that were given under an `Idempotency-Key`. */
export interface IdempotencyKeys {
  /**
   * Takes a key for a request. `new`: the caller is the first and must `finish` or `release`. `busy`: the first is still
   * at it (its hold runs out by itself). `other`: the key was used with another request. `done`: the stored answer.
   */
  take(
    owner: string,
    key: string,
    fingerprint: string,
    now: Date,
    holdUntil: Date,
  ): Promise<
    { state: "new" } | { state: "busy" } | { state: "other" } | { state: "done"; answer: StoredAnswer }
  >;
  finish(owner: string, key: string, answer: StoredAnswer, expiresAt: Date): Promise<void>;
  release(owner: string, key: string): Promise<void>;
}

export interface StoredAnswer {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/**
 * Turns that were handed back to a client with state that the client's protocol cannot carry: seals, the results of
 * the agent's own tools in the same turn, earlier steps of the run. Kept under each of the client's call ids.
 */
export interface HandedBackTurn {
  /** Ids of the client's calls in the last assistant message. */
  callIds: string[];
  /** Tells equal ids of different conversations apart; see agent/handed-back.ts. */
  context: string;
  /** What stands in place of the client's copy: the run's messages up to and with the calling one, then server results. */
  messages: Message[];
}

export interface HandedBackTurns {
  keep(owner: string, turn: HandedBackTurn): Promise<void>;
  find(owner: string, callIds: string[]): Promise<HandedBackTurn[]>;
}

export interface UsageRow {
  owner: string;
  runId: string;
  door: string;
  provider: string;
  model: string;
  outcome: string;
  steps: number;
  usage: Usage;
  /** Milliseconds from request to end. */
  durationMs: number;
}

export interface UsageLog {
  /** Never waits and never throws: rows are written together, soon. */
  record(row: UsageRow): void;
  /** Writes what is waiting. */
  flush(): Promise<void>;
}

/** A row of the virtual workspace. */
export interface StoredFile {
  path: string;
  directory: boolean;
  size: number;
  /** Permission bits, as chmod has them. */
  mode: number;
  modifiedAt: Date;
}

/** Files without a machine. Paths are normalised, relative, `/`-separated; parents are rows too. */
export interface FileRows {
  stat(owner: string, path: string): Promise<StoredFile | null>;
  read(owner: string, path: string): Promise<Uint8Array | null>;
  /** Direct children of a directory. */
  list(owner: string, path: string): Promise<StoredFile[]>;
  /** Everything below a directory, path order, after `after`, at most `limit`. */
  below(owner: string, path: string, after: string | null, limit: number): Promise<StoredFile[]>;
  /** One atomic batch: removals (a directory takes what is in it along), then writes; missing parents are made. */
  apply(owner: string, changes: FileChanges): Promise<void>;
}

export interface FileChanges {
  remove: string[];
  write: { path: string; bytes: Uint8Array; mode?: number }[];
  makeDirectories: string[];
}

export interface Store {
  sessions: Sessions;
  runs: Runs;
  idempotency: IdempotencyKeys;
  handedBack: HandedBackTurns;
  usage: UsageLog;
  files: FileRows;
  mcp: McpServers;
  automation: Automation;
  agents: Agents;
  memories: MemoryRows;
  notes: Notes;
  images: ImageRows;
  /** The bytes of images, where there is no bucket for them. */
  imageChunks: BlobStore;
  /** A round trip to the database. Throws when it does not answer. */
  ping(): Promise<void>;
  close(): Promise<void>;
}
