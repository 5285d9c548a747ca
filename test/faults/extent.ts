/** How much of the fault suites runs: a part of it with every test run, the whole with `npm run test:crash`. */

export const whole = process.env.FAULTS === "whole";

export function times(short: number, full: number): number {
  return whole ? full : short;
}

/** Milliseconds that a test may take. */
export const LIMIT_MS = whole ? 3_600_000 : 120_000;
