/** What unattended runs may cost: before each, and as a limit of its own. Pure. There is always a limit. */

import { matchGlob } from "../core/glob.ts";
import type { Job, JobBudget } from "../core/jobs.ts";
import type { Usage } from "../core/message.ts";
import type { Spent } from "../core/occurrences.ts";
import { AppError } from "../errors.ts";

/** The operator's limits: of one run, of all of an owner's in a day, of a job in its life. */
export interface BudgetLimits {
  runTokens: number;
  dayTokens: number;
  jobTokens: number;
  runMoney: number;
  dayMoney: number;
  jobMoney: number;
}

/** Money for a million tokens. The first whose glob matches the model counts. */
export interface ModelPrice {
  glob: string;
  input: number;
  output: number;
}

const MILLION = 1_000_000;

/** What a request calls each limit, and the setting that bounds it. */
const NAMES = {
  runTokens: ["run_tokens", "AUTOMATION_RUN_TOKENS"],
  dayTokens: ["day_tokens", "AUTOMATION_DAY_TOKENS"],
  jobTokens: ["job_tokens", "AUTOMATION_JOB_TOKENS"],
  runMoney: ["run_money", "AUTOMATION_RUN_MONEY"],
  dayMoney: ["day_money", "AUTOMATION_DAY_MONEY"],
  jobMoney: ["job_money", "AUTOMATION_JOB_MONEY"],
} as const satisfies Record<keyof BudgetLimits, readonly [string, string]>;

/** Throws AppError `invalid_request` for what is more than the operator allows. */
export function checkBudget(budget: JobBudget, limits: BudgetLimits): void {
  for (const key of Object.keys(NAMES) as (keyof BudgetLimits)[]) {
    const wish = budget[key];
    if (wish === undefined || wish <= limits[key]) continue;
    const [field, setting] = NAMES[key];
    const path = `budget.${field}`;
    const message = `${path} has to be at most ${limits[key]}, the limit of this service (${setting}), but it is ${wish}.`;
    throw new AppError("invalid_request", message, { param: path, details: { errors: [{ path, message }] } });
  }
}

export function budgetOf(budget: JobBudget, limits: BudgetLimits): BudgetLimits {
  const out = { ...limits };
  for (const key of Object.keys(NAMES) as (keyof BudgetLimits)[])
    out[key] = Math.min(limits[key], budget[key] ?? limits[key]);
  return out;
}

export type Allowance =
  | { tokens: number; spent?: undefined }
  /** `day`: tomorrow there is more. `job`: there will be no more until somebody raises it. */
  | { spent: "day" | "job"; reason: string };

/** The tokens that a run may use, or why it may not begin. */
export function allowanceOf(
  job: Pick<Job, "budget" | "spent">,
  today: Spent,
  limits: BudgetLimits,
  price: ModelPrice | undefined,
): Allowance {
  const budget = budgetOf(job.budget, limits);
  const left = {
    job: { tokens: budget.jobTokens - job.spent.tokens, money: budget.jobMoney - job.spent.money },
    day: { tokens: budget.dayTokens - today.tokens, money: budget.dayMoney - today.money },
    run: { tokens: budget.runTokens, money: budget.runMoney },
  };
  if (left.job.tokens <= 0 || left.job.money <= 0)
    return { spent: "job", reason: sentence("job", left.job.tokens <= 0, budget) };
  if (left.day.tokens <= 0 || left.day.money <= 0)
    return { spent: "day", reason: sentence("day", left.day.tokens <= 0, budget) };
  const tokens = Math.min(left.job.tokens, left.day.tokens, left.run.tokens);
  const money = Math.min(left.job.money, left.day.money, left.run.money);
  // Each token counted at the dearer price: the run ends before its money does.
  const dearest = price ? Math.max(price.input, price.output) : 0;
  const affordable = dearest > 0 ? Math.floor((money * MILLION) / dearest) : tokens;
  return { tokens: Math.max(1, Math.min(tokens, affordable)) };
}

function sentence(scope: "job" | "day", ofTokens: boolean, budget: BudgetLimits): string {
  const [field, setting] = NAMES[`${scope}${ofTokens ? "Tokens" : "Money"}`];
  const amount = `${budget[`${scope}${ofTokens ? "Tokens" : "Money"}`]}${ofTokens ? " tokens" : ""}`;
  return scope === "job"
    ? `The job's budget of ${amount} is spent. Raise budget.${field} (or ${setting}) and set the job active again.`
    : `The budget of ${amount} for a day is spent. It begins anew at midnight UTC; budget.${field} and ${setting} say how much it is.`;
}

export function priceOf(prices: readonly ModelPrice[], model: string): ModelPrice | undefined {
  return prices.find(({ glob }) => matchGlob(glob, model));
}

export function spentBy(usage: Usage, price: ModelPrice | undefined): Spent {
  const { input, output } = usage;
  const money = price ? (input * price.input + output * price.output) / MILLION : 0;
  return { tokens: input + output, money };
}
