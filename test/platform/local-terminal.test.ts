import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createLocalTerminal } from "../../src/platform/local-terminal.ts";
import { createLocalWorkspace } from "../../src/platform/local-workspace.ts";
import { runner, terminalContract } from "./terminal.contract.ts";

function temporary(): string {
  return realpathSync(mkdtempSync(join(tmpdir(), "dragoman-terminal-")));
}

terminalContract("a shell of the host", async () => {
  const root = temporary();
  return {
    workspace: createLocalWorkspace(root),
    terminal: createLocalTerminal(root),
    dispose: async () => rmSync(root, { recursive: true, force: true }),
  };
});

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A killed process stays in the table until its parent has looked at it.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

describe("processes of the host", () => {
  test("R2: commands end with the service", async () => {
    const terminal = new URL("../../src/platform/local-terminal.ts", import.meta.url).href;
    const script = `
      import { createLocalTerminal } from ${JSON.stringify(terminal)};
      const options = {
        timeoutMs: 60_000, outputLimit: 100, signal: new AbortController().signal,
        onOutput(pid) { process.stdout.write(pid, () => process.exit(0)); },
      };
      createLocalTerminal(process.cwd()).run("echo $$; sleep 60", options);`;
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script], {
      cwd: tmpdir(),
    });
    const pid = Number(stdout);
    expect(pid).toBeGreaterThan(1);
    await vi.waitFor(() => expect(alive(pid)).toBe(false));
  });

  let root: string;
  let run: ReturnType<typeof runner>;
  beforeEach(() => {
    root = temporary();
    run = runner(createLocalTerminal(root));
  });
  afterEach(() => {
    vi.unstubAllEnvs();
    rmSync(root, { recursive: true, force: true });
  });
  const pids = () => readFileSync(join(root, "pids"), "utf8").trim().split("\n").map(Number);
  const started = (count: number) =>
    vi.waitFor(() => expect(pids()).toHaveLength(count), { timeout: 10_000 });

  test("K3: nothing of our environment but the named variables reaches a command", async () => {
    for (const name of [
      "OPENAI_API_KEY",
      "ANTHROPIC_API_KEY",
      "ACCESS_TOKENS",
      "SECRET_KEY",
      "NODE_OPTIONS",
      "LD_PRELOAD_X",
      "BASH_ENV",
    ]) {
      vi.stubEnv(name, "canary-4711");
    }
    const { output } = await run("env; cat /proc/self/environ; set");
    expect(output).not.toContain("canary-4711");
    expect(output).toContain("TERM=dumb");
    expect(output).toMatch(/^PATH=/m);
    const names = output.split("\n").filter((line) => /^[A-Z_]+=/.test(line));
    expect(names.join("\n")).not.toMatch(/_KEY=|_TOKEN|VITEST|NODE_ENV/);
  });

  test("stdout and stderr come in the order in which they were written", async () => {
    const { output } = await run("for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done");
    expect(output).toBe("o1\ne1\no2\ne2\no3\ne3\no4\ne4\no5\ne5\n");
  });

  test("a timeout kills grandchildren too, those that ignore the polite signal among them", async () => {
    const command = `
      (trap '' TERM; echo $BASHPID >> pids; while :; do sleep 0.1; done) &
      (echo $BASHPID >> pids; sleep 600) &
      bash -c 'echo $$ >> pids; trap "" TERM; sleep 600; sleep 600'`;
    const result = await run(command, { timeoutMs: 1_500 });
    expect(result).toMatchObject({ timedOut: true, exitCode: null });
    expect(pids()).toHaveLength(3);
    await vi.waitFor(() => expect(pids().filter(alive)).toEqual([]));
  });

  test("R2: a cancel kills the whole group", async () => {
    const stop = new AbortController();
    const work = run("sleep 600 & echo $! >> pids; echo $$ >> pids; wait", { signal: stop.signal });
    await started(2);
    stop.abort();
    expect(await work).toMatchObject({ cancelled: true, exitCode: null });
    await vi.waitFor(() => expect(pids().filter(alive)).toEqual([]));
  });

  test.skipIf(process.platform !== "linux")("R2: a cancel kills what has left the group, too", async () => {
    const stop = new AbortController();
    const command = `setsid sleep 600 & echo $! >> pids
      (setsid sh -c 'echo $$ >> pids; sleep 600; true' &)
      sleep 600`;
    const work = run(command, { signal: stop.signal });
    await started(2);
    stop.abort();
    expect(await work).toMatchObject({ cancelled: true, exitCode: null });
    await vi.waitFor(() => expect(pids().filter(alive)).toEqual([]));
  });

  test("what a stopped command had written so far is kept", async () => {
    const result = await run("echo before; sleep 600", { timeoutMs: 1_000 });
    expect(result).toMatchObject({ timedOut: true, output: "before\n" });
  });

  test("a background child that holds the output open does not hold the call, and ends with it", async () => {
    const result = await run("sleep 600 & echo $! >> pids; echo out");
    expect(result).toMatchObject({ exitCode: 0, output: "out\n", timedOut: false });
    await vi.waitFor(() => expect(pids().filter(alive)).toEqual([]));
  });

  test("a background child with its output elsewhere ends with the call too", async () => {
    expect(await run("sleep 600 >/dev/null 2>&1 & echo $! >> pids")).toMatchObject({ exitCode: 0 });
    await vi.waitFor(() => expect(pids().filter(alive)).toEqual([]));
  });

  test("a child that left the group does not hold the call either", async () => {
    const result = await run("setsid sleep 30 & echo $! >> pids; echo out");
    expect(result).toMatchObject({ exitCode: 0, output: "out\n" });
    for (const pid of pids()) if (alive(pid)) process.kill(pid, "SIGKILL");
  });

  test("a command that a signal ends has no exit code", async () => {
    expect(await run("kill -9 $$")).toMatchObject({ exitCode: null, timedOut: false, cancelled: false });
  });

  test("a flood of output keeps memory and the event loop free", async () => {
    const before = process.memoryUsage().rss;
    let peak = 0;
    let turns = 0;
    const ticker = setInterval(() => {
      turns++;
      peak = Math.max(peak, process.memoryUsage().rss);
    }, 5);
    const result = await run("head -c 200000000 /dev/zero | tr '\\0' 'y'; echo; echo end", {
      outputLimit: 1_000,
    });
    clearInterval(ticker);
    expect(result.exitCode).toBe(0);
    expect(result.output).toBe(`${"y".repeat(995)}\nend\n`);
    expect(result.dropped).toBe(200_000_005 - 1_000);
    expect(turns).toBeGreaterThan(10);
    expect(peak - before).toBeLessThan(100 * 1024 * 1024);
  });

  test("characters that arrive in pieces are put together", async () => {
    const command = "for i in 1 2 3; do printf '\\360\\237'; sleep 0.02; printf '\\230\\200'; done";
    expect((await run(command)).output).toBe("😀😀😀");
  });

  test("a command that the system finds too long is refused with what to do", async () => {
    await expect(run(`: ${"x".repeat(200_000)}`)).rejects.toThrow(/too long.*file/);
  });
});
