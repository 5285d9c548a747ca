/** Servers that are kept connected, by one process and by several; what is in memory, and what is at rest. */
import { readFileSync } from "node:fs";
import { afterEach, describe, expect, test } from "vitest";
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

describe("what a request finds in memory", () => {
  test("nothing is asked for owners without servers, and the list is the same as long as it holds the same", async () => {
    const made = await start();
    await made.mcp.tick();
    const none = made.mcp.of("ada");
    expect(none).toEqual([]);
    expect(made.mcp.of("bob")).toBe(none);
    await made.mcp.connect("ada", made.stdio());
    const tools = made.mcp.of("ada");
    expect(Array.isArray(tools)).toBe(true);
    await made.mcp.view("ada");
    expect(made.mcp.of("ada")).toBe(tools);
    await made.mcp.connect("ada", {
      ...made.stdio(),
      name: "Other",
      tools: { include: ["c*", "die"], exclude: ["change"] },
    });
    const more = (await toolsOf(made)).filter((tool) => !(tools as readonly unknown[]).includes(tool));
    expect(more.map(({ name }) => name)).toEqual(["other__count", "other__die"]);
    expect(made.mcp.of("bob")).toBe(none);
  });

  test("A5: another owner's servers are not there", async () => {
    const made = await start();
    await made.mcp.connect("ada", made.stdio());
    expect(await toolsOf(made, "bob")).toEqual([]);
    expect(await made.mcp.view("bob")).toEqual({ servers: {}, saved_servers: [] });
    const attempts = [
      () => made.mcp.disconnect("bob", "hostile"),
      () => made.mcp.forget("bob", "hostile"),
      () => made.mcp.approve("bob", "hostile"),
      () => made.mcp.connect("bob", { server_id: "hostile" }),
      () => made.mcp.reconnect("bob", "hostile"),
    ];
    for (const attempt of attempts) await expect(attempt()).rejects.toMatchObject({ code: "not_found" });
    expect((await made.mcp.view("ada")).servers.hostile?.status).toBe("connected");
  });
});

describe("the life of a server", () => {
  test("disconnected it stays saved, connected by its id alone it is back, forgotten it is gone", async () => {
    const made = await start();
    await made.mcp.connect("ada", made.stdio());
    const [tool] = await toolsOf(made);
    await made.mcp.disconnect("ada", "hostile");
    expect(await toolsOf(made)).toEqual([]);
    expect(await made.mcp.view("ada")).toMatchObject({
      servers: {},
      saved_servers: [{ id: "hostile", is_active: false, env: ["COUNT_FILE"], headers: [] }],
    });
    expect(await callTool(tool as NonNullable<typeof tool>, {})).toMatchObject({
      failed: true,
      text: "Not run: The MCP server hostile is not connected any more.",
    });
    await made.mcp.connect("ada", { server_id: "hostile" });
    await call(made, "hostile__count");
    expect(made.counted()).toContain("count");
    await made.mcp.forget("ada", "hostile");
    expect(await made.mcp.view("ada")).toEqual({ servers: {}, saved_servers: [] });
    await expect(made.mcp.connect("ada", { server_id: "hostile" })).rejects.toMatchObject({
      code: "not_found",
    });
  });

  test("what cannot be reached is saved as inactive, with the reason and the last words", async () => {
    const made = await start();
    const ends = {
      name: "Ends",
      command: process.execPath,
      args: ["-e", "console.error('no such luck'); process.exit(4)"],
    };
    await expect(made.mcp.connect("ada", ends)).rejects.toMatchObject({
      code: "unreachable",
      message: "The MCP server Ends ended with exit code 4. Its last words:\nno such luck",
    });
    await expect(made.mcp.connect("ada", { name: "None", command: "no-such-program" })).rejects.toMatchObject(
      {
        message: expect.stringContaining("there is no program 'no-such-program'"),
      },
    );
    const { saved_servers: saved } = await made.mcp.view("ada");
    expect(saved.find(({ id }) => id === "ends")).toMatchObject({
      is_active: false,
      last_error: expect.stringContaining("no such luck"),
    });
  });

  test("one that wants an authorization needs a person, and is not tried again and again", async () => {
    const made = await start();
    const { url } = await made.http();
    const closed = { name: "Closed", url: url.replace("/mcp", "/unauthorized") };
    await expect(made.mcp.connect("ada", closed)).rejects.toMatchObject({
      message: expect.stringContaining("GET /api/mcp/oauth/closed/start"),
    });
    expect((await made.mcp.view("ada")).servers.closed).toMatchObject({
      status: "needs_reauth",
      toolNames: [],
    });
  });

  test("one that never answers is given up when its time is over", async () => {
    const made = await start({ host: { connectMs: 150 } });
    const mute = { name: "Mute", command: process.execPath, args: ["-e", "setInterval(() => {}, 1000)"] };
    await expect(made.mcp.connect("ada", mute)).rejects.toMatchObject({
      message: expect.stringContaining("did not answer within 1 s"),
    });
  });

  test("connecting one twice at once is a conflict", async () => {
    const made = await start();
    const [first, second] = await Promise.allSettled([
      made.mcp.connect("ada", made.stdio()),
      made.mcp.connect("ada", made.stdio()),
    ]);
    expect(first.status).toBe("fulfilled");
    expect(second).toMatchObject({ reason: { code: "conflict" } });
  });

  test("killed and started again under load: reached again, and no call runs twice", async () => {
    const made = await start();
    const server = await made.http();
    await made.mcp.connect("ada", { name: "Hostile", url: server.url });
    const tool = (await toolsOf(made)).find(({ name }) => name === "hostile__count");
    const answers: { n: number; failed: boolean; text: string }[] = [];
    let next = 0;
    let going = true;
    const load = Array.from({ length: 8 }, async () => {
      while (going) {
        const n = next++;
        const { failed, text } = await callTool(tool as NonNullable<typeof tool>, { text: `call ${n}.` });
        answers.push({ n, failed, text });
        if (failed) await new Promise((resolve) => setTimeout(resolve, 5));
      }
    });
    const done = () => answers.filter(({ failed }) => !failed).length;
    for (let round = 1; round <= 3; round++) {
      const before = done();
      await until(() => done() > before + 20);
      await server.kill();
      await server.start();
      const after = done();
      await until(() => done() > after + 20, 10_000);
    }
    going = false;
    await Promise.all(load);
    const ran = made.counted().filter((line) => line.startsWith("count "));
    expect(new Set(ran).size).toBe(ran.length);
    for (const { n, failed, text } of answers) {
      if (!failed) expect(ran).toContain(`count call ${n}.`);
      else if (text.includes("Nothing was done") || text.startsWith("Not run"))
        expect(ran).not.toContain(`count call ${n}.`);
      else expect(text).toContain("whether it had an effect is unknown");
    }
    await until(async () => (await made.mcp.view("ada")).servers.hostile?.status === "connected");
  });
});

describe("several processes on one database", () => {
  test("what one connects, approves and forgets, the others learn; the start waits for none", async () => {
    const one = await start();
    await one.mcp.connect("ada", one.stdio());
    const two = await start({ beside: one });
    const early = two.mcp.of("ada");
    await two.mcp.tick();
    expect((await early).length).toBeGreaterThan(10);
    await until(async () => (await two.mcp.view("ada")).servers.hostile?.status === "connected");
    expect(await call(two, "hostile__count")).toMatchObject({ failed: false });

    await call(one, "hostile__change", { text: "late" });
    const names = async (of: TestMcp) => (await toolsOf(of)).map(({ name }) => name);
    await until(async () => !(await names(one)).includes("hostile__fickle"));
    await two.mcp.tick();
    expect(await names(two)).not.toContain("hostile__fickle");

    await one.mcp.forget("ada", "hostile");
    await two.mcp.tick();
    expect(two.mcp.of("ada")).toEqual([]);
  });

  test("a definition that changed while nobody looked is held back at the next connection", async () => {
    const one = await start();
    await one.mcp.connect("ada", one.stdio());
    const other = [{ name: "fickle", hash: "other", definition: { inputSchema: { type: "object" } } }];
    await one.store.mcp.pin("ada", "hostile", other);
    const two = await start({ beside: one });
    await two.mcp.tick();
    await until(async () => (await two.mcp.view("ada")).servers.hostile?.status === "connected");
    expect(two.mcp.of("ada")).toEqual([]);
    expect((await two.mcp.view("ada")).servers.hostile?.held_back.length).toBeGreaterThan(10);
  });
});

describe("where nothing outlives a request", () => {
  test("tools come from what is stored; a call opens a connection, and its turn's end closes it", async () => {
    const made = await start({ runtime: "workerd" });
    const server = await made.http();
    await made.mcp.connect("ada", { name: "Hostile", url: server.url });
    expect((await call(made, "hostile__count")).failed).toBe(false);
    expect((await made.mcp.view("ada")).servers.hostile?.status).toBe("connected");
    await server.kill();
    const failed = await call(made, "hostile__count");
    expect(failed).toMatchObject({ failed: true, text: expect.stringContaining("refuses connections") });
    expect((await made.mcp.view("ada")).servers.hostile?.status).toBe("error");
    await server.start();
    expect((await call(made, "hostile__count")).failed).toBe(false);
    expect((await made.mcp.view("ada")).servers.hostile?.status).toBe("connected");
  });

  test("E5: a definition that has changed since is not called", async () => {
    const made = await start({ runtime: "workerd" });
    const server = await made.http();
    await made.mcp.connect("ada", { name: "Hostile", url: server.url });
    await call(made, "hostile__change");
    const stale = await call(made, "hostile__fickle");
    expect(stale).toMatchObject({
      failed: true,
      text: expect.stringContaining("POST /api/mcp/servers/hostile/approve"),
    });
    expect(made.counted()).not.toContain("fickle");
  });
});

test("K1, K2: variables and headers are nowhere in clear: database, log, answers, what tools tell", async () => {
  const made = await start();
  const canary = "canary-5b1c0f7e9d2a4c63";
  const { env } = made.stdio() as unknown as { env: Record<string, string> };
  await made.mcp.connect("ada", made.stdio({ env: { ...env, TOKEN: canary } }));
  const told = await call(made, "hostile__environment");
  expect(told.text).toContain("COUNT_FILE");
  const server = await made.http();
  await made.mcp.connect("ada", {
    name: "Remote",
    url: server.url,
    headers: { Authorization: `Bearer ${canary}` },
  });
  await call(made, "remote__count");
  expect(made.counted()).toContain(`header Bearer ${canary}`);
  await server.kill();
  const failed = await call(made, "remote__count");
  const shown = JSON.stringify([told, failed, await made.mcp.view("ada"), made.logged]);
  expect(shown).not.toContain(canary);
  const { path } = made.backend as unknown as { path: string };
  for (const file of [path, `${path}-wal`]) expect(readFileSync(file, "latin1")).not.toContain(canary);
  expect(JSON.stringify(await made.store.mcp.load("ada"))).not.toContain(canary);
});

test("K3: a program gets a minimal environment, and what was configured for it", async () => {
  const made = await start();
  process.env.DRAGOMAN_TEST_SECRET = "must not be seen";
  try {
    await made.mcp.connect("ada", made.stdio());
    const { text } = await call(made, "hostile__environment");
    const names = Object.keys(JSON.parse(text)).sort();
    expect(names).toContain("COUNT_FILE");
    expect(names).not.toContain("DRAGOMAN_TEST_SECRET");
    expect(
      names.filter(
        (name) =>
          !/^(PATH|HOME|USER|LOGNAME|SHELL|LANG|LC_\w+|TZ|TMPDIR|XDG_\w+|PWD|SHLVL|_|OLDPWD)$/.test(name),
      ),
    ).toEqual(["COUNT_FILE", "DRAGOMAN_COMMAND"]);
  } finally {
    delete process.env.DRAGOMAN_TEST_SECRET;
  }
});

test("ten servers with 200 tools cost a request that does not use them nothing but their schemas", async () => {
  const made = await start();
  const tools = Array.from({ length: 20 }, (_, n) => ({
    name: `tool_${n}`,
    hash: String(n),
    definition: {
      description: "Does it.",
      inputSchema: { type: "object", properties: { a: { type: "string" } } },
    },
  }));
  for (let n = 0; n < 10; n++) {
    const id = `server${n}`;
    const spec = {
      id,
      name: id,
      transport: "http" as const,
      command: null,
      args: [],
      url: "http://127.0.0.1:9/",
    };
    const state = { sealed: null, active: true, lastError: null };
    await made.store.mcp.save("ada", { ...spec, tools: { include: [], exclude: [] } }, state);
    await made.store.mcp.pin("ada", id, tools);
  }
  const edge = await start({ beside: made, runtime: "workerd" });
  expect(await edge.mcp.of("ada")).toHaveLength(200);
  // From memory, and the same from call to call.
  expect(edge.mcp.of("ada")).not.toBeInstanceOf(Promise);
  expect(edge.mcp.of("ada")).toBe(edge.mcp.of("ada"));
});
