/**
 * E1 on Workers: what can be told from the text of an address, in workerd itself. One worker may reach everything, so that
 * only our own checks stand between it and this machine; the other has workerd's default network.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startWebServer, type WebServer } from "../web-server.ts";
import { INVALID_HOSTS, PRIVATE_HOSTS } from "./private-addresses.ts";

const WORKER = fileURLToPath(new URL("worker-fetch-probe.ts", import.meta.url));

interface Outcome {
  status?: number;
  url?: string;
  redirected?: boolean;
  body?: string;
  code?: string;
  message?: string;
}

let web: WebServer;
let folder: string;
let child: ChildProcess;
let open: string;
let closed: string;

beforeAll(async () => {
  web = await startWebServer();
  folder = await mkdtemp(join(tmpdir(), "dragoman-fetch-"));
  const fromWrangler = createRequire(createRequire(import.meta.url).resolve("wrangler"));
  const { build } = fromWrangler("esbuild") as { build(options: object): Promise<unknown> };
  await build({ entryPoints: [WORKER], outfile: join(folder, "worker.js"), bundle: true, format: "esm" });
  await writeFile(join(folder, "config.capnp"), CONFIG);
  const { default: workerd } = fromWrangler("workerd") as { default: string };
  child = spawn(workerd, ["serve", "config.capnp", "--control-fd=3"], {
    cwd: folder,
    stdio: ["ignore", "inherit", "inherit", "pipe"],
  });
  const ports: Record<string, number> = {};
  for await (const line of createInterface({ input: child.stdio[3] as Readable })) {
    const { socket, port } = JSON.parse(line) as { socket?: string; port?: number };
    if (socket && port) ports[socket] = port;
    if (ports.open && ports.closed) break;
  }
  [open, closed] = [ports.open, ports.closed].map((port) => `http://127.0.0.1:${port}`) as [string, string];
});
afterAll(async () => {
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
  await web[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

const CONFIG = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "open", worker = (modules = [(name = "worker", esModule = embed "worker.js")],
      compatibilityDate = "2026-10-01", globalOutbound = "everything")),
    (name = "closed", worker = (modules = [(name = "worker", esModule = embed "worker.js")],
      compatibilityDate = "2026-10-01", globalOutbound = "default")),
    (name = "everything", network = (allow = ["public", "private"])),
    (name = "default", network = ()),
  ],
  sockets = [
    (name = "open", address = "127.0.0.1:0", http = (), service = "open"),
    (name = "closed", address = "127.0.0.1:0", http = (), service = "closed"),
  ],
);
`;

/** What the guarded fetch in a worker makes of it. */
async function probe(url: string, { options = {}, init = {}, worker = open } = {}): Promise<Outcome> {
  const response = await fetch(worker, { method: "POST", body: JSON.stringify({ url, options, init }) });
  return (await response.json()) as Outcome;
}
const here = { options: { allow: ["127.0.0.1"] } };

test("the server of these tests can be reached from there when it is allowed", async () => {
  expect(await probe(`${web.url}/text`, here)).toEqual({
    ...{ status: 200, url: `${web.url}/text`, redirected: false, body: "hello" },
  });
});

describe("no spelling of a private address is connected to", () => {
  test("at once", async () => {
    const before = web.connections;
    const outcomes = await Promise.all(PRIVATE_HOSTS.map((host) => probe(`http://${host}:${web.port}/text`)));
    expect(PRIVATE_HOSTS.filter((_, i) => outcomes[i]?.code !== "forbidden")).toEqual([]);
    expect(web.connections).toBe(before);
  });
  test("at the end of a redirect", async () => {
    const options = { allow: [`127.0.0.1:${web.port}`] };
    const at = (host: string) => `${web.url}/redirect?to=${encodeURIComponent(`http://${host}/`)}`;
    const outcomes = await Promise.all(PRIVATE_HOSTS.map((host) => probe(at(host), { options })));
    expect(PRIVATE_HOSTS.filter((_, i) => outcomes[i]?.code !== "forbidden")).toEqual([]);
    for (const { message } of outcomes) expect(message).toContain(`${web.url} redirects to `);
  });
  test.each(INVALID_HOSTS)("%s is no address", async (host) => {
    expect(await probe(`http://${host}/`)).toMatchObject({ code: "invalid_request" });
  });
});

test("workerd's own network refuses what a name leads to, and the sentence says nothing about it", async () => {
  const before = web.connections;
  const url = `http://${hostname()}:${web.port}/text`;
  expect(await probe(url, { worker: closed })).toMatchObject({ code: "unreachable" });
  expect(await probe(`${web.url}/text`, { ...here, worker: closed })).toMatchObject({ code: "unreachable" });
  expect(web.connections).toBe(before);
});

test("our own port is not reached, whatever is allowed", async () => {
  const options = { allow: ["0.0.0.0/0", "::/0", "localhost"], ownPort: web.port };
  for (const host of ["127.0.0.1", "0x7f.1", "localhost", "[::1]"])
    expect(
      await probe(`http://${host}:${web.port}/text`, { options, init: { trusted: true } }),
    ).toMatchObject({
      code: "forbidden",
      message: expect.stringContaining("is the service itself"),
    });
});

test("redirects keep credentials on the origin and nowhere else, five at most", async () => {
  const init = { headers: { authorization: "Bearer s", "x-api-key": "s", accept: "text/a" } };
  const to = (target: string) => `/redirect?to=${encodeURIComponent(target)}`;
  const ask = async (path: string) =>
    JSON.parse((await probe(`${web.url}${path}`, { ...here, init })).body ?? "");
  expect((await ask(to("/echo"))).headers).toMatchObject(init.headers);
  const other = await startWebServer();
  try {
    const { headers } = await ask(to(`${other.url}/echo`));
    expect(headers).toMatchObject({ accept: "text/a" });
    expect(headers).not.toHaveProperty("authorization");
    expect(headers).not.toHaveProperty("x-api-key");
  } finally {
    await other[Symbol.asyncDispose]();
  }
  const named = web.url.replace("//", "//me:s@");
  const own = await probe(`${named}/echo`, here);
  expect(own.url).toBe(`${web.url}/echo`);
  expect(JSON.parse(own.body ?? "").headers.authorization).toBe(`Basic ${btoa("me:s")}`);
  expect((await ask(to(`${named}/echo`))).headers.authorization).toBe("Bearer s");
  const chain = (n: number): string => (n === 0 ? "/text" : to(chain(n - 1)));
  expect(await probe(`${web.url}${chain(5)}`, here)).toMatchObject({
    body: "hello",
    redirected: true,
    url: `${web.url}/text`,
  });
  expect(await probe(`${web.url}${chain(6)}`, here)).toMatchObject({ code: "unreachable" });
});

test("size and time have their limits", async () => {
  expect(await probe(`${web.url}/bytes`, here)).toMatchObject({ code: "payload_too_large" });
  expect(await probe(`${web.url}/bytes?encoding=gzip`, here)).toMatchObject({ code: "payload_too_large" });
  for (const path of ["/hang", "/slow"])
    expect(await probe(`${web.url}${path}`, { ...here, init: { timeoutMs: 100 } })).toEqual({
      code: "unreachable",
      message: `${web.url} took longer than 0.1 s. Try again later.`,
    });
  expect(await probe(`${web.url}/text?encoding=br`, here)).toMatchObject({ body: "hello" });
  expect(await probe(`${web.url}/cut`, here)).toMatchObject({ code: "unreachable" });
});
