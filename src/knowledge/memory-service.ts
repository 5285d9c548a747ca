/** The vault of memories with all that works on it: recall into prompts, extraction, vectors. */
import type { Config } from "../config.ts";
import type { Embedder, MemoryVault, Recall } from "../core/memory.ts";
import type { ModelRegistry } from "../core/model.ts";
import type { Platform } from "../core/platform.ts";
import type { Store } from "../core/store.ts";
import { Embeddings } from "./embeddings.ts";
import { Extraction, type ExtractionOptions, type NotedTurn } from "./extraction.ts";
import { createMemoryVault } from "./memory.ts";
import { createRecall } from "./recall.ts";

/** How long a tick waits: models take their time, and others have to be looked after meanwhile. Milliseconds. */
const TICK_WAIT_MS = 3_000;
/** What is out for longer has ended with its request. Milliseconds. */
const LONGEST_OUT_MS = 5 * 60_000;

export interface MemoryParts {
  config: Config["memory"];
  platform: Platform;
  store: Pick<Store, "memories" | "usage">;
  models: ModelRegistry;
  /** Of callers' keys. */
  keys: ExtractionOptions["keys"];
  embedder: Embedder | undefined;
}

export interface MemoryService {
  vault: MemoryVault;
  recall: Recall;
  /** Absent where nothing is extracted. */
  noteTurn: ((turn: NotedTurn) => void) | undefined;
  /** Embeds what is missing, and looks through sessions that have been idle. Never throws. */
  tick(): Promise<void>;
  /** Ends what is under way; others go on with it. */
  close(): void;
}

export function createMemoryService(parts: MemoryParts): MemoryService {
  const { config, platform, store, models, keys, embedder } = parts;
  const rows = store.memories;
  const host = {
    now: () => platform.now(),
    log: platform.log,
    background: (work: Promise<unknown>) => platform.background(work),
  };
  const embeddings = embedder && new Embeddings({ embedder, vectors: rows.vectors, ...host });
  const vault = createMemoryVault({
    rows,
    embeddings,
    ...host,
    changed: (owner) => recalling.changed(owner),
  });
  const recalling = createRecall({ vault, rows, tokens: config.recallTokens, ...host });
  const extraction =
    config.extraction &&
    new Extraction({ rows, vault, models, keys, usage: store.usage, ...config.extraction, ...host });
  /** What a tick is at, in this process. */
  let current: { begun: number; stop: AbortController } | undefined;

  async function look(signal: AbortSignal): Promise<void> {
    const results = await Promise.allSettled([embeddings?.catchUp(), extraction?.tick(signal)]);
    for (const result of results)
      if (result.status === "rejected")
        host.log("warning", "looking after the memories failed, tried again later", {
          error: String(result.reason),
        });
  }

  return {
    vault,
    recall: recalling.recall,
    noteTurn: extraction && ((turn) => host.background(extraction.note(turn))),
    async tick() {
      if (!embeddings && !extraction) return;
      const begun = performance.now();
      if (current && begun - current.begun < LONGEST_OUT_MS) return;
      const mine = { begun, stop: new AbortController() };
      current = mine;
      const work = look(mine.stop.signal).finally(() => {
        if (current === mine) current = undefined;
      });
      host.background(work);
      let timer: ReturnType<typeof setTimeout> | undefined;
      const enough = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, TICK_WAIT_MS);
      });
      await Promise.race([work, enough]);
      clearTimeout(timer);
    },
    close: () => current?.stop.abort(),
  };
}
