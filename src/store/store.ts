/** The store over an open and migrated database: one reader, one line of writers, a repository per aggregate. */
import type { Log } from "../core/platform.ts";
import type { Store } from "../core/store.ts";
import { createAgents } from "./agents.ts";
import { createAutomationStore } from "./automation.ts";
import { closeDatabase, type Database } from "./database.ts";
import { createFileRows } from "./files.ts";
import { createHandedBackTurns } from "./handed-back.ts";
import { createIdempotencyKeys } from "./idempotency.ts";
import { createImageRows } from "./images.ts";
import { createImageChunks } from "./images-chunks.ts";
import { createMcpServers } from "./mcp.ts";
import { createMemories } from "./memories.ts";
import { createNotes } from "./notes.ts";
import { Reader } from "./reader.ts";
import { createRuns } from "./runs.ts";
import { SearchIndex } from "./search-index.ts";
import { createSessions } from "./sessions.ts";
import { createUsageLog } from "./usage.ts";
import { WriteQueue } from "./write-queue.ts";

export interface StoreOptions {
  /** Belongs to the store from here on: `close()` closes it. */
  database: Database;
  log: Log;
  now(): Date;
  /** Takes work that goes on after a response. */
  background(work: Promise<unknown>): void;
}

export function createStore(options: StoreOptions): Store {
  const { database } = options;
  const now = () => options.now();
  const reader = new Reader(database);
  const writer = new WriteQueue(database);
  const usage = createUsageLog(writer, options);
  const search = new SearchIndex(reader, writer, options.background);
  const sessions = createSessions(reader, writer, search, now);
  return {
    sessions,
    runs: createRuns(reader, writer, sessions, search, now),
    idempotency: createIdempotencyKeys(reader, writer),
    handedBack: createHandedBackTurns(reader, writer, now),
    usage,
    files: createFileRows(reader, writer, now),
    mcp: createMcpServers(reader, writer, now),
    automation: createAutomationStore(reader, writer, now),
    agents: createAgents(reader, writer, now),
    memories: createMemories(reader, writer),
    notes: createNotes(reader, writer, now),
    images: createImageRows(reader, writer, now),
    imageChunks: createImageChunks(reader, writer),
    async ping() {
      await reader.rows("SELECT 1");
    },
    async close() {
      await usage.flush();
      await writer.drain();
      closeDatabase(database);
    },
  };
}
