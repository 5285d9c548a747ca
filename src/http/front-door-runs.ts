/** The runs of a request at a front door: begun or gone on with, and ended when its client goes. */
import { decideByCode } from "../agent/approvals.ts";
import type { RunInput } from "../agent/run-input.ts";
import type { Ask, Turn, TurnWatch } from "../agent/turn.ts";
import { endAbandoned } from "../agent/turn-ending.ts";
import { continueTurn, startTurn } from "../agent/turns.ts";
import { createId } from "../core/id.ts";
import type { RunRecord } from "../core/run.ts";
import { AppError } from "../errors.ts";
import type { Decoded } from "../protocols/codec.ts";
import type { Services } from "../services.ts";
import type { Quota } from "./quota.ts";

/** Where the last message is `approve CODE` or `deny CODE`: the run that it decides about, to be gone on with here. */
export async function decidedHere(
  services: Services,
  owner: string,
  decoded: Decoded,
): Promise<RunRecord | null> {
  if (decoded.choices > 1) return null;
  const { agent, store, platform } = services;
  const decision = await decideByCode(agent, owner, decoded.request.messages);
  if (!decision) return null;
  const leaseUntil = new Date(platform.now().getTime() + agent.leaseMs);
  const record = await store.runs.resume(owner, decision.runId, agent.holder, leaseUntil);
  if (record) return record;
  throw new AppError(
    "conflict",
    `Your decision is taken, and run ${decision.runId} goes on elsewhere: see GET /api/runs/${decision.runId}/events.`,
  );
}

/** What ends the runs of a request: its client goes, unless they are to go on without it. */
export interface Client {
  controller: AbortController;
  hold: boolean;
}

export function clientOf(signal: AbortSignal, hold: boolean): Client {
  const controller = new AbortController();
  if (!hold) {
    if (signal.aborted) controller.abort();
    else signal.addEventListener("abort", () => controller.abort(), { once: true });
  }
  return { controller, hold };
}

/** Keeps the lease of a run for as long as its events are read, if it ever has one. */
function leaseOf(services: Services, owner: string, runId: string, client: Client): Required<TurnWatch> {
  let release = () => {};
  return {
    onRow() {
      release = services.runs.hold(runId, client.controller);
    },
    onEnd(unstored) {
      release();
      if (unstored !== undefined) services.runs.retryEnd(owner, runId, unstored);
    },
  };
}

export function started(
  services: Services,
  ask: Ask,
  choices: number,
  client: Client,
  quota: Quota,
): Promise<Turn>[] {
  return Array.from({ length: choices }, async (_, choice) => {
    const asked = choice === 0 ? ask : { ...ask, runId: createId("run") };
    const lease = leaseOf(services, ask.owner, asked.runId, client);
    const leave = quota.run(ask.owner);
    const onEnd = (unstored: unknown) => {
      leave();
      lease.onEnd(unstored);
    };
    try {
      return await startTurn(services.agent, asked, client.controller.signal, { ...lease, onEnd });
    } catch (error) {
      onEnd(undefined);
      throw error;
    }
  });
}

export async function continued(
  services: Services,
  record: RunRecord,
  asking: RunInput["asking"],
  client: Client,
): Promise<Turn> {
  const lease = leaseOf(services, record.owner, record.id, client);
  lease.onRow();
  try {
    const after = { after: "decided", asking } as const;
    return await continueTurn(services.agent, record, after, client.controller.signal, lease);
  } catch (error) {
    lease.onEnd(undefined);
    await endAbandoned(services.agent, record, error);
    throw error;
  }
}
