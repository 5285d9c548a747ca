/** A named agent's own rules on top of the operator's policy: of two decisions the stricter one counts. Pure. */
import { DECISIONS, type Decision, type PolicyRule } from "../core/policy.ts";
import { createPolicy, type Policy } from "./policy.ts";

/** `granted`: what a person has allowed for the session, which answers the agent's `ask` as it does the operator's. */
export function narrowed(
  policy: Policy,
  rules: readonly PolicyRule[],
  granted: readonly PolicyRule[] = [],
): Policy {
  if (rules.length === 0) return policy;
  const own = createPolicy({ default: "auto", rules: [...rules, ...granted] });
  return {
    decide: (tool, args, outside) =>
      stricter(policy.decide(tool, args, outside), own.decide(tool, args, outside)),
    mayAllow: (tool) => policy.mayAllow(tool) && own.mayAllow(tool),
    varies: (tool) => policy.varies(tool) || own.varies(tool),
  };
}

function stricter(a: Decision, b: Decision): Decision {
  return DECISIONS.indexOf(a) > DECISIONS.indexOf(b) ? a : b;
}
