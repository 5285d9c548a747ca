/** What the agent and the doors need of storage. Every row has an owner; another owner's id is an id that is not there. */
import type { Message, Usage } from "./message.ts";

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

export interface Sessions {
  /**
   * `new` makes a session. An id (`ses_…`) has to exist, otherwise AppError `not_found`. Any other word is a label of
   * the caller's: its session is made when it is first used.
   */
  open(owner: string, ref: string): Promise<Session & { lastSeq: number }>;
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
  handedBack: HandedBackTurns;
  usage: UsageLog;
  files: FileRows;
  /** A round trip to the database. Throws when it does not answer. */
  ping(): Promise<void>;
  close(): Promise<void>;
}
