/** The tools of real MCP servers, used by the agent through all three doors, on every runtime. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Double, startDouble } from "../matrix/double.ts";
import { canRun, RUNTIMES, type Service, startService } from "../service.ts";

const resolve = createRequire(import.meta.url).resolve;
const EVERYTHING = join(resolve("@modelcontextprotocol/server-everything/package.json"), "../dist/index.js");
const FILESYSTEM = join(resolve("@modelcontextprotocol/server-filesystem/package.json"), "../dist/index.js");
const KEY = "sk-of-a-caller-0123456789";
const CANARY = "canary-4f1d9c0a7b3e5826";

interface Everything {
  port: number;
  kill(): Promise<void>;
}

async function startEverything(port: number, transport = "streamableHttp"): Promise<Everything> {
  const child: ChildProcess = spawn(process.execPath, [EVERYTHING, transport], {
    env: { PATH: process.env.PATH, PORT: String(port) },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let heard = "";
  await new Promise<void>((done, fail) => {
    child.stderr?.on("data", (piece: Buffer) => {
      heard += piece;
      if (/listening|running on port/i.test(heard)) done();
    });
    child.once("exit", () => fail(new Error(heard)));
  });
  return {
    port,
    async kill() {
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

describe.each(RUNTIMES)("on %s", (runtime) => {
  describe.skipIf(!canRun(runtime))("with servers connected by HTTP", () => {
    let folder: string;
    let double: Double;
    let service: Service;
    let everything: Everything;

    async function ask(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
      const response = await fetch(service.url + path, {
        method,
        headers: {
          authorization: `Bearer ${KEY}`,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      // biome-ignore lint/suspicious/noExplicitAny: a body is what a test says it is.
      return { status: response.status, body: (await response.json()) as any };
    }

    /** The answer of one turn in which the model calls a tool, through each of the doors. */
    const doors: Record<string, (text: string) => Promise<string>> = {
      "chat completions": async (text) => {
        const { body } = await ask("POST", "/v1/chat/completions", {
          model: "gpt-5.5",
          messages: [{ role: "user", content: text }],
        });
        return body.choices[0].message.content;
      },
      messages: async (text) => {
        const { body } = await ask(
          "POST",
          "/v1/messages",
          { model: "gpt-5.5", max_tokens: 100, messages: [{ role: "user", content: text }] },
          { "anthropic-version": "2023-06-01", "x-provider": "openai" },
        );
        return body.content[0].text;
      },
      "native chat": async (text) =>
        (await ask("POST", "/api/chat", { message: text, api_key: KEY })).body.reply,
    };

    /** What the model got back for the call that it made. */
    async function modelCalls(door: string, name: string, args: unknown): Promise<string> {
      double.script({ toolCalls: [{ name, arguments: JSON.stringify(args) }] }, { content: "That is all." });
      expect(await doors[door]?.("Go on.")).toBe("That is all.");
      const history = double.histories().at(-1) ?? [];
      const answered = history.findLastIndex(({ role }) => role === "tool");
      expect(answered).toBeGreaterThan(0);
      // Pictures follow in a message of their own where a dialect has no place for them in a result.
      return JSON.stringify(history.slice(answered));
    }

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), "dragoman-mcp-agent-"));
      everything = await startEverything(await freePort());
      double = await startDouble();
      service = await startService({
        runtime,
        env: {
          ...double.env,
          APPROVAL: "auto",
          LOG_LEVEL: "debug",
          ...(runtime === "workerd" ? { FETCH_ALLOW: "127.0.0.1" } : {}),
        },
      });
    });
    afterAll(async () => {
      await service?.stop();
      await double?.stop();
      await everything?.kill();
      await rm(folder, { recursive: true, force: true });
    });

    test("server-everything over Streamable HTTP, through all doors", async () => {
      const url = `http://127.0.0.1:${everything.port}/mcp`;
      const connected = await ask("POST", "/api/mcp/connect", {
        ...{ server_id: "every", name: "Everything", transport: "http", url },
        headers: { "x-canary": CANARY },
      });
      expect(connected).toMatchObject({
        status: 201,
        body: { status: "connected", id: "every", problem: null },
      });
      for (const door of Object.keys(doors)) {
        expect(await modelCalls(door, "every__echo", { message: `over ${door}` })).toContain(
          `Echo: over ${door}`,
        );
      }
      expect(
        await modelCalls("native chat", "every__get-structured-content", { location: "Chicago" }),
      ).toContain("temperature");
      expect(await modelCalls("native chat", "every__get-sum", { a: "one", b: 2 })).toMatch(/[Ii]nvalid/);
    });

    test("progress of a long call is told while it runs", async () => {
      double.script(
        {
          toolCalls: [
            { name: "every__trigger-long-running-operation", arguments: '{"duration":0.3,"steps":3}' },
          ],
        },
        { content: "Done." },
      );
      const response = await fetch(`${service.url}/api/chat`, {
        method: "POST",
        headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
        body: JSON.stringify({ message: "Take long.", api_key: KEY, stream: true }),
      });
      const text = await response.text();
      expect(text).toContain('"type":"tool_progress"');
      expect(text).toMatch(/[123] of 3/);
    });

    test.runIf(runtime !== "workerd")(
      "server-everything and server-filesystem over stdio, through all doors",
      async () => {
        await writeFile(join(folder, "note.txt"), "what the file says");
        const over = { transport: "stdio", command: process.execPath, env: { CANARY } };
        const first = await ask("POST", "/api/mcp/connect", {
          ...over,
          name: "Every stdio",
          args: [EVERYTHING, "stdio"],
        });
        const second = await ask("POST", "/api/mcp/connect", {
          ...over,
          name: "Files",
          args: [FILESYSTEM, folder],
        });
        expect([first.status, second.status]).toEqual([201, 201]);
        for (const door of Object.keys(doors)) {
          expect(await modelCalls(door, "every-stdio__echo", { message: door })).toContain(`Echo: ${door}`);
          expect(
            await modelCalls(door, "files__read_text_file", { path: join(folder, "note.txt") }),
          ).toContain("what the file says");
        }
        const environment = await modelCalls("native chat", "every-stdio__get-env", {});
        expect(environment).toContain("PATH");
        expect(environment).not.toContain("DATA_DIR");
        expect(environment).not.toContain(CANARY);
        expect(await modelCalls("native chat", "every-stdio__get-tiny-image", {})).toContain(
          "data:image/png;base64,",
        );
      },
    );

    test("server-everything over SSE", async () => {
      const old = await startEverything(await freePort(), "sse");
      try {
        const url = `http://127.0.0.1:${old.port}/sse`;
        const connected = await ask("POST", "/api/mcp/connect", { name: "Old", transport: "sse", url });
        expect(connected).toMatchObject({ status: 201, body: { id: "old" } });
        expect(await modelCalls("native chat", "old__echo", { message: "still" })).toContain("Echo: still");
        expect((await ask("DELETE", "/api/mcp/saved/old")).status).toBe(200);
      } finally {
        await old.kill();
      }
    });

    test.runIf(runtime === "workerd")("there are no programs there, and it says so", async () => {
      const refused = await ask("POST", "/api/mcp/connect", { name: "Nothing", command: "node" });
      expect(refused).toMatchObject({
        status: 501,
        body: { detail: expect.stringContaining("no programs") },
      });
    });

    test("killed and started again under load: reached again, and nothing runs twice", async () => {
      const call = () => modelCalls("native chat", "every__echo", { message: "here" });
      expect(await call()).toContain("Echo: here");
      await everything.kill();
      expect(await call()).toContain("every");
      everything = await startEverything(everything.port);
      await expect.poll(call, { timeout: 10_000 }).toContain("Echo: here");
      if (runtime === "workerd") return;
      await expect
        .poll(async () => (await ask("GET", "/api/mcp/servers")).body.servers.every.status)
        .toBe("connected");
    });

    test("K2: what servers are given is nowhere: not in the log, nor in what the API tells", async () => {
      const { body } = await ask("GET", "/api/mcp/servers");
      expect(body.saved_servers.find(({ id }: { id: string }) => id === "every")).toMatchObject({
        headers: ["x-canary"],
        is_active: true,
      });
      expect(JSON.stringify(body)).not.toContain(CANARY);
      expect(service.log()).not.toContain(CANARY);
    });
  });
});
