/** What a search engine is to the tool, and the one way in which their interfaces are called. */
import * as z from "zod";
import { oneLine } from "../../core/clean-text.ts";
import type { GuardedFetch } from "../../core/fetch.ts";
import { AppError } from "../../errors.ts";

export const FRESHNESS = ["day", "week", "month", "year"] as const;
export type Freshness = (typeof FRESHNESS)[number];

export interface SearchQuery {
  query: string;
  /** Results at most. An engine may have fewer. */
  limit: number;
  /** Only what was published, or found, within the last day, week, month or year. */
  freshness?: Freshness | undefined;
}

export interface SearchResult {
  title: string;
  url: string;
  snippet: string;
  /** As the engine gives it. */
  date?: string | undefined;
}

export interface SearchAnswer {
  results: SearchResult[];
  /** What the model should know of how it came about. */
  note?: string | undefined;
}

export interface SearchContext {
  fetch: GuardedFetch;
  signal: AbortSignal;
}

export interface SearchProvider {
  /** For people. */
  readonly name: string;
  /** Throws AppError with a sentence that says what is wrong and who can do what about it. */
  search(query: SearchQuery, context: SearchContext): Promise<SearchAnswer>;
}

/** An engine's own address and key, where the operator has set them. */
export interface SearchAccount {
  apiKey?: string | undefined;
  baseUrl?: string | undefined;
}

const TIMEOUT_MS = 20_000;
const MAX_BYTES = 4 * 1024 * 1024;
const MAX_SAID_CHARS = 200;

export interface Call {
  /** The engine, for people. */
  name: string;
  url: string;
  headers?: Record<string, string> | undefined;
  /** Sent as JSON. */
  json?: unknown;
  /** Sent as a form. */
  form?: Record<string, string> | undefined;
  /** The setting that holds the key, and the key itself, which no message may hold. */
  key?: { setting: string; value: string } | undefined;
  /** Sentences for statuses that mean something else here. */
  meaning?: ((status: number, body: string) => string | undefined) | undefined;
}

/** The body of a good answer. The address is the operator's choice, or the engine's own. */
export async function callEngine(call: Call, { fetch, signal }: SearchContext): Promise<string> {
  const { name, url, json, form } = call;
  const headers = new Headers({ accept: "application/json", ...call.headers });
  if (json !== undefined) headers.set("content-type", "application/json");
  if (form !== undefined) headers.set("content-type", "application/x-www-form-urlencoded");
  const response = await fetch(url, {
    method: json !== undefined || form !== undefined ? "POST" : "GET",
    headers,
    body: json !== undefined ? JSON.stringify(json) : form && new URLSearchParams(form).toString(),
    signal,
    // A key goes nowhere but where it was meant to go.
    redirect: "manual",
    timeoutMs: TIMEOUT_MS,
    maxBytes: MAX_BYTES,
    trusted: true,
  });
  const body = await response.text();
  const meant = call.meaning?.(response.status, body);
  if (meant !== undefined) throw new AppError("unreachable", meant);
  if (response.status === 200) return body;
  throw new AppError("unreachable", `${name} ${faultOf(response, body, call)}`);
}

/** The answer as JSON of the shape that `schema` says. */
export async function callJson<T>(call: Call, schema: z.ZodType<T>, context: SearchContext): Promise<T> {
  const body = await callEngine(call, context);
  try {
    return schema.parse(JSON.parse(body));
  } catch {
    throw new AppError(
      "unreachable",
      `${call.name} answered with something that is not its JSON. Try again; if it stays so, tell the operator to check its address.`,
    );
  }
}

function faultOf({ status, headers }: Response, body: string, { key }: Call): string {
  if ((status === 401 || status === 403) && key)
    return `refused the key. Tell the operator to check ${key.setting}.`;
  if (status === 401 || status === 403) return `refused the request (${status}). Tell the operator.`;
  if (status === 402 || status === 432 || status === 433)
    return "has no more searches on this account. Tell the operator to top it up.";
  if (status === 429) {
    const wait = headers.get("retry-after");
    const when = wait && /^\d{1,6}$/.test(wait) ? `in ${wait} seconds` : "later";
    return `wants fewer searches, or its quota is used up. Try again ${when}.`;
  }
  if (status >= 500) return `has a fault of its own (${status}). Try again later.`;
  if (status >= 300 && status < 400)
    return `answered with a redirect (${status}). Tell the operator to check its address in the settings.`;
  return `did not accept the search (${status}${saidIn(body, key?.value)}). Word it in another way.`;
}

/** Why, in the engine's own words, wherever it puts them. */
function saidIn(body: string, key: string | undefined): string {
  let words: unknown;
  try {
    const { detail, error, message } = JSON.parse(body) as Record<string, unknown>;
    words = [detail, error, message]
      .map((value) => {
        const { error: inner, detail: other, message: third } = Object(value) as Record<string, unknown>;
        return [value, inner, other, third].find((candidate) => typeof candidate === "string");
      })
      .find((candidate) => candidate !== undefined);
  } catch {
    return "";
  }
  if (typeof words !== "string" || words.trim() === "") return "";
  const clean = key === undefined ? words : words.replaceAll(key, "[key]");
  return `: ${oneLine(clean).slice(0, MAX_SAID_CHARS)}`;
}

/** Entries that are whole; one that is not spoils none of the others. */
export function readResults<T>(
  entries: unknown[],
  schema: z.ZodType<T>,
  toResult: (entry: T) => SearchResult,
): SearchResult[] {
  return entries.flatMap((entry) => {
    const parsed = schema.safeParse(entry);
    return parsed.success ? [toResult(parsed.data)] : [];
  });
}

/** Absent, null and of another kind are all the same: not there. */
export const someText = z.string().nullish().catch(undefined);
