/**
 * The vault of memories. Writing merges: what is known already is strengthened, and what has changed takes the place of
 * what was so before, which stays in the history. How both are told without a model is in memory-fact.ts.
 */
import { createId } from "../core/id.ts";
import type { Memory, MemoryDraft, MemoryVault, Receipt, Remembered } from "../core/memory.ts";
import type { MemoryRow, MemoryRows, Standing } from "../core/memory-rows.ts";
import { AppError } from "../errors.ts";
import type { Embeddings } from "./embeddings.ts";
import { factOf, searchedTerms } from "./memory-fact.ts";
import { isPast, NO_RECEIPT, planOf, preparedOf, slotOf } from "./memory-merge.ts";
import { searchMemories } from "./memory-search.ts";
import { cleanCategory, cleanDocument, flat, shortened } from "./memory-text.ts";

/** Times that writing starts over because somebody else was first. */
const ATTEMPTS = 8;
const DUMPED_AT_ONCE = 200;
/** Messages of the user's that a quote is looked for in. */
const SAID = 10;

export interface VaultOptions {
  rows: MemoryRows;
  /** Absent where no model is configured. */
  embeddings?: Embeddings | undefined;
  now(): Date;
  /** Told of every change to an owner's memories, after it. */
  changed?(owner: string): void;
}

export function createMemoryVault(options: VaultOptions): MemoryVault {
  const { rows, embeddings, now } = options;
  const changed = (owner: string) => {
    options.changed?.(owner);
    embeddings?.wake();
  };

  async function rememberAll(owner: string, drafts: readonly MemoryDraft[]): Promise<Remembered[]> {
    const facts = await Promise.all(drafts.map(preparedOf));
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const plan = await planOf(rows, owner, facts, now());
      if (plan.changes.length > 0 && !(await rows.apply(owner, plan.changes))) continue;
      if (plan.changes.length > 0) changed(owner);
      return plan.results;
    }
    throw new AppError("unavailable", "The same memory is being written by others. Try again.", {
      retryAfter: 1,
    });
  }

  async function current(owner: string, id: string): Promise<Standing> {
    const found = await rows.get(owner, id);
    if (!found) throw noMemory();
    if (found.memory.validTo) throw isPast(found.memory);
    return found;
  }

  return {
    rememberAll,
    async remember(owner, draft) {
      return (await rememberAll(owner, [draft]))[0] as Remembered;
    },

    async get(owner, id) {
      const found = await rows.get(owner, id);
      if (!found) throw noMemory();
      return found.memory;
    },

    list: (owner, page) => rows.list(owner, page),

    search: (owner, query, wish) => searchMemories({ rows, embeddings, now }, owner, query, wish),

    async edit(owner, id, patch) {
      const before = await current(owner, id);
      const at = now();
      const document = patch.document === undefined ? before.memory.document : cleanDocument(patch.document);
      const memory: Memory = {
        ...before.memory,
        document,
        category: patch.category === undefined ? before.memory.category : cleanCategory(patch.category),
        importance: patch.importance ?? before.memory.importance,
        updatedAt: at,
      };
      const same = document === before.memory.document;
      const { slot, value } = same ? before : await slotOf(factOf(document));
      const past: MemoryRow | null = same
        ? null
        : {
            memory: { ...before.memory, id: createId("mem"), validTo: at, supersededBy: before.memory.id },
            ...{ slot: before.slot, value: before.value, terms: "" },
          };
      const row = { memory, slot, value, terms: searchedTerms(document).join(" ") };
      if (!(await rows.apply(owner, [{ type: "edit", row, past }]))) {
        const [other] = await rows.standing(owner, [slot]);
        if (!other || other.memory.id === memory.id) throw noMemory();
        throw new AppError(
          "conflict",
          `Another memory, ${other.memory.id}, is about the same. Edit that one, or delete one of the two.`,
        );
      }
      changed(owner);
      return memory;
    },

    async history(owner, id, page) {
      const found = await rows.history(owner, id, page);
      if (found.memories.length === 0 && page.cursor === undefined) throw noMemory();
      return found;
    },

    async delete(owner, id) {
      const found = await rows.get(owner, id);
      if (!found || !(await rows.delete(owner, id))) throw noMemory();
      changed(owner);
      return found.memory;
    },

    async clear(owner) {
      try {
        return await rows.clear(owner);
      } finally {
        changed(owner);
      }
    },

    async deleteOfSession(owner, sessionId) {
      const deleted = await rows.deleteOfSession(owner, sessionId);
      if (deleted > 0) changed(owner);
      return deleted;
    },

    async *dump(owner) {
      for (let after = 0; ; ) {
        const { entries, last } = await rows.dump(owner, after, DUMPED_AT_ONCE);
        if (entries.length > 0) yield entries;
        if (last === null || entries.length < DUMPED_AT_ONCE) return;
        after = last;
      }
    },

    async embedding(owner) {
      if (!embeddings) return null;
      const { model } = embeddings;
      return { model, ...(await rows.vectors.progress(owner, model)), error: embeddings.error };
    },

    receipt: (owner, { runId, quote }) => receiptOf(rows, owner, runId, quote),
  };
}

/** A quote counts only where the user has said it; otherwise the receipt has what the user said last. */
async function receiptOf(
  rows: MemoryRows,
  owner: string,
  runId: string,
  quote: string | undefined,
): Promise<Receipt> {
  const said = await rows.said(owner, runId, SAID);
  if (!said) return NO_RECEIPT;
  const { sessionId, messages } = said;
  const wanted = quote === undefined ? "" : flat(quote);
  const source = wanted === "" ? undefined : messages.find(({ text }) => flat(text).includes(wanted));
  if (source) return { sessionId, messageId: source.id, quote: shortened(quote ?? "") };
  const last = messages[0];
  return { sessionId, messageId: last?.id ?? null, quote: last ? shortened(last.text) : null };
}

function noMemory(): AppError {
  return new AppError("not_found", "There is no memory with this id. GET /api/memory lists them.");
}
