/** The tables of what the agent knows: memories and what hangs from them, notes and images. See schema.ts. */
import { sql } from "drizzle-orm";
import {
  blob,
  index,
  integer,
  primaryKey,
  real,
  sqliteTable,
  text,
  uniqueIndex,
} from "drizzle-orm/sqlite-core";

export const memories = sqliteTable(
  "memories",
  {
    /** Names the memory's row in the full-text index. */
    row: integer("row").primaryKey(),
    id: text("id").notNull().unique(),
    owner: text("owner").notNull(),
    document: text("document").notNull(),
    /** What it is about, and what it says about that; see knowledge/memory-fact.ts. */
    slot: text("slot").notNull(),
    value: text("value").notNull(),
    category: text("category").notNull(),
    /** 0 to 1. */
    importance: real("importance").notNull(),
    origin: text("origin").notNull(),
    /** 0 or 1. */
    outside: integer("outside").notNull(),
    /** Without a reference: sessions go, and what was learnt in them may stay. A trigger sets it to null. */
    sourceSessionId: text("source_session_id"),
    sourceMessageId: text("source_message_id"),
    quote: text("quote"),
    seenCount: integer("seen_count").notNull(),
    lastSeenAt: integer("last_seen_at").notNull(),
    createdAt: integer("created_at").notNull(),
    /** Of the text, the category or the importance by somebody's hand. */
    updatedAt: integer("updated_at").notNull(),
    /** null while it is current. */
    validTo: integer("valid_to"),
    supersededBy: text("superseded_by"),
    /** The model of its vector; empty without one. */
    embedded: text("embedded").notNull().default(""),
    /** Until then somebody is at its vector. */
    embeddingUntil: integer("embedding_until").notNull().default(0),
  },
  (table) => [
    uniqueIndex("memories_slot").on(table.owner, table.slot).where(sql`valid_to IS NULL`),
    index("memories_recent").on(table.owner, table.createdAt, table.id).where(sql`valid_to IS NULL`),
    index("memories_category")
      .on(table.owner, table.category, table.createdAt, table.id)
      .where(sql`valid_to IS NULL`),
    index("memories_important")
      .on(table.owner, table.importance, table.lastSeenAt)
      .where(sql`valid_to IS NULL`),
    index("memories_superseded").on(table.supersededBy).where(sql`superseded_by IS NOT NULL`),
    index("memories_session").on(table.sourceSessionId).where(sql`source_session_id IS NOT NULL`),
    index("memories_owner").on(table.owner, table.row),
    index("memories_embedded").on(table.embedded, table.embeddingUntil).where(sql`valid_to IS NULL`),
    index("memories_progress").on(table.owner, table.embedded).where(sql`valid_to IS NULL`),
  ],
);

export const memoryVectors = sqliteTable(
  "memory_vectors",
  {
    memoryRow: integer("memory_row")
      .primaryKey()
      .references(() => memories.row, { onDelete: "cascade" }),
    owner: text("owner").notNull(),
    model: text("model").notNull(),
    /** Numbers of four bytes, little-endian, as `vector32` makes them. */
    vector: blob("vector", { mode: "buffer" }).notNull(),
  },
  (table) => [index("memory_vectors_owner").on(table.owner, table.model, table.memoryRow)],
);

/** What a session's prompt says of the memories, so that it says the same in every turn. */
export const memoryRecalls = sqliteTable("memory_recalls", {
  /** Without a reference: it is written before the session is. A trigger removes it. */
  sessionId: text("session_id").primaryKey(),
  owner: text("owner").notNull(),
  content: text("content").notNull(),
  /** JSON array. */
  memoryIds: text("memory_ids").notNull(),
  madeAt: integer("made_at").notNull(),
});

/** Sessions whose users have said something that nobody has looked through for what is worth keeping. */
export const memoryExtractions = sqliteTable(
  "memory_extractions",
  {
    sessionId: text("session_id").primaryKey(),
    owner: text("owner").notNull(),
    upTo: integer("up_to").notNull(),
    provider: text("provider").notNull(),
    model: text("model").notNull(),
    /** The caller's key, encrypted, only while it is due. */
    sealedKey: text("sealed_key"),
    /** 0 or 1. */
    callersKey: integer("callers_key").notNull(),
    attempts: integer("attempts").notNull(),
    /** null when there is nothing to do. */
    dueAt: integer("due_at"),
    holder: text("holder"),
  },
  (table) => [index("memory_extractions_due").on(table.dueAt).where(sql`due_at IS NOT NULL`)],
);

export const notes = sqliteTable(
  "notes",
  {
    /** Names the note's row in the full-text index, which triggers keep. */
    row: integer("row").primaryKey(),
    id: text("id").notNull().unique(),
    owner: text("owner").notNull(),
    title: text("title").notNull(),
    category: text("category").notNull(),
    /** Counts the changes, from 1. */
    version: integer("version").notNull(),
    createdAt: integer("created_at").notNull(),
    updatedAt: integer("updated_at").notNull(),
    /** Bytes of the content. */
    size: integer("size").notNull(),
    /** The last column: what stands before it is read without it. */
    content: text("content").notNull(),
  },
  (table) => [
    index("notes_recent").on(table.owner, table.updatedAt, table.id),
    index("notes_category").on(table.owner, table.category, table.updatedAt, table.id),
  ],
);

export const images = sqliteTable(
  "images",
  {
    id: text("id").primaryKey(),
    owner: text("owner").notNull(),
    /** `pending` until the bytes are stored, then `ready`; `condemned` when they are about to go. */
    state: text("state").notNull(),
    type: text("type").notNull(),
    size: integer("size").notNull(),
    width: integer("width").notNull(),
    height: integer("height").notNull(),
    sha256: text("sha256").notNull(),
    /** Which blob store has the bytes. */
    store: text("store").notNull(),
    createdAt: integer("created_at").notNull(),
    /** null while a note shows it. */
    unusedSince: integer("unused_since"),
  },
  (table) => [index("images_unused").on(table.unusedSince).where(sql`unused_since IS NOT NULL`)],
);

/** The bytes of images, numbered from 0. */
export const imageChunks = sqliteTable(
  "image_chunks",
  {
    owner: text("owner").notNull(),
    imageId: text("image_id")
      .notNull()
      .references(() => images.id, { onDelete: "cascade" }),
    chunk: integer("chunk").notNull(),
    bytes: blob("bytes", { mode: "buffer" }).notNull(),
  },
  (table) => [primaryKey({ columns: [table.imageId, table.chunk] })],
);

/** Which notes show which images. */
export const noteImages = sqliteTable(
  "note_images",
  {
    owner: text("owner").notNull(),
    noteId: text("note_id")
      .notNull()
      .references(() => notes.id, { onDelete: "cascade" }),
    imageId: text("image_id").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.noteId, table.imageId] }),
    index("note_images_image").on(table.imageId),
  ],
);
