/** The native watchers of this process: how many they are, whether any missed something, and why one cannot be. */
import type { FSWatcher, watch } from "node:fs";
import { codeOf } from "./local-paths.ts";

/** Directories with a watcher. */
export const DIRECTORIES_LIMIT = 10_000;
/** Events that come in one go: half of what Linux keeps, which drops the others and whose word of it Node passes over. */
const FLOOD = 8_192;

export interface WatcherEvents {
  /** `name`: of an entry, or of the directory itself. null: some were lost. */
  onEvent(type: string, name: string | null): void;
  onError(error: unknown): void;
}

export class Watchers {
  /** Called when events may have been lost: all watchers of a process share one queue. */
  readonly onFlood = new Set<() => void>();
  readonly #open: typeof watch;
  readonly #limit: number;
  #count = 0;
  #heard = 0;

  constructor(open: typeof watch, limit: number) {
    this.#open = open;
    this.#limit = limit;
  }

  /** undefined: there is nothing to watch. Throws where no more can be. */
  open(directory: string, recursive: boolean, events: WatcherEvents): FSWatcher | undefined {
    if (this.#count >= this.#limit)
      throw new Error(`with it there would be more than ${this.#limit} directories to watch natively`);
    try {
      const watcher = this.#open(directory, { persistent: false, recursive }, (type, name) => {
        this.#hear();
        events.onEvent(type, name);
      });
      watcher.on("error", events.onError);
      this.#count += 1;
      return watcher;
    } catch (error) {
      if (isGone(error)) return undefined;
      throw error;
    }
  }

  /** Once for each. */
  close(watcher: FSWatcher): void {
    watcher.close();
    this.#count -= 1;
  }

  #hear(): void {
    this.#heard += 1;
    if (this.#heard === 1)
      setImmediate(() => {
        this.#heard = 0;
      });
    if (this.#heard === FLOOD) for (const tell of this.onFlood) tell();
  }
}

/** Removed meanwhile, exchanged, or closed to us: a walk does not see it either. */
export function isGone(error: unknown): boolean {
  return ["ENOENT", "ENOTDIR", "EACCES", "EPERM", "ELOOP"].includes(codeOf(error) ?? "");
}

export function reasonOf(error: unknown): string {
  switch (codeOf(error)) {
    case "ENOSPC":
      return "the system lets its user watch no more directories (fs.inotify.max_user_watches)";
    case "EMFILE":
    case "ENFILE":
      return "too many files are open, or too many programs watch (fs.inotify.max_user_instances)";
    default:
      return error instanceof Error ? error.message : String(error);
  }
}
