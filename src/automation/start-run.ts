/** A job's run: an ordinary native run that nobody watches. */
import type { LiveRun, LiveRuns } from "../agent/live-runs.ts";
import { briefs, findAgent } from "../agent/named-agents.ts";
import { AGENT, resolveTarget, type Target } from "../agent/target.ts";
import type { AgentServices, Ask } from "../agent/turn.ts";
import { startTurn } from "../agent/turns.ts";
import type { NamedAgent } from "../core/agents.ts";
import type { Job, Unattended } from "../core/jobs.ts";
import { type ProviderName, text } from "../core/message.ts";
import type { Credentials } from "../core/model.ts";
import type { Occurrence } from "../core/occurrences.ts";
import { AppError } from "../errors.ts";

/** The agent and its runs, and which model a word names for a provider. */
export interface RunHost {
  agent: AgentServices;
  runs: Pick<LiveRuns, "drive">;
  models: {
    defaults: Readonly<Record<ProviderName, { model: string }>>;
    aliases: readonly { glob: string; model: string }[];
  };
}

/** Who answers, with whose key. */
export interface Answerer {
  /** null: the default agent. */
  agent: NamedAgent | null;
  credentials: Credentials;
  callersKey: boolean;
  target: Target;
}

type Wanted = Pick<Job, "owner" | "provider" | "model" | "agentName">;

/** Throws AppError: no key, an unknown provider or agent. */
export async function answererOf(
  { agent: services, models }: RunHost,
  { owner, provider, model, agentName }: Wanted,
  key: string | undefined,
): Promise<Answerer> {
  const words = { model: model ?? AGENT, agentName: agentName ?? undefined };
  const agent = await findAgent(services.store.agents, owner, words);
  const wish = { key, provider: provider ?? undefined, param: "provider", where: "the field api_key" };
  // A key says by itself where it belongs, and is sent nowhere else because of an agent.
  if (key === undefined) wish.provider ??= agent?.provider ?? undefined;
  const credentials = services.models.choose(wish);
  const elsewhere = agent?.provider != null && agent.provider !== credentials.provider;
  const own = agent && (elsewhere ? { ...agent, model: null } : agent);
  const fallback = models.defaults[credentials.provider].model;
  const target = resolveTarget(words.model, fallback, models.aliases, own);
  return { agent, credentials, callersKey: key !== undefined, target };
}

/** The job's own key. Throws AppError `missing_key` when it cannot be read any more. */
export async function keyOf({ agent }: RunHost, job: Pick<Job, "sealedKey">): Promise<string | undefined> {
  if (job.sealedKey === null) return undefined;
  const key = await agent.vault?.open(job.sealedKey);
  if (key) return key;
  throw new AppError(
    "missing_key",
    "The job's provider key cannot be read any more: the server's secret has changed. Give it again with PATCH and api_key.",
  );
}

export interface Begun {
  sessionId: string;
  live: LiveRun;
}

/** Throws AppError when the run cannot begin; nothing has been done then. */
export async function startRun(
  host: RunHost,
  job: Job,
  occurrence: Occurrence & { runId: string },
  { agent: named, credentials, callersKey, target }: Answerer,
  tokenBudget: number,
): Promise<Begun> {
  const { agent, runs } = host;
  const { owner, session } = job;
  if (session !== "new") await checkFree(agent, owner, session);
  const unattended: Unattended = {
    allow: job.allowedTools ?? [],
    asking: job.approval === "wait" ? "person" : "nobody",
    tokenBudget,
  };
  const ask: Ask = {
    ...{ runId: occurrence.runId, owner, door: "chat", adapter: await agent.models.adapter(credentials) },
    ...{ key: credentials.key, callersKey, target },
    request: {
      model: target.model,
      system: [text(situation(job, occurrence))],
      messages: [{ role: "user", content: [text(wordsOf(job, occurrence))] }],
      tools: [],
      settings: {},
    },
    ...{ selection: job.allowedTools ?? "all", session, carriesSeals: false },
    ...{ asking: unattended.asking, unattended, agent: named ?? undefined },
    swarm: await swarmOf(agent, owner, named),
  };
  const controller = new AbortController();
  // A session that is busy is tried again later, rather than waited for.
  const turn = await startTurn({ ...agent, patienceMs: 0 }, ask, controller.signal);
  const live = runs.drive(owner, turn, controller);
  return { sessionId: turn.sessionId ?? "", live };
}

/** An agent that has agents below it leads them here too. */
async function swarmOf(agent: AgentServices, owner: string, named: NamedAgent | null): Promise<Ask["swarm"]> {
  if (!named || named.subAgents.length === 0) return undefined;
  return { depth: 0, agents: await briefs(agent, owner, named.subAgents) };
}

/** A turn that waits for a person's decision would give way to this one, and the decision be lost. */
async function checkFree({ store }: AgentServices, owner: string, sessionId: string): Promise<void> {
  const { runs } = await store.runs.list(owner, { sessionId, limit: 1 });
  if (runs[0]?.status !== "paused") return;
  throw new AppError("conflict", `The session waits for a decision on a call of run ${runs[0].id}.`);
}

function situation({ kind, name, approval }: Job, { scheduledAt, late }: Occurrence): string {
  const what = kind === "cron" ? `the scheduled job "${name}"` : `the watchdog "${name}"`;
  const asked =
    approval === "wait"
      ? "A call that needs approval waits until somebody decides."
      : "Nobody can be asked: a call that needs approval is denied. Say then what was denied.";
  return `You run by yourself, as ${what}, for ${scheduledAt.toISOString()}${late ? ", later than planned" : ""}. ${asked} Your last message is what the user finds later as the result.`;
}

function wordsOf({ command }: Job, { finding }: Occurrence): string {
  return finding === null ? command : `${command}\n\n${finding}`;
}
