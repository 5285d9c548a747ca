/** The service as the platforms know it: what they are handed, since they see neither settings nor store nor routes. */
import type { Config, ConfigOptions } from "../config.ts";
import type { Log, Platform } from "../core/platform.ts";
import type { Store } from "../core/store.ts";

/** What the runtime knows of a connection; the second argument of `app.fetch`. */
export interface Connection {
  address(): string | undefined;
}

export type Handler = (request: Request, connection: Connection) => Response | Promise<Response>;

/** `createClient` of the `@libsql/client` that fits the address. */
type CreateClient = typeof import("@libsql/client/web").createClient;

export interface StoreHost {
  createClient: CreateClient;
  log: Log;
  now(): Date;
  background(work: Promise<unknown>): void;
}

export interface LocalStoreHost extends StoreHost {
  /** Path of the database file, where the settings name no server. */
  file: string;
  /** All there are; those that are missing are applied. */
  migrations: { name: string; sql: string }[];
}

export interface Service {
  /** Throws ConfigError, whose message names every wrong setting. */
  parseConfig(env: Record<string, string | undefined>, options: ConfigOptions): Config;
  secretsOf(config: Config): string[];
  openLocalStore(config: Config, host: LocalStoreHost): Promise<Store>;
  openServerStore(config: Config, host: StoreHost): Store;
  compose(config: Config, platform: Platform, store: Store): Handler;
}
