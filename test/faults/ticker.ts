/**
 * A process of its own: ticks until nothing is due any more, with a model that answers at once. Prints a line for each model
 * call: the run's id.
 */
import { createClient as createWebClient } from "@libsql/client/web";
import { parseConfig } from "../../src/config.ts";
import type { ModelAdapter } from "../../src/core/model.ts";
import type { Platform } from "../../src/core/platform.ts";
import { AppError } from "../../src/errors.ts";
import { createClient } from "../../src/platform/local-database.ts";
import { createVirtualWorkspace } from "../../src/platform/virtual-workspace.ts";
import { createServices } from "../../src/services.ts";
import { openFileDatabase, openRemoteDatabase } from "../../src/store/database.ts";
import { createStore } from "../../src/store/store.ts";
import { noFetch } from "../no-fetch.ts";
import { scriptedEvents } from "../scripted-model.ts";

/** Milliseconds. */
const BETWEEN_TICKS = 50;

const [where = "", leaseSeconds = "30"] = process.argv.slice(2);
const database = where.startsWith("http")
  ? openRemoteDatabase({ url: where }, createWebClient)
  : await openFileDatabase(where, createClient);
const now = () => new Date();
const background = (work: Promise<unknown>): void =>
  void work.catch((error: unknown) => process.stderr.write(`${String(error)}\n`));
const log: Platform["log"] = (level, message, fields) => {
  if (level === "error") process.stderr.write(`${message} ${JSON.stringify(fields)}\n`);
};
const store = createStore({ database, log, now, background });
const platform: Platform = {
  // Nothing happens by itself here.
  runtime: "workerd",
  files: (owner) => createVirtualWorkspace(store.files, owner),
  fetch: noFetch,
  ...{ background, now, log, secret: "a-secret-of-the-tests-with-enough-characters" },
};
const model: ModelAdapter = {
  provider: "openai",
  models: async () => [],
  async *stream(request) {
    const last = request.messages.at(-1);
    const part = last?.role === "user" ? last.content[0] : undefined;
    process.stdout.write(`${part?.type === "text" ? part.text : "?"}\n`);
    yield* scriptedEvents({ text: "done" });
  },
};
const env = { OPENAI_API_KEY: "sk-operator", TERMINAL: "off", RUN_LEASE: leaseSeconds };
const services = createServices(parseConfig(env, { runtime: "node" }), platform, store, {
  models: {
    choose: () => ({ provider: "openai", key: "sk-operator" }),
    adapter: async () => model,
  },
  tools: [],
});
for (;;) {
  try {
    await services.tick();
    if ((await store.automation.nextDue()) === null && services.runs.active === 0) break;
  } catch (error) {
    // A database with too much to do is tried again, as the service does it.
    if (!(error instanceof AppError && error.code === "unavailable")) throw error;
  }
  await new Promise((resolve) => setTimeout(resolve, BETWEEN_TICKS));
}
await services.close();
await store.close();
process.exit(0);
