/** What unattended runs may cost. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { allowanceOf, checkBudget, priceOf, spentBy } from "../../src/automation/budget.ts";
import { newJob } from "./records.ts";

const limits = {
  runTokens: 1_000,
  dayTokens: 5_000,
  jobTokens: 20_000,
  runMoney: 1,
  dayMoney: 5,
  jobMoney: 20,
};
const nothing = { tokens: 0, money: 0 };

describe("budgets", () => {
  test("a run may use what it, its day and its job have left, whichever is least", () => {
    const allowed = (job = {}, today = nothing) => allowanceOf(newJob(job), today, limits, undefined);
    expect(allowed()).toEqual({ tokens: 1_000 });
    expect(allowed({ budget: { runTokens: 10 } })).toEqual({ tokens: 10 });
    expect(allowed({}, { tokens: 4_900, money: 0 })).toEqual({ tokens: 100 });
    expect(allowed({ spent: { tokens: 19_999, money: 0 } })).toEqual({ tokens: 1 });
    expect(allowed({}, { tokens: 5_000, money: 0 })).toMatchObject({ spent: "day" });
    expect(allowed({ budget: { dayTokens: 100 } }, { tokens: 100, money: 0 })).toMatchObject({
      ...{ spent: "day", reason: expect.stringContaining("100 tokens for a day is spent") },
    });
    expect(allowed({ spent: { tokens: 20_000, money: 0 } })).toMatchObject({
      ...{ spent: "job", reason: expect.stringContaining("budget.job_tokens (or AUTOMATION_JOB_TOKENS)") },
    });
    expect(allowed({ spent: { tokens: 0, money: 20 } })).toMatchObject({ spent: "job" });
  });

  test("money bounds the tokens where the model has a price: never more than it pays for", () => {
    const amount = fc.double({ min: 0.01, max: 100, noNaN: true });
    fc.assert(
      fc.property(amount, amount, fc.nat(2_000), fc.nat(2_000), (input, output, read, written) => {
        const price = { glob: "*", input, output };
        const allowance = allowanceOf(newJob(), nothing, limits, price);
        const tokens = allowance.spent === undefined ? allowance.tokens : 0;
        fc.pre(read + written <= tokens && tokens > 1);
        expect(spentBy({ input: read, output: written }, price).money).toBeLessThanOrEqual(
          limits.runMoney + 1e-9,
        );
      }),
    );
  });

  test("what a job asks for is at most what the operator allows", () => {
    expect(() => checkBudget({ runTokens: 1_000, dayMoney: 5 }, limits)).not.toThrow();
    expect(() => checkBudget({ runTokens: 1_001 }, limits)).toThrow(
      "budget.run_tokens has to be at most 1000, the limit of this service (AUTOMATION_RUN_TOKENS), but it is 1001.",
    );
  });

  test("the first price whose glob matches counts; without one nothing is counted", () => {
    const prices = [
      { glob: "gpt-*-mini", input: 1, output: 2 },
      { glob: "gpt-*", input: 10, output: 20 },
    ];
    const usage = { input: 1_000_000, output: 500_000 };
    expect(spentBy(usage, priceOf(prices, "gpt-5-mini"))).toEqual({ tokens: 1_500_000, money: 2 });
    expect(spentBy(usage, priceOf(prices, "gpt-5"))).toEqual({ tokens: 1_500_000, money: 20 });
    expect(spentBy(usage, priceOf(prices, "llama"))).toEqual({ tokens: 1_500_000, money: 0 });
  });
});
