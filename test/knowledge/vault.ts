/** A vault over a store of a test, with a clock that it sets and an embedding model that it has written. */

import type { Embedder, MemoryVault } from "../../src/core/memory.ts";
import { Embeddings } from "../../src/knowledge/embeddings.ts";
import { createMemoryVault } from "../../src/knowledge/memory.ts";
import { termsOf } from "../../src/knowledge/memory-terms.ts";
import type { TestStore } from "../store/backends.ts";

export function vaultOver(store: TestStore, embedder?: Embedder) {
  const now = () => store.clock.now;
  const embeddings =
    embedder &&
    new Embeddings({
      embedder,
      vectors: store.memories.vectors,
      now,
      log: (...entry) => store.logged.push(entry),
      background: (work) => void work.catch(() => {}),
    });
  return { vault: createMemoryVault({ rows: store.memories, embeddings, now }), embeddings };
}

/** By words: texts that share any are near each other. */
export function wordEmbedder(model = "test/words", dimensions = 64): Embedder & { calls: string[][] } {
  const calls: string[][] = [];
  return {
    model,
    calls,
    async embed(texts) {
      calls.push([...texts]);
      return texts.map((text) => {
        const vector = new Float32Array(dimensions);
        for (const term of termsOf(text)) vector[hash(term) % dimensions]! += 1;
        const length = Math.hypot(...vector) || 1;
        return vector.map((value) => value / length);
      });
    },
  };
}

function hash(text: string): number {
  let out = 7;
  for (const character of text) out = (out * 31 + (character.codePointAt(0) as number)) >>> 0;
  return out;
}

export const say = (vault: MemoryVault, document: string, more: object = {}) =>
  vault.remember("ann", { document, origin: "user", ...more });
