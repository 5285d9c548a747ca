import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { expect, test, vi } from "vitest";

const GROUPS = new URL("../../src/platform/local-groups.ts", import.meta.url).href;
/** Holds a group for each line that it reads, `drop` lets the last one go; it says what it has started. */
const HOLDER = `
  import { spawn } from "node:child_process";
  import { createInterface } from "node:readline";
  const { createProcessGroups } = await import(${JSON.stringify(GROUPS)});
  const groups = createProcessGroups();
  let pid;
  for await (const line of createInterface({ input: process.stdin })) {
    if (line === "drop") groups.delete(pid);
    else {
      ({ pid } = spawn("sleep", ["300"], { detached: true, stdio: "ignore" }));
      groups.add(pid);
    }
    console.log(pid);
  }`;
const WAIT = { timeout: 5_000, interval: 20 };

/** A killed process stays in the table until its parent has looked at it. */
function hasEnded(pid: number): boolean {
  try {
    return /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return true;
  }
}

test.runIf(process.platform === "linux")(
  "groups end with a process that is killed, also when its guard was, and those that it let go stay",
  async () => {
    const holder = spawn(process.execPath, ["--input-type=module", "-e", HOLDER], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    const lines = createInterface({ input: holder.stdout })[Symbol.asyncIterator]();
    const ask = async (line: string) => {
      holder.stdin.write(`${line}\n`);
      return Number((await lines.next()).value);
    };
    const guards = () => execFileSync("pgrep", ["-P", String(holder.pid), "-x", "sh"], { encoding: "utf8" });
    const first = await ask("hold");
    const letGo = await ask("hold");
    await ask("drop");
    try {
      const guard = Number(guards());
      process.kill(guard, "SIGKILL");
      await vi.waitFor(() => expect(hasEnded(guard)).toBe(true), WAIT);
      const second = await vi.waitFor(async () => {
        const pid = await ask("hold");
        expect(Number(guards())).not.toBe(guard);
        return pid;
      }, WAIT);
      holder.kill("SIGKILL");
      await once(holder, "exit");
      await vi.waitFor(() => expect([first, second].map(hasEnded)).toEqual([true, true]), WAIT);
      expect(hasEnded(letGo)).toBe(false);
    } finally {
      holder.kill("SIGKILL");
      process.kill(letGo, "SIGKILL");
    }
  },
);
