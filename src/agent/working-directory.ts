/** The directory in which a session's next command starts: read when a run first asks, stored when it changes. */
import type { Log } from "../core/platform.ts";
import type { Sessions } from "../core/store.ts";
import type { WorkingDirectory } from "../core/tool.ts";

export interface WorkingDirectoryOptions {
  sessions: Pick<Sessions, "directory" | "setDirectory">;
  owner: string;
  /** A run without a session of its caller's gets one when it first does something. */
  sessionId(): string | undefined;
  log: Log;
}

export function createWorkingDirectory(options: WorkingDirectoryOptions): WorkingDirectory {
  const { sessions, owner, sessionId, log } = options;
  let known: string | undefined;

  async function read(): Promise<string> {
    const id = sessionId();
    if (known === undefined && id !== undefined) known = await sessions.directory(owner, id);
    return known ?? "";
  }

  return {
    read,
    async move(path) {
      try {
        if (path === (await read())) return;
        known = path;
        const id = sessionId();
        if (id !== undefined) await sessions.setDirectory(owner, id, path);
      } catch (error) {
        log("warning", "a working directory was not stored", { error: String(error) });
      }
    },
  };
}
