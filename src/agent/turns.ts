/**
 * Turns: runs from their beginning, through approvals, crashes and stops, to their end. The one place that decides who
 * runs what and when; what a run does is run.ts, what is kept of it journal.ts.
 */
import type { Unattended } from "../core/automation.ts";
import { createId } from "../core/id.ts";
import type { Recall } from "../core/memory.ts";
import { type Message, type ProviderName, textOf } from "../core/message.ts";
import type { PolicyRule } from "../core/policy.ts";
import type { Frames, RunRecord, RunSpec } from "../core/run.ts";
import type { Store } from "../core/store.ts";
import type { Spending } from "../core/swarm.ts";
import { AppError } from "../errors.ts";
import { createCompaction, shortened } from "./compaction.ts";
import { handedBackTurn, mustKeep, replayedCallIds, restoreTurns } from "./handed-back.ts";
import { type Passed, RunJournal } from "./journal.ts";
import type { RunLimits } from "./limits.ts";
import { narrowed } from "./narrow.ts";
import { createPolicy, type Policy } from "./policy.ts";
import { type Resume, type RunInput, run } from "./run.ts";
import { freshMessages, type SessionTail, sessionTail, summaryMessage } from "./session-history.ts";
import { AGENT } from "./target.ts";
import type { AgentServices, Ask, SessionTurn, Turn, TurnWatch } from "./turn.ts";
import { cancelPaused, openCalls, UNSTORED_EVENTS } from "./turn-ending.ts";
import { addDelegate, prepare } from "./turn-tools.ts";
import { windowOf } from "./windows.ts";
import { createWorkingDirectory } from "./working-directory.ts";

/** How often a waiting turn looks whether the session is free. Milliseconds. */
const LOOK_AGAIN_MS = 100;
/** A run that was taken over this often is given up. */
export const RECOVERIES = 3;
/** A summary that was made for a larger model may have this share of the window. */
const SUMMARY_SHARE = 0.25;
/** Rows of frames read at once. */
const FRAMES_PAGE = 200;

/** Throws AppError when the run cannot begin: an unknown session, one that is busy, a database that does not answer. */
export async function startTurn(
  services: AgentServices,
  ask: Ask,
  signal: AbortSignal,
  watch: TurnWatch = {},
): Promise<Turn> {
  const { store } = services;
  const begun = performance.now();
  const window = windowOf(ask.target.model, services.windows);
  const session = await sessionOf(store, ask);
  // Nobody has allowed anything in a session that nobody has used.
  const used = session !== undefined && session.lastSeq > 0;
  const rules = ask.rules ?? ask.agent?.policy ?? [];
  const grantedIn = ask.member ? await sessionOfRoot(store, ask.owner, ask.member.root) : undefined;
  const granted = grantedIn ?? (used ? session.id : undefined);
  const policy = await policyOf(services, ask.owner, granted, rules, ask.unattended);
  const { request, tools, swarm } = prepare(services, ask, policy, await services.tools.of(ask.owner));
  const own = [...tools.keys()];
  const spending: Spending = ask.spending ?? { tokens: 0 };
  const { runId, owner, adapter, key, callersKey, maxSteps, asking, unattended } = ask;
  addDelegate(services, tools, swarm, {
    ...{ owner, runId, adapter, key, callersKey, maxSteps, asking, unattended, rules, spending },
    ...{ root: ask.member?.root ?? runId, name: ask.member?.name ?? ask.target.agent ?? "" },
    model: request.model,
  });
  if (tools.size > 0 && services.recall && !ask.member) {
    const recalling = recalledFor(services.recall, ask, session);
    const recalled = recalling instanceof Promise ? await recalling : recalling;
    // Behind all that is the same in every conversation.
    if (recalled) request.system = [...request.system, recalled];
  }
  const spec: RunSpec = {
    door: ask.door,
    provider: ask.adapter.provider,
    agent: ask.target.agent,
    request: { ...request, messages: [] },
    tools: own,
    ...(rules.length > 0 ? { rules } : {}),
    ...(swarm ? { swarm } : {}),
    ...(ask.member ? { member: ask.member } : {}),
    maxSteps: ask.maxSteps,
    autoApprove: ask.asking === "allow",
    unattended: ask.unattended,
    callersKey: ask.callersKey,
  };
  const sent = ask.request.messages;
  const fresh = session ? freshMessages(sent, session.lastSeq) : [];
  const journal = new RunJournal({
    runs: store.runs,
    owner: ask.owner,
    onRow: watch.onRow,
    encoder: (row) =>
      services.encoder({
        ...{ runId: row.id, sessionId: row.sessionId, after: 0, earlier: [], interrupted: false },
        messageId: null,
        unavailableTools: Array.isArray(ask.selection)
          ? ask.selection.filter((name) => !tools.has(name))
          : [],
      }),
    // Without tools of its own a stateless run does nothing that has to be kept.
    start:
      !session && tools.size === 0
        ? null
        : async () => {
            const { id: sessionId, isNew } = session ?? { id: createId("ses"), isNew: true };
            return {
              run: {
                id: ask.runId,
                sessionId,
                newSession: isNew ? { unlisted: !session || ask.member !== undefined } : undefined,
                root: ask.member?.root,
                spec,
                sealedKey: ask.callersKey ? ((await services.vault?.seal(ask.key)) ?? null) : null,
                holder: services.holder,
                leaseUntil: leaseFrom(services),
              },
              messages: session ? fresh : request.messages,
            };
          },
  });
  let past: Past = {};
  if (session) {
    if (ask.target.agent !== null && !ask.member) services.noteTurn?.(sessionTurn(ask, session.id));
    await beginInTurn(services, ask.owner, journal, ask.client ?? signal);
    const tail =
      journal.historySeq === fresh.length
        ? { summary: null, messages: fresh, seqs: fresh.map((_, at) => at + 1) }
        : await sessionTail(store.sessions, ask.owner, session.id, { window });
    request.messages = tail.messages;
    past = pastOf(services, { ...ask, sessionId: session.id, window }, tail);
  } else {
    request.messages = await restored(store, ask.owner, sent);
  }
  const history = request.messages;
  const input: RunInput = {
    ...common(services, ask.owner, ask.runId, session?.id, journal),
    ...{ adapter: ask.adapter, request, tools, policy, window, journal, ...past },
    spending: swarm || ask.member ? spending : undefined,
    delegated: ask.member,
    agent: ask.agent?.name,
    asking: ask.asking,
    limits: limitsOf(services, ask),
    handBack: async (made, calls) => {
      if (session || !mustKeep(made, ask.carriesSeals)) return;
      const ids = calls.map((call) => call.id);
      await store.handedBack.keep(ask.owner, handedBackTurn(history, made, ids));
    },
  };
  const source = { owner: ask.owner, door: ask.door, begun, onEnd: watch.onEnd };
  const events = observe(services, source, input, journal, signal);
  const storedSeq = () => journal.storedSeq;
  return { runId: ask.runId, sessionId: session?.id, events, firstSeq: 1, storedSeq };
}

/** The session of an ask. A new one is made with its first run: only its id is there yet. */
async function sessionOf(
  store: Store,
  { owner, session }: Ask,
): Promise<{ id: string; lastSeq: number; isNew: boolean } | undefined> {
  if (session === undefined) return undefined;
  if (session === "new") return { id: createId("ses"), lastSeq: 0, isNew: true };
  const { id, lastSeq } = await store.sessions.open(owner, session);
  return { id, lastSeq, isNew: false };
}

/** What is remembered, from what the conversation began with; null at once where there is nothing. */
function recalledFor(
  recall: Recall,
  { owner, request }: Ask,
  session: { id: string; lastSeq: number } | undefined,
): ReturnType<Recall> {
  return recall({
    owner,
    sessionId: session?.id,
    isNew: session ? session.lastSeq === 0 : !request.messages.some(({ role }) => role === "assistant"),
    opening: () => textOf(request.messages.find(({ role }) => role === "user") ?? { content: [] }),
  });
}

function sessionTurn({ owner, adapter, target, key, callersKey }: Ask, sessionId: string): SessionTurn {
  return { owner, sessionId, provider: adapter.provider, model: target.model, key, callersKey };
}

export interface Continuation {
  /** `decided`: it was parked; `interrupted`: it was left in mid-stream. */
  after: "decided" | "interrupted";
  asking: RunInput["asking"];
  /** Of a member: what its swarm has used. */
  spending?: Spending | undefined;
}

/** Goes on with a run that is `running` under this process's lease. Throws AppError when it cannot. */
export async function continueTurn(
  services: AgentServices,
  record: RunRecord,
  { after, asking: asked, spending: shared }: Continuation,
  signal: AbortSignal,
  watch: TurnWatch = {},
): Promise<Turn> {
  const { store } = services;
  const { owner, sessionId, spec } = record;
  const window = windowOf(spec.request.model, services.windows);
  const { swarm, member, rules = [], maxSteps } = spec;
  const grantedIn = member && (await sessionOfRoot(store, owner, member.root));
  const policy = await policyOf(services, owner, grantedIn ?? sessionId, rules, spec.unattended);
  const key = await keyOf(services, record);
  const adapter = await services.models.adapter({ provider: spec.provider, key });
  const { historySeq } = record;
  const tail = await sessionTail(store.sessions, owner, sessionId, { window, historySeq });
  const { messages, made } = tail;
  const calls = await openCalls(services, record, messages);
  const interrupted = after === "interrupted" && record.lastEvent > 0;
  const lastSeq = record.lastEvent + (interrupted ? UNSTORED_EVENTS : 0);
  const encoder = services.encoder({
    ...{ runId: record.id, sessionId, after: lastSeq, interrupted, unavailableTools: [] },
    messageId: tail.lastReplyId,
    earlier: await framesOf(store, record),
  });
  const journal = new RunJournal(
    {
      runs: store.runs,
      owner,
      start: null,
      steps: record.steps,
      encoder: () => encoder,
    },
    { id: record.id, sessionId, holder: services.holder },
  );
  const { steps, usage } = record;
  const resume: Resume = { calls, made, steps, usage, isShown: (callId) => encoder.hasShown(callId) };
  const tools = new Map(
    (await services.tools.of(owner))
      .filter((tool) => spec.tools.includes(tool.name))
      .map((tool) => [tool.name, tool]),
  );
  const asking = spec.autoApprove ? "allow" : (spec.unattended?.asking ?? asked);
  const spending = shared ?? { tokens: usage.input + usage.output };
  addDelegate(services, tools, swarm, {
    ...{ owner, runId: record.id, adapter, key, maxSteps, asking, rules, spending },
    ...{ callersKey: spec.callersKey === true, unattended: spec.unattended },
    ...{ root: member?.root ?? record.id, name: member?.name ?? spec.agent ?? "" },
    model: spec.request.model,
  });
  // In the other doors it may be a run without a session, whose history is its client's.
  const compactable = spec.door === "chat" || member ? window : undefined;
  const input: RunInput = {
    ...common(services, owner, record.id, sessionId, journal),
    ...{ adapter, request: { ...spec.request, messages }, tools, policy, window, journal, resume },
    ...pastOf(services, { adapter, owner, runId: record.id, sessionId, window: compactable }, tail),
    asking,
    spending: swarm || member ? spending : undefined,
    delegated: member,
    agent: spec.agent === AGENT ? undefined : (spec.agent ?? undefined),
    limits: limitsOf(services, spec),
    handBack: async (all, theirs) => {
      const ids = theirs.map((call) => call.id);
      const history = messages.slice(0, messages.length - made.length);
      await store.handedBack.keep(owner, handedBackTurn(history, all, ids));
    },
  };
  const source = { owner, door: spec.door, begun: performance.now(), onEnd: watch.onEnd };
  const events = observe(services, source, input, journal, signal);
  const storedSeq = () => Math.max(journal.storedSeq, record.lastEvent);
  return { runId: record.id, sessionId, events, firstSeq: lastSeq + 1, storedSeq };
}

/** All that readers have had and that is stored. */
async function framesOf(store: Store, { owner, id }: RunRecord): Promise<Frames[]> {
  const all: Frames[] = [];
  for (;;) {
    const rows = await store.runs.frames(owner, id, all.at(-1)?.last ?? 0, FRAMES_PAGE);
    all.push(...rows);
    if (rows.length < FRAMES_PAGE) return all;
  }
}

function common(
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
function pastOf(
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

function limitsOf(
  { limits }: AgentServices,
  { maxSteps, unattended }: Pick<RunSpec, "maxSteps" | "unattended">,
): RunLimits {
  if (maxSteps === undefined && !unattended) return limits;
  const tokenBudget = Math.min(unattended?.tokenBudget ?? limits.tokenBudget, limits.tokenBudget);
  return { ...limits, maxSteps: Math.min(maxSteps ?? limits.maxSteps, limits.maxSteps), tokenBudget };
}

function leaseFrom(services: AgentServices): Date {
  return new Date(services.platform.now().getTime() + services.leaseMs);
}

/** Where a person decides on the calls of a swarm. */
async function sessionOfRoot(store: Store, owner: string, root: string): Promise<string | undefined> {
  return (await store.runs.get(owner, root))?.sessionId;
}

/** The operator's rules, what a person has allowed for the session or a job names, and the agent's own rules on top. */
async function policyOf(
  services: AgentServices,
  owner: string,
  sessionId: string | undefined,
  rules: readonly PolicyRule[],
  unattended: Unattended | undefined,
): Promise<Policy> {
  const { approval, store } = services;
  const grants = sessionId === undefined ? [] : await store.sessions.grants(owner, sessionId);
  for (const tool of unattended?.allow ?? []) grants.push({ tool, decision: "allow" });
  const operators = createPolicy(
    grants.length === 0 ? approval : { ...approval, rules: [...approval.rules, ...grants] },
  );
  return narrowed(operators, rules, grants);
}

async function restored(store: Store, owner: string, messages: Message[]): Promise<Message[]> {
  const ids = replayedCallIds(messages);
  return ids.length === 0 ? messages : restoreTurns(messages, await store.handedBack.find(owner, ids));
}

/** Waits for the session's turn. A turn that waits for a decision gives way: the user has gone on without one. */
async function beginInTurn(
  services: AgentServices,
  owner: string,
  journal: RunJournal,
  client: AbortSignal,
): Promise<void> {
  const deadline = performance.now() + services.patienceMs;
  for (;;) {
    const inTheWay = await journal.begin();
    if (!inTheWay) return;
    if (inTheWay.status === "paused") {
      await cancelPaused(services, owner, inTheWay.id, "superseded");
      continue;
    }
    if (performance.now() >= deadline)
      throw new AppError(
        "conflict",
        `This session is busy with run ${inTheWay.id}. Wait until it has ended, or stop it with POST /api/runs/${inTheWay.id}/stop.`,
        { details: { run_id: inTheWay.id }, retryAfter: 1 },
      );
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
    if (client.aborted) throw new AppError("cancelled", "The client went before its turn had come.");
  }
}

async function keyOf(services: AgentServices, record: RunRecord): Promise<string> {
  const provider: ProviderName = record.spec.provider;
  if (record.sealedKey === null && record.spec.callersKey)
    throw new AppError(
      "missing_key",
      "The provider key of this run was the caller's and could not be kept: set SECRET_KEY on the server. Send the message again.",
    );
  if (record.sealedKey === null)
    return services.models.choose({ key: undefined, provider, param: "provider", where: "the request" }).key;
  const key = await services.vault?.open(record.sealedKey);
  if (key) return key;
  throw new AppError(
    "missing_key",
    "The provider key of this run cannot be read any more: the server's secret has changed. Send the message again.",
  );
}

async function* observe(
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

/** A new run's id. */
export function createRunId(): string {
  return createId("run");
}
