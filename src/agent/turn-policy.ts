/** The policy of a run: the operator's rules, what a person has allowed meanwhile, and the rules of the agents. */
import type { Unattended } from "../core/jobs.ts";
import type { PolicyFile, PolicyRule } from "../core/policy.ts";
import type { Sessions } from "../core/store.ts";
import { narrowed } from "./narrow.ts";
import { createPolicy, type Policy } from "./policy.ts";

/** What a person has allowed for the session, or a job names. */
export async function grantsOf(
  sessions: Pick<Sessions, "grants">,
  owner: string,
  sessionId: string | undefined,
  unattended: Unattended | undefined,
): Promise<PolicyRule[]> {
  const grants = sessionId === undefined ? [] : await sessions.grants(owner, sessionId);
  for (const tool of unattended?.allow ?? []) grants.push({ tool, decision: "allow" });
  return grants;
}

/** `layers`: the rules of each agent, from the top; each narrows what is above it. */
export function policyOf(
  approval: PolicyFile,
  layers: readonly (readonly PolicyRule[])[],
  grants: readonly PolicyRule[],
): Policy {
  const operators = createPolicy(
    grants.length === 0 ? approval : { ...approval, rules: [...approval.rules, ...grants] },
  );
  return layers.reduce((policy, rules) => narrowed(policy, rules, grants), operators);
}

/** Of a run of a swarm: what is allowed for the session while some members wait counts for those that work, too. */
export function livePolicy(
  share: { grants: readonly PolicyRule[] },
  build: (grants: readonly PolicyRule[]) => Policy,
): Policy {
  let { grants } = share;
  let policy = build(grants);
  const now = (): Policy => {
    if (share.grants !== grants) {
      grants = share.grants;
      policy = build(grants);
    }
    return policy;
  };
  return {
    decide: (tool, args, outside) => now().decide(tool, args, outside),
    mayAllow: (tool) => now().mayAllow(tool),
    varies: (tool) => now().varies(tool),
  };
}
