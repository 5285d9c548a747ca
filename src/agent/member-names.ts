/** What members of a swarm are called: a name is one member's in all of the run that leads it, whatever comes between. */
import { reveal } from "../core/preview.ts";
import type { Runs } from "../core/run.ts";
import type { MemberName, Task } from "../core/swarm.ts";
import { type Lead, memberRunId } from "./member-run.ts";

const NAME_LIMIT = 64;
/** Of a task that events show. */
const SHOWN_TASK_LIMIT = 500;

/** Those that exist keep their names; those of members below a member have its name in front. */
export async function nameMembers(
  runs: Pick<Runs, "members">,
  { owner, root, runId, name: parent, swarm, share }: Lead,
  { callId }: { callId: string },
  tasks: readonly Task[],
): Promise<MemberName[]> {
  const ids = await Promise.all(tasks.map((_, index) => memberRunId(runId, callId, index, 0)));
  const siblings = (await runs.members(owner, root)).filter(({ spec }) => spec.member?.lead === runId);
  const names = new Map(siblings.map(({ id, spec }) => [id, spec.member?.name as string]));
  const taken = new Set(names.values());
  return tasks.map((task, index) => {
    const id = ids[index] as string;
    const name =
      names.get(id) ?? free(baseOf(task), swarm.depth === 0 ? "" : `${parent}/`, taken, share.names, id);
    taken.add(name);
    share.names.set(name, id);
    return { runId: id, name, task: shortened(task.task, SHOWN_TASK_LIMIT), parent };
  });
}

/** `given`: also to members that have no row yet. */
function free(
  base: string,
  prefix: string,
  taken: ReadonlySet<string>,
  given: ReadonlyMap<string, string>,
  id: string,
): string {
  for (let number = 1; ; number++) {
    const name = `${prefix}${number === 1 ? base : `${base} ${number}`}`;
    if (!taken.has(name) && (given.get(name) ?? id) === id) return name;
  }
}

/** A person who decides on its calls reads it. */
function baseOf({ agent, role }: Task): string {
  const line = role?.trim().split(/[\r\n]/, 1)[0] ?? "";
  return reveal((agent || line).slice(0, NAME_LIMIT).toWellFormed()).trim() || "member";
}

export function shortened(text: string, limit: number): string {
  return text.length > limit ? `${text.slice(0, limit).toWellFormed()}… [cut]` : text;
}
