/**
 * Loaded into a service process before it starts (`--import`). When the file that `CRASH_FILE` names exists, it says at
 * which write to the database the process kills itself, before it or after it; or with which code the write fails.
 */
import { existsSync, readFileSync } from "node:fs";
import { toStoreFault } from "../../src/store/faults.ts";
import { WriteQueue } from "../../src/store/write-queue.ts";

export interface CrashPoint {
  when: "before" | "after" | "fail";
  /** All of them have to be in the statements or their arguments. */
  texts: string[];
  /** libSQL's code, for `fail`. */
  code?: string;
}

const file = process.env.CRASH_FILE ?? "";

function armed(statements: unknown): CrashPoint | null {
  if (!existsSync(file)) return null;
  const point = JSON.parse(readFileSync(file, "utf8")) as CrashPoint;
  const text = JSON.stringify(statements);
  return point.texts.every((each) => text.includes(each)) ? point : null;
}

const { batch } = WriteQueue.prototype;
WriteQueue.prototype.batch = async function (this: WriteQueue, statements) {
  const point = armed(statements);
  if (point?.when === "before") process.kill(process.pid, "SIGKILL");
  if (point?.when === "fail") {
    const { code } = point;
    throw toStoreFault(Object.assign(new Error(String(code)), { code }));
  }
  const results = await batch.call(this, statements);
  if (point?.when === "after") process.kill(process.pid, "SIGKILL");
  return results;
};
