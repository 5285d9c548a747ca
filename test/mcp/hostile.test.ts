/** A server that does what none should: each trick is contained, with a sentence (E5, E1). */
import { afterEach, describe, expect, test } from "vitest";
import type { Tool } from "../../src/core/tool.ts";
import { call, callTool, createTestMcp, type TestMcp, toolsOf, until } from "./fixture.ts";

let open: TestMcp[] = [];
afterEach(async () => {
  for (const one of open.reverse()) await one.close();
  open = [];
});

async function start(options: Parameters<typeof createTestMcp>[0] = {}): Promise<TestMcp> {
  const made = await createTestMcp(options);
  open.push(made);
  return made;
}

async function connected(transport: "stdio" | "http", options: Parameters<typeof createTestMcp>[0] = {}) {
  const made = await start(options);
  const request = transport === "stdio" ? made.stdio() : { name: "Hostile", url: (await made.http()).url };
  const { tools, problem } = await made.mcp.connect("ada", request);
  return { made, tools, problem };
}

describe.each(["stdio", "http"] as const)("a hostile server over %s", (transport) => {
  test("E5: its names stand behind its own, and those that collide are not offered", async () => {
    const { made, tools, problem } = await connected(transport);
    expect(tools).toContain("hostile__run_terminal_command");
    expect(tools).not.toContain("hostile__dot_name");
    expect(problem).toContain("2 tools would be named hostile__dot_name; none of them is offered.");
    expect(problem).toContain('The tool "odd" is not offered');
    const { servers } = await made.mcp.view("ada");
    expect(servers.hostile?.error).toBe(problem);
    const unseen = (await toolsOf(made)).find(({ name }) => name === "hostile__unseen");
    expect(unseen).toMatchObject({
      description: "Says what is not seen.",
      risk: "read",
      outside: true,
      source: "hostile",
    });
  });

  test("E5: a definition that changes is held back until it is approved, and so is a tool that comes later", async () => {
    const { made } = await connected(transport);
    await call(made, "hostile__change", { text: "late" });
    await until(async () => !(await toolsOf(made)).some(({ name }) => name === "hostile__fickle"));
    const { servers } = await made.mcp.view("ada");
    expect(servers.hostile?.held_back).toMatchObject([
      {
        name: "fickle",
        approved: { description: "Adds." },
        now: { description: expect.stringContaining("secrets") },
      },
      { name: "late", approved: null, now: { description: "Came later." } },
    ]);
    const [seen] = servers.hostile?.held_back ?? [];
    await call(made, "hostile__change", { text: "late" });
    await until(async () => (await made.mcp.view("ada")).servers.hostile?.held_back[0]?.hash !== seen?.hash);
    await expect(
      made.mcp.approve("ada", "hostile", [seen as { name: string; hash: string }]),
    ).rejects.toMatchObject({
      code: "conflict",
    });
    expect(await made.mcp.approve("ada", "hostile")).toBe(2);
    const names = (await toolsOf(made)).map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["hostile__fickle", "hostile__late"]));
  });

  test("a result of 100 MB is dropped as it arrives, and the connection goes on", async () => {
    const { made } = await connected(transport, { host: { callMs: 10_000 } });
    const before = process.memoryUsage().rss;
    const huge = await call(made, "hostile__huge");
    expect(huge).toMatchObject({ failed: true, text: expect.stringContaining("more than 10 MiB") });
    expect(process.memoryUsage().rss - before).toBeLessThan(90 * 1024 * 1024);
    expect(await call(made, "hostile__count")).toMatchObject({ failed: false, text: "count has run" });
  });

  test("a hang ends when its time is over, and the server is told", async () => {
    const { made } = await connected(transport, { host: { callMs: 200 } });
    const hung = await call(made, "hostile__hang");
    expect(hung.failed).toBe(true);
    expect(hung.text).toContain("did not answer in time");
    expect(hung.text).toContain("It is not repeated");
    await until(() => made.counted().some((line) => line.startsWith("cancelled")));
    expect(made.counted().filter((line) => line === "hang")).toHaveLength(1);
  });

  test("R2: a call that is stopped ends at once, and the server is told", async () => {
    const { made } = await connected(transport, { host: { callMs: 60_000 } });
    const stop = new AbortController();
    const hung = call(made, "hostile__hang", {}, { signal: stop.signal });
    await until(() => made.counted().includes("hang"));
    stop.abort(new Error("stopped"));
    await expect(hung).rejects.toThrow("stopped");
    await until(() => made.counted().some((line) => line.startsWith("cancelled")));
  });

  test("rubbish between its messages, and an answer that is none, are contained", async () => {
    const { made } = await connected(transport);
    expect((await call(made, "hostile__malformed")).text).toContain("after the rubbish");
    expect(await call(made, "hostile__wrong")).toMatchObject({
      failed: true,
      text: "The MCP server hostile answered with something that is not of the protocol.",
    });
    expect((await call(made, "hostile__count")).failed).toBe(false);
  });

  test("a flood of notifications ends the connection, and the next call has a new one", async () => {
    const { made } = await connected(transport, { host: { callMs: 10_000 } });
    const flooded = await call(made, "hostile__flood");
    expect(flooded).toMatchObject({ failed: true, text: expect.stringContaining("flooded the connection") });
    expect((await call(made, "hostile__count")).failed).toBe(false);
  });

  test("progress is passed on, with nothing hidden in it", async () => {
    const { made } = await connected(transport);
    expect(await call(made, "hostile__slow")).toMatchObject({
      text: "slow is done",
      progress: "1 of 2: half way\n",
    });
  });

  test("E6: structured results are checked, without running the server's expressions", async () => {
    const { made } = await connected(transport);
    expect((await call(made, "hostile__promise", { text: "right" })).failed).toBe(false);
    const wrong = await call(made, "hostile__promise");
    expect(wrong).toMatchObject({
      failed: true,
      text: expect.stringContaining("not what the tool has promised"),
    });
  });

  test("one that dies in a call: the outcome is open, nothing is repeated, and the next call reaches a new one", async () => {
    const made = await start();
    const server = transport === "http" ? await made.http() : undefined;
    await made.mcp.connect("ada", server ? { name: "Hostile", url: server.url } : made.stdio());
    const count = (await toolsOf(made)).find(({ name }) => name === "hostile__count") as Tool;
    const died = await call(made, "hostile__die");
    expect(died.failed).toBe(true);
    expect(died.text).toContain("whether it had an effect is unknown");
    await server?.kill();
    await server?.start();
    await until(async () => (await callTool(count, {})).failed === false);
    expect(made.counted().filter((line) => line === "die")).toHaveLength(1);
  });
});

describe("redirects", () => {
  test.each(["http://169.254.169.254/latest/meta-data", "http://10.0.0.1/mcp", "http://localhost:1/mcp"])(
    "E1: to %s is not followed",
    async (to) => {
      const made = await start();
      const { url } = await made.http();
      const redirecting = url.replace("/mcp", `/redirect?to=${encodeURIComponent(to)}`);
      await expect(made.mcp.connect("ada", { name: "Elsewhere", url: redirecting })).rejects.toMatchObject({
        code: "unreachable",
        message: expect.stringContaining("not followed"),
      });
    },
  );

  test("E1: with tokens, an address of this machine is refused as it stands", async () => {
    const made = await start({ host: { trusted: false } });
    const { url } = await made.http();
    await expect(made.mcp.connect("ada", { name: "Near", url })).rejects.toMatchObject({
      message: expect.stringContaining("may not be fetched"),
    });
  });
});
