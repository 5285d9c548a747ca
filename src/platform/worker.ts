/** The platform of Workers: a libSQL server for everything, files and shell virtual, work that the runtime holds open. */
import { createClient } from "@libsql/client/web";
import type { Config } from "../config.ts";
import type { Platform } from "../core/platform.ts";
import { createRedaction } from "../core/redaction.ts";
import type { Store } from "../core/store.ts";
import { createLog } from "./log.ts";
import type { Handler, Service } from "./service.ts";
import { createVirtualTerminal } from "./virtual-terminal.ts";
import { createVirtualWorkspace } from "./virtual-workspace.ts";
import { createWorkerFetch } from "./worker-fetch.ts";
import { readHtml } from "./worker-html.ts";

type WaitUntil = (work: Promise<unknown>) => void;

/**
 * The handler of an isolate, made at its first request: nothing in it belongs to one request, but for `waitUntil`, which
 * finds out by itself for which one it is called. Wrong settings answer every request with 503 and stand in the log.
 */
export function createWorkerHandler(
  env: Record<string, unknown>,
  waitUntil: WaitUntil,
  service: Service,
): Handler {
  let config: Config;
  try {
    config = service.parseConfig(textsOf(env), { runtime: "workerd" });
  } catch (error) {
    const log = createLog({ level: "error", format: "json", secrets: [], write: print });
    log("error", error instanceof Error ? error.message : String(error));
    return () => misconfigured();
  }
  const { platform, store } = createWorkerPlatform(config, waitUntil, service);
  return service.compose(config, platform, store);
}

export function createWorkerPlatform(
  config: Config,
  waitUntil: WaitUntil,
  service: Service,
): { platform: Platform; store: Store } {
  const redaction = createRedaction();
  const log = createLog({
    level: config.log.level,
    format: config.log.format ?? "json",
    secrets: service.secretsOf(config),
    redaction,
    write: print,
  });
  const now = () => new Date();
  const background = (work: Promise<unknown>): void =>
    waitUntil(
      work.catch((error: unknown) => log("error", "background work failed", { error: String(error) })),
    );
  const store = service.openServerStore(config, { createClient, log, now, background });
  const platform: Platform = {
    runtime: "workerd",
    files: (owner) => createVirtualWorkspace(store.files, owner),
    ...(config.terminal === "off"
      ? {}
      : { terminal: (owner: string) => createVirtualTerminal(store.files, owner) }),
    html: readHtml,
    fetch: createWorkerFetch({ allow: config.fetch.allow, ownPort: () => config.port }),
    background,
    now,
    log,
    redaction,
    secret: secretOf(config.access),
  };
  return { platform, store };
}

/**
 * What keys at rest are encrypted under. Without SECRET_KEY the access tokens serve, since they are secret too; when they
 * change, runs that wait for an approval have lost their key.
 */
function secretOf({ secretKey, tokens }: Config["access"]): string | undefined {
  if (secretKey !== undefined || tokens.length === 0) return secretKey;
  return tokens.map(({ owner, token }) => `${owner}:${token}`).join();
}

/** Bindings other than vars and secrets are objects. */
function textsOf(env: Record<string, unknown>): Record<string, string | undefined> {
  const out: Record<string, string | undefined> = {};
  for (const [name, value] of Object.entries(env)) {
    if (typeof value === "string") out[name] = value;
    else if (typeof value === "number" || typeof value === "boolean") out[name] = String(value);
  }
  return out;
}

function misconfigured(): Response {
  const body = {
    type: "about:blank",
    title: "Service Unavailable",
    status: 503,
    detail: "The settings of this service are wrong. Its log names them.",
    code: "unavailable",
  };
  return Response.json(body, { status: 503, headers: { "content-type": "application/problem+json" } });
}

function print(line: string): void {
  // biome-ignore lint/suspicious/noConsole: the console is where a worker's log goes.
  console.log(line.trimEnd());
}
