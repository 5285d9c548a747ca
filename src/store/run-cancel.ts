/** The end of a run that waits for a decision nobody will take: its calls get results, the history stays whole. */
import type { InStatement } from "@libsql/client/web";
import { callsOf, type Message, type ToolResultMessage } from "../core/message.ts";
import type { CallRecord, Runs } from "../core/run.ts";
import type { Sessions } from "../core/store.ts";
import { AppError, type Fault } from "../errors.ts";
import { appendStatements, createAppender } from "./message-rows.ts";
import type { Reader } from "./reader.ts";
import { fromResultOf, pieceInsert, pieceStatements, toChunks } from "./run-rows.ts";
import { toStorableJson } from "./text.ts";
import type { WriteQueue } from "./write-queue.ts";

/** Messages looked through at once for the last one that calls. */
const PAGE = 50;
const ATTEMPTS = 10;

const PAUSED = `SELECT r.session_id, s.last_seq FROM runs AS r JOIN sessions AS s ON s.id = r.session_id AND s.owner = r.owner
  WHERE r.id = ? AND r.owner = ? AND r.status = 'paused'`;
const RESULTS = createAppender(
  `s.id = ? AND s.owner = ? AND s.last_seq = ? AND s.turn = ?
    AND EXISTS (SELECT 1 FROM runs WHERE id = s.turn AND status = 'paused')`,
  "NULL",
);
/** Holds from the moment that the results were appended until the run's own row says that it has ended. */
const LEFT = `id = ? AND owner = ? AND status = 'paused'
  AND EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = session_id AND s.turn IS NULL)`;
const PIECE = pieceInsert(LEFT);
const CALLS = `UPDATE run_calls SET result = j.value ->> 1, result_pieces = j.value ->> 2,
    state = CASE WHEN state IN ('pending', 'allowed') THEN 'cancelled' ELSE state END
  FROM json_each(?) AS j WHERE run_id = (SELECT id FROM runs WHERE ${LEFT})
    AND call_id = j.value ->> 0 AND result IS NULL`;
const END = `UPDATE runs SET status = 'stopped', stop = 'stop', fault = ?, sealed_key = NULL, updated_at = ?, ended_at = ?
  WHERE ${LEFT}`;

export interface CancelSource {
  reader: Reader;
  writer: WriteQueue;
  sessions: Pick<Sessions, "page">;
  calls: Runs["calls"];
  now(): Date;
}

/** See Runs.cancelPaused. */
export async function cancelPaused(
  source: CancelSource,
  owner: string,
  runId: string,
  result: (call: CallRecord) => ToolResultMessage,
  fault: Fault,
): Promise<boolean> {
  const { reader, writer } = source;
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const [row] = await reader.rows({ sql: PAUSED, args: [runId, owner] });
    if (!row) return false;
    const sessionId = row.session_id as string;
    const calls = await source.calls(owner, runId);
    const given = new Map<string, ToolResultMessage>();
    for (const call of calls) if (call.result === null) given.set(call.callId, result(call));
    const missing = await missingResults(source.sessions, owner, sessionId, calls, given);
    const at = source.now().getTime();
    const results = await writer.batch([
      ...appendStatements(RESULTS, missing, at, {
        condition: [sessionId, owner, row.last_seq as number, runId],
      }),
      ...callStatements(given, [runId, owner]),
      { sql: END, args: [toStorableJson(fault), at, at, runId, owner] },
    ]);
    if (results.at(-1)?.rowsAffected === 1) return true;
  }
  throw new AppError("conflict", "Too many requests write to this session at once. Send this one again.");
}

function callStatements(given: Map<string, ToolResultMessage>, left: string[]): InStatement[] {
  const rows = Array.from(given, ([callId, message]) => fromResultOf(callId, message));
  const chunks = toChunks(rows.map((row) => row.line));
  return [
    ...chunks.map((json) => ({ sql: CALLS, args: [json, ...left] })),
    ...rows
      .flatMap((row) => row.rest)
      .flatMap(({ part, pieces }) => pieceStatements(PIECE, part, pieces, left)),
  ];
}

/** Of the calls in the session's last assistant message, those that no message behind it answers, in their order. */
async function missingResults(
  sessions: Pick<Sessions, "page">,
  owner: string,
  sessionId: string,
  calls: CallRecord[],
  given: Map<string, ToolResultMessage>,
): Promise<Message[]> {
  const answered = new Set<string>();
  const results = new Map(calls.map((call) => [call.callId, call.result ?? given.get(call.callId)]));
  for (let before: number | undefined; ; ) {
    const page = await sessions.page(owner, sessionId, { before, limit: PAGE });
    for (const { message } of page) {
      if (message.role === "tool") answered.add(message.callId);
      else if (message.role !== "assistant") return [];
      else return callsOf(message).flatMap(({ id }) => (answered.has(id) ? [] : (results.get(id) ?? [])));
    }
    if (page.length < PAGE) return [];
    before = page.at(-1)?.seq;
  }
}
