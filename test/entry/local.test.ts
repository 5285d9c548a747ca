import { once } from "node:events";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newFolder, type ServiceProcess, sendRaw, startProcess, stop } from "./service-process.ts";

describe.each(["node", "bun"] as const)("on %s", (runtime) => {
  let service: ServiceProcess;
  let url: string;

  beforeAll(async () => {
    service = startProcess(runtime, { OPENAI_API_KEY: "sk-operator-canary", SHUTDOWN_GRACE: "5" });
    url = await service.url;
  });
  afterAll(async () => {
    await stop(service);
  });

  test("the banner says where everything is, and no key", () => {
    const text = service.stderr();
    expect(text).toContain(join(service.folder, "data", "dragoman.db"));
    expect(text).toContain(join(service.folder, "workspace"));
    expect(text).toMatch(/terminal +host/);
    expect(text).toMatch(/keys +openai/);
    expect(text).toMatch(/approval +ask/);
    expect(text).not.toContain("canary");
  });

  test("it is alive and ready", async () => {
    expect(await (await fetch(`${url}/healthz`)).json()).toEqual({ status: "ok" });
    const checks = { database: "ok", disk: "ok", automation: "ok" };
    expect(await (await fetch(`${url}/readyz`)).json()).toEqual({ status: "ok", checks });
  });

  test("data and secret are their owner's alone", () => {
    const data = join(service.folder, "data");
    expect(statSync(data).mode & 0o777).toBe(0o700);
    expect(statSync(join(data, "secret.key")).mode & 0o777).toBe(0o600);
    expect(readFileSync(join(data, "secret.key"), "utf8")).toMatch(/^[0-9a-f]{64}\n$/);
  });

  test("A2, A6: raw requests meet the guard", async () => {
    const raw = (line: string, host: string) =>
      sendRaw(url, `GET ${line} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    expect(await raw("/healthz", "localhost")).toMatch(/^HTTP\/1.1 200/);
    expect(await raw("/healthz", "evil.example")).toMatch(/^HTTP\/1.1 403/);
    expect(await raw("http://evil.example/healthz", "evil.example")).toMatch(/^HTTP\/1.1 403/);
    expect(await raw("//v1/models", "localhost")).toMatch(/^HTTP\/1.1 404/);
    expect(await raw("/v1%2Fmodels", "localhost")).toMatch(/^HTTP\/1.1 404/);
    expect(await raw("/V1/models", "localhost")).toMatch(/^HTTP\/1.1 404/);
  });

  test("A3: a chunked body is cut off at the limit, long before its end", async () => {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    socket.on("error", () => {});
    let answer = "";
    const answered = new Promise<void>((resolve) => {
      socket.setEncoding("utf8").on("data", (piece: string) => {
        answer += piece;
        resolve();
      });
    });
    const piece = `100000\r\n${" ".repeat(0x100000)}\r\n`;
    socket.write(
      "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    for (let i = 0; i < 40; i++) socket.write(piece);
    await answered;
    expect(answer).toMatch(/^HTTP\/1.1 413/);
    socket.destroy();
  });

  test("a request that is under way when SIGTERM comes is answered, then the process ends well", async () => {
    const other = startProcess(runtime, { SHUTDOWN_GRACE: "10" });
    const { hostname, port } = new URL(await other.url);
    const socket = connect(Number(port), hostname);
    socket.setEncoding("utf8");
    socket.write(
      "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 4\r\n\r\nno",
    );
    // An answer on a second connection shows that the first one has been taken.
    await fetch(`http://${hostname}:${port}/healthz`);
    const stopping = new Promise<void>((resolve) => {
      other.child.stderr?.on("data", () => other.stderr().includes("stopping") && resolve());
    });
    other.child.kill("SIGTERM");
    await stopping;
    socket.write("pe");
    const [answer] = (await once(socket, "data")) as [string];
    expect(answer).toMatch(/^HTTP\/1.1 400/);
    socket.destroy();
    expect(await other.exited).toBe(0);
  });

  test("a request that does not end is cut when the grace is over", async () => {
    const other = startProcess(runtime, { SHUTDOWN_GRACE: "0.05" });
    const { hostname, port } = new URL(await other.url);
    const socket = connect(Number(port), hostname);
    socket.on("error", () => {});
    socket.write(
      "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 4\r\n\r\n",
    );
    await fetch(`http://${hostname}:${port}/healthz`);
    expect(await stop(other)).toBe(0);
  });

  test("the secret outlives the process", async () => {
    const folder = newFolder();
    const secret = () => readFileSync(join(folder, "data", "secret.key"), "utf8");
    const first = startProcess(runtime, {}, folder);
    await first.url;
    const before = secret();
    expect(await stop(first)).toBe(0);
    const second = startProcess(runtime, {}, folder);
    await second.url;
    expect(secret()).toBe(before);
    expect(await stop(second)).toBe(0);
  });

  test("what prevents the start is said in a sentence, with exit code 1 and no stack", async () => {
    const folder = newFolder();
    writeFileSync(join(folder, "file"), "");
    mkdirSync(join(folder, "ws"));
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    const port = String((taken.address() as { port: number }).port);
    const cases: [Record<string, string>, RegExp][] = [
      [{ PORT: "abc", LOG_LEVEL: "loud" }, /PORT has to be .*\n.*LOG_LEVEL has to be one of/],
      [{ HOST: "0.0.0.0" }, /HOST=0.0.0.0 can be reached from other machines: set ACCESS_TOKENS/],
      [{ PORT: port }, new RegExp(`Port ${port} is in use`)],
      [{ DATA_DIR: join(folder, "file") }, /DATA_DIR=.* cannot be used as a folder \(EEXIST\)/],
      [{ WORKSPACE: folder, DATA_DIR: join(folder, "ws", "data") }, /DATA_DIR .* lies inside WORKSPACE/],
      [{ APPROVAL: "./nowhere.json" }, /APPROVAL .*nowhere.json/],
    ];
    for (const [env, words] of cases) {
      const failing = startProcess(runtime, env, folder);
      expect(await failing.exited).toBe(1);
      expect(failing.stderr()).toMatch(words);
      expect(failing.stderr()).not.toMatch(/\n\s+at /);
    }
    taken.close();
  });

  test("with TERMINAL=virtual the workspace is in the database, and no folder is made", async () => {
    const other = startProcess(runtime, { TERMINAL: "virtual", LOG_LEVEL: "silent" });
    await other.url;
    expect(other.stderr()).toMatch(/workspace +virtual/);
    expect(() => statSync(join(other.folder, "workspace"))).toThrow("ENOENT");
    expect(await stop(other)).toBe(0);
  });
});
