/** A process of its own that holds the write lock: from its first line of output until its input ends. */
import { createClient } from "@libsql/client/sqlite3";

const client = createClient({ url: process.argv[2]!, concurrency: 1, timeout: 5_000 });
const transaction = await client.transaction("write");
process.stdout.write("locked\n");
process.stdin.resume();
process.stdin.on("end", () => {
  void transaction.rollback().then(() => client.close());
});
