/** Conversations that the server keeps: opening, naming and deleting them. Their messages are in session-messages.ts. */
import type { InStatement } from "@libsql/client/web";
import { createId } from "../core/id.ts";
import type { Sessions } from "../core/store.ts";
import { AppError } from "../errors.ts";
import { createGrants } from "./grants.ts";
import type { Reader } from "./reader.ts";
import { indexTitle, type SearchIndex } from "./search-index.ts";
import { createSessionDirectories } from "./session-directories.ts";
import { createForks } from "./session-fork.ts";
import { createSessionList } from "./session-list.ts";
import { createSessionMessages } from "./session-messages.ts";
import { noSession, type OpenSession, readSession, SESSION_COLUMNS, toSession } from "./session-rows.ts";
import { createSummaries } from "./summaries.ts";
import { toStorable } from "./text.ts";
import type { WriteQueue } from "./write-queue.ts";

const LABEL = /^[A-Za-z0-9._:-]{1,128}$/;
/** Rows that a deletion takes at once, so that a long session does not hold up everybody else. */
const MESSAGES_AT_ONCE = 200;
const RUNS_AT_ONCE = 25;
/** Nobody's: what is deleted belongs to it until the last of its rows is gone. */
const NOBODY = "";

const BY_LABEL = `SELECT ${SESSION_COLUMNS} FROM sessions WHERE owner = ? AND label = ?`;
/** The update changes nothing; it is there so that the row comes back from whoever made it first. */
const INSERT = `INSERT INTO sessions (id, owner, label, title, last_seq, message_count, created_at, updated_at, unlisted)
  VALUES (?, ?, ?, '', 0, 0, ?, ?, ?)
  ON CONFLICT (owner, label) WHERE label IS NOT NULL DO UPDATE SET label = excluded.label RETURNING ${SESSION_COLUMNS}`;
const PUBLISH = "UPDATE sessions SET unlisted = 0 WHERE id = ? AND owner = ?";
const RENAME = `UPDATE sessions SET title = ? WHERE id = ? AND owner = ? RETURNING ${SESSION_COLUMNS}`;
const STOP_TURN = "DELETE FROM runs WHERE id = (SELECT turn FROM sessions WHERE id = ? AND owner = ?)";
/** With a label it is found again by the index of labels. */
const DISOWN = `UPDATE sessions SET owner = '${NOBODY}', label = id, turn = NULL, unlisted = 1
  WHERE id = ? AND owner = ?`;
/** The sessions of those to whom its runs have delegated go with it. */
const DISOWN_MEMBERS = `UPDATE sessions SET owner = '${NOBODY}', label = id, turn = NULL, unlisted = 1 WHERE owner = ?
  AND id IN (SELECT m.session_id FROM runs AS r JOIN runs AS m ON m.root = r.id WHERE r.session_id = ?)`;
const DISOWNED = `SELECT id FROM sessions WHERE owner = '${NOBODY}' AND label IS NOT NULL LIMIT 1`;
const DELETE_RUNS = `DELETE FROM runs WHERE id IN
  (SELECT id FROM runs WHERE session_id = ? LIMIT ${RUNS_AT_ONCE})`;
const DELETE_MESSAGES = `DELETE FROM messages WHERE row IN
  (SELECT row FROM messages WHERE session_id = ? LIMIT ${MESSAGES_AT_ONCE})`;
const LEFT = `SELECT EXISTS (SELECT 1 FROM messages WHERE session_id = ?)
  + EXISTS (SELECT 1 FROM runs WHERE session_id = ?) AS rest`;
const DELETE_SESSION = `DELETE FROM sessions WHERE id = ? AND owner = '${NOBODY}'`;

export function createSessions(
  reader: Reader,
  writer: WriteQueue,
  search: SearchIndex,
  now: () => Date,
): Sessions {
  async function create(owner: string, label: string | null, unlisted: 0 | 1): Promise<OpenSession> {
    const at = now().getTime();
    const args = [createId("ses"), owner, label, at, at, unlisted];
    const [result] = await writer.batch([{ sql: INSERT, args }]);
    return toSession(result!.rows[0]!);
  }

  return {
    ...createSessionMessages(reader, writer, search, now),
    ...createSessionList(reader, search),
    ...createForks(reader, writer, search, now),
    ...createGrants(reader, writer),
    ...createSessionDirectories(reader, writer),
    ...createSummaries(reader, writer),

    async open(owner, ref) {
      if (ref === "new") return create(owner, null, 0);
      if (ref.startsWith("ses_")) return readSession(reader, owner, ref);
      if (!LABEL.test(ref))
        throw new AppError(
          "invalid_request",
          "A session is named by `new`, by its id (`ses_…`), or by a label of 1 to 128 letters, digits and `.`, `_`, `:`, `-`.",
        );
      const [row] = await reader.rows({ sql: BY_LABEL, args: [owner, ref] });
      return row ? toSession(row) : create(owner, ref, 0);
    },

    createUnlisted: (owner) => create(owner, null, 1),

    async publish(owner, sessionId) {
      const [result] = await writer.batch([{ sql: PUBLISH, args: [toStorable(sessionId), owner] }]);
      if (result?.rowsAffected === 0) throw noSession();
    },

    get: (owner, sessionId) => readSession(reader, owner, sessionId),

    async rename(owner, sessionId, title) {
      const id = toStorable(sessionId);
      const rename: InStatement = { sql: RENAME, args: [toStorable(title), id, owner] };
      const [result] = await writer.batch([rename, ...indexTitle(owner, id)]);
      const row = result?.rows[0];
      if (!row) throw noSession();
      const { lastSeq: _, ...session } = toSession(row);
      return session;
    },

    async delete(owner, sessionId) {
      const args = [toStorable(sessionId), owner];
      const results = await writer.batch([
        { sql: DISOWN_MEMBERS, args: [owner, toStorable(sessionId)] },
        { sql: STOP_TURN, args },
        { sql: DISOWN, args },
      ]);
      if (results.at(-1)?.rowsAffected === 0) throw noSession();
      await clear(reader, writer);
    },
  };
}

/** Removes what nobody owns any more, rows of a deletion that was cut off included. */
async function clear(reader: Reader, writer: WriteQueue): Promise<void> {
  for (;;) {
    const [session] = await reader.rows(DISOWNED);
    if (!session) return;
    const id = session.id as string;
    for (let rest = true; rest; ) {
      await writer.batch([
        { sql: DELETE_RUNS, args: [id] },
        { sql: DELETE_MESSAGES, args: [id] },
      ]);
      const [row] = await reader.rows({ sql: LEFT, args: [id, id] });
      rest = row?.rest !== 0;
      // A file answers without ever letting go of the event loop.
      await new Promise((resolve) => setTimeout(resolve));
    }
    await writer.batch([{ sql: DELETE_SESSION, args: [id] }]);
  }
}
