/** Log lines to stderr without ever waiting for it: a reader of our output that stalls must not stall the service. */
import { write, writeSync } from "node:fs";
import { format } from "node:util";
import type { Log, LogLevel } from "../core/platform.ts";

const STDERR = 2;
/** Characters that may wait; beyond it lines are dropped and counted. */
const WAITING_LIMIT = 4 * 1024 * 1024;
/** A pipe that is full for now, on a descriptor that does not block. */
const RETRY_MS = 20;
/** How long a line waits for others: each write wakes another thread, which costs more than the line. */
const GATHER_MS = 20;

export interface LineWriter {
  write(line: string): void;
  /** Writes what is waiting, at once. For the end of the process. */
  flush(): void;
}

/** One asynchronous write at a time, with all lines that came within {@link GATHER_MS} or while the last one went on. */
export function createLineWriter(descriptor = STDERR): LineWriter {
  let waiting = "";
  let busy: Buffer | null = null;
  let dropped = 0;
  let scheduled = false;

  function schedule(): void {
    if (scheduled) return;
    scheduled = true;
    setTimeout(() => {
      scheduled = false;
      if (busy === null) pump();
    }, GATHER_MS);
  }

  function take(): Buffer {
    const text = dropped === 0 ? waiting : `${waiting}${dropped} log lines were dropped: nobody read them.\n`;
    waiting = "";
    dropped = 0;
    return Buffer.from(text);
  }

  function pump(): void {
    if (busy === null) {
      if (waiting === "") return;
      busy = take();
    }
    write(descriptor, busy, (error, written) => {
      if (busy === null) return;
      if (error?.code === "EAGAIN") {
        setTimeout(pump, RETRY_MS).unref();
        return;
      }
      // With stderr closed there is nobody left to tell.
      busy = error || written >= busy.length ? null : busy.subarray(written);
      if (busy !== null) pump();
      else if (waiting !== "") schedule();
    });
  }

  return {
    write(line) {
      if (waiting.length > WAITING_LIMIT) {
        dropped += 1;
        return;
      }
      waiting += line;
      if (busy === null) schedule();
    },
    flush() {
      if (waiting === "") return;
      try {
        writeSync(descriptor, take());
      } catch {
        // As above.
      }
    },
  };
}

const PRINTED: Record<"error" | "warn" | "info" | "log" | "debug", LogLevel> = {
  error: "warning",
  warn: "warning",
  info: "info",
  log: "info",
  debug: "debug",
};

/** What packages print, errors of requests among it, goes to the log, which knows what must not be shown (K2). */
export function captureConsole(log: Log): void {
  for (const [name, level] of Object.entries(PRINTED))
    console[name as keyof typeof PRINTED] = (...words: unknown[]) =>
      log(level, "printed by a package", { text: format(...words) });
}
