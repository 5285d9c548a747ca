/** The service as the platforms know it: what they are handed, since they see neither settings nor store nor routes. */
import type { Client as LibsqlClient, Config as LibsqlConfig } from "@libsql/client/web";
import type { Config, ConfigOptions } from "../config.ts";
import type { Log, Platform } from "../core/platform.ts";
import type { Store } from "../core/store.ts";

/** What the runtime knows of a connection; the second argument of `app.fetch`. */
export interface Connection {
  address(): string | undefined;
  /** Whether a command of the agent is at the other end. Absent where that cannot be. */
  startedByAgent?(): Promise<boolean>;
}

export interface Handler {
  (request: Request, connection: Connection): Response | Promise<Response>;
  /** Goes on with what others have left. For hosts that call from outside, since nothing runs there between requests. */
  tick?(): Promise<void>;
  /** Gives up the runs that are not finished, so that another process can go on with them. The store stays open. */
  close?(): Promise<void>;
}

/** What the store uses of a libSQL client. */
type Client = Pick<LibsqlClient, "execute" | "batch" | "migrate" | "reconnect" | "close" | "closed">;
/** That of the client which fits the address. */
type CreateClient = (config: LibsqlConfig) => Client;

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
