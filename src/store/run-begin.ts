/** The beginning of a run as one batch: its row, its first messages, and the session's turn. Pure. */
import type { InStatement } from "@libsql/client/web";
import type { Message } from "../core/message.ts";
import type { NewRun } from "../core/run.ts";
import { appendStatements, createAppender, firstStatements, titleOf } from "./message-rows.ts";
import { IN_ROW, pieceInsert, pieceStatements, SPEC } from "./run-rows.ts";
import { toPieces, toStorable, toStorableJson } from "./text.ts";

const COLUMNS = `id, owner, session_id, status, spec, spec_pieces, sealed_key, lease_holder, lease_until, stop_asked,
    history_seq, steps, last_event, recoveries, usage, created_at, updated_at, root`;
const NO_USAGE = '{"input":0,"output":0}';
/** The session has no turn, or one that has ended. */
const INSERT = `INSERT INTO runs (${COLUMNS})
  SELECT ?, s.owner, s.id, 'running', ?, ?, ?, ?, ?, 0, s.last_seq + ?, 0, 0, 0, '${NO_USAGE}', ?, ?, ?
  FROM sessions AS s WHERE s.id = ? AND s.owner = ? AND (s.turn IS NULL OR NOT EXISTS
    (SELECT 1 FROM runs WHERE id = s.turn AND status IN ('running', 'paused')))
  RETURNING history_seq`;
const PIECE = pieceInsert("id = ?");
const FIRST_MESSAGES = createAppender(
  "s.id = ? AND s.owner = ? AND EXISTS (SELECT 1 FROM runs WHERE id = ?)",
  "?",
);

const NEW_SESSION = `INSERT INTO sessions (id, owner, title, last_seq, message_count, created_at, updated_at, unlisted, turn)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const INSERT_IN_NEW = `INSERT INTO runs (${COLUMNS})
  VALUES (?, ?, ?, 'running', ?, ?, ?, ?, ?, 0, ?, 0, 0, 0, '${NO_USAGE}', ?, ?, ?)`;

/** The first statement returns `history_seq`, and no row when there was a run in the way or no session. */
export function beginStatements(owner: string, run: NewRun, messages: Message[], at: number): InStatement[] {
  const sessionId = toStorable(run.sessionId);
  const [spec, ...rest] = specOf(run);
  const lease = [run.sealedKey, run.holder, run.leaseUntil.getTime()];
  const root = run.root ?? null;
  const row = [run.id, spec, rest.length + 1, ...lease, messages.length, at, at, root, sessionId, owner];
  return [
    { sql: INSERT, args: row },
    ...pieceStatements(PIECE, SPEC, rest, [run.id]),
    ...appendStatements(FIRST_MESSAGES, messages, at, {
      turn: [run.id],
      condition: [sessionId, owner, run.id],
    }),
  ];
}

/** The same with the session itself: nothing can be in the way. */
export function beginInNewSession(
  owner: string,
  run: NewRun,
  messages: Message[],
  at: number,
): InStatement[] {
  const { length } = messages;
  const unlisted = run.newSession?.unlisted ? 1 : 0;
  const session = [run.sessionId, owner, titleOf(messages), length, length, at, at, unlisted, run.id];
  const [spec, ...rest] = specOf(run);
  const lease = [run.sealedKey, run.holder, run.leaseUntil.getTime()];
  const root = run.root ?? null;
  const row = [run.id, owner, run.sessionId, spec, rest.length + 1, ...lease, length, at, at, root];
  return [
    { sql: NEW_SESSION, args: session },
    { sql: INSERT_IN_NEW, args: row },
    ...pieceStatements(PIECE, SPEC, rest, [run.id]),
    ...firstStatements(owner, run.sessionId, messages, at),
  ];
}

function specOf(run: NewRun): [string, ...string[]] {
  return toPieces(toStorableJson(run.spec), IN_ROW);
}
