/** The transport to a server: of the kind that it speaks, and bounded. */
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { RequestId } from "@modelcontextprotocol/sdk/types.js";
import type { GuardedFetch } from "../core/fetch.ts";
import type { McpSecrets, McpServerSpec } from "../core/mcp.ts";
import type { StdioConnector } from "../core/platform.ts";
import { BoundedTransport } from "./bounded-transport.ts";
import { type Failure, failureOf, TOO_LARGE } from "./faults.ts";
import { createHttpLink } from "./http-fetch.ts";
import { MESSAGE_BYTES } from "./limits.ts";
import { StdioTransport } from "./stdio-transport.ts";

const TOO_LARGE_WORDS = `sent an answer of more than ${MESSAGE_BYTES / 1024 / 1024} MiB, which was dropped`;
const GONE = "ended the connection";

export interface TransportHost {
  fetch: GuardedFetch;
  /** Starts programs; absent where none may be started. */
  stdio: StdioConnector | undefined;
  /** Addresses that callers give are the operator's own choice. */
  trusted: boolean;
  callerMark: string;
}

export interface ServerTransport {
  bounded: BoundedTransport;
  /** Of the newer HTTP transport, which has sessions to end. */
  http?: StreamableHTTPClientTransport | undefined;
  /** Of a program, which says last words. */
  stdio?: StdioTransport | undefined;
}

/** `onDown`: what ends the connection though the transport may not know it. */
export function createTransport(
  server: McpServerSpec,
  secrets: McpSecrets,
  host: TransportHost,
  onDown: (failure: Failure) => void,
): ServerTransport {
  return server.transport === "stdio"
    ? overStdio(server, secrets, host.stdio, onDown)
    : overHttp(server, secrets, host, onDown);
}

const clock = () => performance.now();

function overStdio(
  server: McpServerSpec,
  { env }: McpSecrets,
  connector: StdioConnector | undefined,
  onDown: (failure: Failure) => void,
): ServerTransport {
  if (!connector) throw new Error("No programs may be started here.");
  const stdio = new StdioTransport(connector, {
    ...{ command: server.command ?? "", args: server.args, env },
    onTooLong: (id) => {
      const given = id !== undefined && bounded.isPending(id) ? id : bounded.onlyPending();
      if (given === undefined) onDown({ kind: "lost", words: TOO_LARGE_WORDS });
      else bounded.lose(given, TOO_LARGE_WORDS, TOO_LARGE);
    },
  });
  const bounded = new BoundedTransport(stdio, {
    clock,
    onAbuse: (words) => onDown({ kind: "lost", words }),
  });
  return { bounded, stdio };
}

function overHttp(
  server: McpServerSpec,
  { headers }: McpSecrets,
  { fetch: guarded, trusted, callerMark }: TransportHost,
  onDown: (failure: Failure) => void,
): ServerTransport {
  const url = new URL(server.url ?? "");
  const sse = server.transport === "sse";
  const { fetch, drop } = createHttpLink({
    ...{ url: url.href, headers, sse, fetch: guarded, trusted, callerMark },
    onLost: (id: RequestId, tooLarge: boolean) =>
      tooLarge
        ? bounded.lose(id, TOO_LARGE_WORDS, TOO_LARGE)
        : bounded.lose(id, `${GONE} before it had answered`),
    onDown: (error) => onDown(error ? failureOf(error) : { kind: "lost", words: GONE }),
  });
  const http = sse ? undefined : new StreamableHTTPClientTransport(url, { fetch });
  const bounded = new BoundedTransport(http ?? new SSEClientTransport(url, { fetch }), {
    clock,
    onGivenUp: drop,
    onAbuse: (words) => onDown({ kind: "lost", words }),
  });
  return { bounded, http };
}
