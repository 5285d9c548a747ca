/** What is told of occurrences to the webhooks of their jobs: until it has been taken, or is given up. */
import type { Row } from "@libsql/client/web";
import type { Deliveries } from "../core/automation.ts";
import type { Delivery } from "../core/occurrences.ts";
import { words } from "./occurrence-rows.ts";
import type { Reader } from "./reader.ts";
import type { WriteQueue } from "./write-queue.ts";

const DUE = "SELECT 1 FROM deliveries WHERE next_at <= ? LIMIT 1";
const CLAIM = `UPDATE deliveries SET attempts = attempts + 1, next_at = ? WHERE rowid IN
  (SELECT rowid FROM deliveries WHERE next_at <= ? ORDER BY next_at LIMIT ?)
  RETURNING job_id, scheduled_at, owner, url, sealed_secret, body, attempts`;
/** An attempt that took longer than its claim has been overtaken by the next one, whose word counts. */
const SETTLE = `UPDATE deliveries SET status = ?, next_at = ?, last_status = ?, last_error = ?, ended_at = ?
  WHERE job_id = ? AND scheduled_at = ? AND attempts = ? AND status = 'pending'`;

export function createDeliveries(reader: Reader, writer: WriteQueue): Deliveries {
  return {
    async claim(now, until, limit) {
      const at = now.getTime();
      const due = await reader.rows({ sql: DUE, args: [at] });
      if (due.length === 0) return [];
      const [claimed] = await writer.batch([{ sql: CLAIM, args: [until.getTime(), at, limit] }]);
      return (claimed?.rows ?? []).map(toDelivery);
    },

    async settle({ jobId, scheduledAt }, attempt, { status, httpStatus, error, nextAt, at }) {
      const result = [status, nextAt?.getTime() ?? null, httpStatus, words(error)];
      const ended = status === "pending" ? null : at.getTime();
      const args = [...result, ended, jobId, scheduledAt.getTime(), attempt];
      await writer.batch([{ sql: SETTLE, args }]);
    },
  };
}

function toDelivery(row: Row): Delivery {
  return {
    jobId: row.job_id as string,
    scheduledAt: new Date(row.scheduled_at as number),
    owner: row.owner as string,
    url: row.url as string,
    sealedSecret: row.sealed_secret as string,
    body: row.body as string,
    attempt: row.attempts as number,
  };
}
