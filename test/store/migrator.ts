/** A process of its own that migrates a file and prints what it applied. */
import { createClient } from "../../src/platform/local-database.ts";
import { closeDatabase, openFileDatabase } from "../../src/store/database.ts";
import { migrate } from "../../src/store/migrations.ts";
import { MIGRATIONS } from "./backends.ts";

const database = await openFileDatabase(process.argv[2]!, createClient);
const applied = await migrate(database, MIGRATIONS);
closeDatabase(database);
process.stdout.write(JSON.stringify(applied));
