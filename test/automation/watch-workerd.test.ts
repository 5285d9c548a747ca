/** A watchdog on a directory where nothing is watched natively: Workers, with a workspace in the database. */
import { execFile } from "node:child_process";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { createClient } from "@libsql/client/web";
import { afterEach, expect, test, vi } from "vitest";
import { createVirtualWorkspace } from "../../src/platform/virtual-workspace.ts";
import { openRemoteDatabase } from "../../src/store/database.ts";
import { createStore } from "../../src/store/store.ts";
import { startDouble } from "../matrix/double.ts";
import { canRun, startService } from "../service.ts";
import { startSqld } from "../sqld.ts";

const TOKEN = "token-of-ann-1234567890";
const HEADERS = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
const MIGRATE = fileURLToPath(new URL("../../src/entry/migrate.ts", import.meta.url));

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function database() {
  const sqld = await startSqld();
  closing.push(() => sqld.close());
  const env = { PATH: process.env.PATH, LIBSQL_URL: sqld.url };
  await promisify(execFile)(process.execPath, [MIGRATE], { cwd: tmpdir(), env });
  const background = (work: Promise<unknown>) => void work.catch(() => {});
  const opened = openRemoteDatabase({ url: sqld.url }, createClient);
  const store = createStore({ database: opened, log: () => {}, now: () => new Date(), background });
  closing.push(() => store.close());
  return { url: sqld.url, workspace: createVirtualWorkspace(store.files, "ann") };
}

test.runIf(canRun("workerd"))(
  "its ticks find what has changed, and fire once",
  {
    timeout: 120_000,
  },
  async () => {
    const [upstream, { url, workspace }] = await Promise.all([startDouble(), database()]);
    closing.push(() => upstream.stop());
    upstream.script({ content: "seen to" });
    const access = {
      ACCESS_TOKENS: `ann:${TOKEN}`,
      AUTH: "",
      OPENAI_API_KEY: "sk-of-the-operator-1234567890",
    };
    const service = await startService({
      runtime: "workerd",
      env: { LIBSQL_URL: url, ...access, ...upstream.env },
    });
    closing.push(() => service.stop());
    const send = (path: string, body?: object) =>
      fetch(service.url + path, {
        ...{ headers: HEADERS, method: body ? "POST" : "GET" },
        ...(body && { body: JSON.stringify(body) }),
      });
    // biome-ignore lint/suspicious/noExplicitAny: a body is what a test says it is.
    const call = async (path: string, body?: object): Promise<any> => (await send(path, body)).json();
    const write = (path: string) => workspace.write(path, new TextEncoder().encode(path));
    await write("in/old");
    const body = { action: "act", directory: "in", interval_seconds: 5, debounce_seconds: 0 };
    const { watchdog_id: id } = await call("/api/watchdog", body);
    /** Ticks as a host's clock would, until `isDone`. */
    const ticked = <T>(isDone: () => Promise<T>) =>
      vi.waitUntil(
        async () => {
          await call("/api/automation/tick", {});
          return isDone();
        },
        { timeout: 30_000, interval: 250 },
      );
    await ticked(async () => (await call(`/api/watchdog/${id}`)).last_checked_at);
    await write("in/new");
    const run = await ticked(async () => {
      const { runs } = await call(`/api/watchdog/${id}/runs`);
      return runs[0]?.ended_at && runs[0];
    });
    expect(run).toMatchObject({ fate: "ran", trigger: "watchdog" });
    expect(JSON.stringify(upstream.histories())).toContain('made (1): \\"new\\"');
    const { messages } = await call(`/api/sessions/${run.session_id}/messages`);
    expect(messages.at(-1).content).toBe("seen to");
    expect(await call(`/api/watchdog/${id}/test`, {})).toMatchObject({ would_fire: false, error: null });
  },
);
