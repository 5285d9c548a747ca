/**
 * A process of its own: begins and ends turns in a session as fast as it can, with a call in each, and prints what was
 * acknowledged: `begun`, `called` and `ended` with the number of the turn, the run and the session's last position.
 */

import { createId } from "../../src/core/id.ts";
import { createClient } from "../../src/platform/local-database.ts";
import { openFileDatabase } from "../../src/store/database.ts";
import { createStore } from "../../src/store/store.ts";
import { calling, newCall, newRun, reply, resultOf, user } from "./run-records.ts";

const [path, label, holder] = process.argv.slice(2) as [string, string, string];
const store = createStore({
  database: await openFileDatabase(path, createClient),
  log: () => {},
  now: () => new Date(),
  background: (work) => void work,
});
const say = (what: string, run: string, seq: number) => process.stdout.write(`${what} ${run} ${seq}\n`);
const { id } = await store.sessions.open("ann", label);
for (let turn = 1; ; turn++) {
  const run = newRun(id, { id: createId("run"), holder, leaseUntil: new Date(0) });
  const begun = await store.runs.begin("ann", run, [user(`turn ${turn} ${"x".repeat(500)}`)]);
  if ("inTheWay" in begun) throw new Error("Another run is in the way.");
  say("begun", run.id, begun.historySeq);
  const call = newCall(run, "c", { state: "started" });
  const frames = (first: number) => ({ first, last: first, text: "x".repeat(500) });
  if (
    !(await store.runs.commit("ann", run.id, holder, {
      messages: [calling("c")],
      calls: [call],
      frames: frames(1),
    }))
  )
    throw new Error("The lease was lost.");
  say("called", run.id, begun.historySeq + 1);
  const done = { ...call, state: "done" as const, result: resultOf("c") };
  const end = { status: "completed" as const, stop: "stop" as const };
  const messages = [resultOf("c"), reply("y".repeat(500))];
  await store.runs.commit("ann", run.id, holder, { messages, calls: [done], frames: frames(2), end });
  say("ended", run.id, begun.historySeq + 3);
}
