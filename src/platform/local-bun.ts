/** Listening on Bun: its own server. */
import type { Config } from "../config.ts";
import type { Peers } from "./local-peers.ts";
import type { Server } from "./local-service.ts";
import type { Connection, Handler } from "./service.ts";

/** Above any limit of ours, which http/body.ts enforces with a sentence. Bytes. */
const BODY_BYTES = 2 * 1024 * 1024 * 1024;

export async function listenOnBun(handler: Handler, { host, port }: Config, peers: Peers): Promise<Server> {
  const connectionOf = createConnections(peers);
  const server = Bun.serve({
    hostname: host,
    port,
    // A quiet stream is not an idle connection: Bun would cut it after ten seconds.
    idleTimeout: 0,
    maxRequestBodySize: BODY_BYTES,
    // Otherwise it prints what breaks a reply, past the log (K2).
    development: false,
    fetch: (request, self) => handler(request, connectionOf(request, self)),
  });
  return {
    port: server.port ?? port,
    drain: () => server.stop(),
    cut: () => void server.stop(true),
  };
}

/** The server knows a client by its address alone, so that what was found out holds for a moment. Milliseconds. */
const VERDICT_MS = 2_000;
/** Verdicts kept at most, the oldest goes first. */
const VERDICTS_KEPT = 4_096;

function createConnections(peers: Peers): (request: Request, server: BunServer) => Connection {
  const known = new Map<string, { verdict: Promise<boolean>; until: number }>();
  return (request, server) => {
    const address = () => server.requestIP(request)?.address;
    const check = peers.startedByAgent;
    if (!check) return { address };
    return {
      address,
      startedByAgent() {
        const peer = server.requestIP(request);
        const now = performance.now();
        const name = `${peer?.address} ${peer?.port}`;
        const before = known.get(name);
        if (before && before.until > now) return before.verdict;
        const verdict = check(peer?.address, peer?.port ?? 0, server.port ?? 0);
        known.delete(name);
        if (known.size >= VERDICTS_KEPT) known.delete(known.keys().next().value as string);
        known.set(name, { verdict, until: now + VERDICT_MS });
        return verdict;
      },
    };
  };
}
