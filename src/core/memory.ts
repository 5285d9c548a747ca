/** What the agent keeps of its users: memories with their receipts, and what is needed to keep and to find them. */
import type { TextPart } from "./message.ts";

/** Who wrote a memory down. */
export const MEMORY_ORIGINS = ["user", "agent", "extraction", "import"] as const;
export type MemoryOrigin = (typeof MEMORY_ORIGINS)[number];

/** Where a memory comes from. null: not known, or gone. */
export interface Receipt {
  sessionId: string | null;
  messageId: string | null;
  /** The words that it rests on. */
  quote: string | null;
}

export interface Memory extends Receipt {
  id: string;
  document: string;
  category: string;
  /** 0 to 1. */
  importance: number;
  origin: MemoryOrigin;
  /** It was written down while the model had content from outside before it. */
  outside: boolean;
  /** How often the same was said, and when last. */
  seenCount: number;
  lastSeenAt: Date;
  createdAt: Date;
  updatedAt: Date;
  /** The memory that took its place, and since when it is past. null while it is current. */
  supersededBy: string | null;
  validTo: Date | null;
}

export interface MemoryDraft {
  document: string;
  category?: string | undefined;
  importance?: number | undefined;
  origin: MemoryOrigin;
  outside?: boolean | undefined;
  receipt?: Receipt | undefined;
  /** Id of the memory that this one corrects. null: none, whatever it looks like. Absent: found by what it says. */
  replaces?: string | null | undefined;
  /** For what is brought from elsewhere. */
  at?: { createdAt: Date; updatedAt: Date; lastSeenAt: Date; seenCount: number } | undefined;
  /** What it had taken the place of, where it is brought from elsewhere and is new here. */
  past?: readonly PastVersion[] | undefined;
}

export interface PastVersion {
  document: string;
  category: string;
  importance: number;
  receipt: Receipt;
  createdAt: Date;
  validTo: Date;
}

export interface Remembered {
  /** `strengthened`: it was known. `superseded`: it took the place of others. `past`: newer knowledge stands against it. */
  outcome: "created" | "strengthened" | "superseded" | "past";
  memory: Memory;
  /** What it took the place of. */
  superseded: Memory[];
}

export interface MemoryPatch {
  document?: string | undefined;
  category?: string | undefined;
  importance?: number | undefined;
}

export interface MemoryPage {
  memories: Memory[];
  /** Opaque; null at the end. */
  next: string | null;
}

export interface FoundMemory {
  memory: Memory;
  /** Comparable within one search only. */
  score: number;
  /** How much of what was asked for the memory's words have, rare words counting more: 0 to 1. */
  coverage: number;
  /** How well its words match beside those of the best: 0 to 1. */
  share: number;
  /** Several of its words were asked for, or one that hardly any other memory has. */
  telling: boolean;
  /** Cosine similarity, where vectors were searched and this is among the nearest. */
  similarity: number | null;
}

export interface MemorySearch {
  found: FoundMemory[];
  /** Why the vectors were not searched although they should have been. */
  degraded: string | null;
}

export interface EmbeddingState {
  model: string;
  /** Current memories of the owner that have a vector of this model, of so many. */
  done: number;
  total: number;
  /** What the model's last answer was, where it was a failure. */
  error: string | null;
}

/** The vault. Another owner's id is one that is not there: AppError `not_found`. */
export interface MemoryVault {
  /** Throws AppError `not_found` for a `replaces` that is not a current memory. */
  remember(owner: string, draft: MemoryDraft): Promise<Remembered>;
  /** As `remember`, many at once; drafts of one batch see each other. */
  rememberAll(owner: string, drafts: readonly MemoryDraft[]): Promise<Remembered[]>;
  get(owner: string, id: string): Promise<Memory>;
  list(
    owner: string,
    options: { category?: string | undefined; limit: number; cursor?: string | undefined },
  ): Promise<MemoryPage>;
  search(
    owner: string,
    query: string,
    options: {
      category?: string | undefined;
      limit: number;
      /** The last word may be the beginning of one. */
      prefix?: boolean | undefined;
      signal?: AbortSignal | undefined;
    },
  ): Promise<MemorySearch>;
  /** What was said before an edit stays in the history. Throws AppError `conflict` when another memory says the same. */
  edit(owner: string, id: string, patch: MemoryPatch): Promise<Memory>;
  /** All versions that a memory belongs to, newest first. */
  history(
    owner: string,
    id: string,
    options: { limit: number; cursor?: string | undefined },
  ): Promise<MemoryPage>;
  /** With what it had superseded. */
  delete(owner: string, id: string): Promise<Memory>;
  /** Returns how many current memories are gone. */
  clear(owner: string): Promise<number>;
  /** What was derived from a session. Returns how many current memories are gone. */
  deleteOfSession(owner: string, sessionId: string): Promise<number>;
  /** Current memories, oldest first, each with its past versions, newest first; a page at a time. */
  dump(owner: string): AsyncGenerator<{ memory: Memory; past: Memory[] }[], void, void>;
  /** null where no embedding model is configured. */
  embedding(owner: string): Promise<EmbeddingState | null>;
  /** What a session's or a run's user said that a memory rests on. */
  receipt(owner: string, run: { runId: string; quote?: string | undefined }): Promise<Receipt>;
}

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

export interface Embedder {
  /** Provider and model: vectors of different ones cannot be compared. */
  readonly model: string;
  /** One vector per text, all of one length. Throws AppError. */
  embed(
    texts: readonly string[],
    purpose: "document" | "query",
    signal: AbortSignal,
  ): Promise<Float32Array[]>;
}

/** What of the vault stands in a run's prompt. */
export interface RecallWish {
  owner: string;
  /** The run's session; undefined for a stateless run. */
  sessionId: string | undefined;
  /** Nobody but the user has said anything in the conversation so far. */
  isNew: boolean;
  /** What the conversation began with, in the user's words. */
  opening(): string;
}

/** null where there is nothing, at once for owners without memories. Never throws and never rejects. */
export type Recall = (wish: RecallWish) => TextPart | null | Promise<TextPart | null>;
