/** What every Terminal must do, whatever runs its commands. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { CommandOptions, CommandResult, Terminal, Workspace } from "../../src/core/platform.ts";
import { collect, decode, encode, failureOf } from "./workspace.contract.ts";

export interface TerminalFixture {
  workspace: Workspace;
  terminal: Terminal;
  dispose(): Promise<void>;
}

/** Runs with limits that no test reaches unless it sets its own. */
export function runner(terminal: Terminal) {
  return (command: string, options: Partial<CommandOptions> = {}): Promise<CommandResult> =>
    terminal.run(command, {
      timeoutMs: 60_000,
      outputLimit: 10_000,
      signal: new AbortController().signal,
      ...options,
    });
}

export function terminalContract(kind: string, create: () => Promise<TerminalFixture>): void {
  describe(`terminal: ${kind}`, () => {
    let fixture: TerminalFixture;
    let workspace: Workspace;
    let run: ReturnType<typeof runner>;
    beforeEach(async () => {
      fixture = await create();
      workspace = fixture.workspace;
      run = runner(fixture.terminal);
    });
    afterEach(() => fixture.dispose());

    test("gives the exit code and the output", async () => {
      expect(await run("echo hello")).toEqual({
        exitCode: 0,
        output: "hello\n",
        dropped: 0,
        timedOut: false,
        cancelled: false,
        directory: "",
      });
      expect(await run("exit 7")).toMatchObject({ exitCode: 7, output: "" });
      expect((await run("no-such-command")).exitCode).toBe(127);
      const both = await run("echo out; echo err >&2; false");
      expect(both).toMatchObject({ exitCode: 1, output: "out\nerr\n" });
      expect(await run("")).toMatchObject({ exitCode: 0, output: "" });
      expect((await run("if then")).exitCode).not.toBe(0);
    });

    test("stderr that a command redirects or captures goes where it says", async () => {
      const command =
        'x=$(ls /nope 2>/dev/null); echo "[$x]"; y=$( (echo e >&2) 2>&1 ); echo "[$y]"; seq 3 | while read n; do echo "n$n"; done';
      expect((await run(command)).output).toBe("[]\n[e]\nn1\nn2\nn3\n");
    });

    test("works on the files of the workspace, in both directions", async () => {
      await workspace.write("in/a.txt", encode("alpha\nbeta\n"));
      const result = await run(
        "grep -c a in/a.txt && mkdir -p out/deep && sort -r in/a.txt > out/deep/b.txt && rm in/a.txt && echo gamma >> out/c",
      );
      expect(result).toMatchObject({ exitCode: 0, output: "2\n" });
      expect(decode(await workspace.read("out/deep/b.txt"))).toBe("beta\nalpha\n");
      expect(await collect(workspace.walk(""))).toEqual(["out/c", "out/deep/b.txt"]);
      expect(await workspace.list("in")).toEqual([]);
    });

    test("keeps bytes as they are", async () => {
      const bytes = Uint8Array.from({ length: 512 }, (_, i) => i % 256);
      await workspace.write("data", bytes);
      expect(
        (await run("cp data copy && cat data data > twice && mv copy moved && wc -c < twice")).output.trim(),
      ).toBe("1024");
      expect(await workspace.read("moved")).toEqual(bytes);
      expect(await workspace.read("twice")).toEqual(Uint8Array.from([...bytes, ...bytes]));
    });

    test("runs scripts that it made executable, again in the next command", async () => {
      const made = await run(
        "printf '#!/bin/bash\\necho \"hi $1\"\\n' > hi.sh && chmod +x hi.sh && ./hi.sh you",
      );
      expect(made).toMatchObject({ exitCode: 0, output: "hi you\n" });
      expect((await run("./hi.sh again")).output).toBe("hi again\n");
    });

    test("starts where it is told to, inside the workspace only", async () => {
      await workspace.write("sub/dir/x", encode("x"));
      expect((await run("pwd", { cwd: "sub/dir" })).output).toBe(`${workspace.root}/sub/dir\n`);
      expect((await run("pwd", { cwd: `${workspace.root}/sub` })).output).toBe(`${workspace.root}/sub\n`);
      expect((await run("pwd")).output).toBe(`${workspace.root}\n`);
      for (const cwd of ["..", "/", "a/../../..", "a\0", "sub/dir/x"]) {
        expect(await failureOf(run("pwd", { cwd }))).toBe("invalid_request");
      }
      expect(await failureOf(run("pwd", { cwd: "none" }))).toBe("not_found");
      expect(await failureOf(run("echo \0"))).toBe("invalid_request");
    });

    test("says where the shell ended, inside the workspace and outside", async () => {
      await workspace.write("sub/dir/x", encode("x"));
      const ends = async (command: string, cwd = "") => (await run(command, { cwd })).directory;
      expect(await ends("cd sub")).toBe("sub");
      expect(await ends("cd dir && echo out && cat x", "sub")).toBe("sub/dir");
      expect(await ends("cd ..", "sub/dir")).toBe("sub");
      expect(await ends("true", "sub")).toBe("sub");
      expect(await ends("cd sub; false")).toBe("sub");
      expect(await ends("set -e; cd sub/dir; false; cd /")).toBe("sub/dir");
      expect(await ends("(cd sub); x=$(cd sub; pwd); cd sub | cat")).toBe("");
      expect(await ends("mkdir -p 'a b/ü' && cd 'a b/ü'")).toBe("a b/ü");
      expect(await ends("cd sub; cat <<END\nno end of it")).toBe("sub");
      expect(await ends("cd /")).toBeNull();
      expect(await ends("cd ..")).toBeNull();
      expect((await run("cd /; cd $OLDPWD; pwd", { cwd: "sub" })).output).toMatch(/\/sub\n$/);
      expect(await ends("if then", "sub")).toBe("sub");
      expect(await ends("exit 3", "sub")).toBe("sub");
    });

    test("says when a command has begun, and not when it does not", async () => {
      const told: string[] = [];
      await run("true", { onStart: () => told.push("began") });
      expect(told).toEqual(["began"]);
      await failureOf(run("true", { cwd: "none", onStart: () => told.push("wrong") }));
      await run("true", { signal: AbortSignal.abort(), onStart: () => told.push("wrong") });
      expect(told).toEqual(["began"]);
    });

    test("each command has a new shell", async () => {
      await run("export LEFT=1; cd /; alias x=y");
      expect((await run('echo "[$LEFT]"; pwd')).output).toBe(`[]\n${workspace.root}\n`);
    });

    test("there is no input", async () => {
      expect(await run("cat; read line; echo done")).toMatchObject({ exitCode: 0, output: "done\n" });
    });

    test("keeps the end of long output and counts what it left out", async () => {
      const result = await run("for i in $(seq 1 3000); do echo line $i; done", { outputLimit: 100 });
      const all = Array.from({ length: 3000 }, (_, i) => `line ${i + 1}\n`).join("");
      expect(result.output).toBe(all.slice(-100));
      expect(result.dropped).toBe(all.length - 100);
    });

    test("tells all of its output while it runs or at the end, whatever is kept", async () => {
      let seen = "";
      await run("echo wörld; echo 名前; echo 😀", { outputLimit: 3, onOutput: (delta) => (seen += delta) });
      expect(seen).toBe("wörld\n名前\n😀\n");
    });

    test("never cuts a character in two", async () => {
      for (const outputLimit of [1, 2, 3, 4, 5]) {
        expect((await run("printf 😀😀😀", { outputLimit })).output.isWellFormed()).toBe(true);
      }
    });

    test("output that is not text becomes text without NUL", async () => {
      const { output } = await run("printf 'a\\000b\\377\\376c'");
      expect(output).toMatch(/^a.b.+c$/su);
      expect(output.isWellFormed() && !output.includes("\0")).toBe(true);
    });

    test("a command that takes too long is killed; what it had done stays", async () => {
      const result = await run("echo kept > file; sleep 600; echo never > other", { timeoutMs: 1_000 });
      expect(result).toMatchObject({ exitCode: null, timedOut: true, cancelled: false });
      expect(await collect(workspace.walk(""))).toEqual(["file"]);
    });

    test("R2: a command that is cancelled is killed", async () => {
      const stop = new AbortController();
      const work = run("touch started; while true; do sleep 0.05; done", { signal: stop.signal });
      setTimeout(() => stop.abort(), 100);
      expect(await work).toMatchObject({ exitCode: null, timedOut: false, cancelled: true });
    });

    test("R2: a command that was cancelled before it began does not begin", async () => {
      const result = await run("touch never", { signal: AbortSignal.abort() });
      expect(result).toMatchObject({ exitCode: null, cancelled: true });
      expect(await collect(workspace.walk(""))).toEqual([]);
    });

    test("an endless loop leaves the event loop to others", async () => {
      let turns = 0;
      const ticker = setInterval(() => turns++, 5);
      await run("while true; do echo x > /dev/null; done", { timeoutMs: 300 });
      clearInterval(ticker);
      // None, when the loop holds it. How many, depends on the machine.
      expect(turns).toBeGreaterThan(0);
    });

    test("commands at the same time each end with their own result", async () => {
      const results = await Promise.all(
        Array.from({ length: 6 }, (_, i) => run(`echo ${i} > f${i}; cat f${i}`)),
      );
      expect(results.map((result) => result.output)).toEqual(["0\n", "1\n", "2\n", "3\n", "4\n", "5\n"]);
      expect(await collect(workspace.walk(""))).toEqual(["f0", "f1", "f2", "f3", "f4", "f5"]);
      const moved = await Promise.all(Array.from({ length: 6 }, (_, i) => run(`mkdir d${i} && cd d${i}`)));
      expect(moved.map(({ directory }) => directory)).toEqual(["d0", "d1", "d2", "d3", "d4", "d5"]);
    });
  });
}
