/**
 * Turns: runs from their beginning, through approvals, crashes and stops, to their end. The one place that decides who
 * runs what and when; what a run does is run.ts, what is kept of it journal.ts.
 */
import { createId } from "../core/id.ts";
import type { PolicyRule } from "../core/policy.ts";
import type { RunRecord, RunSpec } from "../core/run.ts";
import { handedBackTurn, mustKeep } from "./handed-back.ts";
import { RunJournal } from "./journal.ts";
import { sessionOfRoot } from "./members.ts";
import { observe } from "./observe-turn.ts";
import type { Resume, RunInput } from "./run-input.ts";
import { freshMessages, sessionTail } from "./session-history.ts";
import { framesOf, keyOf } from "./stored-run.ts";
import { SwarmShare } from "./swarm-share.ts";
import { AGENT } from "./target.ts";
import type { AgentServices, Ask, Turn, TurnWatch } from "./turn.ts";
import { openCalls, UNSTORED_EVENTS } from "./turn-ending.ts";
import { common, limitsOf, pastOf } from "./turn-input.ts";
import { grantsOf, livePolicy, policyOf } from "./turn-policy.ts";
import { beginInTurn, recalledFor, restored, sessionOf, sessionTurn } from "./turn-session.ts";
import { addDelegate, prepare } from "./turn-tools.ts";
import { windowOf } from "./windows.ts";

/** A run that was taken over this often is given up. */
export const RECOVERIES = 3;
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
  const grantedIn = ask.member ? await sessionOfRoot(store.runs, ask.owner, ask.member.root) : undefined;
  const granted = grantedIn ?? (used ? session.id : undefined);
  const above = ask.member?.above ?? [];
  const grants = await grantsOf(store.sessions, ask.owner, granted, ask.unattended);
  const build = (allowed: readonly PolicyRule[]) => policyOf(services.approval, [...above, rules], allowed);
  const policy = build(grants);
  const { request, tools, swarm } = prepare(services, ask, policy, await services.tools.of(ask.owner));
  const own = [...tools.keys()];
  const share = ask.share ?? (swarm && new SwarmShare());
  if (share) share.grants = grants;
  const { runId, owner, adapter, key, callersKey, maxSteps, asking, unattended } = ask;
  addDelegate(services, tools, swarm, share, {
    ...{ owner, runId, adapter, key, callersKey, maxSteps, asking, unattended, rules, above },
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
  let past: ReturnType<typeof pastOf> = {};
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
    ...{ adapter: ask.adapter, request, tools, window, journal, ...past },
    policy: share ? livePolicy(share, build) : policy,
    share,
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

export interface Continuation {
  /** `decided`: it was parked; `interrupted`: it was left in mid-stream. */
  after: "decided" | "interrupted";
  asking: RunInput["asking"];
  /** Of a member: that of its swarm. */
  share?: SwarmShare | undefined;
}

/** Goes on with a run that is `running` under this process's lease. Throws AppError when it cannot. */
export async function continueTurn(
  services: AgentServices,
  record: RunRecord,
  { after, asking: asked, share: shared }: Continuation,
  signal: AbortSignal,
  watch: TurnWatch = {},
): Promise<Turn> {
  const { store } = services;
  const { owner, sessionId, spec } = record;
  const window = windowOf(spec.request.model, services.windows);
  const { swarm, member, rules = [], maxSteps } = spec;
  const grantedIn = member && (await sessionOfRoot(store.runs, owner, member.root));
  const above = member?.above ?? [];
  const grants = await grantsOf(store.sessions, owner, grantedIn ?? sessionId, spec.unattended);
  const build = (allowed: readonly PolicyRule[]) => policyOf(services.approval, [...above, rules], allowed);
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
  const share = shared ?? (swarm && new SwarmShare(usage.input + usage.output));
  if (share) share.grants = grants;
  addDelegate(services, tools, swarm, share, {
    ...{ owner, runId: record.id, adapter, key, maxSteps, asking, rules, above },
    ...{ callersKey: spec.callersKey === true, unattended: spec.unattended },
    ...{ root: member?.root ?? record.id, name: member?.name ?? spec.agent ?? "" },
    model: spec.request.model,
  });
  // In the other doors it may be a run without a session, whose history is its client's.
  const compactable = spec.door === "chat" || member ? window : undefined;
  const input: RunInput = {
    ...common(services, owner, record.id, sessionId, journal),
    ...{ adapter, request: { ...spec.request, messages }, tools, window, journal, resume },
    policy: share ? livePolicy(share, build) : build(grants),
    ...pastOf(services, { adapter, owner, runId: record.id, sessionId, window: compactable }, tail),
    asking,
    share,
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

function leaseFrom(services: AgentServices): Date {
  return new Date(services.platform.now().getTime() + services.leaseMs);
}

/** A new run's id. */
export function createRunId(): string {
  return createId("run");
}
