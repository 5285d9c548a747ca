/** A plain HTTP server that plays an upstream with faults written by hand, and remembers what it was asked. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface UpstreamRequest {
  method: string;
  /** Path with its query string. */
  path: string;
  headers: IncomingHttpHeaders;
  body: Record<string, unknown>;
  /** Resolves when the connection closes: true when the whole reply had been written before. */
  closed: Promise<boolean>;
}

/** Answers one request; `n` counts the requests from 0. */
export type Answer = (response: ServerResponse, request: UpstreamRequest, n: number) => void | Promise<void>;

export interface UpstreamServer extends AsyncDisposable {
  /** `http://127.0.0.1:<port>`, without a path. */
  readonly url: string;
  readonly requests: UpstreamRequest[];
  /** How many connections were made so far. */
  readonly connections: number;
  /** Replaces the answer and forgets the requests so far. */
  answer(answer: Answer): void;
  /** Resolves with the next request to come (or one that came since the last `answer`). */
  request(n: number): Promise<UpstreamRequest>;
}

export async function startUpstream(first?: Answer): Promise<UpstreamServer> {
  let answer: Answer = first ?? ((response) => void response.writeHead(404).end());
  let requests: UpstreamRequest[] = [];
  let waiting: (() => void)[] = [];
  const server = createServer(async (incoming, response) => {
    const closed = new Promise<boolean>((resolve) => {
      response.on("close", () => resolve(response.writableFinished));
    });
    response.on("error", () => {});
    let text = "";
    incoming.setEncoding("utf8");
    try {
      for await (const piece of incoming) text += piece;
    } catch {
      return;
    }
    const request: UpstreamRequest = {
      method: incoming.method ?? "",
      path: incoming.url ?? "",
      headers: incoming.headers,
      body: text === "" ? {} : JSON.parse(text),
      closed,
    };
    const n = requests.push(request) - 1;
    for (const wake of waiting.splice(0)) wake();
    await answer(response, request, n);
  });
  let connections = 0;
  server.on("connection", () => {
    connections++;
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get requests() {
      return requests;
    },
    get connections() {
      return connections;
    },
    answer(next) {
      answer = next;
      requests = [];
      waiting = [];
    },
    async request(n) {
      while (requests.length <= n) await new Promise<void>((resolve) => waiting.push(resolve));
      return requests[n]!;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A whole reply: status, JSON or text body, headers. */
export function reply(
  status: number,
  body: string | Record<string, unknown>,
  headers: Record<string, string> = {},
): Answer {
  return (response) => {
    const type = typeof body === "string" ? "text/html" : "application/json";
    response.writeHead(status, { "content-type": type, ...headers });
    response.end(typeof body === "string" ? body : JSON.stringify(body));
  };
}

/**
 * An event stream in the given pieces, each written on its own. `then` says what follows the last one: the orderly
 * end, the connection torn down, or silence on an open connection.
 */
export function stream(
  pieces: Iterable<string | Uint8Array>,
  then: "end" | "cut" | "hang" = "end",
  type: string | null = "text/event-stream",
): Answer {
  return async (response) => {
    response.writeHead(200, type === null ? {} : { "content-type": type });
    response.socket?.setNoDelay(true);
    for (const piece of pieces) {
      if (response.destroyed) return;
      // The callback comes once the piece is with the kernel, so that pieces leave one by one.
      await new Promise<void>((resolve) => response.write(piece, () => resolve()));
    }
    if (then === "end") response.end();
    else if (then === "cut") response.destroy();
    else response.flushHeaders();
  };
}

/** The frames of a recorded event stream, each with its blank line. */
export function frames(sse: string): string[] {
  return sse.split(/(?<=\n\n|\r\n\r\n)/).filter((frame) => frame.length > 0);
}
