/** What the vault keeps its memories with: their rows, vectors, what was recalled, and what is still to be extracted. */
import type { Memory, MemoryPage, Receipt } from "./memory.ts";

/** A current memory as it is compared with others. */
export interface Standing {
  row: number;
  memory: Memory;
  slot: string;
  value: string;
}

/** A memory as it is stored: with what it is about, and the words that it is found by. */
export interface MemoryRow {
  memory: Memory;
  /** What it is about: one current memory each. */
  slot: string;
  /** What it says about that. */
  value: string;
  /** Words of the full-text index, with blanks between them. */
  terms: string;
}

/** One change of many that are made together or not at all. */
export type MemoryChange =
  | { type: "insert"; row: MemoryRow }
  | { type: "strengthen"; id: string; importance: number; at: Date; receipt: Receipt }
  | { type: "supersede"; id: string; by: string; at: Date }
  /** `past` keeps what was said before. */
  | { type: "edit"; row: MemoryRow; past: MemoryRow | null };

export interface TextMatch {
  memory: Memory;
  /** Greater is better. */
  rank: number;
}

/** Storage of memories. Rows of other owners are not there. */
export interface MemoryRows {
  /** Whether an owner has any current memory. */
  any(owner: string): Promise<boolean>;
  /** false: somebody else has changed one of the slots meanwhile, and nothing is written. */
  apply(owner: string, changes: readonly MemoryChange[]): Promise<boolean>;
  get(owner: string, id: string): Promise<Standing | null>;
  /** Current memories about these slots. */
  standing(owner: string, slots: readonly string[]): Promise<Standing[]>;
  list(
    owner: string,
    options: { category?: string | undefined; limit: number; cursor?: string | undefined },
  ): Promise<MemoryPage>;
  /** By importance, then by when they were last said. */
  important(owner: string, least: number, limit: number): Promise<Memory[]>;
  history(
    owner: string,
    id: string,
    options: { limit: number; cursor?: string | undefined },
  ): Promise<MemoryPage>;
  /** false when there is none. A past version leaves the others; a current memory takes its history along. */
  delete(owner: string, id: string): Promise<boolean>;
  clear(owner: string): Promise<number>;
  deleteOfSession(owner: string, sessionId: string): Promise<number>;
  /** Current memories behind a position, oldest first, each with its past versions. */
  dump(
    owner: string,
    after: number,
    limit: number,
  ): Promise<{ entries: { memory: Memory; past: Memory[] }[]; last: number | null }>;
  /** In how many of the owner's memories each term is; counting stops at a bound. */
  counts(owner: string, terms: readonly string[]): Promise<number[]>;
  /** Best matches of any of the terms; the last one also as the beginning of a word when `prefix` says so. */
  matching(
    owner: string,
    terms: readonly string[],
    options: { category?: string | undefined; prefix?: string | undefined; limit: number },
  ): Promise<TextMatch[]>;
  /** Newest memories that contain a text which has no words in it. */
  containing(
    owner: string,
    text: string,
    options: { category?: string | undefined; limit: number },
  ): Promise<Memory[]>;
  /** What the user of a session said first. */
  opening(owner: string, sessionId: string): Promise<string>;
  /** What the user of a run's session said last, newest first. null: there is no such run. */
  said(
    owner: string,
    runId: string,
    limit: number,
  ): Promise<{ sessionId: string; messages: SaidMessage[] } | null>;

  vectors: MemoryVectors;
  recalls: StoredRecalls;
  extractions: ExtractionQueue;
}

export interface SaidMessage {
  id: string;
  seq: number;
  text: string;
}

export interface MemoryVectors {
  /** Claims memories of anybody that have no vector of this model. */
  claim(model: string, now: Date, until: Date, limit: number): Promise<{ row: number; document: string }[]>;
  /** Rows whose text has changed meanwhile are left out. */
  store(
    model: string,
    vectors: readonly { row: number; document: string; vector: Float32Array }[],
  ): Promise<void>;
  nearest(
    owner: string,
    model: string,
    vector: Float32Array,
    options: { category?: string | undefined; limit: number },
  ): Promise<{ memory: Memory; similarity: number }[]>;
  progress(owner: string, model: string): Promise<{ done: number; total: number }>;
}

/** What stood in the prompt of a session, for its next turns. */
export interface StoredRecall {
  text: string;
  /** Of the memories in it. */
  ids: string[];
}

export interface StoredRecalls {
  /** `fresh`: each memory in it still stands as it did. */
  get(owner: string, sessionId: string): Promise<(StoredRecall & { fresh: boolean }) | null>;
  set(owner: string, sessionId: string, recall: StoredRecall, at: Date): Promise<void>;
  /** Whether each of these memories is current and unchanged since. */
  fresh(owner: string, ids: readonly string[], since: Date): Promise<boolean>;
}

/** A session that has something to extract. */
export interface DueExtraction {
  owner: string;
  sessionId: string;
  /** Position of the last message that was looked at. */
  upTo: number;
  provider: string;
  model: string;
  /** null: the operator's key is used. */
  sealedKey: string | null;
  callersKey: boolean;
  attempts: number;
}

export interface ExtractionQueue {
  /** A turn has begun: its session is due once it has been idle for long enough. */
  note(
    owner: string,
    sessionId: string,
    model: { provider: string; model: string; sealedKey: string | null; callersKey: boolean },
    dueAt: Date,
  ): Promise<void>;
  /** One that is due and nobody is at. It belongs to the caller until then. */
  claim(holder: string, now: Date, until: Date): Promise<DueExtraction | null>;
  /** A run is under way, or a turn has been since: it is due later. */
  postpone(sessionId: string, holder: string, dueAt: Date, attempts: number): Promise<void>;
  /** Done up to there, with nothing of the key left. */
  finish(sessionId: string, holder: string, upTo: number): Promise<void>;
  /** When the session's last turn was, whether one is under way, and what its user has said behind a position. null: it is gone. */
  said(
    owner: string,
    sessionId: string,
    after: number,
    limit: number,
  ): Promise<{ updatedAt: Date; busy: boolean; lastSeq: number; messages: SaidMessage[] } | null>;
}
