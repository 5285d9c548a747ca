/** Summaries that stand in place of what no longer fits a model's window. The messages themselves stay. */
import type { Sessions } from "../core/store.ts";
import { AppError } from "../errors.ts";
import type { Reader } from "./reader.ts";
import { readSession } from "./session-rows.ts";
import { PIECE_LENGTH, toStorable } from "./text.ts";
import type { WriteQueue } from "./write-queue.ts";

const READ = `SELECT up_to, content FROM session_summaries WHERE session_id = ? AND owner = ?
  ORDER BY up_to DESC LIMIT 1`;
const UPSERT = `INSERT INTO session_summaries (owner, session_id, up_to, content)
  SELECT owner, id, ?1, ?2 FROM sessions WHERE id = ?3 AND owner = ?4
    AND (?5 IS NULL OR ?5 = (SELECT count(*) FROM messages WHERE session_id = ?3 AND seq > ?6 AND seq <= ?1))
    AND (?7 = 0 OR EXISTS (SELECT 1 FROM session_summaries WHERE session_id = ?3 AND up_to = ?6))
  ON CONFLICT (session_id, up_to) DO UPDATE SET content = excluded.content`;

export function createSummaries(reader: Reader, writer: WriteQueue): Pick<Sessions, "summary" | "summarise"> {
  return {
    async summary(owner, sessionId) {
      const [row] = await reader.rows({ sql: READ, args: [toStorable(sessionId), owner] });
      return row ? { upTo: row.up_to as number, text: row.content as string } : null;
    },

    async summarise(owner, sessionId, { upTo, text }, from) {
      const content = toStorable(text);
      if (content.length > PIECE_LENGTH)
        throw new AppError("payload_too_large", "The summary is longer than what it may stand for.");
      const id = toStorable(sessionId);
      const source = [from?.messages ?? null, from?.after ?? 0, from?.summary ? 1 : 0];
      const [result] = await writer.batch([{ sql: UPSERT, args: [upTo, content, id, owner, ...source] }]);
      if (result?.rowsAffected !== 0) return true;
      await readSession(reader, owner, id);
      return false;
    },
  };
}
