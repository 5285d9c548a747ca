/** What the rest of the house knows of a language model: a request in the core's words, and an adapter that streams. */
import type { ModelEvent } from "./event.ts";
import type { Extra, Family, Message, ProviderName, TextPart } from "./message.ts";

/** A JSON Schema (draft 2020-12 or 07) as it came. */
export type JsonSchema = Record<string, unknown>;

export type ToolSpec =
  | {
      kind: "function";
      name: string;
      description?: string | undefined;
      parameters?: JsonSchema | undefined;
      strict?: boolean | undefined;
      extra?: Extra | undefined;
    }
  /** OpenAI's free-text tool; `format` as it came. */
  | {
      kind: "freeform";
      name: string;
      description?: string | undefined;
      format?: unknown;
      extra?: Extra | undefined;
    }
  /** A tool that the provider defines or hosts (`web_search_20250305`, `bash_20250124`); the entry as it came. */
  | { kind: "builtin"; family: Family; name: string; entry: Record<string, unknown> };

export type ToolChoice =
  | { type: "auto" }
  | { type: "none" }
  /** At least one call, any tool. */
  | { type: "required" }
  | { type: "tool"; name: string };

export type ResponseFormat =
  | { type: "text" }
  | { type: "json" }
  | {
      type: "schema";
      /** Chat completions wants a name; doors that have none use `response`. */
      name: string;
      schema: JsonSchema;
      strict?: boolean | undefined;
      description?: string | undefined;
    };

export interface ReasoningSettings {
  /** `none`, `minimal`, `low`, `medium`, `high`, `xhigh`, `max` or a word that is newer than this list. */
  effort?: string | undefined;
  /** Thinking tokens; 0 switches it off. */
  budget?: number | undefined;
  /** The model decides how much (Anthropic's `adaptive`). */
  adaptive?: boolean | undefined;
  /** Whether the thinking is shown; `omitted` keeps only the seal. */
  display?: "summarized" | "omitted" | undefined;
}

/** Sampling and limits. Absent means the provider's default. Values are not checked here: the provider does. */
export interface Settings {
  maxTokens?: number | undefined;
  temperature?: number | undefined;
  topP?: number | undefined;
  topK?: number | undefined;
  stop?: string[] | undefined;
  seed?: number | undefined;
  presencePenalty?: number | undefined;
  frequencyPenalty?: number | undefined;
  logitBias?: Record<string, number> | undefined;
  /** Log probabilities of the output tokens, with this many alternatives each. */
  logprobs?: { top?: number | undefined } | undefined;
}

/**
 * One model call.
 *
 * `system` stands before all messages; a `system` message among `messages` stays at its place where the upstream
 * allows that. Adapters may rely on a repaired history: every call has exactly one result, results follow the
 * message with their calls directly, ids are unique, and seals are only those of the adapter's own provider.
 */
export interface ModelRequest {
  /** The upstream's model id. */
  model: string;
  system: TextPart[];
  messages: Message[];
  tools: ToolSpec[];
  toolChoice?: ToolChoice | undefined;
  /** false: at most one call in a turn. */
  parallelTools?: boolean | undefined;
  format?: ResponseFormat | undefined;
  reasoning?: ReasoningSettings | undefined;
  settings: Settings;
  /** Stable id of the end user, for the provider's abuse detection. */
  user?: string | undefined;
  /** Top-level body fields that the core does not model; written to an upstream of the same family only. */
  extra?: Extra | undefined;
  /** Request headers of a same-family door that go along, e.g. `anthropic-beta`. Never credentials. */
  headers?: { family: Family; fields: Record<string, string> } | undefined;
}

export interface ModelInfo {
  id: string;
  /** Unix seconds; absent where the provider does not say. */
  created?: number | undefined;
  displayName?: string | undefined;
  ownedBy: string;
}

export interface ModelAdapter {
  readonly provider: ProviderName;
  /**
   * Streams one call; see {@link ModelEvent} for the order that it keeps. Nothing is sent before the first `next()`;
   * `return()` and an aborted `signal` close the upstream connection. Retries, only before the upstream's first
   * event, are its own business. Never throws.
   */
  stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelEvent, void, void>;
  /** The models that the key may use. Throws an AppError. */
  models(signal: AbortSignal): Promise<ModelInfo[]>;
  /** Input tokens by the provider's own count; absent where it has no counter. Throws an AppError. */
  countTokens?(request: ModelRequest, signal: AbortSignal): Promise<number>;
}

/** What a request says about who is to answer it. */
export interface ProviderWish {
  /** The caller's key; undefined when it brought none. */
  key: string | undefined;
  /** A provider by name or alias, where the caller named one; it wins over the key's prefix. */
  provider: string | undefined;
  /** The field or header that named it, for the error. */
  param: string;
  /** Where the caller's key belongs, for the error: `the x-api-key header`. */
  where: string;
}

export interface Credentials {
  provider: ProviderName;
  key: string;
}

export interface ModelRegistry {
  /**
   * Who answers, and with whose key: without one of the caller's, the operator's. Throws AppError `missing_key`, or
   * `invalid_request` for an unknown provider or, with strict prefixes, a key of another vendor.
   */
  choose(wish: ProviderWish): Credentials;
  /** The adapter for a provider and a key: made once, then kept. */
  adapter(credentials: Credentials): Promise<ModelAdapter>;
}
