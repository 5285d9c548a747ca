/** The members of a swarm that hang from one of its runs, and the calls that they wait with. */
import type { CallRecord, NamedCall, RunRecord, Runs } from "../core/run.ts";
import type { Store } from "../core/store.ts";

/** Those that the run leads, and those that they lead in their turn. */
export async function membersBelow(
  runs: Pick<Runs, "members">,
  owner: string,
  { id, root }: Pick<RunRecord, "id" | "root">,
): Promise<RunRecord[]> {
  const all = await runs.members(owner, root ?? id);
  if (root === undefined) return all;
  const leads = new Map(all.map((member) => [member.id, member.spec.member?.lead]));
  const isBelow = (member: RunRecord): boolean => {
    for (let lead = leads.get(member.id); lead !== undefined; lead = leads.get(lead))
      if (lead === id) return true;
    return false;
  };
  return all.filter(isBelow);
}

/** The calls of a run and of its members that wait for a decision; of its members also while others still work. */
export async function pendingOf(
  { runs }: Pick<Store, "runs">,
  record: RunRecord,
  now: Date,
): Promise<NamedCall[]> {
  const { id, owner, root, status, spec } = record;
  if (status !== "running" && status !== "paused") return [];
  const session = await sessionOfSwarm(runs, record);
  const calls = session === undefined ? [] : await runs.pending(owner, session, now);
  if (calls.length === 0) return [];
  const names = new Map([[id, spec.member?.name]]);
  if (root !== undefined || calls.some(({ runId }) => runId !== id))
    for (const member of await membersBelow(runs, owner, record))
      names.set(member.id, member.spec.member?.name);
  return calls.flatMap((call) => (names.has(call.runId) ? { ...call, agent: names.get(call.runId) } : []));
}

/** The calls with the members that have made them. */
export async function namedCalls(
  runs: Pick<Runs, "get">,
  owner: string,
  calls: readonly CallRecord[],
): Promise<NamedCall[]> {
  const ids = [...new Set(calls.map(({ runId }) => runId))];
  const found = await Promise.all(ids.map((id) => runs.get(owner, id)));
  const names = new Map(found.map((run) => [run?.id, run?.spec.member?.name]));
  return calls.map((call) => ({ ...call, agent: names.get(call.runId) }));
}

/** Where a person decides on the calls of a run: in the session of the one that it hangs from. */
async function sessionOfSwarm(
  runs: Pick<Runs, "get">,
  { owner, root, sessionId }: Pick<RunRecord, "owner" | "root" | "sessionId">,
): Promise<string | undefined> {
  return root === undefined ? sessionId : sessionOfRoot(runs, owner, root);
}

/** undefined: it is gone, with its session. */
export async function sessionOfRoot(
  runs: Pick<Runs, "get">,
  owner: string,
  root: string,
): Promise<string | undefined> {
  return (await runs.get(owner, root))?.sessionId;
}
