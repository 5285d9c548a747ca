/**
 * Text of PDF documents on Node and Bun. A document from anywhere can keep its reader busy for ever, so it is read in a
 * thread of its own, which ends with the answer, the time or the caller.
 */
import { Worker } from "node:worker_threads";
import type { PdfLimits, PdfText, ReadPdf } from "../core/platform.ts";
import { AppError } from "../errors.ts";

const TIMEOUT_MS = 30_000;
const MAX_HEAP_MB = 512;

/** What the thread is given, and what it answers. */
export interface PdfOrder {
  bytes: Uint8Array;
  limits: Pick<PdfLimits, "maxPages" | "maxChars">;
}
export type PdfReport = { text: PdfText } | { problem: "locked" | "unreadable" };

const PROBLEMS = {
  locked: "The PDF is locked with a password, so its text cannot be read.",
  unreadable: "The PDF is damaged: its text cannot be read.",
};

/** `timeoutMs`: after which a document is given up. */
export function createReadPdf(timeoutMs: number = TIMEOUT_MS): ReadPdf {
  return (bytes, { signal, ...limits }) =>
    new Promise((resolve, reject) => {
      const order: PdfOrder = { bytes, limits };
      const worker = new Worker(new URL("./local-pdf-worker.ts", import.meta.url), {
        workerData: order,
        env: {},
        // What the reader complains about is nobody's business.
        stdout: true,
        stderr: true,
        resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
      });
      const end = (settle: () => void) => {
        clearTimeout(timer);
        signal.removeEventListener("abort", onAbort);
        void worker.terminate();
        settle();
      };
      const fail = (sentence: string) => end(() => reject(new AppError("invalid_request", sentence)));
      const onAbort = () => end(() => reject(signal.reason));
      const timer = setTimeout(
        () => fail("The PDF took too long to read. Look for another form of it."),
        timeoutMs,
      );
      worker.stdout?.resume();
      worker.stderr?.resume();
      worker.once("message", (report: PdfReport) => {
        if ("text" in report) end(() => resolve(report.text));
        else fail(PROBLEMS[report.problem]);
      });
      // Out of memory among others.
      worker.on("error", () => fail(PROBLEMS.unreadable));
      worker.once("exit", () => fail(PROBLEMS.unreadable));
      if (signal.aborted) onAbort();
      else signal.addEventListener("abort", onAbort, { once: true });
    });
}
