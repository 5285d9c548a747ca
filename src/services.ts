/** The only place where parts are put together: Config + Platform + Store -> what the routes use. */

import { createPolicy } from "./agent/policy.ts";
import type { AgentServices } from "./agent/start.ts";
import type { Config } from "./config.ts";
import type { ModelRegistry } from "./core/model.ts";
import type { Platform } from "./core/platform.ts";
import type { Store } from "./core/store.ts";
import { createModelRegistry } from "./providers/registry.ts";
import { tools } from "./tools/registry.ts";

export interface Services {
  config: Config;
  platform: Platform;
  store: Store;
  models: ModelRegistry;
  agent: AgentServices;
}

export function createServices(config: Config, platform: Platform, store: Store): Services {
  return {
    config,
    platform,
    store,
    models: createModelRegistry({
      providers: config.providers,
      limits: config.upstream,
      strictKeys: config.models.strictKeyPrefix,
    }),
    agent: {
      platform,
      store,
      tools,
      policy: createPolicy(config.approval),
      limits: config.run,
      windows: config.models.contextWindows,
    },
  };
}
