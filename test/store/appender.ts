/** A process of its own: appends to a session as fast as it can and prints each position that was acknowledged. */
import { createClient } from "../../src/platform/local-database.ts";
import { openFileDatabase } from "../../src/store/database.ts";
import { createStore } from "../../src/store/store.ts";

const [path, label] = process.argv.slice(2) as [string, string];
const store = createStore({
  database: await openFileDatabase(path, createClient),
  log: () => {},
  now: () => new Date(),
  background: (work) => void work,
});
const { id, lastSeq } = await store.sessions.open("ann", label);
for (let seq = lastSeq; ; ) {
  const content = [{ type: "text" as const, text: `${label} ${seq + 1} ${"x".repeat(2_000)}` }];
  const next = await store.sessions.append("ann", id, seq, [{ role: "user", content }]);
  if (next === null) throw new Error("Somebody else appended.");
  seq = next;
  process.stdout.write(`${seq}\n`);
}
