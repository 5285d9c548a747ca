/** Listening on Bun: its own server. */
import type { Config } from "../config.ts";
import type { Server } from "./local-service.ts";
import type { Handler } from "./service.ts";

/** Above any limit of ours, which http/body.ts enforces with a sentence. Bytes. */
const BODY_BYTES = 2 * 1024 * 1024 * 1024;

export async function listenOnBun(handler: Handler, { host, port }: Config): Promise<Server> {
  const server = Bun.serve({
    hostname: host,
    port,
    // A quiet stream is not an idle connection: Bun would cut it after ten seconds.
    idleTimeout: 0,
    maxRequestBodySize: BODY_BYTES,
    fetch: (request, self) => handler(request, { address: () => self.requestIP(request)?.address }),
  });
  return {
    port: server.port ?? port,
    drain: () => server.stop(),
    cut: () => void server.stop(true),
  };
}
