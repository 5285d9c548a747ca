/** Where the commands of a session start. A session without a row starts in the root of the workspace. */
import type { Sessions } from "../core/store.ts";
import type { Reader } from "./reader.ts";
import { toStorable } from "./text.ts";
import type { WriteQueue } from "./write-queue.ts";

const READ = "SELECT path FROM session_directories WHERE session_id = ? AND owner = ?";
const UPSERT = `INSERT INTO session_directories (owner, session_id, path)
  SELECT owner, id, ? FROM sessions WHERE id = ? AND owner = ?
  ON CONFLICT (session_id) DO UPDATE SET path = excluded.path`;

export function createSessionDirectories(
  reader: Reader,
  writer: WriteQueue,
): Pick<Sessions, "directory" | "setDirectory"> {
  return {
    async directory(owner, sessionId) {
      const [row] = await reader.rows({ sql: READ, args: [toStorable(sessionId), owner] });
      return (row?.path as string | undefined) ?? "";
    },

    async setDirectory(owner, sessionId, path) {
      await writer.batch([{ sql: UPSERT, args: [toStorable(path), toStorable(sessionId), owner] }]);
    },
  };
}
