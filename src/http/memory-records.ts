/** Memories as `/api/memory` and its JSON Lines show and take them. */
import * as z from "zod";
import { MEMORY_ORIGINS, type Memory, type MemoryDraft, type PastVersion } from "../core/memory.ts";
import { CATEGORY_LIMIT, DOCUMENT_LIMIT, QUOTE_LIMIT } from "../knowledge/memory-text.ts";

/** Characters. */
const ID_LIMIT = 128;
const PAST_LIMIT = 1_000;

const documentText = z.string().trim().min(1).max(DOCUMENT_LIMIT);
const categoryText = z.string().trim().min(1).max(CATEGORY_LIMIT);
const importance = z.number().min(0).max(1);
const time = z.iso.datetime({ offset: true });

export const memoryMetadata = z
  .object({
    category: z.string(),
    importance: z.number().min(0).max(1),
    source_session_id: z.string().nullable(),
    source_message_id: z.string().nullable(),
    quote: z.string().nullable().describe("The words that it rests on."),
    origin: z.enum(MEMORY_ORIGINS).describe("Who wrote it down."),
    outside: z.boolean().describe("It was written down while the agent had content from outside before it."),
    seen_count: z.int().describe("How often the same was said."),
    last_seen_at: z.string(),
    valid_to: z.string().nullable().describe("Since when it is past; null while it is current."),
    superseded_by: z.string().nullable().describe("The memory that took its place."),
  })
  .meta({ id: "MemoryMetadata" });

export const memoryView = z
  .object({
    id: z.string(),
    document: z.string(),
    metadata: memoryMetadata,
    created_at: z.string(),
    updated_at: z.string(),
  })
  .meta({ id: "Memory" });

export const memoryList = z
  .object({
    memories: z.array(memoryView),
    next_cursor: z.string().nullable(),
    degraded: z
      .string()
      .optional()
      .describe("In searches: why the embedding model's vectors were not searched although they should be."),
    embedding: z
      .object({
        model: z.string(),
        done: z.int().describe("Memories that have a vector of this model."),
        total: z.int(),
        error: z.string().nullable().describe("What the model's last answer was, where it was a failure."),
      })
      .optional()
      .describe("On the first page, where an embedding model is configured."),
  })
  .meta({ id: "MemoryList" });

export const memoryHistory = z
  .object({ memories: z.array(memoryView), next_cursor: z.string().nullable() })
  .meta({ id: "MemoryHistory" });

export const memoryRequest = z
  .looseObject({
    document: documentText.describe("One fact, as a sentence that is understood on its own."),
    metadata: z
      .looseObject({
        category: categoryText.nullish().describe("Default `general`."),
        importance: importance.nullish().describe("0 to 1, default 0.5. From 0.8 on it is in every prompt."),
        quote: z.string().max(QUOTE_LIMIT).nullish(),
        source_session_id: z.string().max(ID_LIMIT).nullish(),
        source_message_id: z.string().max(ID_LIMIT).nullish(),
      })
      .nullish(),
    replaces: z
      .string()
      .max(ID_LIMIT)
      .nullable()
      .optional()
      .describe(
        "The memory that this one corrects; null: none, whatever it looks like. Absent: found by what it says.",
      ),
  })
  .meta({ id: "MemoryRequest" });

export const memoryChange = z
  .looseObject({
    document: documentText.optional(),
    metadata: z
      .looseObject({ category: categoryText.optional(), importance: importance.optional() })
      .optional(),
  })
  .refine(({ document, metadata }) => document ?? metadata?.category ?? metadata?.importance !== undefined, {
    params: { wants: "have a document, a metadata.category or a metadata.importance to change" },
  })
  .meta({ id: "MemoryChange", description: "What is absent stays as it is." });

export const memorySaved = z
  .object({
    status: z
      .enum(["created", "superseded", "strengthened", "updated"])
      .describe("`strengthened`: it was known. `superseded`: it took the place of others."),
    memory_id: z.string(),
    memory: memoryView,
    superseded: z.array(memoryView).optional().describe("What it took the place of."),
  })
  .meta({ id: "MemorySaved" });

export const memoryImported = z
  .object({
    status: z.literal("imported"),
    created: z.int(),
    superseded: z.int().describe("New ones that took the place of others."),
    unchanged: z.int().describe("Known already."),
    past: z.int().describe("Older than what is known of the same: they went into its history."),
    failed: z.int(),
    errors: z.array(z.object({ line: z.int(), message: z.string() })).describe("The first of them."),
  })
  .meta({ id: "MemoryImported" });

/** A line of an import: what an export has, of which only the text is needed. */
export const memoryLine = z.object({
  document: documentText,
  metadata: z
    .object({
      category: categoryText.nullish(),
      importance: importance.nullish(),
      source_session_id: z.string().max(ID_LIMIT).nullish(),
      source_message_id: z.string().max(ID_LIMIT).nullish(),
      quote: z.string().max(QUOTE_LIMIT).nullish(),
      origin: z.enum(MEMORY_ORIGINS).nullish(),
      outside: z.boolean().nullish(),
      seen_count: z.int().min(1).max(1_000_000).nullish(),
      last_seen_at: time.nullish(),
    })
    .nullish(),
  created_at: time.nullish(),
  updated_at: time.nullish(),
  history: z
    .array(
      z.object({
        document: documentText,
        metadata: z.object({
          category: categoryText.nullish(),
          importance: importance.nullish(),
          source_session_id: z.string().max(ID_LIMIT).nullish(),
          source_message_id: z.string().max(ID_LIMIT).nullish(),
          quote: z.string().max(QUOTE_LIMIT).nullish(),
          valid_to: time,
        }),
        created_at: time,
      }),
    )
    .max(PAST_LIMIT)
    .nullish(),
});

export function encodeMemory(memory: Memory): z.infer<typeof memoryView> {
  return {
    id: memory.id,
    document: memory.document,
    metadata: {
      category: memory.category,
      importance: memory.importance,
      source_session_id: memory.sessionId,
      source_message_id: memory.messageId,
      quote: memory.quote,
      origin: memory.origin,
      outside: memory.outside,
      seen_count: memory.seenCount,
      last_seen_at: memory.lastSeenAt.toISOString(),
      valid_to: memory.validTo?.toISOString() ?? null,
      superseded_by: memory.supersededBy,
    },
    created_at: memory.createdAt.toISOString(),
    updated_at: memory.updatedAt.toISOString(),
  };
}

export function encodeLine({ memory, past }: { memory: Memory; past: Memory[] }): string {
  const view = encodeMemory(memory);
  return `${JSON.stringify(past.length === 0 ? view : { ...view, history: past.map(encodeMemory) })}\n`;
}

export function toDraft(request: z.infer<typeof memoryRequest>): MemoryDraft {
  const { category, importance: weight, ...source } = request.metadata ?? {};
  return {
    document: request.document,
    category: category ?? undefined,
    importance: weight ?? undefined,
    origin: "user",
    receipt: receiptOf(source),
    replaces: request.replaces,
  };
}

/** Nothing in a line is older than its future: times ahead of now are taken as now. */
export function lineToDraft(line: z.infer<typeof memoryLine>, now: Date): MemoryDraft {
  const { metadata } = line;
  const past = (text: string | null | undefined, otherwise: Date) =>
    new Date(Math.min(text ? Date.parse(text) : otherwise.getTime(), now.getTime()));
  const createdAt = past(line.created_at, now);
  return {
    document: line.document,
    category: metadata?.category ?? undefined,
    importance: metadata?.importance ?? undefined,
    origin: metadata?.origin ?? "import",
    outside: metadata?.outside ?? undefined,
    receipt: receiptOf(metadata ?? {}),
    at: {
      createdAt,
      updatedAt: past(line.updated_at, createdAt),
      lastSeenAt: past(metadata?.last_seen_at, createdAt),
      seenCount: metadata?.seen_count ?? 1,
    },
    past: line.history?.map(
      (version): PastVersion => ({
        document: version.document,
        category: version.metadata.category ?? "",
        importance: version.metadata.importance ?? 0.5,
        receipt: receiptOf(version.metadata),
        createdAt: past(version.created_at, now),
        validTo: past(version.metadata.valid_to, now),
      }),
    ),
  };
}

interface WireReceipt {
  source_session_id?: string | null | undefined;
  source_message_id?: string | null | undefined;
  quote?: string | null | undefined;
}

function receiptOf(wire: WireReceipt) {
  return {
    sessionId: wire.source_session_id ?? null,
    messageId: wire.source_message_id ?? null,
    quote: wire.quote ?? null,
  };
}
