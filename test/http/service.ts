/** The service over a database file of its own, with models that a test has written and a clock that it sets. */

import * as z from "zod";
import { createApp } from "../../src/app.ts";
import { parseConfig } from "../../src/config.ts";
import type { GuardedFetch } from "../../src/core/fetch.ts";
import type { ModelAdapter, ModelRegistry } from "../../src/core/model.ts";
import type { Log, Platform } from "../../src/core/platform.ts";
import type { Store } from "../../src/core/store.ts";
import { defineTool, type Tool } from "../../src/core/tool.ts";
import { createClient } from "../../src/platform/local-database.ts";
import { createVirtualTerminal } from "../../src/platform/virtual-terminal.ts";
import { createVirtualWorkspace } from "../../src/platform/virtual-workspace.ts";
import { readHtml } from "../../src/platform/worker-html.ts";
import type { ChatEvent } from "../../src/protocols/native-chat-events.ts";
import { parseFrames } from "../../src/protocols/native-chat-stream.ts";
import { createModelRegistry } from "../../src/providers/registry.ts";
import { createServices, type Services } from "../../src/services.ts";
import { openFileDatabase } from "../../src/store/database.ts";
import { migrate } from "../../src/store/migrations.ts";
import { createStore } from "../../src/store/store.ts";
import { noFetch } from "../no-fetch.ts";
import { type Backend, createFileBackend, MIGRATIONS } from "../store/backends.ts";

export const START = new Date("2026-11-20T10:00:00.000Z");
const SECRET = "a-secret-of-the-tests-with-enough-characters";

export interface TestHome {
  backend: Backend & { path: string };
  clock: { now: Date };
  close(): Promise<void>;
}

/** A database that several services may share, one after the other or at once. */
export async function createHome(): Promise<TestHome> {
  const backend = await createFileBackend();
  const database = await openFileDatabase(backend.path, createClient);
  await migrate(database, MIGRATIONS);
  const clock = { now: START };
  const open = createStore({ database, log: () => {}, now: () => clock.now, background: () => {} });
  return {
    backend,
    clock,
    async close() {
      await open.close();
      await backend.close();
    },
  };
}

export interface TestService {
  services: Services;
  store: Store;
  logged: Parameters<Log>[];
  /** Credentials that adapters were made for. */
  keys: string[];
  request(path: string, init?: RequestInit & { json?: unknown; token?: string }): Promise<Response>;
  post(path: string, json: unknown, headers?: Record<string, string>): Promise<Response>;
  /** Ends it as kill -9 does: nothing is given up, nothing more is written. */
  kill(): void;
  close(): Promise<void>;
}

export interface TestOptions {
  model: ModelAdapter;
  env?: Record<string, string>;
  /** `own`: those that Dragoman has. Default: two of the tests', one that looks and one that writes. */
  tools?: readonly Tool[] | "own";
  files?: Platform["files"];
  terminal?: Platform["terminal"];
  fetch?: GuardedFetch;
  watch?: Platform["watch"];
  /** Runs left by others are looked for when the test says so. */
  recovers?: boolean;
}

export async function createService(home: TestHome, options: TestOptions): Promise<TestService> {
  const logged: Parameters<Log>[] = [];
  const pending = new Set<Promise<unknown>>();
  const background = (work: Promise<unknown>): void => {
    const settled: Promise<unknown> = work
      .catch((error: unknown) => logged.push(["error", "background work failed", { error: String(error) }]))
      .finally(() => pending.delete(settled));
    pending.add(settled);
  };
  const log: Log = (...entry) => void logged.push(entry);
  const now = () => home.clock.now;
  const database = await openFileDatabase(home.backend.path, createClient);
  // Usage rows wait a while before they are written; closing writes them.
  const store = createStore({ database, log, now, background: (work) => void work.catch(() => {}) });
  let alive = true;
  const config = parseConfig(
    { OPENAI_API_KEY: "sk-operator", OPENAI_MODEL: "scripted", ...options.env },
    { runtime: "node" },
  );
  const platform: Platform = {
    // Nothing happens by itself: the test says when it is time to look for what others have left.
    runtime: options.recovers ? "node" : "workerd",
    files: options.files ?? ((owner) => createVirtualWorkspace(store.files, owner)),
    ...(config.terminal === "off"
      ? {}
      : { terminal: options.terminal ?? ((owner: string) => createVirtualTerminal(store.files, owner)) }),
    fetch: options.fetch ?? noFetch,
    watch: options.watch,
    html: readHtml,
    background,
    now,
    log,
    secret: SECRET,
  };
  const keys: string[] = [];
  const real = createModelRegistry({
    providers: config.providers,
    limits: config.upstream,
    strictKeys: false,
  });
  const models: ModelRegistry = {
    choose: (wish) => real.choose(wish),
    async adapter({ key }) {
      keys.push(key);
      return options.model;
    },
  };
  const guarded: Store = { ...store, runs: mortal(store.runs, () => alive) };
  const services = createServices(config, platform, guarded, {
    models,
    ...(options.tools === "own" ? {} : { tools: options.tools ?? toolbox() }),
  });
  const app = createApp(services);
  const request: TestService["request"] = async (path, { json, token, ...init } = {}) => {
    const headers = new Headers(init.headers);
    if (json !== undefined) headers.set("content-type", "application/json");
    if (token !== undefined) headers.set("authorization", `Bearer ${token}`);
    const body = json === undefined ? init.body : JSON.stringify(json);
    return app.request(`http://127.0.0.1:8000${path}`, { ...init, headers, body });
  };
  return {
    ...{ services, store, logged, keys, request },
    post: (path, json, headers = {}) => request(path, { method: "POST", json, headers }),
    kill() {
      alive = false;
    },
    async close() {
      // What a killed process was at never ends.
      if (alive) {
        await services.close();
        while (pending.size > 0) await Promise.all(pending);
      }
      await store.close();
    },
  };
}

/** What a process that is gone writes no more. */
function mortal(runs: Store["runs"], isAlive: () => boolean): Store["runs"] {
  return new Proxy(runs, {
    get(target, name: keyof Store["runs"]) {
      const method = target[name] as (...args: unknown[]) => Promise<unknown>;
      return (...args: unknown[]) => (isAlive() ? method.apply(target, args) : new Promise(() => {}));
    },
  });
}

/** What the tools of a test have done, in order. */
export const done: string[] = [];

export function toolbox(gate?: (name: string, signal: AbortSignal) => Promise<void>): Tool[] {
  const make = (name: string, risk: Tool["risk"]) =>
    defineTool({
      name,
      description: name,
      args: z.object({ path: z.string().optional(), n: z.number().optional() }),
      needs: [],
      risk,
      async run({ n, path }, { signal, progress }) {
        done.push(`${name} ${path ?? n ?? ""}`.trim());
        progress(`${name} works`);
        await gate?.(name, signal);
        return { content: [{ type: "text", text: `${name} has done ${path ?? n ?? "it"}` }] };
      },
    });
  return [make("look", "read"), make("write", "write")];
}

export interface Seen {
  text: string;
  events: ChatEvent[];
}

/** A whole event stream. */
export async function readEvents(response: Response): Promise<Seen> {
  const text = await response.text();
  return { text, events: parseFrames(text).map(({ event }) => event) };
}

export function ofType<Type extends ChatEvent["type"]>(
  events: readonly ChatEvent[],
  type: Type,
): Extract<ChatEvent, { type: Type }>[] {
  return events.filter((event): event is Extract<ChatEvent, { type: Type }> => event.type === type);
}

/** A body whose fields a test knows. */
// biome-ignore lint/suspicious/noExplicitAny: a body is what a test says it is.
export async function json(response: Response): Promise<any> {
  return response.json();
}
