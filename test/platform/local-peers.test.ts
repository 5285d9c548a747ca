/** P4: telling the agent's commands from other programs by the kernel's own tables. The service around it: test/entry. */
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createCommandMark } from "../../src/platform/local-commands.ts";
import { createPeers } from "../../src/platform/local-peers.ts";
import { createLocalTerminal } from "../../src/platform/local-terminal.ts";
import { runner } from "./terminal.contract.ts";

const mark = createCommandMark();
const peers = createPeers(mark);
const external = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .find(({ family, internal }) => family === "IPv4" && !internal)?.address;

test("nobody has to ask before the first command", () => {
  expect(createPeers(createCommandMark()).startedByAgent).toBeUndefined();
});

describe.runIf(process.platform === "linux")("on Linux", () => {
  const root = mkdtempSync(join(tmpdir(), "dragoman-peers-"));
  const run = runner(createLocalTerminal(root, { mark }));
  /** Says to every client whether it is the agent's. */
  let server: Server;
  let asked = peers;
  let port: number;

  beforeAll(async () => {
    await run("true");
    server = createServer({ allowHalfOpen: true }, async (socket: Socket) => {
      socket.on("error", () => {});
      const { remoteAddress, remotePort = 0, localPort = 0 } = socket;
      const verdict = await asked.startedByAgent?.(remoteAddress, remotePort, localPort);
      socket.end(verdict ? "agent\n" : "other\n");
    });
    await new Promise<void>((resolve) => server.listen(0, "::", resolve));
    port = (server.address() as { port: number }).port;
  });
  afterAll(() => {
    server.close();
    rmSync(root, { recursive: true, force: true });
  });

  function ask(host: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, host);
      socket
        .on("error", reject)
        .setEncoding("utf8")
        .once("data", (text: string) => resolve(text));
    });
  }
  const program = (host: string) =>
    `require("net").connect(${port}, "${host}").on("data", (text) => process.stdout.write(text))`;
  const command = (host: string) => `'${process.execPath}' -e '${program(host)}'`;

  test.each(["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1", ...(external ? [external] : [])])(
    "a command that comes over %s is the agent's, we are not",
    async (host) => {
      expect((await run(command(host))).output).toBe("agent\n");
      expect(await ask(host)).toBe("other\n");
    },
  );

  test("a child that inherits the connection from a parent that ends is found", async () => {
    const { output } = await run(
      `exec 3<>/dev/tcp/127.0.0.1/${port}; (head -1 <&3 > answer) & exec 3>&-; wait; cat answer`,
    );
    expect(output).toBe("agent\n");
  });

  const detached = (start: string) =>
    `rm -f answer; ${start} setsid -f bash -c 'head -1 < /dev/tcp/127.0.0.1/${port} > answer'; until [ -s answer ]; do sleep 0.05; done; cat answer`;

  test("a command that left its session and its environment is known by its limit", async () => {
    expect((await run(detached('env -i PATH="$PATH"'))).output).toBe("agent\n");
  });

  test("one whose limit says nothing is known by its variable", async () => {
    asked = createPeers({ ...mark, used: true, locks: 0 });
    expect((await run(detached(""))).output).toBe("agent\n");
    expect((await run(detached('env -i PATH="$PATH"'))).output).toBe("other\n");
    asked = peers;
  });

  test("what is gone by the time of the look is refused; other machines' clients are not looked for", async () => {
    const check = peers.startedByAgent;
    expect(await check?.(undefined, 0, port)).toBe(true);
    expect(await check?.("127.0.0.1", 9, port)).toBe(true);
    expect(await check?.("192.0.2.7", 9, port)).toBe(false);
    expect(await check?.("2001:db8::7", 9, port)).toBe(false);
  });

  test("where the table does not show that we listen, nobody is refused", async () => {
    expect(await peers.startedByAgent?.("127.0.0.1", 9, 1)).toBe(false);
  });
});
