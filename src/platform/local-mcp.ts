/**
 * MCP servers that are programs of this machine. Each gets a minimal environment (K3) and a process group of its own, ends
 * with the service, and bears the mark of the agent's commands, so that it cannot call the service (P4).
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import type { StdioCommand, StdioConnector, StdioEvents, StdioProcess } from "../core/platform.ts";
import type { CommandMark } from "./local-commands.ts";
import { killGroup, type ProcessGroups } from "./local-groups.ts";
import { OutputTail } from "./output-tail.ts";

/** All that a server inherits of our environment: no provider key, token or secret is among it. */
const INHERITED_VARIABLES = [
  ...["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"],
  ...["XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"],
] as const;
/** `exec` leaves no process of ours behind. */
const REPLACE_SHELL = 'exec "$0" "$@"';
/** Milliseconds that a server may take to end by itself, and then after the polite signal. */
const GRACE_MS = 400;
/** Characters kept of its error stream, and lines shown. */
const STDERR_KEPT = 4_000;
const STDERR_LINES = 20;
/** Characters kept of both ends of a line that was too long. */
const ENDS_KEPT = 400;
/** Bytes taken from the pipe before other work of the event loop gets its turn. */
const BYTES_PER_TURN = 256 * 1024;
const NEWLINE = 10;

export interface LocalMcpOptions {
  mark: CommandMark;
  /** The folder that servers start in. */
  cwd: string;
  /** Where the inherited variables come from; `process.env` unless given. */
  environment?: Record<string, string | undefined>;
}

export function createStdioConnector(options: LocalMcpOptions): StdioConnector {
  const { mark, cwd, environment = process.env } = options;
  return {
    open(command, events) {
      mark.used = true;
      const child = spawn("/bin/sh", ["-c", mark.prelude + REPLACE_SHELL, command.command, ...command.args], {
        cwd,
        env: { ...minimalEnvironment(environment), ...command.env, ...mark.variables },
        stdio: ["pipe", "pipe", "pipe"],
        detached: true,
      });
      return follow(child, command, events, mark.running);
    },
  };
}

function minimalEnvironment(environment: Record<string, string | undefined>): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const name of INHERITED_VARIABLES) {
    const value = environment[name];
    // An exported shell function would be run by the shell that starts the server.
    if (value !== undefined && !value.startsWith("()")) kept[name] = value;
  }
  return kept;
}

function follow(
  child: ChildProcess,
  { command, maxLineBytes }: StdioCommand,
  events: StdioEvents,
  running: ProcessGroups,
): StdioProcess {
  const { pid } = child;
  const [input, output, errors] = [
    child.stdin as Writable,
    child.stdout as Readable,
    child.stderr as Readable,
  ];
  const tail = new OutputTail(STDERR_KEPT);
  let ended = false;
  if (pid !== undefined) running.add(pid);

  const finish = (reason: string) => {
    if (ended) return;
    ended = true;
    // What it has left behind goes with it.
    killGroup(pid, "SIGKILL");
    if (pid !== undefined) running.delete(pid);
    for (const stream of [input, output, errors]) stream.destroy();
    events.onClose(reason);
  };
  child.once("error", (error) => finish(`could not be started (${error.message})`));
  child.once("exit", (code, signal) => {
    // Last words may still be in the pipes.
    setTimeout(() => finish(reasonOf(command, code, signal)), 20);
  });
  child.once("close", (code, signal) => finish(reasonOf(command, code, signal)));
  readLines(output, maxLineBytes, events);
  readFairly(errors, (chunk) => tail.pushBytes(chunk));
  input.on("error", () => {
    // It has ended, or takes no input: `exit` or the answer that does not come tell the rest.
  });

  return {
    async write(line) {
      if (ended || input.destroyed) throw new Error("The server has ended.");
      // A pipe that breaks here is told by the program's end, which knows why.
      if (!input.write(`${line}\n`))
        await Promise.race([once(input, "drain"), once(input, "close")]).catch(() => {});
    },
    stderr: () => lastLines(tail),
    async close() {
      if (ended) return;
      const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
      input.end();
      if (await within(exited, GRACE_MS)) return;
      killGroup(pid, "SIGTERM");
      if (!(await within(exited, GRACE_MS))) killGroup(pid, "SIGKILL");
    },
  };
}

function reasonOf(command: string, code: number | null, signal: string | null): string {
  // The shell's own words for what cannot be run.
  if (code === 127) return `ended at once: there is no program '${command}'`;
  if (code === 126) return `ended at once: '${command}' is not a program that may be run`;
  return signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`;
}

function lastLines(tail: OutputTail): string {
  const lines = tail.end().output.trimEnd().split("\n");
  return lines.slice(-STDERR_LINES).join("\n");
}

async function within(event: Promise<void>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  const done = await Promise.race([event.then(() => true), late]);
  clearTimeout(timer);
  return done;
}

/** Cuts a stream into lines in bounded memory. */
function readLines(output: Readable, maxBytes: number, events: StdioEvents): void {
  let parts: Buffer[] = [];
  let length = 0;
  let head: string | undefined;
  let end = "";

  const take = (piece: Buffer) => {
    length += piece.length;
    if (length <= maxBytes) {
      parts.push(piece);
      return;
    }
    head ??= Buffer.concat([...parts, piece]).toString("utf8", 0, ENDS_KEPT);
    parts = [];
    end = (end + piece.toString("latin1", Math.max(0, piece.length - ENDS_KEPT))).slice(-ENDS_KEPT);
  };
  const close = () => {
    if (head !== undefined) events.onLongLine(head, end);
    else if (length > 0)
      events.onLine((parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts)).toString("utf8"));
    parts = [];
    length = 0;
    head = undefined;
    end = "";
  };
  readFairly(output, (chunk) => {
    let from = 0;
    for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, from)) {
      if (at > from) take(chunk.subarray(from, at));
      from = at + 1;
      close();
    }
    if (from < chunk.length) take(chunk.subarray(from));
  });
}

/** Reads with pauses, so that a flood cannot keep the event loop for itself; the pipe holds the writer back. */
function readFairly(stream: Readable, take: (chunk: Buffer) => void): void {
  let taken = 0;
  stream.on("data", (chunk: Buffer) => {
    take(chunk);
    taken += chunk.length;
    if (taken < BYTES_PER_TURN) return;
    taken = 0;
    stream.pause();
    setImmediate(() => stream.resume());
  });
  // A pipe that breaks has ended; the exit code tells the rest.
  stream.on("error", () => {});
}
