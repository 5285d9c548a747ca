/**
 * Native watching of directories on Node and Bun. Where the system watches only single directories, each of a tree has a
 * watcher of its own: the recursive one of Node goes through a large tree in one go and also watches every file.
 */
import { type FSWatcher, watch } from "node:fs";
import { readdir } from "node:fs/promises";
import { basename, join } from "node:path";
import type { DirectoryEvents, WatchDirectory } from "../core/platform.ts";
import { AppError } from "../errors.ts";
import { TEMPORARY_PREFIX } from "./local-listing.ts";
import { createLocalPaths, type LocalPaths } from "./local-paths.ts";
import { DIRECTORIES_LIMIT, isGone, reasonOf, type WatcherEvents, Watchers } from "./local-watchers.ts";
import { joinPath, SKIPPED_DIRECTORIES } from "./paths.ts";

/** From a new or vanished entry to the look for directories among them. Milliseconds. */
const SETTLE_MS = 100;
/** Of its time a busy tree spends at most one part of so many on its watchers. */
const SHARE = 10;

/** These systems watch a whole tree with one watcher. */
const IS_RECURSIVE = process.platform === "darwin" || process.platform === "win32";

export interface LocalWatchOptions {
  limit?: number;
  open?: typeof watch;
}

export function createLocalWatch(
  root: string,
  { limit = DIRECTORIES_LIMIT, open = watch }: LocalWatchOptions = {},
): WatchDirectory {
  const host = { paths: createLocalPaths(root), watchers: new Watchers(open, limit) };
  return (_owner, path, events) => {
    const tree = new Tree(host, path, events);
    return () => tree.close();
  };
}

interface Host {
  paths: LocalPaths;
  watchers: Watchers;
}

/** One directory with its watcher. */
class Branch {
  readonly real: string;
  readonly parent: Branch | undefined;
  readonly children = new Map<string, Branch>();
  watcher: FSWatcher | undefined;
  isClosed = false;

  constructor(real: string, parent?: Branch) {
    this.real = real;
    this.parent = parent;
  }
}

class Tree {
  readonly #host: Host;
  readonly #path: string;
  readonly #events: DirectoryEvents;
  #top: Branch | undefined;
  /** Of the directories above: each tells when the next one on the way comes or goes. */
  #guards: FSWatcher[] = [];
  /** Directories among whose entries there may be new ones. */
  readonly #stale = new Set<Branch>();
  #isAnew = true;
  #opened = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isWorking = false;
  #isClosed = false;

  constructor(host: Host, path: string, events: DirectoryEvents) {
    this.#host = host;
    this.#path = path;
    this.#events = events;
    host.watchers.onFlood.add(this.#startAnew);
    this.#workIn(0);
  }

  close(): void {
    this.#isClosed = true;
    this.#host.watchers.onFlood.delete(this.#startAnew);
    clearTimeout(this.#timer);
    this.#clear();
  }

  readonly #startAnew = (): void => {
    this.#isAnew = true;
    this.#workIn(SETTLE_MS);
  };

  #workIn(ms: number): void {
    if (this.#isClosed || this.#isWorking || this.#timer !== undefined) return;
    this.#timer = setTimeout(() => void this.#work(), ms);
    this.#timer.unref();
  }

  async #work(): Promise<void> {
    this.#timer = undefined;
    this.#isWorking = true;
    this.#opened = 0;
    const since = performance.now();
    try {
      if (this.#isAnew) await this.#build();
      const stale = [...this.#stale];
      this.#stale.clear();
      for (const branch of stale) await this.#grow(branch);
      // What was made in a directory before it had its watcher has been told by nobody.
      if (this.#opened > 0 && !this.#isClosed) this.#events.onChange();
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#isWorking = false;
      const pause = Math.max(SETTLE_MS, (performance.now() - since) * SHARE);
      if (this.#isAnew || this.#stale.size > 0) this.#workIn(pause);
    }
  }

  async #build(): Promise<void> {
    this.#isAnew = false;
    this.#clear();
    await this.#plant();
    const isBlind = this.#guards.length === 0 && this.#top?.isClosed !== false;
    if (isBlind) throw new Error("the workspace is not there");
  }

  /** A watcher is there before its directory is read, so that what comes in between is told. */
  async #plant(): Promise<void> {
    const names = this.#host.paths.normalize(this.#path).split("/");
    let at = "";
    for (const name of names.filter((each) => each !== "")) {
      const real = await this.#real(at);
      if (real === null || this.#isClosed) return;
      this.#guard(real, name);
      at = joinPath(at, name);
    }
    const real = await this.#real(at);
    if (real === null || this.#isClosed) return;
    this.#top = new Branch(real);
    await this.#grow(this.#top);
  }

  /** null: there is no such directory in the workspace now. */
  async #real(path: string): Promise<string | null> {
    try {
      return (await this.#host.paths.existing(path)).real;
    } catch (error) {
      if (error instanceof AppError) return null;
      throw error;
    }
  }

  #guard(directory: string, next: string): void {
    const guard = this.#open(directory, false, (type, name) => {
      if (type === "rename" && (name === null || name === next || name === basename(directory)))
        this.#startAnew();
    });
    if (guard) this.#guards.push(guard);
  }

  /** Has watched what is not watched yet, at and below a directory. */
  async #grow(from: Branch): Promise<void> {
    const waiting = [from];
    for (let branch = waiting.pop(); branch && !this.#isClosed; branch = waiting.pop()) {
      if (branch.isClosed) continue;
      branch.watcher ??= this.#openBranch(branch);
      const names = branch.watcher && (await this.#directoriesIn(branch.real));
      if (!names) this.#drop(branch);
      for (const name of names ?? []) {
        if (branch.isClosed) break;
        if (branch.children.has(name)) continue;
        const child = new Branch(join(branch.real, name), branch);
        branch.children.set(name, child);
        waiting.push(child);
      }
    }
  }

  /** null: it is not there, or no real directory any longer. */
  async #directoriesIn(real: string): Promise<string[] | null> {
    try {
      const read = (base: string) => readdir(base, { withFileTypes: true });
      const entries = await this.#host.paths.pinned(real, real, read);
      if (IS_RECURSIVE) return [];
      return entries.flatMap((each) => (each.isDirectory() && !isSkipped(each.name) ? [each.name] : []));
    } catch (error) {
      if (error instanceof AppError) return null;
      throw error;
    }
  }

  #openBranch(branch: Branch): FSWatcher | undefined {
    return this.#open(branch.real, IS_RECURSIVE, (type, name) => {
      if (!branch.isClosed) this.#hear(branch, type, name);
    });
  }

  #open(real: string, recursive: boolean, listener: WatcherEvents["onEvent"]): FSWatcher | undefined {
    const watcher = this.#host.watchers.open(real, recursive, {
      onEvent: (type, name) => {
        if (!this.#isClosed) listener(type, name);
      },
      onError: (error) => (isGone(error) ? this.#startAnew() : this.#fail(error)),
    });
    if (watcher) this.#opened += 1;
    return watcher;
  }

  #hear(branch: Branch, type: string, name: string | null): void {
    // Some events were lost.
    if (name === null) this.#startAnew();
    else if (name.split(/[\\/]/).some(isSkipped)) return;
    else if (type === "rename") {
      // A directory that is made anew at its place is another one, with the same name and often the same number.
      const child = branch.children.get(name);
      if (child) this.#drop(child);
      this.#stale.add(branch);
      if (name === basename(branch.real)) this.#lose(branch);
      this.#workIn(SETTLE_MS);
    }
    this.#events.onChange();
  }

  /** It may be the directory itself that is gone: its own watcher then tells its name. */
  #lose(branch: Branch): void {
    if (branch.parent) {
      this.#drop(branch);
      this.#stale.add(branch.parent);
    } else this.#isAnew = true;
  }

  #drop(branch: Branch): void {
    branch.parent?.children.delete(basename(branch.real));
    const waiting = [branch];
    for (let each = waiting.pop(); each; each = waiting.pop()) {
      each.isClosed = true;
      this.#stale.delete(each);
      waiting.push(...each.children.values());
      if (each.watcher) this.#host.watchers.close(each.watcher);
      each.watcher = undefined;
    }
  }

  #clear(): void {
    if (this.#top) this.#drop(this.#top);
    this.#top = undefined;
    for (const guard of this.#guards.splice(0)) this.#host.watchers.close(guard);
  }

  #fail(error: unknown): void {
    if (this.#isClosed) return;
    this.close();
    this.#events.onEnd(reasonOf(error));
  }
}

/** What a walk passes over, and half-written files: they get another name when they are whole. */
function isSkipped(name: string): boolean {
  return SKIPPED_DIRECTORIES.has(name) || name.startsWith(TEMPORARY_PREFIX);
}
