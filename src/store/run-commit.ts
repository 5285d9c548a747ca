/**
 * What a run has done, as one batch. Every statement asks for the lease, and the last one, which may give it up, says
 * whether it was held. Pure.
 */
import type { InStatement, InValue } from "@libsql/client/web";
import type { Frames, RunChange } from "../core/run.ts";
import { appendStatements, createAppender } from "./message-rows.ts";
import { fromCall, IN_ROW, partOfFrames, pieceInsert, pieceStatements, toChunks } from "./run-rows.ts";
import { toPieces, toStorable, toStorableJson } from "./text.ts";

const HELD = "id = ? AND owner = ? AND lease_holder = ? AND status = 'running'";
const SESSION = `s.id = (SELECT session_id FROM runs WHERE ${HELD})`;
const KEEP_TURN = createAppender(SESSION);
const FREE_TURN = createAppender(SESSION, "NULL");
const PIECE = pieceInsert(HELD);
const FRAMES = `INSERT INTO run_frames (owner, run_id, first, last, content, pieces)
  SELECT owner, id, ?, ?, ?, ? FROM runs WHERE ${HELD}`;
/** A member's calls stand in the session of the run that it hangs from, where a person decides on them. */
const ASKS_IN =
  "coalesce((SELECT t.session_id FROM runs AS t WHERE t.id = runs.root), session_id) AS session_id";
/** What a call is stays as it was first stored; and a decision that the holder has not seen yet stands. */
const CALLS = `INSERT INTO run_calls (owner, run_id, session_id, call_id, step, position, name, args, args_pieces, risk,
    state, code_hash, expires_at, decided_at, result, result_pieces)
  SELECT r.owner, r.id, r.session_id, ${Array.from({ length: 13 }, (_, index) => `j.value ->> ${index}`).join(", ")}
  FROM (SELECT owner, id, ${ASKS_IN} FROM runs WHERE ${HELD}) AS r CROSS JOIN json_each(?) AS j WHERE true
  ON CONFLICT (run_id, call_id) DO UPDATE SET state = excluded.state, code_hash = excluded.code_hash,
    expires_at = excluded.expires_at, decided_at = excluded.decided_at, result = excluded.result,
    result_pieces = excluded.result_pieces
  WHERE excluded.state <> 'pending' OR run_calls.state = 'pending'`;
const PROGRESS =
  "updated_at = ?, steps = coalesce(?, steps), usage = coalesce(?, usage), last_event = coalesce(?, last_event)";
const GO_ON = `UPDATE runs SET ${PROGRESS} WHERE ${HELD}`;
const LEAVE = "status = ?, stop = ?, fault = ?, lease_holder = NULL, lease_until = NULL";
const PAUSE = `UPDATE runs SET ${PROGRESS}, ${LEAVE} WHERE ${HELD}`;
/** What it would need to go on is of no use any more, and the room of it serves the frames. */
const SHORT_SPEC =
  "CASE spec_pieces WHEN 1 THEN json_remove(spec, '$.request.system', '$.request.tools') ELSE spec END";
const END = `UPDATE runs SET ${PROGRESS}, ${LEAVE}, sealed_key = NULL, ended_at = ?, frames_first = ?, frames = ?,
  spec = ${SHORT_SPEC} WHERE ${HELD}`;

/** The last statement changes one row when the lease was held, and none when nothing was written. */
export function commitStatements(
  owner: string,
  runId: string,
  holder: string,
  change: RunChange,
  at: number,
): InStatement[] {
  const { messages = [], messageIds: ids, calls, frames, end } = change;
  const held = [runId, owner, holder];
  const statements: InStatement[] = [];
  const free = end !== undefined && end.status !== "paused";
  // A row that is not written again can take them along.
  const last = free && frames && frames.text.length <= IN_ROW ? frames : null;
  if (frames && !last) {
    const [first, ...rest] = toPieces(toStorable(frames.text));
    statements.push({ sql: FRAMES, args: [frames.first, frames.last, first, rest.length + 1, ...held] });
    statements.push(...pieceStatements(PIECE, partOfFrames(frames.last), rest, held));
  }
  if (calls && calls.length > 0) {
    const rows = calls.map(fromCall);
    for (const json of toChunks(rows.map((row) => row.line)))
      statements.push({ sql: CALLS, args: [...held, json] });
    for (const { part, pieces } of rows.flatMap((row) => row.rest))
      statements.push(...pieceStatements(PIECE, part, pieces, held));
  }
  if (free || messages.length > 0)
    statements.push(
      ...appendStatements(free ? FREE_TURN : KEEP_TURN, messages, at, { condition: held, ids }),
    );
  statements.push(ownRow(change, last, at, held));
  return statements;
}

function ownRow(
  { steps, usage, frames, end }: RunChange,
  inRow: Frames | null,
  at: number,
  held: InValue[],
): InStatement {
  const progress = [at, steps ?? null, usage ? toStorableJson(usage) : null, frames?.last ?? null];
  if (!end) return { sql: GO_ON, args: [...progress, ...held] };
  const left = [end.status, end.stop, end.fault ? toStorableJson(end.fault) : null];
  if (end.status === "paused") return { sql: PAUSE, args: [...progress, ...left, ...held] };
  const shown = inRow ? [inRow.first, toStorable(inRow.text)] : [null, null];
  return { sql: END, args: [...progress, ...left, at, ...shown, ...held] };
}
