/** What is to be written when something is said: what it strengthens, what it takes the place of, or that it is new. */
import { createId } from "../core/id.ts";
import type { Memory, MemoryDraft, PastVersion, Receipt, Remembered } from "../core/memory.ts";
import type { MemoryChange, MemoryRow, MemoryRows, Standing } from "../core/memory-rows.ts";
import { AppError } from "../errors.ts";
import { type Fact, factOf, isWithin, searchedTerms } from "./memory-fact.ts";
import { cleanCategory, cleanDocument, shortened } from "./memory-text.ts";

const DEFAULT_IMPORTANCE = 0.5;
/** Longer slots are kept as their hash. Characters. */
const SLOT_LIMIT = 300;

/** A draft within its bounds, and what it says about what. */
export interface Prepared {
  draft: MemoryDraft;
  document: string;
  category: string;
  fact: Fact;
}

export async function preparedOf(draft: MemoryDraft): Promise<Prepared> {
  const document = cleanDocument(draft.document);
  const fact = factOf(document);
  const { denies } = fact;
  return {
    draft,
    document,
    category: cleanCategory(draft.category ?? ""),
    fact: { ...(await slotOf(fact)), denies: denies && (await slotOf(denies)) },
  };
}

export async function slotOf({ slot, value }: Fact): Promise<{ slot: string; value: string }> {
  if (slot.length <= SLOT_LIMIT) return { slot, value };
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(slot));
  const hex = Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
  return { slot: `# ${hex}`, value };
}

interface Plan {
  changes: MemoryChange[];
  results: Remembered[];
}

/** What is to be written, seen from what stands now. */
export async function planOf(
  rows: MemoryRows,
  owner: string,
  prepared: readonly Prepared[],
  now: Date,
): Promise<Plan> {
  const slots = prepared.flatMap(({ fact }) => (fact.denies ? [fact.slot, fact.denies.slot] : [fact.slot]));
  const standing = new Map<string, Standing>();
  for (const found of await rows.standing(owner, slots)) standing.set(found.slot, found);
  const plan: Plan = { changes: [], results: [] };
  for (const each of prepared) {
    const named = await namedBy(rows, owner, each.draft);
    plan.results.push(planOne(plan.changes, standing, each, named, now));
  }
  return plan;
}

async function namedBy(rows: MemoryRows, owner: string, draft: MemoryDraft): Promise<Standing | undefined> {
  if (typeof draft.replaces !== "string") return undefined;
  const found = await rows.get(owner, draft.replaces);
  if (!found) throw new AppError("not_found", `replaces: there is no memory ${draft.replaces.slice(0, 64)}.`);
  if (found.memory.validTo) throw isPast(found.memory);
  return found;
}

function planOne(
  changes: MemoryChange[],
  standing: Map<string, Standing>,
  { draft, document, category, fact }: Prepared,
  named: Standing | undefined,
  now: Date,
): Remembered {
  const there = standing.get(fact.slot);
  const superseded: Memory[] = [];
  const supersede = (old: Standing, by: string) => {
    changes.push({ type: "supersede", id: old.memory.id, by, at: now });
    superseded.push({ ...old.memory, validTo: now, supersededBy: by });
    standing.delete(old.slot);
  };
  const same = there !== undefined && isWithin(fact.value, there.value);
  if (same && there.memory.id !== named?.memory.id) {
    if (named) supersede(named, there.memory.id);
    const memory = draft.at ? there.memory : strengthened(there.memory, draft, now);
    const { importance, id } = memory;
    const receipt = receiptFor(there.memory, draft);
    if (!draft.at) changes.push({ type: "strengthen", id, importance, at: now, receipt });
    standing.set(fact.slot, { ...there, memory });
    return { outcome: superseded.length > 0 ? "superseded" : "strengthened", memory, superseded };
  }
  const memory = memoryOf(draft, document, category, now);
  const terms = searchedTerms(document).join(" ");
  const beside = there !== undefined && draft.replaces === null;
  if (there && !beside && draft.at && draft.at.createdAt < there.memory.createdAt) {
    const past = { ...memory, validTo: there.memory.createdAt, supersededBy: there.memory.id };
    changes.push({ type: "insert", row: { memory: past, ...fact, terms } });
    return { outcome: "past", memory: past, superseded };
  }
  const denied = fact.denies && standing.get(fact.denies.slot);
  if (there && !beside) supersede(there, memory.id);
  if (named && named.memory.id !== there?.memory.id) supersede(named, memory.id);
  if (denied && denied.memory.id !== named?.memory.id && isWithin(fact.denies?.value ?? "", denied.value))
    supersede(denied, memory.id);
  const slot = beside ? `${fact.slot}|${memory.id}` : fact.slot;
  const row = { memory, slot, value: fact.value, terms };
  changes.push({ type: "insert", row });
  for (const past of draft.past ?? []) changes.push({ type: "insert", row: pastOf(memory, past) });
  standing.set(slot, { row: 0, ...row });
  return { outcome: superseded.length > 0 ? "superseded" : "created", memory, superseded };
}

export const NO_RECEIPT: Receipt = { sessionId: null, messageId: null, quote: null };

function memoryOf(draft: MemoryDraft, document: string, category: string, now: Date): Memory {
  const { sessionId, messageId, quote } = draft.receipt ?? NO_RECEIPT;
  return {
    ...{ id: createId("mem"), document, category, sessionId, messageId, quote: quote && shortened(quote) },
    importance: draft.importance ?? DEFAULT_IMPORTANCE,
    origin: draft.origin,
    outside: draft.outside ?? false,
    ...(draft.at ?? { seenCount: 1, lastSeenAt: now, createdAt: now, updatedAt: now }),
    supersededBy: null,
    validTo: null,
  };
}

/** A version that a memory has been before it came here. Past versions are never compared, so that it has no slot. */
function pastOf(memory: Memory, { receipt, createdAt, validTo, ...past }: PastVersion): MemoryRow {
  const before: Memory = {
    ...memory,
    ...{ ...past, document: cleanDocument(past.document), category: cleanCategory(past.category) },
    ...receipt,
    ...{ id: createId("mem"), createdAt, updatedAt: createdAt, lastSeenAt: createdAt, seenCount: 1 },
    ...{ validTo, supersededBy: memory.id },
  };
  return { memory: before, slot: "", value: "", terms: "" };
}

/** What came from no session is not derived from the one that says it again, and does not go with that one. */
function receiptFor({ origin }: Memory, draft: MemoryDraft): Receipt {
  return origin === "user" || origin === "import" ? NO_RECEIPT : (draft.receipt ?? NO_RECEIPT);
}

/** What is said again counts for more, up to a point. */
function strengthened(memory: Memory, draft: MemoryDraft, now: Date): Memory {
  const importance = Math.max(
    draft.importance ?? 0,
    Math.min(memory.importance + 0.05, 0.9),
    memory.importance,
  );
  const receipt = receiptFor(memory, draft);
  const { sessionId, messageId } = memory.sessionId === null && receipt.sessionId !== null ? receipt : memory;
  const quote = memory.quote ?? receipt.quote;
  return {
    ...memory,
    importance,
    sessionId,
    messageId,
    quote,
    seenCount: memory.seenCount + 1,
    lastSeenAt: now,
  };
}

export function isPast({ id, supersededBy }: Memory): AppError {
  return new AppError(
    "conflict",
    `The memory ${id} is past: ${supersededBy ?? "another one"} has taken its place. Change that one.`,
  );
}
