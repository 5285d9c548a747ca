/** Settings, store and routes, as the entries hand them to their platform. */
import { createApp } from "./app.ts";
import { type Config, parseConfig, secretsOf } from "./config.ts";
import type { Connection, LocalStoreHost, Service, StoreHost } from "./platform/service.ts";
import { createServices } from "./services.ts";
import { openFileDatabase, openRemoteDatabase } from "./store/database.ts";
import { migrate } from "./store/migrations.ts";
import { createStore } from "./store/store.ts";

export const service: Service = {
  parseConfig,
  secretsOf,
  async openLocalStore(config, host) {
    const database =
      config.database.url === undefined
        ? await openFileDatabase(host.file, host.createClient)
        : openServer(config, host, false);
    await migrate(database, host.migrations, host.now);
    return createStore({ ...hostOf(host), database });
  },
  openServerStore: (config, host) =>
    createStore({ ...hostOf(host), database: openServer(config, host, true) }),
  compose(config, platform, store) {
    const services = createServices(config, platform, store);
    const app = createApp(services);
    const handle = (request: Request, connection: Connection) => app.fetch(request, connection);
    return Object.assign(handle, { tick: () => services.tick(), close: () => services.close() });
  },
};

function openServer({ database: { url = "", authToken } }: Config, host: StoreHost, requestBound: boolean) {
  return openRemoteDatabase({ url, authToken, requestBound }, host.createClient);
}

function hostOf({ log, now, background }: StoreHost | LocalStoreHost) {
  return { log, now, background };
}
