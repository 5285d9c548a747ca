/** Settings of runs: how long, how many and for how much, those of jobs among them. */
import { amount, duration, list, number, pair, setting } from "./kinds.ts";

export const RUNS = {
  MAX_STEPS: number(50, 1, 10_000, "Model calls in one run."),
  RUN_TIMEOUT: duration(1800, "Longest time of one run."),
  RUN_TOKEN_BUDGET: number(2_000_000, 1, 1_000_000_000, "Input and output tokens of one run together."),
  SWARM_CONCURRENCY: number(5, 1, 50, "Members of a swarm that work at the same time."),
  SWARM_DEPTH: number(2, 0, 5, "Delegations below one another; 0: no agent may delegate."),
  AUTOMATION_CONCURRENCY: number(4, 1, 1_000, "Runs of scheduled jobs at once, in one process."),
  AUTOMATION_RUN_TOKENS: number(
    200_000,
    1,
    1_000_000_000,
    "Tokens that one run of a job may use. A job may ask for less.",
  ),
  AUTOMATION_DAY_TOKENS: number(
    2_000_000,
    1,
    1_000_000_000_000,
    "Tokens that all jobs of one owner may use on a day, in UTC.",
  ),
  AUTOMATION_JOB_TOKENS: number(
    50_000_000,
    1,
    1_000_000_000_000,
    "Tokens that a job may use in its life; then it is paused.",
  ),
  AUTOMATION_RUN_MONEY: amount(2, "The same of one run in money, for models with a price."),
  AUTOMATION_DAY_MONEY: amount(20, "The same of all jobs of one owner on a day."),
  AUTOMATION_JOB_MONEY: amount(500, "The same of a job in its life."),
  MODEL_PRICES: setting<{ glob: string; input: number; output: number }[]>({
    default: "none",
    description:
      "What a million input and output tokens cost, first match wins: `gpt-5*=1.25/10,claude-*=3/15`. Any currency.",
    allowed: "glob=input/output entries with commas between them",
    parse: list((item) => {
      const entry = pair(item);
      const price = entry && /^(\d{1,6}(?:\.\d{1,6})?)\/(\d{1,6}(?:\.\d{1,6})?)$/.exec(entry[1]);
      return price ? { glob: entry[0], input: Number(price[1]), output: Number(price[2]) } : null;
    }),
    fallback: [],
  }),
  RUN_LEASE: duration(
    15,
    "How long a run stays with a process that has gone silent before another goes on with it.",
    2,
  ),
  SESSION_WAIT: duration(
    30,
    "How long a turn waits for the one before it in its session, before it is refused with 409.",
    0,
  ),
  MAX_RUNS: number(0, 0, 1_000_000, "Runs that one owner may have under way in a process; 0 is any number."),
  RATE_LIMIT: number(
    0,
    0,
    1_000_000,
    "Requests that one owner may send a minute to a process; 0 is any number.",
  ),
};
