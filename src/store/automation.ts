/** Jobs, their occurrences and deliveries, and the one question that the runner sleeps on. */
import type { Automation } from "../core/automation.ts";
import { JOB_KINDS } from "../core/jobs.ts";
import { createDeliveries } from "./deliveries.ts";
import { createJobs } from "./jobs.ts";
import { createOccurrences } from "./occurrences.ts";
import type { Reader } from "./reader.ts";
import { createWatchHints } from "./watch-hints.ts";
import type { WriteQueue } from "./write-queue.ts";

/** The first entry of an index each. */
const NEXT = [
  ...JOB_KINDS.map(
    (kind) =>
      `SELECT next_at AS at FROM jobs WHERE kind = '${kind}' AND status = 'active' AND next_at IS NOT NULL
        ORDER BY next_at LIMIT 1`,
  ),
  "SELECT look_at AS at FROM occurrences WHERE look_at IS NOT NULL ORDER BY look_at LIMIT 1",
  "SELECT next_at AS at FROM deliveries WHERE next_at IS NOT NULL ORDER BY next_at LIMIT 1",
];
const NEXT_DUE = NEXT.map((sql) => `SELECT at FROM (${sql})`).join(" UNION ALL ");

export function createAutomationStore(reader: Reader, writer: WriteQueue, now: () => Date): Automation {
  return {
    jobs: createJobs(reader, writer, now),
    occurrences: createOccurrences(reader, writer),
    deliveries: createDeliveries(reader, writer),
    hints: createWatchHints(reader, writer),
    async nextDue() {
      const rows = await reader.rows(NEXT_DUE);
      const times = rows.map((row) => row.at as number);
      return times.length === 0 ? null : new Date(Math.min(...times));
    },
  };
}
