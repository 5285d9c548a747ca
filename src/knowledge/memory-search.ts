/**
 * How memories are found: by their words (bm25, and how much of what was asked for they have), weighed by how recent and how
 * important they are; and by their vectors where a model is configured, the two orders fused by reciprocal rank.
 */
import type { FoundMemory, Memory, MemorySearch } from "../core/memory.ts";
import type { MemoryRows } from "../core/memory-rows.ts";
import { toFault } from "../errors.ts";
import type { Embeddings } from "./embeddings.ts";
import { searchedTerms } from "./memory-fact.ts";
import { isStop, termsOf, wordsOf } from "./memory-terms.ts";

/** Candidates of each kind at least. */
const POOL = 50;
/** Terms of a query. */
const TERMS_LIMIT = 16;
/** Matches that are worth ranking: terms that would bring more are left out as long as there are rarer ones. */
const MATCHES_LIMIT = 4_000;
/** A term that is in so many is told from none. */
const MANY = 2_000;
/** A word that so few memories have tells of them by itself. */
const FEW = 3;
/** The constant of reciprocal rank fusion. */
const FUSION = 60;
/** After so long a memory counts for half of what is new about it. Milliseconds. */
const HALF_LIFE_MS = 120 * 24 * 60 * 60 * 1000;
const RECENCY_SHARE = 0.15;
const IMPORTANCE_SHARE = 0.15;

export interface SearchParts {
  rows: MemoryRows;
  embeddings?: Embeddings | undefined;
  now(): Date;
}

export async function searchMemories(
  { rows, embeddings, now }: SearchParts,
  owner: string,
  text: string,
  options: {
    category?: string | undefined;
    limit: number;
    prefix?: boolean | undefined;
    signal?: AbortSignal | undefined;
  },
): Promise<MemorySearch> {
  const { category, limit } = options;
  const pool = Math.max(POOL, limit);
  const query = text.replaceAll("\0", "").toWellFormed().trim();
  if (query === "") return { found: [], degraded: null };
  const wanted = await weighed(rows, owner, query);
  const vector = embeddings?.query(query, options.signal).then(
    (made) => ({ made, reason: null }),
    (error: unknown) => ({ made: null, reason: toFault(error).message }),
  );
  const byWords = await matching(rows, owner, query, wanted, { ...options, limit: pool });
  const { made, reason } = (await vector) ?? { made: null, reason: null };
  const near = made
    ? await rows.vectors.nearest(owner, embeddings?.model ?? "", made, { category, limit: pool })
    : [];
  const found = fused(byWords, near, wanted, now().getTime());
  return {
    found: found.slice(0, limit),
    degraded:
      reason === null || !embeddings
        ? null
        : `The embedding model ${embeddings.model} failed, so only words were searched: ${reason}`,
  };
}

/** Terms with their weight: the rarer the heavier. */
type Weighed = { term: string; count: number; weight: number }[];

async function weighed(rows: MemoryRows, owner: string, query: string): Promise<Weighed> {
  const terms = [...new Set(termsOf(query))].slice(0, TERMS_LIMIT);
  const counts = await rows.counts(owner, terms);
  return terms.map((term, at) => {
    const count = counts[at] ?? 0;
    return { term, count, weight: Math.log(1 + MANY / (count + 1)) };
  });
}

type ByWords = { memory: Memory; rank: number }[];

async function matching(
  rows: MemoryRows,
  owner: string,
  query: string,
  wanted: Weighed,
  options: { category?: string | undefined; limit: number; prefix?: boolean | undefined },
): Promise<ByWords> {
  const { category, limit } = options;
  const last = wordsOf(query).at(-1);
  const open = options.prefix && last !== undefined && /[\p{L}\p{N}]$/u.test(query);
  const prefix = open && last.length > 1 && !isStop(last) ? last : undefined;
  const terms = telling(wanted);
  if (terms.length > 0 || prefix !== undefined)
    return rows.matching(owner, terms, { category, prefix, limit });
  if (wanted.length > 0) return [];
  return (await rows.containing(owner, query, { category, limit })).map((memory) => ({ memory, rank: 1 }));
}

/** The terms that are searched: those that are there, without the common ones where there are rarer ones. */
function telling(wanted: Weighed): string[] {
  const chosen: string[] = [];
  let matches = 0;
  for (const { term, count } of wanted.toSorted((a, b) => a.count - b.count)) {
    if (count === 0) continue;
    matches += count;
    if (chosen.length > 0 && matches > MATCHES_LIMIT) break;
    chosen.push(term);
  }
  return chosen;
}

function fused(
  byWords: ByWords,
  near: { memory: Memory; similarity: number }[],
  wanted: Weighed,
  now: number,
): FoundMemory[] {
  const total = wanted.reduce((sum, { weight }) => sum + weight, 0);
  const best = byWords[0]?.rank ?? 1;
  const found = new Map<string, FoundMemory>();
  for (const { memory, rank } of byWords) {
    const has = new Set(searchedTerms(memory.document));
    const shared = wanted.filter(({ term }) => has.has(term));
    const coverage = total === 0 ? 0 : shared.reduce((sum, { weight }) => sum + weight, 0) / total;
    const telling = shared.length > 1 || shared.some(({ count }) => count <= FEW);
    const score = (rank / best) * (1 + coverage) * weight(memory, now);
    found.set(memory.id, { memory, score, coverage, share: 0, telling, similarity: null });
  }
  const inOrder = [...found.values()].toSorted((a, b) => b.score - a.score);
  const top = inOrder[0]?.score ?? 1;
  for (const each of inOrder) each.share = each.score / top;
  if (near.length === 0) return inOrder;
  for (const [at, each] of inOrder.entries()) each.score = 1 / (FUSION + at + 1);
  for (const [at, { memory, similarity }] of near.entries()) {
    const score = 1 / (FUSION + at + 1);
    const known = found.get(memory.id);
    if (known) {
      known.score += score;
      known.similarity = similarity;
    } else found.set(memory.id, { memory, score, coverage: 0, share: 0, telling: false, similarity });
  }
  return [...found.values()].toSorted((a, b) => b.score - a.score);
}

/** What is recent and what is important counts for somewhat more. */
function weight({ lastSeenAt, importance }: Memory, now: number): number {
  const age = Math.max(0, now - lastSeenAt.getTime());
  return 1 + RECENCY_SHARE * 2 ** (-age / HALF_LIFE_MS) + IMPORTANCE_SHARE * importance;
}
