/** Where the runtimes are, for tests that start processes; see src/entry/path.sh for why not in node_modules/.bin. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const MODULES = fileURLToPath(new URL("../node_modules/", import.meta.url));

/** The Bun that the packages bring, otherwise the machine's. */
export function bunPath(): string {
  const folder = join(MODULES, "@oven");
  const found = existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name, "bin/bun")) : [];
  return found.find((path) => existsSync(path)) ?? "bun";
}
