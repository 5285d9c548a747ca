/**
 * The runs that this process is at: it keeps their leases, drives those that go on whoever listens, gives their streams
 * to readers, stops them, and takes over what another process has left.
 */
import type { RunRecord } from "../core/run.ts";
import { AppError } from "../errors.ts";
import { callsOfSwarm } from "./approvals.ts";
import type { Frame, RunClose } from "./journal.ts";
import { LeasePulse } from "./lease-pulse.ts";
import { LiveFrames, storedFrames } from "./live-frames.ts";
import { pause } from "./pause.ts";
import type { AgentServices, Turn } from "./turn.ts";
import { cancelBelow, cancelPaused, endAbandoned } from "./turn-ending.ts";
import { type Continuation, continueTurn, RECOVERIES } from "./turns.ts";

/** How often a run of another process is looked at again. Milliseconds. */
const LOOK_AGAIN_MS = 200;
/** How long a stop waits for another process to obey. Milliseconds. */
const STOP_MS = 3_000;
/** Runs taken over at once. */
const TAKEN_AT_ONCE = 20;
/** A run that this process drives. */
export interface LiveRun {
  readonly runId: string;
  /** Resolves with the first word of the model, or with the run's end where that comes before. */
  readonly begun: Promise<RunClose | undefined>;
  /** Resolves when it has ended or parked; undefined when it broke. */
  readonly ended: Promise<RunClose | undefined>;
}

interface Live extends LiveRun {
  owner: string;
  controller: AbortController;
  shown: LiveFrames;
  close: RunClose | undefined;
}

/** A run under our lease, read by somebody else: a `/v1` response. */
interface Held {
  controller: AbortController;
  ended: Promise<void>;
}

export class LiveRuns {
  readonly #services: AgentServices;
  readonly #live = new Map<string, Live>();
  readonly #held = new Map<string, Held>();
  /** Runs of ours whose end could not be stored, and why. */
  readonly #unstored = new Map<string, { owner: string; reason: unknown }>();
  readonly #pulse: LeasePulse;
  #releasing = false;

  constructor(services: AgentServices) {
    this.#services = services;
    const { platform } = services;
    this.#pulse = new LeasePulse(platform.runtime === "workerd", () => platform.background(this.#renew()));
  }

  /** How many runs are under way in this process. */
  get active(): number {
    return this.#live.size + this.#held.size;
  }

  /** Keeps the lease of a run whose events a response reads; call the result when they are over. */
  hold(runId: string, controller: AbortController): () => void {
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    this.#held.set(runId, { controller, ended });
    this.#pulse.start(runId);
    return () => {
      this.#held.delete(runId);
      this.#pulse.end(runId, this.size === 0);
      end();
    };
  }

  /** The end of a run under our lease could not be stored: it is tried again. */
  retryEnd(owner: string, runId: string, reason: unknown): void {
    this.#unstored.set(runId, { owner, reason });
  }

  /** Reads a turn to its end, whoever listens. `controller` is the one that its signal belongs to. */
  drive(owner: string, turn: Turn, controller: AbortController): LiveRun {
    let begin: (close: RunClose | undefined) => void = () => {};
    const begun = new Promise<RunClose | undefined>((resolve) => {
      begin = resolve;
    });
    const live: Live = {
      ...{ owner, runId: turn.runId, controller, shown: new LiveFrames(turn.storedSeq()) },
      ...{ close: undefined, begun, ended: Promise.resolve(undefined) },
    };
    this.#live.set(turn.runId, live);
    this.#pulse.start(turn.runId);
    const ended = this.#pump(live, turn, begin);
    this.#services.platform.background(ended);
    return Object.assign(live, { ended });
  }

  /** A run that this process drives, for those who have not begun it. */
  find(runId: string): LiveRun | undefined {
    return this.#live.get(runId);
  }

  async #pump(live: Live, turn: Turn, begin: (close: RunClose | undefined) => void) {
    try {
      for await (const { event, frames, unstored } of turn.events) {
        if (event.type === "run-close") live.close = event;
        if (unstored !== undefined) this.retryEnd(live.owner, live.runId, unstored);
        if (event.type === "model" || event.type === "run-close") begin(live.close);
        if (frames.length > 0) live.shown.show(frames, turn.storedSeq());
      }
      return live.close;
    } finally {
      live.shown.end();
      if (this.#live.get(live.runId) === live) this.#live.delete(live.runId);
      begin(live.close);
      if (!this.#live.has(live.runId)) this.#pulse.end(live.runId, this.size === 0);
      // Somebody may have decided while the run was still at the calls decided before.
      if (live.close?.outcome === "paused" && !this.#releasing) await this.goOn(live.owner, live.runId);
    }
  }

  /** Goes on with a parked run if some of its calls have been decided. Returns whether this call has seen to it. */
  async goOn(owner: string, runId: string): Promise<boolean> {
    const calls = await callsOfSwarm(this.#services, owner, runId);
    if (!calls.some((call) => call.result === null && (call.state === "allowed" || call.state === "denied")))
      return false;
    return this.#resume(owner, runId);
  }

  async #resume(owner: string, runId: string): Promise<boolean> {
    const { runs } = this.#services.store;
    const record = await runs.resume(owner, runId, this.#services.holder, this.#lease());
    if (record) await this.#continue(record, { after: "decided", asking: "person" });
    return record !== null;
  }

  async #continue(record: RunRecord, continuation: Continuation): Promise<void> {
    const controller = new AbortController();
    try {
      const turn = await continueTurn(this.#services, record, continuation, controller.signal);
      this.drive(record.owner, turn, controller);
    } catch (error) {
      await endAbandoned(this.#services, record, error);
    }
  }

  /**
   * What has been left: runs whose lease has run out, approvals that were given and not acted on, or came too late,
   * ends that could not be stored.
   */
  async recover(): Promise<void> {
    const { store, platform } = this.#services;
    // After a machine has slept, all leases have run out, and those of this process are not left by anybody.
    if (this.size > 0) await this.#renew();
    for (const [runId, { owner, reason }] of [...this.#unstored]) {
      const record = await store.runs.get(owner, runId);
      if (record?.status === "running") await endAbandoned(this.#services, record, reason);
      this.#unstored.delete(runId);
    }
    const now = platform.now();
    for (const runId of await store.runs.abandoned(now, TAKEN_AT_ONCE))
      await this.#attempt(runId, () => this.#takeOver(runId, now));
    for (const { owner, runId } of await store.runs.decided(TAKEN_AT_ONCE))
      await this.#attempt(runId, () => this.goOn(owner, runId));
    for (const { owner, runId } of await store.runs.expire(now, TAKEN_AT_ONCE))
      await this.#attempt(runId, () => cancelPaused(this.#services, owner, runId, "expired"));
    for (const { owner, runId } of await store.runs.orphans(now, TAKEN_AT_ONCE))
      await this.#attempt(runId, () => this.#endOrphan(owner, runId, now));
  }

  /** One run that cannot be helped must not keep the others from it. */
  async #attempt(runId: string, work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#services.platform.log("error", "a run could not be recovered", {
        run_id: runId,
        error: String(error instanceof Error ? error.stack : error),
      });
    }
  }

  /** A member whose swarm is over. */
  async #endOrphan(owner: string, runId: string, now: Date): Promise<void> {
    if (this.#held.has(runId) || (await cancelPaused(this.#services, owner, runId, "stopped"))) return;
    const { runs } = this.#services.store;
    const record = await runs.takeOver(runId, this.#services.holder, now, this.#lease());
    if (record) await endAbandoned(this.#services, record, stopped());
  }

  async #takeOver(runId: string, now: Date): Promise<void> {
    if (this.#live.has(runId) || this.#held.has(runId)) return;
    const { store, platform, holder } = this.#services;
    const record = await store.runs.takeOver(runId, holder, now, this.#lease());
    if (!record) return;
    platform.log("warning", "run taken over", { run_id: runId, recoveries: record.recoveries });
    if (record.recoveries > RECOVERIES) {
      const reason = `The run was interrupted ${record.recoveries} times and is not tried again.`;
      await endAbandoned(this.#services, record, new AppError("internal", reason));
    } else if (record.spec.door === "chat")
      await this.#continue(record, { after: "interrupted", asking: "person" });
    // Nobody is there any more to hear the rest of a /v1 reply.
    else await endAbandoned(this.#services, record, interrupted());
  }

  /**
   * A run's stream behind an event number: what is stored, then what comes, until the run ends or parks. Frames come
   * whole, in order, each once.
   */
  async *read(
    owner: string,
    runId: string,
    after: number,
    signal: AbortSignal,
  ): AsyncGenerator<Frame, void, void> {
    let seen = after;
    while (!signal.aborted) {
      const live = this.#live.get(runId);
      if (!live || live.owner !== owner || seen < live.shown.base)
        for await (const frame of storedFrames(this.#services.store.runs, owner, runId, seen)) {
          yield frame;
          seen = frame.seq;
        }
      if (live && live.owner === owner) {
        const { shown } = live;
        seen = yield* shown.follow(seen, signal);
        if (live.close && shown.over && seen >= shown.base) return;
        if (!shown.over) continue;
      }
      if (signal.aborted) return;
      const record = await this.#services.store.runs.get(owner, runId);
      if (!record) return;
      if (record.lastEvent > seen || this.#live.has(runId)) continue;
      if (record.status !== "running") return;
      await pause(LOOK_AGAIN_MS, signal);
    }
  }

  /** Ends a run wherever it is. Throws AppError `not_found`. Resolves when it has ended, or has been told to. */
  async stop(owner: string, runId: string): Promise<RunRecord> {
    const { runs } = this.#services.store;
    const record = await runs.get(owner, runId);
    if (!record) throw new AppError("not_found", "There is no run with this id.");
    this.#services.onStop?.(owner, runId);
    const live = this.#live.get(runId);
    const ours = live ?? this.#held.get(runId);
    if (ours) {
      ours.controller.abort();
      await ours.ended;
      // Those that run have ended with it; those that wait for a decision have not noticed.
      await cancelBelow(this.#services, owner, runId, "stopped");
    } else if (record.status === "running") await this.#stopElsewhere(owner, runId);
    // It waits, or was faster. The lead of a member waits for it, and goes on without it.
    const waited = await cancelPaused(this.#services, owner, runId, "stopped");
    if (waited && record.root !== undefined) await this.#resume(owner, record.root);
    return (await runs.get(owner, runId)) ?? record;
  }

  async #stopElsewhere(owner: string, runId: string): Promise<void> {
    const { store, holder, platform } = this.#services;
    await store.runs.askToStop(owner, runId);
    const deadline = performance.now() + STOP_MS;
    for (;;) {
      const record = await store.runs.get(owner, runId);
      if (record?.status !== "running") return;
      const left = await store.runs.takeOver(runId, holder, platform.now(), this.#lease());
      if (left) return endAbandoned(this.#services, left, stopped());
      if (performance.now() >= deadline) return;
      await pause(LOOK_AGAIN_MS);
    }
  }

  /** Gives up all leases, so that others can go on at once with what is not finished here. */
  async release(): Promise<void> {
    this.#releasing = true;
    this.#pulse.close();
    if (this.size > 0) await this.#services.store.runs.renew(this.#services.holder, new Date(0));
  }

  get size(): number {
    return this.#live.size + this.#held.size;
  }

  #lease(): Date {
    return new Date(this.#services.platform.now().getTime() + this.#services.leaseMs);
  }

  async #renew(): Promise<void> {
    const { store, holder } = this.#services;
    for (const runId of await store.runs.renew(holder, this.#lease(), this.#pulse.alive()))
      (this.#live.get(runId) ?? this.#held.get(runId))?.controller.abort();
  }
}

function interrupted(): AppError {
  return new AppError("internal", "The service stopped in the middle of this run.");
}

function stopped(): AppError {
  return new AppError("cancelled", "The run was stopped.");
}
