/**
 * The calls of `/mcp` that are under way, and how they are given up. A cancellation comes in a request of its own, perhaps
 * to another process: a run's id follows from its call's, so that every process can find and stop it.
 */
import { AppError } from "../errors.ts";
import type { Services } from "../services.ts";

type RequestId = string | number;

export interface McpCaller {
  owner: string;
  providerKey: string | undefined;
  /** A provider or an alias of one, where the caller has named it. */
  provider: string | undefined;
  calls: CallsOfRequest;
}

/** The calls that came in one request. */
export interface CallsOfRequest {
  /** The id for the run of a call, the same wherever and whenever it is asked for; undefined for callers without a session word. */
  runIdOf(requestId: RequestId): Promise<string | undefined>;
  /** `stop` is called once when the call is given up. Call the result when it is over. */
  begin(requestId: RequestId, stop: () => void): Promise<() => void>;
  /** Gives up a call of an earlier request of the same client. */
  cancel(requestId: RequestId): void;
  /** Gives up all calls of this request. */
  giveUp(): void;
}

const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567";
const ID_LENGTH = 32;

export class ServedCalls {
  readonly #services: Services;
  readonly #underWay = new Map<string, () => void>();

  constructor(services: Services) {
    this.#services = services;
  }

  /** `session`: the word by which the clients of an owner are told apart. */
  of(owner: string, session: string | undefined): CallsOfRequest {
    const own = new Set<() => void>();
    const idOf = async (requestId: RequestId) =>
      session === undefined ? undefined : deriveRunId(owner, session, requestId);
    return {
      runIdOf: idOf,
      begin: async (requestId, stop) => {
        const id = await idOf(requestId);
        own.add(stop);
        if (id !== undefined) this.#underWay.set(id, stop);
        return () => {
          own.delete(stop);
          if (id !== undefined && this.#underWay.get(id) === stop) this.#underWay.delete(id);
        };
      },
      cancel: (requestId) => {
        this.#services.platform.background(idOf(requestId).then((id) => this.#cancel(owner, id)));
      },
      giveUp() {
        for (const stop of own) stop();
      },
    };
  }

  async #cancel(owner: string, id: string | undefined): Promise<void> {
    if (id === undefined) return;
    const stop = this.#underWay.get(id);
    if (stop) stop();
    else await stopRun(this.#services, owner, id);
  }
}

/** A run that is not there, or has ended, is no failure: a cancellation may always come too late. */
export async function stopRun({ runs }: Services, owner: string, runId: string): Promise<void> {
  try {
    await runs.stop(owner, runId);
  } catch (error) {
    if (!(error instanceof AppError && error.code === "not_found")) throw error;
  }
}

/** As hard to guess as the session word, which has 130 random bits. */
async function deriveRunId(owner: string, session: string, requestId: RequestId): Promise<string> {
  const text = JSON.stringify(["mcp", owner, session, requestId]);
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  let id = "run_";
  for (let i = 0; i < ID_LENGTH; i++) id += ALPHABET[(hash[i] as number) & 31];
  return id;
}
