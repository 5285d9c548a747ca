/** Listening on Node: node:http through Hono's adapter, with limits for connections that do not get on. */
import type { Server as HttpServer } from "node:http";
import { serve } from "@hono/node-server";
import type { Config } from "../config.ts";
import type { Server } from "./local-service.ts";
import type { Handler } from "./service.ts";

/** A connection has this long to send its headers, and to be used again. Milliseconds. */
const HEADERS_MS = 20_000;
const KEEP_ALIVE_MS = 65_000;
/** Bodies have their own clock (http/body.ts); this one only ends what that cannot see. Milliseconds. */
const REQUEST_MS = 3_600_000;
const HEADER_BYTES = 64 * 1024;

export function listenOnNode(handler: Handler, { host, port }: Config): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = serve(
      {
        fetch: (request, env) => handler(request, { address: () => env.incoming.socket.remoteAddress }),
        hostname: host,
        port,
        serverOptions: {
          headersTimeout: HEADERS_MS,
          keepAliveTimeout: KEEP_ALIVE_MS,
          requestTimeout: REQUEST_MS,
          maxHeaderSize: HEADER_BYTES,
        },
      },
      (address) => {
        server.off("error", reject);
        resolve({ port: address.port, drain: () => drain(server), cut: () => server.closeAllConnections() });
      },
    ) as HttpServer;
    server.once("error", reject);
  });
}

/** Connections that wait for a next request are closed at once, busy ones when they have ended. */
function drain(server: HttpServer): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeIdleConnections();
  });
}
