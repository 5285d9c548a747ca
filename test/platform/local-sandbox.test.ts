/**
 * The system's sandbox. Where this system has what it needs, the real one is held against what it promises; where it has
 * not, only the refusals are.
 */
import { type ChildProcess, spawn } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer, type Server } from "node:http";
import { type AddressInfo, createServer as createConnectionServer } from "node:net";
import { networkInterfaces, tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { createSandbox } from "../../src/platform/local-sandbox.ts";
import { createLocalTerminal, type Sandbox } from "../../src/platform/local-terminal.ts";
import { createLocalWorkspace } from "../../src/platform/local-workspace.ts";
import { runner, terminalContract } from "./terminal.contract.ts";

/** Not below a temporary folder, where the sandbox lets commands write. */
const home = realpathSync(mkdtempSync("/var/tmp/dragoman-sandbox-"));
const root = join(home, "workspace");
/** Inside one: what is secret stays so there too. */
const dataDir = realpathSync(mkdtempSync(join(tmpdir(), "dragoman-data-")));
const envFile = join(root, ".env");
const rules = join(root, "rules.json");
mkdirSync(root);
writeFileSync(envFile, "OPENAI_API_KEY=canary-4711\n");
writeFileSync(rules, "{}");
writeFileSync(join(dataDir, "secret.key"), "canary-4711\n");

const options = { root, secrets: [dataDir, envFile], fixed: [rules], domains: [] };

function hasProgram(name: string): boolean {
  return (process.env.PATH ?? "").split(delimiter).some((folder) => existsSync(join(folder, name)));
}

describe("a system that lacks something", () => {
  const programs = mkdtempSync(join(tmpdir(), "dragoman-programs-"));
  afterEach(() => vi.unstubAllEnvs());
  afterAll(() => rmSync(programs, { recursive: true }));

  test.runIf(process.platform === "linux")("is refused with what it lacks and how to get it", async () => {
    vi.stubEnv("PATH", programs);
    await expect(createSandbox(options)).rejects.toThrow(
      /bubblewrap.*not installed.*socat not installed.*apt-get install bubblewrap socat ripgrep.*TERMINAL to host/,
    );
  });

  test.runIf(hasProgram("socat") && hasProgram("rg"))(
    "is refused when it forbids what the sandbox does",
    async () => {
      // A bubblewrap that a system without user namespaces lets fail, which the package asks for its version as well.
      writeFileSync(
        join(programs, "bwrap"),
        '#!/bin/sh\n[ "$1" = --version ] && echo "bubblewrap 0.8.0" && exit\necho "bwrap: No permissions to create new namespace" >&2; exit 1\n',
      );
      chmodSync(join(programs, "bwrap"), 0o755);
      const script = `
        import { createSandbox } from ${JSON.stringify(new URL("../../src/platform/local-sandbox.ts", import.meta.url).href)};
        await createSandbox(${JSON.stringify(options)}).then(() => console.log("made"), (error) => console.log(error.message));
        process.exit();`;
      const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
        env: { ...process.env, PATH: `${programs}:${process.env.PATH}` },
        stdio: ["ignore", "pipe", "ignore"],
      });
      let said = "";
      for await (const chunk of child.stdout) said += chunk;
      expect(said).toMatch(
        /does not work on this system \(bwrap: No permissions.*user namespaces.*TERMINAL to host/,
      );
    },
  );
});

let made: Sandbox | undefined;
let refusal = "";
try {
  made = await createSandbox(options);
} catch (error) {
  refusal = (error as Error).message;
}

test(`this system: ${made ? "the real sandbox is tested" : `refused, only that is tested: ${refusal}`}`, () => {
  if (!made) expect(refusal).toMatch(/^TERMINAL=sandbox .*\. Or set TERMINAL to host, virtual or off\.$/);
});

afterAll(() => {
  rmSync(home, { recursive: true, force: true });
  rmSync(dataDir, { recursive: true, force: true });
});

if (made) {
  const sandbox = made;
  terminalContract("a shell in the system's sandbox", async () => {
    const folder = mkdtempSync(join(root, "contract-"));
    return {
      workspace: createLocalWorkspace(folder),
      terminal: createLocalTerminal(folder, { sandbox }),
      dispose: async () => rmSync(folder, { recursive: true, force: true }),
    };
  });

  describe("the real sandbox", () => {
    const run = runner(createLocalTerminal(root, { sandbox }));
    const free = runner(createLocalTerminal(root));
    let server: Server;
    let port: number;
    let asked = 0;
    let service: ChildProcess;
    beforeAll(async () => {
      server = createServer((_, response) => {
        asked++;
        response.end("reached");
      });
      await new Promise<void>((resolve) => server.listen(0, "0.0.0.0", resolve));
      port = (server.address() as AddressInfo).port;
      service = spawn("sleep", ["600"], { env: { PATH: process.env.PATH, SECRET: "canary-0815" } });
    });
    afterAll(() => {
      server.close();
      service.kill("SIGKILL");
    });

    test("commands write in the workspace and in temporary folders, and nowhere else", async () => {
      const written = await run("echo a > made && cat made && t=$(mktemp) && echo b > $t && cat $t && rm $t");
      expect(written).toMatchObject({ exitCode: 0, output: "a\nb\n" });
      const places = [home, dirname(process.execPath), "/etc", "/usr/local", process.cwd()];
      // A checkout below the temporary folder is a place to write.
      for (const place of places.filter((path) => !path.startsWith(`${tmpdir()}/`))) {
        const { exitCode } = await run(`echo x > ${place}/dragoman-probe`);
        expect(exitCode, place).not.toBe(0);
        expect(existsSync(join(place, "dragoman-probe"))).toBe(false);
      }
      expect(await run("ln -s / up && echo x > up/dragoman-probe")).toMatchObject({ exitCode: 1 });
    });

    test("K2: the data folder, the key file and .env are out of reach", async () => {
      expect((await free(`cat ${dataDir}/secret.key ${envFile}`)).output).toContain("canary-4711");
      const { output } = await run(
        `cat ${dataDir}/secret.key ${envFile} .env; cp -r ${dataDir} copy; tar cf - ${dataDir} | cat; ln -s ${dataDir} link; cat link/secret.key; grep -r canary . ${dataDir}`,
      );
      expect(output).not.toContain("canary-4711");
      await run(
        `echo broken > ${envFile}; echo broken > ${dataDir}/secret.key; rm -rf ${dataDir}; rm -f ${envFile}`,
      );
      expect(readFileSync(join(dataDir, "secret.key"), "utf8")).toBe("canary-4711\n");
      expect(readFileSync(envFile, "utf8")).toContain("canary-4711");
    });

    test("P1: the rules of approval can be read and not changed", async () => {
      expect(await run("cat rules.json")).toMatchObject({ output: "{}" });
      await run('echo \'{"default":"auto"}\' > rules.json; rm -f rules.json; mv rules.json gone');
      expect(readFileSync(rules, "utf8")).toBe("{}");
    });

    test.runIf(process.platform === "linux")(
      "K3: other processes and their environments are not seen",
      async () => {
        expect((await free(`cat /proc/${service.pid}/environ`)).output).toContain("canary-0815");
        const { output } = await run("cat /proc/*/environ /proc/*/task/*/environ 2>/dev/null; ls /proc");
        expect(output).not.toContain("canary");
        expect(await run(`kill -9 ${service.pid}`)).not.toMatchObject({ exitCode: 0 });
        expect(service.exitCode).toBeNull();
      },
    );

    test("P4: no address of this machine is reached, directly or through the proxy", async () => {
      const own = Object.values(networkInterfaces()).flatMap((addresses) =>
        (addresses ?? []).filter(({ family }) => family === "IPv4").map(({ address }) => address),
      );
      const talk = (host: string) =>
        `exec 3<>/dev/tcp/${host}/${port} && printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3 && timeout 3 cat <&3`;
      expect((await free(talk("127.0.0.1"))).output).toContain("reached");
      const before = asked;
      for (const host of new Set(["127.0.0.1", "localhost", "0.0.0.0", ...own])) {
        expect((await run(talk(host))).output).not.toContain("reached");
        const connect = `u=\${HTTP_PROXY#http://}; a=$(printf %s "\${u%@*}" | sed 's/%3D/=/g;s/%2B/+/g;s/%2F/\\//g' | base64 -w0)
          exec 3<>/dev/tcp/127.0.0.1/3128 && printf 'CONNECT ${host}:${port} HTTP/1.1\\r\\nHost: ${host}\\r\\nProxy-Authorization: Basic %s\\r\\n\\r\\nGET / HTTP/1.0\\r\\n\\r\\n' "$a" >&3; timeout 3 cat <&3`;
        const { output } = await run(connect);
        expect(output).toMatch(/^HTTP\/1.1 403/);
        expect(output).not.toContain("reached");
      }
      expect(asked).toBe(before);
    });

    test("sockets of other programs are not reached", async () => {
      const path = join(dataDir, "..", `dragoman-${process.pid}.sock`);
      const engine = createConnectionServer((socket) => socket.end("engine"));
      await new Promise<void>((resolve) => engine.listen(path, resolve));
      expect((await free(`socat -u UNIX-CONNECT:${path} -`)).output).toBe("engine");
      const { exitCode, output } = await run(`socat -u UNIX-CONNECT:${path} -`);
      expect(exitCode).not.toBe(0);
      expect(output).not.toContain("engine\n");
      expect(output).toMatch(/not permitted/);
      engine.close();
    });

    test("R2: a stopped command ends with all that it started", async () => {
      const stop = new AbortController();
      const work = run("(sleep 613.25 &) ; setsid sleep 613.25 & touch started; sleep 613.25", {
        signal: stop.signal,
      });
      await vi.waitFor(() => expect(existsSync(join(root, "started"))).toBe(true), { timeout: 5_000 });
      await vi.waitFor(() => expect(sleepers()).toBeGreaterThan(2));
      stop.abort();
      expect(await work).toMatchObject({ cancelled: true });
      await vi.waitFor(() => expect(sleepers()).toBe(0));
    });

    function sleepers(): number {
      return readdirSync("/proc").filter((pid) => {
        try {
          return readFileSync(`/proc/${pid}/cmdline`, "latin1").split("\u0000")[1] === "613.25";
        } catch {
          return false;
        }
      }).length;
    }
  });
}
