/** What `Runs` promises, as plain data and one function: every operation takes effect at once, or not at all. */

export interface ModelCall {
  state: string;
  expiresAt: number;
  result: boolean;
}

export interface ModelRun {
  session: number;
  status: string;
  holder: string | null;
  leaseUntil: number;
  recoveries: number;
  stopAsked: boolean;
  key: boolean;
  calls: Record<string, ModelCall>;
}

export interface ModelRuns {
  now: number;
  sessions: { turn: number | null; messages: number; lastCall: string | null }[];
  runs: Record<number, ModelRun>;
}

export const LEASE = 3;
export const DECISION_TIME = 2;

/** `run` numbers a run, begun or not; `n` makes new ids. */
export type Operation =
  | { op: "begin"; run: number; session: number; holder: string }
  | { op: "commit"; run: number; holder: string; what: "message" | "call" | "pause" | "end"; n: number }
  | { op: "resume" | "takeOver"; run: number; holder: string }
  | { op: "decide"; run: number; decision: "allowed" | "denied" }
  | { op: "askToStop" | "cancel"; run: number }
  | { op: "renew"; holder: string }
  | { op: "expire" };

export const newModel = (sessions: number): ModelRuns => ({
  now: 0,
  sessions: Array.from({ length: sessions }, () => ({ turn: null, messages: 0, lastCall: null })),
  runs: {},
});

/** Changes the model and returns what the store has to answer. */
export function apply(model: ModelRuns, operation: Operation): unknown {
  const { now, runs } = model;
  const run = "run" in operation ? runs[operation.run] : undefined;
  const leaseUntil = now + LEASE;
  switch (operation.op) {
    case "begin": {
      const session = model.sessions[operation.session]!;
      if (session.turn !== null) return { inTheWay: session.turn };
      const state = { status: "running", holder: operation.holder, leaseUntil, recoveries: 0 };
      runs[operation.run] = { session: operation.session, ...state, stopAsked: false, key: true, calls: {} };
      session.turn = operation.run;
      session.messages += 1;
      session.lastCall = null;
      return { historySeq: session.messages };
    }
    case "commit":
      return commit(model, run, operation);
    case "resume":
      if (run?.status !== "paused") return false;
      Object.assign(run, { status: "running", holder: operation.holder, leaseUntil });
      return true;
    case "takeOver":
      if (run?.status !== "running" || run.leaseUntil > now) return false;
      Object.assign(run, { holder: operation.holder, leaseUntil, recoveries: run.recoveries + 1 });
      return true;
    case "decide": {
      if (run?.status !== "running" && run?.status !== "paused") return [];
      const open = Object.entries(run.calls).filter(
        ([, call]) => call.state === "pending" && call.expiresAt > now,
      );
      for (const [, call] of open) call.state = operation.decision;
      return open.map(([id]) => id).toSorted();
    }
    case "askToStop":
      if (run?.status !== "running") return false;
      run.stopAsked = true;
      return true;
    case "cancel":
      return cancel(model, run);
    case "renew": {
      const held = Object.entries(runs).filter(([, { holder }]) => holder === operation.holder);
      for (const [, one] of held) one.leaseUntil = leaseUntil;
      return held
        .filter(([, one]) => one.stopAsked)
        .map(([number]) => Number(number))
        .toSorted();
    }
    case "expire": {
      const late = new Set<number>();
      for (const [number, { calls }] of Object.entries(runs))
        for (const call of Object.values(calls)) {
          if (call.state !== "pending" || call.expiresAt > now) continue;
          call.state = "expired";
          late.add(Number(number));
        }
      return [...late].toSorted();
    }
  }
}

function commit(
  model: ModelRuns,
  run: ModelRun | undefined,
  { holder, what, n }: Extract<Operation, { op: "commit" }>,
): boolean {
  if (run?.status !== "running" || run.holder !== holder) return false;
  const session = model.sessions[run.session]!;
  if (what === "message" || what === "call") {
    session.messages += 1;
    session.lastCall = what === "call" ? `c${n}` : null;
  }
  if (what === "call")
    run.calls[`c${n}`] = { state: "pending", expiresAt: model.now + DECISION_TIME, result: false };
  if (what === "pause" || what === "end") run.holder = null;
  if (what === "pause") run.status = "paused";
  if (what === "end") {
    Object.assign(run, { status: "completed", key: false });
    session.turn = null;
  }
  return true;
}

function cancel(model: ModelRuns, run: ModelRun | undefined): boolean {
  if (run?.status !== "paused") return false;
  const session = model.sessions[run.session]!;
  if (session.lastCall !== null) session.messages += 1;
  session.lastCall = null;
  session.turn = null;
  for (const call of Object.values(run.calls)) {
    if (call.state === "pending" || call.state === "allowed") call.state = "cancelled";
    call.result = true;
  }
  Object.assign(run, { status: "stopped", key: false });
  return true;
}
