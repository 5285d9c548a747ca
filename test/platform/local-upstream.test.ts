/** The way to providers on Node does what `fetch` does, as far as providers need it. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createUpstreamFetch } from "../../src/platform/local-upstream.ts";

type Answer = (response: ServerResponse, request: IncomingMessage, body: Buffer) => void;

let answer: Answer;
let url: string;
let connections = 0;
const server = createServer(async (request, response) => {
  response.on("error", () => {});
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece);
  answer(response, request, Buffer.concat(pieces));
});
server.on("connection", () => {
  connections++;
});
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
beforeEach(() => {
  send = createUpstreamFetch();
  connections = 0;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

let send = createUpstreamFetch();
const post = (init: RequestInit = {}) =>
  send(`${url}/v1/chat?x=1`, { method: "POST", body: "{}", redirect: "manual", ...init });

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5));
}

test("what is sent, and what comes back", async () => {
  let seen: unknown;
  answer = (response, { method, url: path, headers }, body) => {
    seen = {
      method,
      path,
      body: body.toString(),
      key: headers.authorization,
      length: headers["content-length"],
    };
    response.writeHead(429, { "retry-after": "3", "x-two": ["a", "b"], "content-type": "application/json" });
    response.end('{"error":"Grüße"}');
  };
  const headers = new Headers({ authorization: "Bearer k", "content-type": "application/json" });
  const response = await post({ headers, body: '{"a":"ü"}' });
  expect(seen).toEqual({
    ...{ method: "POST", path: "/v1/chat?x=1", body: '{"a":"ü"}', key: "Bearer k", length: "10" },
  });
  expect([response.status, response.ok, response.headers.get("retry-after")]).toEqual([429, false, "3"]);
  expect(response.headers.get("x-two")).toBe("a, b");
  expect(await response.json()).toEqual({ error: "Grüße" });
});

test("bodies of other kinds are sent too", async () => {
  answer = (response, { headers }, body) =>
    void response.end(`${headers["content-type"]?.split(";")[0]} ${body.includes("words")}`);
  const form = new FormData();
  form.set("file", new Blob(["words"]), "a.txt");
  expect(await (await post({ body: form })).text()).toBe("multipart/form-data true");
});

test("answers without a body", async () => {
  answer = (response) => void response.writeHead(204).end();
  expect((await post()).body).toBeNull();
  answer = (response) => void response.writeHead(200, { "content-length": "5" }).end();
  expect((await send(url, { method: "HEAD", redirect: "manual" })).body).toBeNull();
});

test("redirects are told, not followed", async () => {
  answer = (response) => void response.writeHead(307, { location: "/elsewhere" }).end();
  const response = await post();
  expect([response.status, response.headers.get("location")]).toEqual([307, "/elsewhere"]);
});

test.each([
  ["gzip", gzipSync],
  ["deflate", deflateSync],
  ["br", brotliCompressSync],
] as const)("%s, though nobody asked for it", async (encoding, compress) => {
  const text = "Some words. ".repeat(20_000);
  answer = (response, { headers }) => {
    expect(headers["accept-encoding"]).toBe("identity");
    response.writeHead(200, { "content-encoding": encoding }).end(compress(text));
  };
  const response = await post();
  expect(response.headers.has("content-encoding")).toBe(false);
  expect(await response.text()).toBe(text);
});

test("property: any bytes in any pieces arrive as they are, on a connection that is kept", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.uint8Array({ minLength: 1, maxLength: 5_000 }), { maxLength: 8 }),
      async (pieces) => {
        answer = (response) => {
          response.writeHead(200, { "content-type": "text/event-stream" });
          for (const piece of pieces) response.write(piece);
          response.end();
        };
        const body = Buffer.from(await (await post()).arrayBuffer());
        expect(body.equals(Buffer.concat(pieces))).toBe(true);
      },
    ),
    { numRuns: 60 },
  );
  expect(connections).toBe(1);
});

test("a connection that the server gave up just as it was used again", async () => {
  const used = new Map<Socket, number>();
  answer = (response, { socket }) => {
    const count = (used.get(socket) ?? 0) + 1;
    used.set(socket, count);
    if (count > 1) socket.destroy();
    else response.end("fine");
  };
  for (let turn = 0; turn < 3; turn++) expect(await (await post()).text()).toBe("fine");
  expect(connections).toBe(3);
});

test("a new connection that is cut is a failure", async () => {
  answer = (_, { socket }) => void socket.destroy();
  await expect(post()).rejects.toMatchObject({ code: "ECONNRESET" });
  expect(connections).toBe(1);
});

test("nobody listens", async () => {
  await expect(send("http://127.0.0.1:1/", { redirect: "manual" })).rejects.toMatchObject({
    code: "ECONNREFUSED",
  });
});

test.each([false, true])("a body that is cut off fails; compressed: %s", async (compressed) => {
  answer = (response) => {
    response.writeHead(200, compressed ? { "content-encoding": "gzip" } : {});
    response.write(compressed ? gzipSync("x".repeat(50_000)).subarray(0, 40) : "half");
    setImmediate(() => response.socket?.destroy());
  };
  await expect((await post()).text()).rejects.toThrow();
});

describe("nobody wants it any more", () => {
  const reason = new Error("No longer.");

  test("before it was sent, and before its head came", async () => {
    await expect(post({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(connections).toBe(0);
    let closed = false;
    const controller = new AbortController();
    answer = (response) => {
      response.on("close", () => {
        closed = true;
      });
      controller.abort(reason);
    };
    await expect(post({ signal: controller.signal })).rejects.toBe(reason);
    await until(() => closed);
  });

  test.each(["abort", "cancel"] as const)("in the middle: %s", async (how) => {
    let closed = false;
    answer = (response) => {
      response.on("close", () => {
        closed = true;
      });
      response.writeHead(200).write("first");
    };
    const controller = new AbortController();
    const response = await post({ signal: controller.signal });
    const reader = response.body!.getReader();
    expect(Buffer.from((await reader.read()).value!).toString()).toBe("first");
    if (how === "abort") {
      controller.abort(reason);
      await expect(reader.read()).rejects.toBe(reason);
    } else await reader.cancel();
    await until(() => closed);
  });
});

test("whoever does not read slows the server down", async () => {
  const piece = Buffer.alloc(64 * 1024);
  let written = 0;
  answer = (response) => {
    response.writeHead(200);
    const more = () => {
      while (written < 1_000) {
        written++;
        if (!response.write(piece)) return;
      }
      response.end();
    };
    response.on("drain", more);
    more();
  };
  const reader = (await post()).body!.getReader();
  let before = -1;
  // What buffers hold on the way is the system's affair; that it ends is ours.
  while (before !== written) {
    before = written;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  expect(written).toBeLessThan(500);
  let length = 0;
  for (let read = await reader.read(); !read.done; read = await reader.read()) length += read.value.length;
  expect(length).toBe(1_000 * piece.length);
});
