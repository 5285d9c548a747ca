/** Dragoman as an MCP server, and its OAuth as a client, on Node, on Bun, and as the bundle in workerd. */
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { type Double, startDouble } from "../matrix/double.ts";
import { canRun, RUNTIMES, type Service, startService } from "../service.ts";
import { type OAuthWorld, startOAuthWorld } from "./oauth-server.ts";

const KEY = "sk-of-the-caller-1234567890";
const BEARER = { authorization: `Bearer ${KEY}` };

describe.each(RUNTIMES.filter(canRun))("%s", { timeout: 20_000 }, (runtime) => {
  let double: Double;
  let world: OAuthWorld;
  let service: Service;

  beforeAll(async () => {
    [double, world] = await Promise.all([startDouble(), startOAuthWorld()]);
    const env = { ...double.env, AUTH: "key", FETCH_ALLOW: "127.0.0.1", OPENAI_MODEL: "gpt-test" };
    service = await startService({ runtime, env });
  });
  afterAll(async () => {
    await service.stop();
    await Promise.all([double.stop(), world.close()]);
  });

  const call = async (path: string, method = "GET", body?: unknown) => {
    const headers = { ...BEARER, ...(body === undefined ? {} : { "content-type": "application/json" }) };
    const response = await fetch(service.url + path, { method, headers, body: JSON.stringify(body) });
    // biome-ignore lint/suspicious/noExplicitAny: a body is what a test says it is.
    return (await response.json()) as any;
  };

  test("a client asks the agent, decides, is told what happens, and cancels", async () => {
    const client = new Client({ name: "a test", version: "1.0.0" });
    const transport = new StreamableHTTPClientTransport(new URL(`${service.url}/mcp`), {
      requestInit: { headers: BEARER },
    });
    await client.connect(transport);
    try {
      const use = async (name: string, args: object, options = {}) => {
        const params = { name, arguments: args as Record<string, unknown> };
        return (await client.callTool(params, undefined, options)) as {
          structuredContent: Record<string, string>;
        };
      };
      double.script(
        { toolCalls: [{ name: "create_file", arguments: { path: "a.txt", content: "hello" } }] },
        { content: "It is there." },
      );
      const told: (string | undefined)[] = [];
      const onprogress = ({ message }: { message?: string | undefined }) => void told.push(message);
      const parked = (await use("ask_agent", { message: "Write a.txt." }, { onprogress })).structuredContent;
      expect(parked.auth_required).toBe(true);
      expect(told).toContainEqual(expect.stringContaining("Calls create_file"));
      const { session_id } = parked;
      const done = await use("decide_approval", { session_id, approved: true });
      expect(done.structuredContent.reply).toContain("It is there.");
      expect(await service.read("a.txt")).toBe("hello");
      const found = await use("search_sessions", { query: "write" });
      expect(found.structuredContent.sessions).toMatchObject([{ id: session_id }]);

      double.answer(() => new Promise(() => {}));
      const abort = new AbortController();
      const asked = use("ask_agent", { message: "Wait." }, { signal: abort.signal }).catch(String);
      await double.request(0);
      abort.abort("enough");
      expect(await asked).toContain("enough");
      await vi.waitFor(async () => expect((await call("/api/runs")).runs[0].status).toBe("stopped"), 10_000);
    } finally {
      await client.close();
    }
  });

  test("a person authorizes a server, its tools are used, and tokens are renewed", async () => {
    const { detail } = await call("/api/mcp/connect", "POST", { server_id: "tracker", url: world.url });
    expect(detail).toContain("/api/mcp/oauth/tracker/start");
    const { authorization_url } = await call("/api/mcp/oauth/tracker/start");
    const consent = await fetch(authorization_url, { redirect: "manual" });
    const asking = await fetch(consent.headers.get("location") ?? "");
    const confirmation = /name="confirmation" value="([\w-]+)"/.exec(await asking.text())?.[1];
    const back = await fetch(`${service.url}/api/mcp/oauth/callback?confirmation=${confirmation}`);
    expect(await back.text()).toMatch(/The agent of \S+ may use tracker now\./);
    expect(back.status).toBe(200);
    for (const round of [1, 2]) {
      double.script({ toolCalls: [{ name: "tracker__issues", arguments: {} }] }, { content: "None." });
      const { tools } = await call("/api/chat", "POST", { message: "Which issues are there?" });
      expect(tools).toMatchObject([{ name: "tracker__issues", output: "No issues." }]);
      expect(world.calls).toHaveLength(round);
      world.expire();
    }
    expect(world.tokenRequests.map(({ grant }) => grant)).toEqual(["authorization_code", "refresh_token"]);
  });
});
