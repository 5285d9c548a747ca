/** A tick reads what is due and nothing else, however many jobs there are: the plans of its statements. */
import type { InStatement } from "@libsql/client/web";
import { expect, test } from "vitest";
import { createAutomationStore } from "../../src/store/automation.ts";
import { type Connection, closeDatabase } from "../../src/store/database.ts";
import { migrate } from "../../src/store/migrations.ts";
import { Reader } from "../../src/store/reader.ts";
import { WriteQueue } from "../../src/store/write-queue.ts";
import { later, MINUTE, NOW, newOccurrence, newSpec, outcome } from "../automation/records.ts";
import { createFileBackend, MIGRATIONS } from "./backends.ts";

/** The client, noting every statement that goes through it. */
function recording(client: Connection, sent: Set<string>): Connection {
  const note = (statement: InStatement) =>
    sent.add(typeof statement === "string" ? statement : statement.sql);
  return new Proxy(client, {
    get(target, key) {
      if (key === "execute")
        return (statement: InStatement) => {
          note(statement);
          return target.execute(statement);
        };
      if (key === "batch")
        return (statements: InStatement[], mode: "read" | "write") => {
          for (const statement of statements) note(statement);
          return target.batch(statements, mode);
        };
      const value = Reflect.get(target, key, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

test("every statement finds its rows by an index, and those of a tick by the index of what is due", async () => {
  const backend = await createFileBackend();
  const database = await backend.open();
  await migrate(database, MIGRATIONS);
  const sent = new Set<string>();
  const recorded = {
    ...database,
    read: recording(database.read, sent),
    write: recording(database.write, sent),
  };
  const { jobs, occurrences, deliveries, hints, nextDue } = createAutomationStore(
    new Reader(recorded),
    new WriteQueue(recorded),
    () => NOW,
  );
  const { job } = await jobs.create("ann", newSpec(), { fingerprint: "f", nextAt: NOW });
  await jobs.create("ann", newSpec(), { fingerprint: "f", nextAt: NOW });
  await jobs.get("ann", null, job.id);
  await jobs.list("ann", "cron", { limit: 5 });
  const until = later(MINUTE);
  await jobs.claim({ kind: "cron", claim: "a", now: NOW, until, limit: 5 });
  const look = { holder: "me", at: NOW };
  const left = newOccurrence({ scheduledAt: later(-MINUTE), fate: "skipped", runId: null });
  await jobs.settle(job.id, "a", { records: [newOccurrence(), left], nextAt: NOW, done: null }, look);
  await jobs.rest("a", [{ id: job.id, nextAt: NOW, lastCheckedAt: NOW, lastFiredAt: null, lastError: null }]);
  const key = { jobId: job.id, scheduledAt: NOW };
  await occurrences.look({ now: NOW, until: until, limit: 5, queued: true });
  await occurrences.open([job.id]);
  await occurrences.hold(key, "run_1", NOW);
  await occurrences.begun(key, "ses_1", NOW);
  await occurrences.requeue(key, "run_1", NOW, "busy");
  await occurrences.postpone(key, NOW);
  await occurrences.start(key, { holder: "me", until });
  await occurrences.add("ann", job.id, newOccurrence(), { now: NOW, alone: true });
  await occurrences.finish(key, outcome(), { url: "https://a", sealedSecret: "s", body: "{}" });
  await occurrences.list("ann", job.id, { limit: 5 });
  await occurrences.get("ann", key);
  await occurrences.spentOn("ann", NOW);
  await deliveries.claim(NOW, until, 5);
  await deliveries.settle(key, 1, {
    status: "delivered",
    httpStatus: 200,
    error: null,
    nextAt: null,
    at: NOW,
  });
  await hints.directories();
  await hints.hint([{ id: job.id, at: NOW }], NOW);
  await nextDue();
  await jobs.update("ann", "cron", job.id, { name: "x" });
  await jobs.delete("ann", "cron", job.id);

  const plans = new Map<string, string[]>();
  for (const sql of sent) {
    const numbered = [...sql.matchAll(/\?(\d+)/g)].map(([, n]) => Number(n));
    const count = numbered.length > 0 ? Math.max(...numbered) : sql.split("?").length - 1;
    const args = Array.from({ length: count }, () => null);
    const { rows } = await database.read.execute({ sql: `EXPLAIN QUERY PLAN ${sql}`, args });
    plans.set(
      sql,
      rows.map(({ detail }) => String(detail)),
    );
  }
  expect(plans.size).toBeGreaterThan(25);
  const scans = [...plans].flatMap(([sql, steps]) =>
    steps
      .filter((step) => /^SCAN /.test(step) && !/^SCAN (json_each|\(|CONSTANT)/.test(step))
      // The first entry of an index that holds what is going on right now.
      .filter((step) => !/USING (COVERING )?INDEX (occurrences_open|deliveries_due)/.test(step))
      .map((step) => `${step}: ${sql}`),
  );
  expect(scans).toEqual([]);
  const stepsOf = (part: string) => [...plans].flatMap(([sql, steps]) => (sql.includes(part) ? steps : []));
  expect(stepsOf("UPDATE jobs SET claimed_by = ?, claim_until = ? WHERE id IN")).toEqual([
    "SEARCH jobs USING COVERING INDEX sqlite_autoindex_jobs_1 (id=?)",
    "LIST SUBQUERY 1",
    "SEARCH jobs USING INDEX jobs_due (kind=? AND status=? AND next_at<?)",
  ]);
  expect(stepsOf("SELECT 1 FROM jobs WHERE kind")).toEqual([
    "SEARCH jobs USING COVERING INDEX jobs_due (kind=? AND status=? AND next_at<?)",
  ]);
  expect(stepsOf("SET look_at = ?3 WHERE rowid IN").join()).toMatch(/INDEX occurrences_open \(look_at<\?\)/);
  expect(stepsOf("UPDATE deliveries SET attempts").join()).toContain("INDEX deliveries_due (next_at<?)");
  expect(stepsOf("UPDATE jobs SET next_at = max(")).toContain(
    "SEARCH jobs USING INDEX sqlite_autoindex_jobs_1 (id=?)",
  );
  expect(stepsOf("AS directory FROM jobs").join()).toContain("jobs_due (kind=? AND status=? AND next_at>?)");
  expect(stepsOf("UNION ALL").join()).toContain("jobs_due (kind=? AND status=? AND next_at>?)");
  closeDatabase(database);
  await backend.close();
});
