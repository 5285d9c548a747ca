/**
 * What a command has started and what has left its group since (`setsid`): found by a variable that it has inherited. Only
 * for commands that are stopped, since every process of the machine is looked at. Elsewhere than on Linux nothing is found,
 * and nothing that has shed its environment.
 */
import { readdir, readFile } from "node:fs/promises";

const VARIABLE = "DRAGOMAN_COMMAND_ID";
/** How often the process table is read: what was starting another process when it was killed may have come that far. */
const ROUNDS = 3;

export interface Strays {
  /** For the environment of the command. */
  readonly variables: Readonly<Record<string, string>>;
  /** The same as an environment has it. */
  readonly bearer: string;
  /** Never throws. */
  kill(): Promise<void>;
}

export function createStrays(): Strays {
  const id = crypto.randomUUID();
  const bearer = `${VARIABLE}=${id}`;
  return {
    variables: { [VARIABLE]: id },
    bearer,
    async kill() {
      if (process.platform !== "linux") return;
      for (let round = 0; round < ROUNDS; round++) {
        const found = await withVariable(bearer);
        if (found.length === 0) return;
        for (const pid of found) killOne(pid);
      }
    },
  };
}

async function withVariable(entry: string): Promise<number[]> {
  const names = await readdir("/proc").catch(() => []);
  const pids = names.filter((name) => /^\d+$/.test(name)).map(Number);
  const bearing = await Promise.all(
    pids.map(async (pid) => {
      // What cannot be read is another user's, or has ended.
      const environment = await readFile(`/proc/${pid}/environ`, "latin1").catch(() => "");
      return environment.split("\0").includes(entry);
    }),
  );
  return pids.filter((_, i) => bearing[i]);
}

function killOne(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended already.
  }
}
