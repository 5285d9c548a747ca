/** The search index catches up with what is stored, and never runs after what comes meanwhile. */
import { expect, test } from "vitest";
import { migrate } from "../../src/store/migrations.ts";
import { Reader } from "../../src/store/reader.ts";
import { SearchIndex } from "../../src/store/search-index.ts";
import type { WriteQueue } from "../../src/store/write-queue.ts";
import { createFileBackend, MIGRATIONS, storeOver } from "./backends.ts";
import { user } from "./run-records.ts";

test("while somebody writes without end", async () => {
  const backend = await createFileBackend();
  const database = await backend.open();
  await migrate(database, MIGRATIONS);
  const store = storeOver(database);
  try {
    const { id } = await store.sessions.open("ann", "new");
    let stored = 0;
    const more = (count: number) => {
      const messages = Array.from({ length: count }, () => user(`word${stored++}`));
      return store.sessions.append("ann", id, stored - count, messages);
    };
    await more(1_200);
    let batches = 0;
    const writer: Pick<WriteQueue, "batch"> = {
      async batch(statements) {
        batches++;
        await more(1);
        return database.write.batch(statements, "write");
      },
    };
    const index = new SearchIndex(new Reader(database), writer as WriteQueue, () => {});
    await index.catchUp();
    // The store itself may have begun with it.
    expect(batches).toBeLessThanOrEqual(3);
    const indexed = await database.read.execute(
      "SELECT max(id) AS last FROM search_index_docsize WHERE id > 0",
    );
    expect(indexed.rows[0]?.last).toBeGreaterThanOrEqual(1_200);
  } finally {
    await store.close();
    await backend.close();
  }
});
