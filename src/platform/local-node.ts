/** Listening on Node: node:http through Hono's adapter, with limits for connections that do not get on. */
import type { Server as HttpServer } from "node:http";
import type { Socket } from "node:net";
import { setFlagsFromString } from "node:v8";
import { serve } from "@hono/node-server";
import type { Config } from "../config.ts";
import type { Peers } from "./local-peers.ts";
import type { Server } from "./local-service.ts";
import type { Connection, Handler } from "./service.ts";

/** A connection has this long to send its headers, and to be used again. Milliseconds. */
const HEADERS_MS = 20_000;
const KEEP_ALIVE_MS = 65_000;
/** Bodies have their own clock (http/body.ts); this one only ends what that cannot see. Milliseconds. */
const REQUEST_MS = 3_600_000;
const HEADER_BYTES = 64 * 1024;
/** How far the heap may outgrow what is alive before it is collected; V8 would let it become a multiple. Percent. */
const HEAP_GROWTH = 15;

export function listenOnNode(handler: Handler, { host, port }: Config, peers: Peers): Promise<Server> {
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWTH}`);
  const connectionOf = createConnections(peers);
  return new Promise((resolve, reject) => {
    const server = serve(
      {
        fetch: (request, env) => handler(request, connectionOf(env.incoming.socket)),
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

/** What is known of a socket. Whose it is, is asked once. */
function createConnections(peers: Peers): (socket: Socket) => Connection {
  const known = new WeakMap<Socket, Promise<boolean>>();
  return (socket) => {
    const address = () => socket.remoteAddress;
    const check = peers.startedByAgent;
    if (!check) return { address };
    return {
      address,
      startedByAgent() {
        let verdict = known.get(socket);
        if (!verdict) {
          verdict = check(socket.remoteAddress, socket.remotePort ?? 0, socket.localPort ?? 0);
          known.set(socket, verdict);
        }
        return verdict;
      },
    };
  };
}

/** Connections that wait for a next request are closed at once, busy ones when they have ended. */
function drain(server: HttpServer): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeIdleConnections();
  });
}
