/** Brings the database to the present schema: the server that LIBSQL_URL names, otherwise the file in DATA_DIR. */
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createClient as createFileClient } from "@libsql/client";
import { createClient as createServerClient } from "@libsql/client/web";
import { closeDatabase, openFileDatabase, openRemoteDatabase } from "../store/database.ts";
import { migrate } from "../store/migrations.ts";

process.on("uncaughtException", (error) => {
  process.stderr.write(`${error.message}\n`);
  process.exit(1);
});
const root = fileURLToPath(new URL("../../", import.meta.url));
if (existsSync(join(root, ".env"))) process.loadEnvFile(join(root, ".env"));
const { LIBSQL_URL: url, LIBSQL_AUTH_TOKEN: authToken, DATA_DIR: folder = "./data" } = process.env;
if (!url) mkdirSync(folder, { recursive: true, mode: 0o700 });
const database = url
  ? openRemoteDatabase({ url, authToken }, createServerClient)
  : await openFileDatabase(join(folder, "dragoman.db"), createFileClient);
const names = readdirSync(join(root, "migrations")).filter((name) => name.endsWith(".sql"));
const read = (name: string) => ({
  name: name.slice(0, -4),
  sql: readFileSync(join(root, "migrations", name), "utf8"),
});
const applied = await migrate(database, names.map(read));
closeDatabase(database);
process.stdout.write(applied.length > 0 ? `Applied ${applied.join(", ")}.\n` : "Nothing to apply.\n");
