/** A run's events on their way out: stored as far as they have to be, and counted when they are over. */
import type { Passed, RunJournal } from "./journal.ts";
import { run } from "./run.ts";
import type { RunInput } from "./run-input.ts";
import type { AgentServices, TurnWatch } from "./turn.ts";

export async function* observe(
  services: AgentServices,
  source: { owner: string; door: string; begun: number; onEnd: TurnWatch["onEnd"] },
  input: RunInput,
  journal: RunJournal,
  signal: AbortSignal,
): AsyncGenerator<Passed, void, void> {
  let outcome = "stopped";
  let unstored: unknown;
  let usage = input.resume?.usage ?? { input: 0, output: 0 };
  let steps = input.resume?.steps ?? 0;
  try {
    for await (const event of run(input, signal)) {
      const passing = journal.see(event);
      const seen = passing instanceof Promise ? await passing : passing;
      unstored = seen.unstored;
      if (unstored !== undefined)
        services.platform.log("error", "the end of a run could not be stored", {
          run_id: input.context.runId,
          error: String(unstored),
        });
      if (seen.event.type === "run-close") {
        outcome = seen.event.outcome;
        usage = seen.event.usage;
      } else if (event.type === "model" && event.event.type === "done") steps++;
      yield seen;
    }
  } finally {
    source.onEnd?.(unstored);
    if (outcome === "stopped") services.onStop?.(source.owner, input.context.runId);
    // A member's tokens are counted with its lead's.
    if (!input.delegated)
      services.store.usage.record({
        ...{ owner: source.owner, runId: input.context.runId, door: source.door, outcome, steps, usage },
        ...{ provider: input.adapter.provider, model: input.request.model },
        durationMs: Math.round(performance.now() - source.begun),
      });
  }
}
