/** Notes and the images in them, as the agent, the routes and the store speak of them. */
import * as z from "zod";

export interface Note {
  id: string;
  title: string;
  /** Markdown, as it was written. */
  content: string;
  category: string;
  /** Counts its changes, from 1. */
  version: number;
  createdAt: Date;
  updatedAt: Date;
}

export interface NoteDraft {
  title: string;
  content: string;
  category: string;
}

/** Where the words of a search stand in a note. */
export interface FoundNote extends Note {
  snippet?: string | undefined;
}

export interface NotePage {
  notes: FoundNote[];
  /** Opaque; null at the end. */
  next: string | null;
}

export interface NoteQuery {
  /** Words that all have to be there, the last one perhaps unfinished. */
  query?: string | undefined;
  /** Any of the words will do. */
  anyWord?: boolean | undefined;
  category?: string | undefined;
  limit: number;
  cursor?: string | undefined;
}

export interface Notes {
  create(owner: string, draft: NoteDraft): Promise<Note>;
  /** Throws AppError `not_found`. */
  get(owner: string, id: string): Promise<Note>;
  /**
   * Newest change first; for a `query` the best match first. A page ends early where the contents would be too much for
   * one answer.
   */
  list(owner: string, query: NoteQuery): Promise<NotePage>;
  /**
   * What is absent in `change` stays. With `ifVersion` only a note that has it is changed: AppError `conflict` with status
   * 412 otherwise. Throws AppError `not_found`.
   */
  update(owner: string, id: string, change: Partial<NoteDraft>, ifVersion?: number): Promise<Note>;
  /** As {@link update} is with `ifVersion`. Its images are free for the sweep, unless another note shows them. */
  delete(owner: string, id: string, ifVersion?: number): Promise<void>;
  /** By name, with how many notes each has. */
  categories(owner: string): Promise<{ category: string; notes: number }[]>;
}

/** The formats of E3. */
export const IMAGE_TYPES = ["image/png", "image/jpeg", "image/webp", "image/gif"] as const;
export type ImageType = (typeof IMAGE_TYPES)[number];

export interface ImageRecord {
  id: string;
  owner: string;
  type: ImageType;
  /** Bytes. */
  size: number;
  width: number;
  height: number;
  /** Of the bytes, in hexadecimal digits. */
  sha256: string;
  /** Which blob store has the bytes. */
  store: string;
  createdAt: Date;
}

/** The rows of images. Their bytes are with a {@link BlobStore}. */
export interface ImageRows {
  /** A row that nobody sees until {@link publish}. */
  begin(owner: string, image: Omit<ImageRecord, "id" | "owner" | "createdAt">): Promise<string>;
  publish(owner: string, id: string): Promise<void>;
  get(owner: string, id: string): Promise<ImageRecord | null>;
  /** Whoever it belongs to: for the holder of a link that we have signed. */
  linked(id: string): Promise<ImageRecord | null>;
  /** Those of the owner among `ids`, in that order. */
  among(owner: string, ids: readonly string[]): Promise<ImageRecord[]>;
  /**
   * Takes up to `limit` images that no note has shown since `before` out of everybody's sight, in one conditional
   * statement, and returns them, with those that were taken before and are still there.
   */
  condemn(before: Date, limit: number): Promise<Pick<ImageRecord, "id" | "owner" | "store">[]>;
  /** Removes condemned rows. */
  remove(ids: readonly string[]): Promise<void>;
}

/** Bytes under a name, written once. Throws AppError `unavailable` or `storage_full` where the store is at fault. */
export interface BlobStore {
  /** What rows of images say of it. */
  readonly name: string;
  put(owner: string, id: string, bytes: Uint8Array, type: string): Promise<void>;
  /** The bytes from `start` to before `end`, piece by piece, as the reader asks. They are there. */
  read(owner: string, id: string, range: { start: number; end: number }): ReadableStream<Uint8Array>;
  /** What is not there is no error. */
  remove(owner: string, id: string): Promise<void>;
}

export interface Images {
  /** Throws AppError 415, 413 or 400 for what is no image that may be kept: nothing is stored then. */
  add(owner: string, bytes: Uint8Array<ArrayBuffer>): Promise<ImageRecord>;
  /** null: it is not there, or another's. */
  find(owner: string, id: string): Promise<ImageRecord | null>;
  /** For the holder of a link, whoever it belongs to. */
  findLinked(id: string): Promise<ImageRecord | null>;
  /** The first of these that may be sent to a model, in their order, and how many are left out. */
  seen(owner: string, ids: readonly string[]): Promise<{ images: ImageRecord[]; left: number }>;
  /** Its bytes, piece by piece, as the reader asks. */
  read(image: ImageRecord, range?: { start: number; end: number }): ReadableStream<Uint8Array>;
  /** Removes some of what no note has shown for a day. Any number of processes may do so at once. */
  sweep(): Promise<void>;
}

/** Characters. */
export const TITLE_LIMIT = 300;
export const CATEGORY_LIMIT = 100;
/** Bytes of UTF-8. */
export const CONTENT_LIMIT = 1024 * 1024;
export const DEFAULT_CATEGORY = "General";

/** A rule in the words that complete "has to …". */
const rule = (wants: string) => ({ error: `has to ${wants}`, params: { wants } });
/** NUL and lone surrogates are no text that a database gives back as it was. */
const storable = (value: string) => !value.includes("\0") && value.isWellFormed();
const STORABLE = rule("be without NUL and without halves of surrogate pairs, which cannot be stored");

export const noteTitle = z
  .string()
  .max(TITLE_LIMIT)
  .refine((value) => value.trim() !== "", rule("have a visible character"))
  .refine(storable, STORABLE);
export const noteContent = z
  .string()
  .refine(storable, STORABLE)
  .refine(fits, rule(`have at most ${CONTENT_LIMIT} bytes of UTF-8; make two notes of it`));
export const noteCategory = z.string().trim().min(1).max(CATEGORY_LIMIT).refine(storable, STORABLE);

/** A UTF-16 unit has at most three bytes: most texts need no counting. */
function fits(text: string): boolean {
  if (text.length * 3 <= CONTENT_LIMIT) return true;
  return text.length <= CONTENT_LIMIT && new TextEncoder().encode(text).length <= CONTENT_LIMIT;
}

const IMAGE_ID = /\bimg_[2-7a-z]{32}\b/g;
/** Images that one note may show; more are only text. */
const IMAGES_LIMIT = 1_000;

/** Ids of images that a Markdown text names, in whatever address, each once, in their order. */
export function imagesNamed(markdown: string): string[] {
  const ids = new Set<string>();
  if (!markdown.includes("img_")) return [];
  for (const [id] of markdown.matchAll(IMAGE_ID)) {
    ids.add(id);
    if (ids.size === IMAGES_LIMIT) break;
  }
  return [...ids];
}
