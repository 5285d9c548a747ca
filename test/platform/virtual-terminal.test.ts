import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { FileRows } from "../../src/core/store.ts";
import { createVirtualTerminal } from "../../src/platform/virtual-terminal.ts";
import { createVirtualWorkspace } from "../../src/platform/virtual-workspace.ts";
import { type Backend, createFileBackend, openStore, type TestStore } from "../store/backends.ts";
import { createMemoryFiles } from "./memory-files.ts";
import { runner, terminalContract } from "./terminal.contract.ts";
import { collect, decode, encode } from "./workspace.contract.ts";

const over = (rows: FileRows, owner: string) => ({
  workspace: createVirtualWorkspace(rows, owner),
  terminal: createVirtualTerminal(rows, owner),
  dispose: async () => {},
});

terminalContract("bash in JavaScript, rows in memory", async () => over(createMemoryFiles(), "ann"));

describe("over the store", () => {
  let backend: Backend;
  let store: TestStore;
  let owners = 0;
  beforeAll(async () => {
    backend = await createFileBackend();
    store = await openStore(backend);
  });
  afterAll(async () => {
    await store.close();
    await backend.close();
  });

  terminalContract("bash in JavaScript, rows of the store", async () =>
    over(store.files, `owner-${owners++}`),
  );

  test("any sequence of shell commands leaves the store as it leaves the map", async () => {
    const name = fc.constantFrom("a", "b", "c", "d/e", "d/f", "d", "g/h/i");
    const step = fc.oneof(
      name.map((at) => `mkdir -p ${at}`),
      fc.tuple(name, fc.nat(9)).map(([at, n]) => `echo ${n} > ${at}`),
      name.map((at) => `echo more >> ${at}`),
      name.map((at) => `rm -rf ${at}`),
      fc.tuple(name, name).map(([from, to]) => `mv ${from} ${to}`),
      fc.tuple(name, name).map(([from, to]) => `cp -r ${from} ${to}`),
      name.map((at) => `chmod 755 ${at}`),
    );
    const commands = fc.array(fc.array(step, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(commands, async (batches) => {
        const owner = `property-${owners++}`;
        const memory = createMemoryFiles();
        for (const batch of batches) {
          const command = batch.join("; ");
          const results = await Promise.all([
            runner(createVirtualTerminal(store.files, owner))(command),
            runner(createVirtualTerminal(memory, owner))(command),
          ]);
          expect(results[0]).toEqual(results[1]);
        }
        const tree = async (rows: FileRows) => {
          const found = [];
          for (const row of await rows.below(owner, "", null, 1_000)) {
            const bytes = row.directory ? null : await rows.read(owner, row.path);
            found.push([row.path, row.directory ? null : row.mode, bytes === null ? null : decode(bytes)]);
          }
          return found;
        };
        expect(await tree(store.files)).toEqual(await tree(memory));
        const seen = await runner(createVirtualTerminal(store.files, owner))("find . -mindepth 1");
        const rows = await store.files.below(owner, "", null, 1_000);
        expect(seen.output.split("\n").filter(Boolean).sort()).toEqual(
          rows.map((row) => `./${row.path}`).sort(),
        );
      }),
      { numRuns: 40 },
    );
  });
});

describe("rows and the shell", () => {
  test("contents are fetched only where a command reads them", async () => {
    const rows = createMemoryFiles();
    const workspace = createVirtualWorkspace(rows, "ann");
    for (const file of ["a", "b", "dir/c"]) await workspace.write(file, encode(file));
    const read = vi.spyOn(rows, "read");
    const apply = vi.spyOn(rows, "apply");
    const run = runner(createVirtualTerminal(rows, "ann"));
    expect((await run("ls -lR > /dev/null; find . -type f -size -1000c | sort; cat b")).output).toBe(
      "./a\n./b\n./dir/c\nb",
    );
    expect(read.mock.calls).toEqual([["ann", "b"]]);
    expect(apply).not.toHaveBeenCalled();
  });

  test("only what a command changed is written, in one batch", async () => {
    const rows = createMemoryFiles();
    const workspace = createVirtualWorkspace(rows, "ann");
    for (const file of ["keep", "change", "gone/1", "gone/2", "move"])
      await workspace.write(file, encode(file));
    const apply = vi.spyOn(rows, "apply");
    await runner(createVirtualTerminal(rows, "ann"))(
      "echo x > change; rm -r gone; mv move moved; mkdir new; echo tmp > /tmp/x",
    );
    expect(apply).toHaveBeenCalledTimes(1);
    const [, changes] = apply.mock.calls[0]!;
    expect(changes.remove.sort()).toEqual(["gone", "move"]);
    expect(changes.makeDirectories).toEqual(["new"]);
    expect(changes.write.map(({ path, bytes }) => [path, decode(bytes)]).sort()).toEqual([
      ["change", "x\n"],
      ["moved", "move"],
    ]);
  });

  test("a change beside a running command is kept", async () => {
    const rows = createMemoryFiles();
    const workspace = createVirtualWorkspace(rows, "ann");
    const work = runner(createVirtualTerminal(rows, "ann"))("sleep 0.2; echo a > a");
    await workspace.write("b", encode("b"));
    await work;
    expect(await collect(workspace.walk(""))).toEqual(["a", "b"]);
  });

  test("a command sees what the one before it wrote, from another Terminal of the owner too", async () => {
    const rows = createMemoryFiles();
    const first = runner(createVirtualTerminal(rows, "ann"))("sleep 0.1; echo first > log");
    const second = runner(createVirtualTerminal(rows, "ann"))("echo second >> log; cat log");
    expect((await second).output).toBe("first\nsecond\n");
    expect((await first).exitCode).toBe(0);
  });

  test("a command that waits its turn can be cancelled, and another owner does not wait", async () => {
    const rows = createMemoryFiles();
    const stop = new AbortController();
    const first = runner(createVirtualTerminal(rows, "ann"))("sleep 60", { signal: stop.signal });
    const waiting = runner(createVirtualTerminal(rows, "ann"))("touch never", {
      signal: AbortSignal.timeout(20),
    });
    expect(await runner(createVirtualTerminal(rows, "ben"))("echo hi")).toMatchObject({ output: "hi\n" });
    expect(await waiting).toMatchObject({ cancelled: true, exitCode: null });
    stop.abort();
    expect(await first).toMatchObject({ cancelled: true });
    expect(await collect(createVirtualWorkspace(rows, "ann").walk(""))).toEqual([]);
  });

  test("limits end what would not end by itself", async () => {
    const run = runner(createVirtualTerminal(createMemoryFiles(), "ann"));
    for (const command of [
      "i=0; while true; do i=$((i+1)); done",
      "f() { f; }; f",
      "x=a; while true; do x=$x$x; done",
      "awk 'BEGIN { while (1) i++ }'",
      "x=$(seq 1 20000); for i in $(seq 1 150); do echo $x >> large; done",
      "x=$(seq 1 20000); for i in $(seq 1 900); do echo $x >> large$((i % 9)); done",
    ]) {
      expect((await run(command)).exitCode, command).not.toBe(0);
    }
  });

  test("there is no network, no host file and no program but its own", async () => {
    const run = runner(createVirtualTerminal(createMemoryFiles(), "ann"));
    for (const program of [
      "curl http://127.0.0.1",
      "wget x",
      "python3 -c 1",
      "node -e 1",
      "git status",
      "js-exec -c 1",
      "sqlite3",
    ]) {
      expect(await run(program), program).toMatchObject({ exitCode: 127 });
    }
    expect((await run("cat /etc/passwd ../../etc/passwd /proc/1/environ; ls /home")).output).not.toMatch(
      /:0:0:/,
    );
    expect((await run("ln -s /etc link; ln a b; ls")).output).not.toContain("link\n");
    vi.stubEnv("OPENAI_API_KEY", "canary-4711");
    expect((await run("env; set; printenv; cat /proc/self/environ")).output).not.toContain("canary-4711");
    vi.unstubAllEnvs();
  });
});
