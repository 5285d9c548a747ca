/** Which directories are watched for whom, and what becomes of a hint that one has changed. */
import type { WatchHints } from "../core/automation.ts";
import type { Reader } from "./reader.ts";
import type { WriteQueue } from "./write-queue.ts";

/** Watchdogs of all kinds that one answer is made of: those that would look last, who gain most from a hint. */
const LOOKED_THROUGH = 5_000;

/** Columns in front of `check_state`, which may be large, and those of the index `jobs_due`: nothing else is read. */
const DIRECTORIES = `SELECT id, owner, directory FROM
  (SELECT id, owner, target ->> '$.directory' AS directory FROM jobs INDEXED BY jobs_due
    WHERE kind = 'watchdog' AND status = 'active' AND next_at IS NOT NULL ORDER BY next_at DESC LIMIT ${LOOKED_THROUGH})
  WHERE directory IS NOT NULL`;

const HINTED = "WITH hinted AS (SELECT value ->> 'id' AS id, value ->> 'at' AS at FROM json_each(?))";
/** Sooner than that it may not fire. */
const SOONEST = "max(?, coalesce(last_fired_at + cooldown_ms, 0))";
/**
 * A look within its pause for debouncing is soon enough, and must not come sooner. What a run of the watchdog may have
 * changed itself waits for the interval, so that one which writes into what it watches does not go round at full speed.
 * The plus signs keep it from going through all that are active instead of those that are named.
 */
const HINT = `${HINTED} UPDATE jobs SET next_at = ${SOONEST}
  WHERE id IN (SELECT id FROM hinted) AND +kind = 'watchdog' AND +status = 'active'
    AND (claim_until IS NULL OR claim_until <= ?) AND next_at > ${SOONEST} + debounce_ms
    AND NOT EXISTS (SELECT 1 FROM occurrences WHERE job_id = jobs.id AND scheduled_at = jobs.last_fired_at
      AND coalesce(ended_at, ?) >= (SELECT at FROM hinted WHERE hinted.id = jobs.id))
  RETURNING id`;
const CLAIMED = `${HINTED} SELECT id FROM jobs WHERE id IN (SELECT id FROM hinted) AND claim_until > ?`;
const END_OF_TIME = Number.MAX_SAFE_INTEGER;

export function createWatchHints(reader: Reader, writer: WriteQueue): WatchHints {
  return {
    async directories() {
      const rows = await reader.rows(DIRECTORIES);
      return rows.map(({ id, owner, directory }) => ({
        ...{ id: id as string, owner: owner as string, directory: directory as string },
      }));
    },

    async hint(changes, now) {
      const time = now.getTime();
      const hinted = JSON.stringify(changes.map(({ id, at }) => ({ id, at: at.getTime() })));
      const [moved, claimed] = await writer.batch([
        { sql: HINT, args: [hinted, time, time, time, END_OF_TIME] },
        { sql: CLAIMED, args: [hinted, time] },
      ]);
      return { sooner: moved?.rows.length ?? 0, busy: (claimed?.rows ?? []).map((row) => row.id as string) };
    },
  };
}
