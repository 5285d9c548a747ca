/**
 * A small web on one address, for what fetches pages: it redirects, dawdles, floods and hangs as its paths say, and
 * remembers what it was asked. Over TLS its certificate is that of `site.example`.
 */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { createBrotliCompress, createDeflate, createDeflateRaw, createGzip, gzipSync } from "node:zlib";
import { CERTIFICATE, KEY } from "./web-certificate.ts";

export interface WebRequest {
  method: string;
  /** Path with its query string. */
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

export interface WebServerOptions {
  /** Address to listen on; default 127.0.0.1. */
  host?: string;
  port?: number;
  tls?: boolean;
}

export interface WebServer extends AsyncDisposable {
  /** `http://127.0.0.1:<port>`, without a path. */
  readonly url: string;
  readonly port: number;
  readonly requests: WebRequest[];
  /** Connections made so far, and those that are open. */
  readonly connections: number;
  readonly open: number;
  /** Bytes of `/bytes` that were taken off our hands so far. */
  readonly sent: number;
  /** Resolves when no connection is open. */
  idle(): Promise<void>;
}

/**
 * `/redirect?to=&status=302&body=` redirects; `/echo` says what it got; `/text?body=&type=&encoding=&status=` answers
 * (with `lie` in no encoding at all);
 * `/bytes?n=&encoding=` sends that many zeros, without `n` endlessly; `/nothing` endlessly sends
 * gzip that unfolds to nothing; `/slow` sends a head and a first piece, and no
 * more; `/hang` sends nothing; `/cut` breaks off inside the body; `/garbage` is not HTTP.
 */
export async function startWebServer(options: WebServerOptions = {}): Promise<WebServer> {
  const { host = "127.0.0.1", port = 0, tls = false } = options;
  const requests: WebRequest[] = [];
  let connections = 0;
  let open = 0;
  let sent = 0;
  let waiting: (() => void)[] = [];
  const answer = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    response.on("error", () => {});
    let body = "";
    incoming.setEncoding("utf8");
    for await (const piece of incoming) body += piece;
    const { method = "", url: path = "", headers } = incoming;
    requests.push({ method, path, headers, body });
    const url = new URL(path, "http://web");
    (ROUTES[url.pathname] ?? notFound)(response, url.searchParams, requests.at(-1) as WebRequest, (bytes) => {
      sent += bytes;
    });
  };
  const server = tls ? createTlsServer({ cert: CERTIFICATE, key: KEY }, answer) : createServer(answer);
  server.on("connection", (socket) => {
    connections++;
    open++;
    socket.once("close", () => {
      if (--open > 0) return;
      for (const wake of waiting.splice(0)) wake();
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  const bound = (server.address() as AddressInfo).port;
  return {
    url: `${tls ? "https" : "http"}://${host.includes(":") ? `[${host}]` : host}:${bound}`,
    port: bound,
    requests,
    get connections() {
      return connections;
    },
    get sent() {
      return sent;
    },
    get open() {
      return open;
    },
    idle: () =>
      new Promise((resolve) => {
        if (open === 0) resolve();
        else waiting = [...waiting, resolve];
      }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

type Route = (
  response: ServerResponse,
  query: URLSearchParams,
  request: WebRequest,
  count: (bytes: number) => void,
) => void;

const ENCODERS: Record<string, () => NodeJS.ReadWriteStream> = {
  gzip: createGzip,
  deflate: createDeflate,
  "deflate-raw": createDeflateRaw,
  br: createBrotliCompress,
};
const PIECE = new Uint8Array(64 * 1024);

const notFound: Route = (response) => void response.writeHead(404).end();

const ROUTES: Record<string, Route> = {
  "/redirect"(response, query) {
    const status = Number(query.get("status") ?? 302);
    response.writeHead(status, { location: utf8(query.get("to") ?? "") }).end(query.get("body") ?? "moved");
  },
  "/echo"(response, _query, request) {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(request));
  },
  "/text"(response, query) {
    response.statusCode = Number(query.get("status") ?? 200);
    response.setHeader("content-type", query.get("type") ?? "text/plain");
    const out = encoded(response, query);
    out.end(query.get("body") ?? "hello");
  },
  "/bytes"(response, query, _request, count) {
    const out = encoded(response, query);
    let left = Number(query.get("n") ?? Number.POSITIVE_INFINITY);
    const write = (): void => {
      while (left > 0 && !response.destroyed) {
        const size = Math.min(left, PIECE.length);
        left -= size;
        count(size);
        if (!out.write(PIECE.subarray(0, size))) return void out.once("drain", write);
      }
      out.end();
    };
    write();
  },
  "/nothing"(response) {
    response.setHeader("content-encoding", "gzip");
    const nothing = Buffer.concat(Array<Buffer>(1000).fill(gzipSync("")));
    const write = (): void => {
      while (!response.destroyed) if (!response.write(nothing)) return void response.once("drain", write);
    };
    write();
  },
  "/slow": (response) => void response.write("first"),
  "/hang"() {},
  "/cut"(response) {
    response.writeHead(200, { "content-length": "100" });
    response.write("half", () => response.destroy());
  },
  "/garbage": (response) => void response.socket?.end("SSH-2.0-nothing\r\n"),
};

/** As servers do that take no care: its bytes as they are. */
function utf8(text: string): string {
  return Buffer.from(text).toString("latin1");
}

/** Where to write the body, in the encoding that the query asks for. */
function encoded(response: ServerResponse, query: URLSearchParams): NodeJS.WritableStream {
  const encoding = query.get("encoding");
  if (encoding === null) return response;
  response.setHeader("content-encoding", encoding.replace("-raw", ""));
  const encoder = query.has("lie") ? undefined : ENCODERS[encoding]?.();
  if (!encoder) return response;
  encoder.pipe(response);
  return encoder;
}
