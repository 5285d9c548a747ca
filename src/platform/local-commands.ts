/**
 * Which processes of this machine belong to the agent: a mark for every command that it runs, and a look at the process
 * table that finds the mark again (P4).
 *
 * The mark is threefold, each part for those who get rid of another:
 * - a limit that nobody uses: the kernel has ignored the number of file locks since Linux 2.4.25, but still hands the
 *   limit down to every child, and only root can raise it again. It outlives `env -i`, `setsid` and a double fork;
 * - a variable of the environment, for commands that run as root and have raised that limit;
 * - descent: a process below this one, or in the session or group of a command that is still running.
 *
 * Elsewhere than on Linux nothing is marked and nothing found.
 */
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { readdir, readFile, readlink } from "node:fs/promises";
import { createProcessGroups, type ProcessGroups } from "./local-groups.ts";

/** The highest mark, well inside what any shell can count. Below it where this process has been marked itself. */
const LOCKS_MARK = 1 << 30;
const MARK_BYTES = 16;
const VARIABLE = "DRAGOMAN_COMMAND";

export interface CommandMark {
  /** Becomes true with the first command, and stays so. */
  used: boolean;
  /** The commands under way; each leads a session and a group of its own, which ends with this process. */
  readonly running: ProcessGroups;
  readonly variables: Readonly<Record<string, string>>;
  /** Shell words that come before the command, in any POSIX shell; empty where there is nothing to lower. */
  readonly prelude: string;
  /** File locks that an unmarked process may hold at least. */
  readonly locks: number;
}

export function createCommandMark(): CommandMark {
  const variables = { [VARIABLE]: randomBytes(MARK_BYTES).toString("hex") };
  const own = process.platform === "linux" ? ownLocks() : 0;
  const lowered = Math.min(LOCKS_MARK, own - 1);
  // dash and ash call the limit -w, bash and ksh -x; each refuses the other's letter without ending.
  const prelude = lowered < 0 ? "" : `{ ulimit -w ${lowered} || ulimit -x ${lowered}; } >/dev/null 2>&1; `;
  return { used: false, running: createProcessGroups(), variables, prelude, locks: own };
}

/** 0, below which nothing is, where the system does not say. */
function ownLocks(): number {
  try {
    return locksOf(readFileSync("/proc/self/limits", "latin1"));
  } catch {
    return 0;
  }
}

/** The hard limit, which is the one that cannot be raised. */
function locksOf(limits: string): number {
  const hard = /^Max file locks +\S+ +(\S+)/m.exec(limits)?.[1];
  return hard === undefined || hard === "unlimited" ? Number.POSITIVE_INFINITY : Number(hard);
}

/** What the agent's processes hold at one moment. */
export interface AgentProcesses {
  /** Inodes of their sockets. */
  sockets: ReadonlySet<string>;
  /** Users of those whose descriptors cannot be read: set-user-id programs, and those that hide. */
  hiddenUsers: ReadonlySet<number>;
  /** Inodes of the sockets of all the others, as far as they can be read. Takes long. */
  otherSockets(): Promise<ReadonlySet<string>>;
}

/** How often the process table is read again for processes that came meanwhile: they may have got a parent's socket. */
const ROUNDS = 3;

interface Entry {
  pid: number;
  parent: number;
  group: number;
  session: number;
  /** Clock ticks since the machine's start. With the id it names a process for good. */
  started: number;
}

/** Looks the mark up. A socket that was open at the call is found. Throws where the process table cannot be read. */
export function createAgentFinder(mark: CommandMark): () => Promise<AgentProcesses> {
  /** Processes that are nobody's commands, by when they started: they and what they become stay that. */
  let cleared = new Map<number, number>();
  return async () => {
    const entries = new Map<number, Entry>();
    const others = new Map<number, number>();
    const sockets = new Set<string>();
    const hidden: number[] = [];
    const seen = new Set<number>();
    for (let round = 0; round < ROUNDS; round++) {
      const fresh = (await processIds()).filter((pid) => !seen.has(pid));
      if (fresh.length === 0) break;
      for (const pid of fresh) seen.add(pid);
      const come = await readEntries(fresh);
      for (const entry of come) entries.set(entry.pid, entry);
      if (!entries.has(process.pid)) throw new Error("The process table does not show this process.");
      await Promise.all(
        come.map(async (entry) => {
          const { pid, started } = entry;
          const isCleared = pid === process.pid || cleared.get(pid) === started;
          if (isCleared || !(descends(entry, entries, mark) || (await isMarked(pid, mark))))
            others.set(pid, started);
          else if (!(await readSockets(pid, sockets))) hidden.push(pid);
        }),
      );
    }
    cleared = others;
    const users = await Promise.all(hidden.map(usersOf));
    let all: Promise<ReadonlySet<string>> | undefined;
    return {
      sockets,
      hiddenUsers: new Set(users.flat()),
      otherSockets() {
        all ??= socketsOf([...others.keys()]);
        return all;
      },
    };
  };
}

async function processIds(): Promise<number[]> {
  return (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
}

/** Without those that have ended. */
async function readEntries(pids: number[]): Promise<Entry[]> {
  const entries = await Promise.all(
    pids.map(async (pid) => {
      const text = await readFile(`/proc/${pid}/stat`, "latin1").catch(() => "");
      // The name in parentheses may hold anything, parentheses and blanks included.
      const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
      const [, parent = 0, group = 0, session = 0] = fields.map(Number);
      return text === "" ? [] : [{ pid, parent, group, session, started: Number(fields[19]) }];
    }),
  );
  return entries.flat();
}

function descends(entry: Entry, entries: ReadonlyMap<number, Entry>, { running }: CommandMark): boolean {
  // Ids are used again, so that a table read piece by piece may hold a ring.
  let steps = entries.size;
  for (let at: Entry | undefined = entry; at && steps-- > 0; at = entries.get(at.parent)) {
    if (at.parent === process.pid || running.has(at.session) || running.has(at.group)) return true;
  }
  return false;
}

async function isMarked(pid: number, { locks, variables }: CommandMark): Promise<boolean> {
  const limits = await readFile(`/proc/${pid}/limits`, "latin1").catch(() => "");
  if (locksOf(limits) < locks) return true;
  // Only processes of the same user let themselves be read.
  const environment = await readFile(`/proc/${pid}/environ`, "latin1").catch(() => "");
  return environment.includes(`${VARIABLE}=${variables[VARIABLE]}`);
}

async function socketsOf(pids: number[]): Promise<ReadonlySet<string>> {
  const sockets = new Set<string>();
  await Promise.all(pids.map((pid) => readSockets(pid, sockets)));
  return sockets;
}

/** Adds the inodes of a process's sockets; false where it does not let itself be read. */
async function readSockets(pid: number, sockets: Set<string>): Promise<boolean> {
  const folder = `/proc/${pid}/fd`;
  let names: string[];
  try {
    names = await readdir(folder);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "EACCES";
  }
  for (const name of names) {
    const target = await readlink(`${folder}/${name}`).catch(() => "");
    if (target.startsWith("socket:[")) sockets.add(target.slice(8, -1));
  }
  return true;
}

/** Real, effective, saved and file system user. */
async function usersOf(pid: number): Promise<number[]> {
  const status = await readFile(`/proc/${pid}/status`, "latin1").catch(() => "");
  return /^Uid:\t(.*)$/m.exec(status)?.[1]?.split("\t").map(Number) ?? [];
}
