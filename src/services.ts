/** The only place where parts are put together: Config + Platform + Store -> what the routes use. */
import { createKeyVault } from "./agent/key-vault.ts";
import { LiveRuns } from "./agent/live-runs.ts";
import type { AgentServices } from "./agent/turn.ts";
import type { Config } from "./config.ts";
import type { ModelRegistry } from "./core/model.ts";
import type { Platform } from "./core/platform.ts";
import type { Redaction } from "./core/redaction.ts";
import type { Store } from "./core/store.ts";
import { RunFrames } from "./protocols/run-frames.ts";
import { createModelRegistry } from "./providers/registry.ts";
import { tools } from "./tools/registry.ts";

export interface Services {
  config: Config;
  platform: Platform;
  store: Store;
  models: ModelRegistry;
  agent: AgentServices;
  runs: LiveRuns;
  /** Stops looking after runs, and gives up those that are not finished. The store stays open. */
  close(): Promise<void>;
}

export interface ServiceParts {
  models?: ModelRegistry;
  tools?: AgentServices["tools"];
}

/** `parts`: in place of those that the configuration says. */
export function createServices(
  config: Config,
  platform: Platform,
  store: Store,
  parts: ServiceParts = {},
): Services {
  const registry =
    parts.models ??
    createModelRegistry({
      providers: config.providers,
      limits: config.upstream,
      strictKeys: config.models.strictKeyPrefix,
    });
  const models = platform.redaction ? watched(registry, platform.redaction) : registry;
  const agent: AgentServices = {
    platform,
    store,
    models,
    tools: parts.tools ?? tools,
    approval: config.approval,
    limits: config.run,
    windows: config.models.contextWindows,
    vault: platform.secret === undefined ? undefined : createKeyVault(platform.secret),
    holder: crypto.randomUUID(),
    leaseMs: config.sessions.leaseMs,
    patienceMs: config.sessions.waitMs,
    encoder: (run) => new RunFrames(run),
  };
  const runs = new LiveRuns(agent);
  const stop = lookAfter(runs, config, platform);
  return {
    ...{ config, platform, store, models, agent, runs },
    async close() {
      stop();
      await runs.release();
    },
  };
}

/** Every key that is used passes here, wherever it comes from: headers, bodies, jobs, runs that go on. */
function watched(registry: ModelRegistry, redaction: Redaction): ModelRegistry {
  return {
    choose(wish) {
      if (wish.key !== undefined) redaction.hold(wish.key);
      return registry.choose(wish);
    },
    adapter(credentials) {
      redaction.hold(credentials.key);
      return registry.adapter(credentials);
    },
  };
}

/** Looks for runs that others have left, at once and again and again. On Workers nothing may run between requests. */
function lookAfter(runs: LiveRuns, config: Config, platform: Platform): () => void {
  if (platform.runtime === "workerd") return () => {};
  let busy = false;
  const look = async (): Promise<void> => {
    if (busy) return;
    busy = true;
    try {
      await runs.recover();
    } finally {
      busy = false;
    }
  };
  platform.background(look());
  const timer = setInterval(() => platform.background(look()), config.sessions.leaseMs / 2);
  // It must not keep a process alive that has nothing else to do.
  (timer as { unref?(): void }).unref?.();
  return () => clearInterval(timer);
}
