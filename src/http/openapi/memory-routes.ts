/** `/api/memory`. */
import * as z from "zod";
import {
  memoryChange,
  memoryHistory,
  memoryImported,
  memoryList,
  memoryRequest,
  memorySaved,
  memoryView,
} from "../memory-records.ts";
import type { Operation } from "./operation.ts";
import { idempotency, paging } from "./parameters.ts";
import { deleted } from "./session-routes.ts";

const memoryId = z.object({ id: z.string().meta({ examples: ["mem_example"] }) });

const MEMORY = {
  id: "mem_example",
  document: "The user lives in Lyon.",
  metadata: {
    category: "person",
    importance: 0.7,
    source_session_id: "ses_example",
    source_message_id: "msg_example",
    quote: "we have moved to Lyon",
    origin: "agent",
    outside: false,
    seen_count: 1,
    last_seen_at: "2026-11-20T10:00:00.000Z",
    valid_to: null,
    superseded_by: null,
  },
  created_at: "2026-11-20T10:00:00.000Z",
  updated_at: "2026-11-20T10:00:00.000Z",
};
const BEFORE = {
  ...MEMORY,
  id: "mem_before",
  document: "The user lives in Berlin.",
  metadata: {
    ...MEMORY.metadata,
    ...{ source_session_id: null, source_message_id: null, quote: null, origin: "user" },
    ...{ valid_to: "2026-11-20T10:00:00.000Z", superseded_by: "mem_example" },
    last_seen_at: "2026-03-01T09:00:00.000Z",
  },
  created_at: "2026-03-01T09:00:00.000Z",
  updated_at: "2026-03-01T09:00:00.000Z",
};
const EMBEDDING = { model: "openai/text-embedding-3-small", done: 64, total: 412, error: null };

export const MEMORY_ROUTES = [
  {
    id: "listMemories",
    method: "get",
    path: "/api/memory",
    tag: "Memory",
    summary: "List or search memories",
    description:
      "Newest first; with `q` the best match first, by words and, where an embedding model is configured, by meaning too.",
    family: "api",
    query: z.object({
      q: z.string().optional().describe("What is looked for. The last word may be unfinished."),
      category: z.string().optional(),
      ...paging,
    }),
    replies: {
      200: {
        description: "A page of current memories.",
        json: {
          schema: memoryList,
          examples: {
            Page: { memories: [MEMORY], next_cursor: null },
            "With vectors": { memories: [MEMORY], next_cursor: null, embedding: EMBEDDING },
          },
        },
      },
    },
    faults: [400],
  },
  {
    id: "createMemory",
    method: "post",
    path: "/api/memory",
    tag: "Memory",
    summary: "Write a memory",
    description:
      "What is known already is strengthened. What has changed takes the place of what was so before, which stays in the history.",
    family: "api",
    headers: idempotency,
    body: {
      schema: memoryRequest,
      examples: {
        Fact: { document: "The user lives in Lyon.", metadata: { category: "person", importance: 0.7 } },
        Correction: { document: "The user's dog is called Rex.", replaces: "mem_example" },
      },
    },
    replies: {
      200: {
        description: "It was known.",
        headers: ["idempotency-replayed"],
        json: {
          schema: memorySaved,
          examples: {
            Known: { status: "strengthened", memory_id: MEMORY.id, memory: MEMORY, superseded: [] },
          },
        },
      },
      201: {
        description: "It is kept.",
        headers: ["idempotency-replayed"],
        json: {
          schema: memorySaved,
          examples: {
            New: { status: "created", memory_id: MEMORY.id, memory: MEMORY, superseded: [] },
            Changed: { status: "superseded", memory_id: MEMORY.id, memory: MEMORY, superseded: [BEFORE] },
          },
        },
      },
    },
    faults: [400, 404, 409, 422, 507],
  },
  {
    id: "clearMemories",
    method: "delete",
    path: "/api/memory",
    tag: "Memory",
    summary: "Forget everything",
    family: "api",
    replies: {
      200: {
        description: "All memories and their histories are gone.",
        json: { schema: deleted, examples: { Deleted: { status: "deleted", deleted: 412 } } },
      },
    },
  },
  {
    id: "exportMemories",
    method: "get",
    path: "/api/memory/export",
    tag: "Memory",
    summary: "Take all memories along",
    description: "JSON Lines: a memory a line, oldest first, with its past versions in `history`.",
    family: "api",
    replies: { 200: { description: "The lines.", text: "application/jsonl" } },
  },
  {
    id: "importMemories",
    method: "post",
    path: "/api/memory/import",
    tag: "Memory",
    summary: "Bring memories along",
    description:
      "JSON Lines as an export has them, of which only `document` is needed. Merged as if they were written one by one; sent again, nothing changes. At most 256 MiB.",
    family: "api",
    upload: { type: "application/jsonl" },
    replies: {
      200: {
        description: "What became of the lines.",
        json: {
          schema: memoryImported,
          examples: {
            Imported: {
              ...{ status: "imported", created: 410, superseded: 1, unchanged: 1, past: 0, failed: 1 },
              errors: [{ line: 7, message: "is not JSON in UTF-8" }],
            },
          },
        },
      },
    },
    faults: [408, 413, 415, 507],
  },
  {
    id: "getMemory",
    method: "get",
    path: "/api/memory/{id}",
    tag: "Memory",
    summary: "Get a memory",
    family: "api",
    params: memoryId,
    replies: {
      200: { description: "The memory.", json: { schema: memoryView, examples: { Memory: MEMORY } } },
    },
    faults: [404],
  },
  {
    id: "changeMemory",
    method: "patch",
    path: "/api/memory/{id}",
    tag: "Memory",
    summary: "Correct a memory",
    description: "What it said before stays in its history.",
    family: "api",
    params: memoryId,
    body: {
      schema: memoryChange,
      examples: {
        Text: { document: "The user lives in Lyon, near the Saône." },
        Weight: { metadata: { importance: 0.9 } },
      },
    },
    replies: {
      200: {
        description: "The memory.",
        json: {
          schema: memorySaved,
          examples: { Changed: { status: "updated", memory_id: MEMORY.id, memory: MEMORY } },
        },
      },
    },
    faults: [400, 404, 409, 507],
  },
  {
    id: "deleteMemory",
    method: "delete",
    path: "/api/memory/{id}",
    tag: "Memory",
    summary: "Forget a memory",
    description: "With what it had taken the place of.",
    family: "api",
    params: memoryId,
    replies: {
      200: {
        description: "It is gone.",
        json: { schema: deleted, examples: { Deleted: { status: "deleted", deleted: 1 } } },
      },
    },
    faults: [404],
  },
  {
    id: "memoryHistory",
    method: "get",
    path: "/api/memory/{id}/history",
    tag: "Memory",
    summary: "See what a memory was before",
    description: "The current version first.",
    family: "api",
    params: memoryId,
    query: z.object(paging),
    replies: {
      200: {
        description: "A page of versions.",
        json: {
          schema: memoryHistory,
          examples: { Versions: { memories: [MEMORY, BEFORE], next_cursor: null } },
        },
      },
    },
    faults: [400, 404],
  },
] as const satisfies readonly Operation[];
