/** What the agent keeps of its users: memories with their receipts, and the vault that they are in. */
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
