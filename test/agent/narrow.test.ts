import * as fc from "fast-check";
import { expect, test } from "vitest";
import { narrowed } from "../../src/agent/narrow.ts";
import { createPolicy } from "../../src/agent/policy.ts";
import { DECISIONS, type PolicyRule } from "../../src/core/policy.ts";

const decision = fc.constantFrom(...DECISIONS);
const rule: fc.Arbitrary<PolicyRule> = fc.record(
  {
    tool: fc.constantFrom("*", "write", "w*", "run"),
    args: fc.record({ path: fc.constantFrom("a/*", "*", "b") }),
    decision,
  },
  { requiredKeys: ["tool", "decision"] },
);
const tool = fc.record({
  name: fc.constantFrom("write", "run", "read"),
  risk: fc.constantFrom("read" as const, "write" as const, "execute" as const, "network" as const),
});
const args = fc.record({ path: fc.constantFrom("a/x", "b", "c") });
const strict = (word: (typeof DECISIONS)[number]) => DECISIONS.indexOf(word);

test("P1: no rule of an agent's lets through what the operator's policy does not", () => {
  fc.assert(
    fc.property(
      fc.constantFrom("ask" as const, "auto" as const, "deny" as const),
      fc.array(rule, { maxLength: 4 }),
      fc.array(rule, { maxLength: 4 }),
      tool,
      args,
      (fallback, theirs, own, judged, given) => {
        const operator = createPolicy({ default: fallback, rules: theirs });
        const both = narrowed(operator, own);
        expect(strict(both.decide(judged, given))).toBeGreaterThanOrEqual(
          strict(operator.decide(judged, given)),
        );
        if (!operator.mayAllow(judged)) expect(both.mayAllow(judged)).toBe(false);
        if (both.decide(judged, given) === "allow") expect(both.mayAllow(judged)).toBe(true);
      },
    ),
  );
});

test("what an agent's rules ask or deny is asked or denied", () => {
  const operator = createPolicy({ default: "auto", rules: [] });
  const policy = narrowed(operator, [
    { tool: "*", decision: "ask" },
    { tool: "write", args: { path: "docs/*" }, decision: "allow" },
    { tool: "run", decision: "deny" },
  ]);
  expect(policy.decide({ name: "write", risk: "write" }, { path: "src/a" })).toBe("ask");
  expect(policy.decide({ name: "write", risk: "write" }, { path: "docs/a" })).toBe("allow");
  expect(policy.decide({ name: "run", risk: "execute" }, {})).toBe("deny");
});

test("what a person has allowed for the session answers the agent's question, and not its ban", () => {
  const granted: PolicyRule[] = [{ tool: "*", decision: "allow" }];
  const operator = createPolicy({ default: "ask", rules: granted });
  const rules: PolicyRule[] = [
    { tool: "write", decision: "ask" },
    { tool: "run", decision: "deny" },
  ];
  const policy = narrowed(operator, rules, granted);
  expect(policy.decide({ name: "write", risk: "write" }, {})).toBe("allow");
  expect(policy.decide({ name: "run", risk: "execute" }, {})).toBe("deny");
});
