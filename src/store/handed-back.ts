/** Turns that wait for a client to come back with the results of its tools. */
import type { InStatement, Row } from "@libsql/client/web";
import type { Message } from "../core/message.ts";
import type { HandedBackTurn, HandedBackTurns } from "../core/store.ts";
import { joinPieces } from "./pieces.ts";
import type { Reader } from "./reader.ts";
import { toPieces, toStorable, toStorableJson } from "./text.ts";
import type { WriteQueue } from "./write-queue.ts";

/** How long a client may take. Milliseconds. */
const LIFETIME_MS = 30 * 24 * 60 * 60 * 1000;
/** Expired turns that one new turn clears away. */
const CLEARED_AT_ONCE = 20;

const CLEAR = `DELETE FROM handed_back_turns WHERE id IN
  (SELECT id FROM handed_back_turns WHERE expires_at <= ? LIMIT ${CLEARED_AT_ONCE})`;
const INSERT_TURN = `INSERT INTO handed_back_turns (id, owner, context, call_ids, content, pieces, expires_at)
  VALUES (?, ?, ?, ?, ?, ?, ?)`;
const INSERT_PIECE = `INSERT INTO handed_back_pieces (owner, turn_id, piece, content) VALUES (?, ?, ?, ?)`;
/** `WHERE true` keeps ON CONFLICT from being read as the condition of a join. */
const UPSERT_CALLS = `INSERT INTO handed_back_calls (owner, call_id, context, turn_id)
  SELECT ?, value, ?, ? FROM json_each(?) WHERE true
  ON CONFLICT (owner, call_id, context) DO UPDATE SET turn_id = excluded.turn_id`;
/** A turn of the very same calls that is kept a second time: the new one takes its place. */
const FORGET_REPLACED = `DELETE FROM handed_back_turns WHERE id IN
  (SELECT turn_id FROM handed_back_calls WHERE owner = ? AND context = ? AND call_id IN (SELECT value FROM json_each(?)))
  AND call_ids = ?`;
const FIND = `SELECT id, context, call_ids, content, pieces FROM handed_back_turns WHERE owner = ? AND expires_at > ?
  AND id IN (SELECT turn_id FROM handed_back_calls WHERE owner = ? AND call_id IN (SELECT value FROM json_each(?)))
  ORDER BY expires_at DESC, id`;

export function createHandedBackTurns(reader: Reader, writer: WriteQueue, now: () => Date): HandedBackTurns {
  return {
    async keep(owner, turn) {
      const at = now().getTime();
      const id = crypto.randomUUID();
      const context = toStorable(turn.context);
      const callIds = toStorableJson([...new Set(turn.callIds)]);
      const [first, ...rest] = toPieces(toStorableJson(turn.messages));
      const statements: InStatement[] = [
        { sql: CLEAR, args: [at] },
        { sql: FORGET_REPLACED, args: [owner, context, callIds, callIds] },
        {
          sql: INSERT_TURN,
          args: [id, owner, context, callIds, first, rest.length + 1, at + LIFETIME_MS],
        },
        { sql: UPSERT_CALLS, args: [owner, context, id, callIds] },
      ];
      rest.forEach((piece, index) => {
        statements.push({ sql: INSERT_PIECE, args: [owner, id, index + 1, piece] });
      });
      await writer.batch(statements);
    },

    async find(owner, callIds) {
      if (callIds.length === 0) return [];
      const args = [owner, now().getTime(), owner, toStorableJson(callIds)];
      const rows = await reader.rows({ sql: FIND, args });
      const turns: HandedBackTurn[] = [];
      for (const row of rows) turns.push(await toTurn(reader, row));
      return turns;
    },
  };
}

async function toTurn(reader: Reader, row: Row): Promise<HandedBackTurn> {
  const pieces = row.pieces as number;
  let json = row.content as string;
  if (pieces > 1) json = await joinPieces(reader, "handedBack", [row.id as string], json, pieces);
  return {
    callIds: JSON.parse(row.call_ids as string) as string[],
    context: row.context as string,
    messages: JSON.parse(json) as Message[],
  };
}
