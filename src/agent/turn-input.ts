/** What a run is given, whether its turn begins or goes on: its place, its limits and what came before. */

import type { RunSpec } from "../core/run.ts";
import { createCompaction, shortened } from "./compaction.ts";
import type { RunJournal } from "./journal.ts";
import type { RunLimits } from "./limits.ts";
import type { RunInput } from "./run-input.ts";
import { type SessionTail, summaryMessage } from "./session-history.ts";
import type { AgentServices, Ask } from "./turn.ts";
import { createWorkingDirectory } from "./working-directory.ts";

/** A summary that was made for a larger model may have this share of the window. */
const SUMMARY_SHARE = 0.25;

/** Of every run. */
export function common(
  services: AgentServices,
  owner: string,
  runId: string,
  sessionId: string | undefined,
  journal: RunJournal,
) {
  const { platform, store } = services;
  const { log } = platform;
  const context = {
    owner,
    sessionId,
    runId,
    files: platform.files(owner),
    terminal: platform.terminal?.(owner),
    workingDirectory: createWorkingDirectory({
      sessions: store.sessions,
      owner,
      sessionId: () => journal.sessionId,
      log,
    }),
    fetch: platform.fetch,
    pdf: platform.pdf,
    html: platform.html,
  };
  return { context, log, now: () => platform.now() };
}

type Past = Pick<RunInput, "summary" | "compaction">;

/** What stands in front of a session's newest messages, and how room is made when they get too many. */
export function pastOf(
  { store, platform }: AgentServices,
  run: Pick<Ask, "adapter" | "owner" | "runId"> & { sessionId: string; window: number | undefined },
  tail: Pick<SessionTail, "summary" | "seqs">,
): Past {
  const { adapter, owner, runId, sessionId, window } = run;
  const { summary } = tail;
  if (window === undefined) return summary ? { summary: summaryMessage(summary.text) } : {};
  const options = { adapter, owner, runId, sessionId, sessions: store.sessions, log: platform.log };
  const fitting = summary && { ...summary, text: shortened(summary.text, window * SUMMARY_SHARE) };
  return {
    summary: fitting ? summaryMessage(fitting.text) : undefined,
    compaction: createCompaction({ ...options, window, tail: { summary: fitting, seqs: tail.seqs } }),
  };
}

export function limitsOf(
  { limits }: AgentServices,
  { maxSteps, unattended }: Pick<RunSpec, "maxSteps" | "unattended">,
): RunLimits {
  if (maxSteps === undefined && !unattended) return limits;
  const tokenBudget = Math.min(unattended?.tokenBudget ?? limits.tokenBudget, limits.tokenBudget);
  return { ...limits, maxSteps: Math.min(maxSteps ?? limits.maxSteps, limits.maxSteps), tokenBudget };
}
