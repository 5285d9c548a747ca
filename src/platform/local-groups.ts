/**
 * The process groups that are to end with this process, however it ends. It ends them itself as it exits; where it is killed,
 * a small shell does, which waits for the end of its input: that comes when nobody is left to write to it. It holds what this
 * process has told it, so that it ends nothing of another service's, and it starts with the first group.
 */
import { type ChildProcess, spawn } from "node:child_process";
import type { Writable } from "node:stream";

/**
 * `hold <group> <variable>` and `drop <group>` until the input ends. Then the groups, and on Linux what has left them but
 * bears the variable: three times, since what was starting another process may have come that far.
 */
const GUARD = `
trap '' HUP INT TERM
held=' '
while read -r word group variable; do
  rest=' '
  for one in $held; do
    case $one in "$group":*) ;; *) rest="$rest$one " ;; esac
  done
  held=$rest
  if [ "$word" = hold ]; then held="$held$group:$variable "; fi
done
for one in $held; do kill -s KILL -- "-\${one%%:*}"; done
[ -d /proc/self ] || exit 0
for round in 1 2 3; do
  for one in $held; do
    variable=\${one#*:}
    [ -n "$variable" ] || continue
    for file in $(grep -l -F "$variable" /proc/[0-9]*/environ); do
      file=\${file#/proc/}
      kill -s KILL "\${file%/environ}"
    done
  done
done
`;

export interface ProcessGroups {
  /** @param bearer a `NAME=value` without blanks that only what this group has started has in its environment. */
  add(pid: number, bearer?: string): void;
  delete(pid: number): void;
  has(pid: number): boolean;
}

export function createProcessGroups(): ProcessGroups {
  const held = new Map<number, string>();
  let guard: ChildProcess | undefined;

  let used = false;

  function endAll(): void {
    for (const pid of held.keys()) killGroup(pid, "SIGKILL");
    guard?.kill("SIGKILL");
  }

  function tell(line: string): void {
    (guard?.stdin as Writable | undefined)?.write(line);
  }

  /** Also where the one before has ended. */
  function startGuard(): void {
    const child = trySpawn();
    if (!child) return;
    const gone = () => {
      if (guard === child) guard = undefined;
    };
    child.once("error", gone);
    child.once("exit", gone);
    (child.stdin as Writable).on("error", gone);
    // Neither keeps this process from ending.
    child.unref();
    (child.stdin as Writable & { unref?(): void }).unref?.();
    guard = child;
    for (const [pid, bearer] of held) tell(`hold ${pid} ${bearer}\n`);
  }

  return {
    add(pid, bearer = "") {
      if (!used) process.once("exit", endAll);
      used = true;
      held.set(pid, bearer);
      if (guard === undefined) startGuard();
      else tell(`hold ${pid} ${bearer}\n`);
    },
    delete(pid) {
      if (held.delete(pid)) tell(`drop ${pid}\n`);
    },
    has: (pid) => held.has(pid),
  };
}

/** Undefined where the system has no more processes: the groups then end with an orderly end only. */
function trySpawn(): ChildProcess | undefined {
  try {
    return spawn("/bin/sh", ["-c", GUARD], {
      cwd: "/",
      env: { PATH: process.env.PATH ?? "/usr/bin:/bin" },
      stdio: ["pipe", "ignore", "ignore"],
      // Signals to the service's own group are not meant for it.
      detached: true,
    });
  } catch {
    return undefined;
  }
}

export function killGroup(pid: number | undefined, signal: "SIGTERM" | "SIGKILL"): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // The group is empty already.
  }
}
