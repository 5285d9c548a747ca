/** What the interface document says of one route: the words that the table of routes is written in. */
import type * as z from "zod";

export type Method = "get" | "post" | "put" | "patch" | "delete";

/**
 * Whose errors and whose credentials a route has: `api` answers with problem details, `chat` and `messages` as the
 * services whose SDKs call them, `mcp` with JSON-RPC, `public` needs no credentials.
 */
export type Family = "public" | "api" | "chat" | "messages" | "mcp";

/** By a name of one or two words, which a reader sees. Each has to satisfy the schema beside it; a test sees to that. */
export type Examples = Readonly<Record<string, unknown>>;

export interface Body {
  schema: z.ZodType;
  examples: Examples;
}

export interface EventStream {
  /** Of the JSON in one `data:` line. */
  schema: z.ZodType;
  /** How an event is framed: numbered, bare with `[DONE]` at the end, plain without it, named, or all named `message`. */
  framing: "numbered" | "bare" | "plain" | "named" | "message";
  /** The events of a stream. */
  examples: Readonly<Record<string, readonly unknown[]>>;
}

export interface Reply {
  description: string;
  json?: Body;
  events?: EventStream;
  /** Another media type, for replies that no schema describes. */
  text?: "text/html" | "text/plain" | "application/json" | "application/jsonl";
  /** Media types, or ranges of them, of a reply that is bytes. */
  bytes?: readonly string[];
  /** Names in HEADERS of document.ts. */
  headers?: readonly ReplyHeader[];
}

export type ReplyHeader =
  | "x-run-id"
  | "x-session-id"
  | "x-upstream-model"
  | "x-estimated"
  | "idempotency-replayed"
  | "etag"
  | "content-range";

export interface Operation {
  id: string;
  method: Method;
  /** In OpenAPI's spelling: `/api/runs/{id}`. */
  path: string;
  tag: string;
  summary: string;
  description?: string;
  family: Family;
  /** The names between braces in `path`. */
  params?: z.ZodObject;
  /** As they are written in the URL. */
  query?: z.ZodObject;
  headers?: z.ZodObject;
  body?: Body;
  /** A body that is no JSON: its media type, and for a form the fields that are files. */
  upload?: { type: "multipart/form-data"; files: readonly string[] } | { type: "application/jsonl" };
  /** By status. */
  replies: Readonly<Record<number, Reply>>;
  /** Statuses of errors beside those that every route of its family may answer with. */
  faults?: readonly number[];
}

/** The base paths under which the doors answer too, for SDKs that put a path of their own behind the base URL. */
export const DOOR_ALIASES = ["/openai/v1", "/v1/v1"] as const;
