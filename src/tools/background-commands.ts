/**
 * Commands that go on beside the agent's turns, each under a handle of its owner's. They live in this process: they end
 * with it, with the run that started them when that is stopped, and with their session when it is deleted.
 */
import type { CommandResult, Terminal } from "../core/platform.ts";
import { AppError } from "../errors.ts";
import { count } from "./result.ts";
import { UnreadOutput } from "./unread-output.ts";

/** Commands that one owner may have under way. */
const MAX_RUNNING = 8;
/** Commands that all owners together may have under way. */
const MAX_RUNNING_TOGETHER = 64;
/** Ended commands of one owner whose output is kept. */
const MAX_ENDED = 16;
/** Milliseconds after which a command that nobody has ended is killed: a day. */
const LIFETIME_MS = 24 * 60 * 60 * 1_000;
/** Characters of a command shown in a list. */
const SHOWN_CHARS = 80;
const HANDLE_LETTERS = "23456789abcdefghijkmnpqrstuvwxyz";
const HANDLE_LENGTH = 8;

export interface BackgroundCommand {
  readonly handle: string;
  readonly owner: string;
  readonly runId: string;
  readonly sessionId: string | undefined;
  readonly command: string;
  readonly output: UnreadOutput;
  /** Undefined while it runs. */
  result: CommandResult | undefined;
  /** Resolves with its end. */
  readonly ended: Promise<void>;
  stop(): void;
}

export interface BackgroundStart {
  owner: string;
  runId: string;
  sessionId: string | undefined;
  command: string;
  cwd: string;
}

export class BackgroundCommands {
  readonly #commands = new Map<string, BackgroundCommand>();

  /** Resolves once the command is under way. Throws AppError when it cannot begin, or when there are too many. */
  async start(terminal: Terminal, { command, cwd, ...origin }: BackgroundStart): Promise<BackgroundCommand> {
    this.#makeRoom(origin.owner);
    const output = new UnreadOutput();
    const controller = new AbortController();
    const { promise: begun, resolve: onStart } = Promise.withResolvers<void>();
    const work = terminal.run(command, {
      cwd,
      timeoutMs: LIFETIME_MS,
      outputLimit: 0,
      signal: controller.signal,
      onOutput: (delta) => output.push(delta),
      onStart,
    });
    const entry: BackgroundCommand = {
      ...origin,
      ...{ handle: createHandle(), command, output, result: undefined },
      ended: work.then(
        (result) => {
          entry.result = result;
          output.end();
        },
        () => {
          this.#commands.delete(entry.handle);
          output.end();
        },
      ),
      stop: () => controller.abort(),
    };
    // Taken before anything is awaited, so that calls side by side count each other.
    this.#commands.set(entry.handle, entry);
    await Promise.race([begun, work]);
    return entry;
  }

  /** Throws AppError `not_found` with a list of those that the owner has. */
  get(owner: string, handle: string): BackgroundCommand {
    const found = this.#commands.get(handle);
    if (found?.owner === owner) return found;
    const mine = this.#of(owner).map(({ handle: name, command, result }) => {
      const shown = command.length > SHOWN_CHARS ? `${command.slice(0, SHOWN_CHARS)}…` : command;
      return `${name}: ${result ? "ended" : "running"}: ${shown.replaceAll("\n", " ")}`;
    });
    throw new AppError(
      "not_found",
      `There is no background command with the handle '${handle.slice(0, SHOWN_CHARS)}'. One from before the last start of the service has ended with it. ${
        mine.length === 0 ? "There is none now." : `There are:\n${mine.join("\n")}`
      }`,
    );
  }

  endRun(owner: string, runId: string): void {
    for (const entry of this.#of(owner)) if (entry.runId === runId) entry.stop();
  }

  endSession(owner: string, sessionId: string): void {
    for (const entry of this.#of(owner)) {
      if (entry.sessionId !== sessionId) continue;
      entry.stop();
      this.#commands.delete(entry.handle);
    }
  }

  /** Ends all of them. */
  async close(): Promise<void> {
    const all = [...this.#commands.values()];
    for (const entry of all) entry.stop();
    await Promise.all(all.map((entry) => entry.ended));
  }

  #of(owner: string): BackgroundCommand[] {
    return [...this.#commands.values()].filter((entry) => entry.owner === owner);
  }

  /** Forgets the owner's oldest ended commands. */
  #makeRoom(owner: string): void {
    const mine = this.#of(owner);
    const running = [...this.#commands.values()].filter(({ result }) => !result).length;
    if (mine.filter(({ result }) => !result).length >= MAX_RUNNING)
      throw new AppError(
        "conflict",
        `Not started: ${count(MAX_RUNNING, "command")} run in the background already. End one with stop_terminal_command first.`,
      );
    if (running >= MAX_RUNNING_TOGETHER)
      throw new AppError(
        "unavailable",
        "Not started: the service has too many background commands. Try again later.",
      );
    const ended = mine.filter(({ result }) => result);
    for (const { handle } of ended.slice(0, Math.max(0, ended.length + 1 - MAX_ENDED)))
      this.#commands.delete(handle);
  }
}

/** How a command stands, in a line. */
export function statusOf({ result }: BackgroundCommand): string {
  if (!result) return "Still running.";
  if (result.cancelled) return "Stopped.";
  if (result.timedOut) return "Killed: a background command ends after a day.";
  return result.exitCode === null ? "Ended by a signal." : `Exit code: ${result.exitCode}`;
}

/** Short enough for a model to repeat; the owner is checked besides. */
function createHandle(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(HANDLE_LENGTH));
  return `cmd_${Array.from(bytes, (byte) => HANDLE_LETTERS[byte % HANDLE_LETTERS.length]).join("")}`;
}
