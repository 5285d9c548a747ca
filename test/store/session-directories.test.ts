/** Where the commands of a session start, kept with the session. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createWorkingDirectory } from "../../src/agent/working-directory.ts";
import { BACKENDS, type Backend, openStore, type TestStore } from "./backends.ts";
import { user } from "./run-records.ts";

describe.each(BACKENDS)("directories of sessions on $name", ({ available, create }) => {
  let backend: Backend;
  let store: TestStore;
  beforeAll(async () => {
    if (!available) return;
    backend = await create();
    store = await openStore(backend);
  });
  afterAll(async () => {
    await store?.close();
    await backend?.close();
  });

  it.runIf(available)(
    "A5: are the root at first, then the last one set, of their owner's session only",
    async () => {
      const { sessions } = store;
      const { id } = await sessions.open("ann", "new");
      expect(await sessions.directory("ann", id)).toBe("");
      await sessions.setDirectory("ann", id, "src/deep");
      await sessions.setDirectory("ann", id, "ü 😀/'\"");
      expect(await sessions.directory("ann", id)).toBe("ü 😀/'\"");
      await sessions.setDirectory("ben", id, "his");
      await sessions.setDirectory("ann", "ses_none", "lost");
      expect(await sessions.directory("ben", id)).toBe("");
      expect(await sessions.directory("ann", id)).toBe("ü 😀/'\"");
      expect(await sessions.directory("ann", "ses_none")).toBe("");
    },
  );

  it.runIf(available)("go along with a copy and away with their session", async () => {
    const { sessions } = store;
    const { id } = await sessions.open("ann", "new");
    await sessions.append("ann", id, 0, [user("hello")]);
    await sessions.setDirectory("ann", id, "src");
    const fork = await sessions.fork("ann", id, undefined);
    await sessions.setDirectory("ann", id, "other");
    expect(await sessions.directory("ann", fork.id)).toBe("src");
    await sessions.delete("ann", id);
    expect(await sessions.directory("ann", id)).toBe("");
    expect(await sessions.directory("ann", fork.id)).toBe("src");
  });

  it.runIf(available)("are read once and written when they change", async () => {
    const { id } = await store.sessions.open("ann", "new");
    const used: string[] = [];
    const sessions: Parameters<typeof createWorkingDirectory>[0]["sessions"] = {
      directory(...args) {
        used.push("read");
        return store.sessions.directory(...args);
      },
      setDirectory(...args) {
        used.push("write");
        return store.sessions.setDirectory(...args);
      },
    };
    const log = () => {};
    const directory = createWorkingDirectory({ sessions, owner: "ann", sessionId: () => id, log });
    for (const path of ["", "src", "src", "src", ""]) {
      await directory.move(path);
      expect(await directory.read()).toBe(path);
    }
    expect(used).toEqual(["read", "write", "write"]);
  });
});

it("R8: a directory that cannot be stored lasts as long as its run, and the log says so", async () => {
  const logged: string[] = [];
  const directory = createWorkingDirectory({
    sessions: {
      directory: async () => "",
      setDirectory: () => Promise.reject(new Error("the disk is full")),
    },
    owner: "ann",
    sessionId: () => "ses_1",
    log: (_, message) => void logged.push(message),
  });
  await directory.move("src");
  expect(await directory.read()).toBe("src");
  expect(logged).toEqual(["a working directory was not stored"]);
});
