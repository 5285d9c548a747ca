/**
 * Native watching for watchdogs on directories. What the system tells is a hint that makes a look due sooner; what has
 * changed, the look finds out, and looking by interval goes on beside it. So any number of processes may watch the same.
 */
import type { WatchedDirectory, WatchHints } from "../core/automation.ts";
import type { Platform } from "../core/platform.ts";

/** Directories that this process watches; what is beyond is looked at by interval only. */
const DIRECTORIES_LIMIT = 500;
/** How often is looked for watchdogs of other processes. Milliseconds. */
const REFRESH_MS = 60_000;
/** From the first change of a burst to its hint. Milliseconds. */
const GATHER_MS = 200;
/** Between two hints of a directory: longer and longer while nothing comes of them. Milliseconds. */
const SHORTEST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;
/** Of the time, at most one part of so many is spent on looks at a directory that keeps changing. */
const SHARE = 10;

export interface HintParts {
  hints: WatchHints;
  platform: Pick<Platform, "watch" | "log" | "now" | "background">;
  /** Something is due sooner than was known. */
  wake(): void;
}

/** A directory with the watchdogs on it. However much changes in it, this is all that is kept. */
interface Place {
  ids: Set<string>;
  /** The last change that no hint has told of. */
  changedAt: Date | null;
  /** Times of performance.now(). */
  hintAt: number;
  hintedAt: number;
  /** A hint has led to a look that is not over. */
  isHinted: boolean;
  pauseMs: number;
  /** Of the last look here. */
  lookMs: number;
  close(): void;
}

export class DirectoryHints {
  readonly #parts: HintParts;
  readonly #places = new Map<string, Place>();
  /** By watchdog: its place, and when it was last known to be there. */
  readonly #known = new Map<string, { key: string; since: number }>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #refreshedAt = Number.NEGATIVE_INFINITY;
  #hasFailed = false;
  #isClosed = false;

  constructor(parts: HintParts) {
    this.#parts = parts;
  }

  /** With every tick; it is not every time that something is read. */
  async refresh(): Promise<void> {
    const since = performance.now();
    if (!this.#parts.platform.watch || this.#isClosed || since - this.#refreshedAt < REFRESH_MS) return;
    this.#refreshedAt = since;
    const found = await this.#parts.hints.directories();
    const ids = new Set(found.map(({ id }) => id));
    for (const [id, known] of this.#known) if (!ids.has(id) && known.since < since) this.drop(id);
    for (const each of found) this.put(each);
  }

  /** Made, changed or looked at here. */
  put({ id, owner, directory }: WatchedDirectory): void {
    const { watch } = this.#parts.platform;
    if (!watch || this.#isClosed) return;
    const key = JSON.stringify([owner, directory]);
    const known = this.#known.get(id);
    if (known && known.key !== key) this.drop(id);
    let place = this.#places.get(key);
    if (!place && this.#places.size >= DIRECTORIES_LIMIT) return;
    if (!place) {
      place = {
        ...{ ids: new Set(), changedAt: null, hintAt: 0, hintedAt: Number.NEGATIVE_INFINITY },
        ...{ isHinted: false, pauseMs: SHORTEST_PAUSE_MS, lookMs: 0, close: () => {} },
      };
      this.#places.set(key, place);
      place.close = watch(owner, directory, this.#eventsOf(place, directory));
    }
    place.ids.add(id);
    this.#known.set(id, { key, since: performance.now() });
  }

  /** Paused, done or deleted. */
  drop(id: string): void {
    const key = this.#known.get(id)?.key;
    const place = key === undefined ? undefined : this.#places.get(key);
    this.#known.delete(id);
    if (key === undefined || !place) return;
    place.ids.delete(id);
    if (place.ids.size > 0) return;
    place.close();
    this.#places.delete(key);
  }

  /** A look of a watchdog was here, and took so long. */
  looked(id: string, { ms, found }: { ms: number; found: boolean }): void {
    const place = this.#places.get(this.#known.get(id)?.key ?? "");
    if (!place) return;
    if (found) place.pauseMs = SHORTEST_PAUSE_MS;
    // Only what a hint has led to says something about hints.
    else if (place.isHinted) place.pauseMs = Math.min(place.pauseMs * 2, LONGEST_PAUSE_MS);
    place.isHinted = false;
    place.lookMs = ms;
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    for (const place of this.#places.values()) place.close();
    this.#places.clear();
    this.#known.clear();
  }

  #eventsOf(place: Place, directory: string) {
    const { platform } = this.#parts;
    return {
      onChange: () => {
        const isFirst = place.changedAt === null;
        place.changedAt = platform.now();
        if (isFirst) this.#hintLater(place);
      },
      onEnd: (reason: string) => {
        const level = this.#hasFailed ? "debug" : "warning";
        this.#hasFailed = true;
        platform.log(level, "a directory is looked at by interval only", { directory, reason });
      },
    };
  }

  #hintLater(place: Place): void {
    const now = performance.now();
    if (now - place.hintedAt > LONGEST_PAUSE_MS) place.pauseMs = SHORTEST_PAUSE_MS;
    const pause = Math.max(place.pauseMs, place.lookMs * SHARE);
    place.hintAt = Math.max(now + GATHER_MS, place.hintedAt + pause);
    this.#sleep();
  }

  /** Until the first hint that is due. */
  #sleep(): void {
    clearTimeout(this.#timer);
    const times = [...this.#places.values()].flatMap((each) => (each.changedAt ? [each.hintAt] : []));
    if (times.length === 0) return;
    const ms = Math.max(0, Math.min(...times) - performance.now());
    this.#timer = setTimeout(() => this.#parts.platform.background(this.#tell()), ms);
    // It must not keep a process alive that has nothing else to do.
    (this.#timer as { unref?(): void }).unref?.();
  }

  async #tell(): Promise<void> {
    const now = performance.now();
    const due = [...this.#places.values()].filter(({ changedAt, hintAt }) => changedAt && hintAt <= now);
    const told = due.map((place) => {
      const at = place.changedAt as Date;
      Object.assign(place, { changedAt: null, hintedAt: now, isHinted: true });
      return { place, at, changes: Array.from(place.ids, (id) => ({ id, at })) };
    });
    this.#sleep();
    const changes = told.flatMap((each) => each.changes);
    if (changes.length === 0) return;
    const again = (isMissed: (id: string) => boolean): void => {
      for (const { place, at } of told) {
        if (this.#isClosed || ![...place.ids].some(isMissed)) continue;
        place.changedAt ??= at;
        this.#hintLater(place);
      }
    };
    try {
      const { hints, platform, wake } = this.#parts;
      const { sooner, busy } = await hints.hint(changes, platform.now());
      const missed = new Set(busy);
      again((id) => missed.has(id));
      if (sooner > 0) wake();
    } catch (error) {
      again(() => true);
      throw error;
    }
  }
}
