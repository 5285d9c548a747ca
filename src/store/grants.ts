/** What a person has allowed for the rest of a session. */
import type { PolicyRule } from "../core/policy.ts";
import type { Sessions } from "../core/store.ts";
import { AppError } from "../errors.ts";
import type { Reader } from "./reader.ts";
import { noSession } from "./session-rows.ts";
import { PIECE_LENGTH, toStorable, toStorableJson } from "./text.ts";
import type { WriteQueue } from "./write-queue.ts";

const READ = "SELECT rule FROM session_grants WHERE session_id = ? AND owner = ? ORDER BY position";
/** A rule that is there already stays where it is. */
const INSERT = `INSERT INTO session_grants (owner, session_id, position, rule)
  SELECT owner, id, coalesce((SELECT max(position) FROM session_grants WHERE session_id = sessions.id), 0) + 1, ?
  FROM sessions WHERE id = ? AND owner = ?
  AND NOT EXISTS (SELECT 1 FROM session_grants WHERE session_id = sessions.id AND rule = ?)`;
const THERE = "SELECT 1 FROM sessions WHERE id = ? AND owner = ?";

export function createGrants(reader: Reader, writer: WriteQueue): Pick<Sessions, "grants" | "grant"> {
  return {
    async grants(owner, sessionId) {
      const rows = await reader.rows({ sql: READ, args: [toStorable(sessionId), owner] });
      return rows.map((row) => JSON.parse(row.rule as string) as PolicyRule);
    },

    /** Throws AppError `not_found`. */
    async grant(owner, sessionId, rules) {
      const id = toStorable(sessionId);
      const inserts = rules.map((value) => {
        const rule = toStorableJson(value);
        if (rule.length > PIECE_LENGTH)
          throw new AppError("payload_too_large", "The arguments are too long to be allowed for a session.");
        return { sql: INSERT, args: [rule, id, owner, rule] };
      });
      const results = await writer.batch([...inserts, { sql: THERE, args: [id, owner] }]);
      if (results.at(-1)?.rows.length === 0) throw noSession();
    },
  };
}
