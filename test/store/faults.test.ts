import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient as createWebClient } from "@libsql/client/web";
import { expect, it } from "vitest";
import { AppError } from "../../src/errors.ts";
import { createClient as createFileClient } from "../../src/platform/local-database.ts";
import { closeDatabase, openFileDatabase, openRemoteDatabase } from "../../src/store/database.ts";
import { toStoreFault } from "../../src/store/faults.ts";
import { migrate } from "../../src/store/migrations.ts";
import { hasSqld, sqldNote, startSqld } from "../sqld.ts";
import { createFileBackend, MIGRATIONS, openStore, storeOver } from "./backends.ts";

const failure = (code: string, message = code) => Object.assign(new Error(message), { code });

it.each([
  [failure("SQLITE_BUSY"), "unavailable"],
  [failure("SQLITE_BUSY_SNAPSHOT"), "unavailable"],
  [failure("SQLITE_LOCKED"), "unavailable"],
  [failure("SQLITE_FULL"), "storage_full"],
  [failure("SQLITE_IOERR", "disk I/O error: no space left on device"), "storage_full"],
  [failure("SQLITE_IOERR_WRITE"), "unavailable"],
  [failure("SQLITE_CORRUPT"), "unavailable"],
  [failure("SQLITE_NOTADB"), "unavailable"],
  [failure("SQLITE_READONLY_DBMOVED"), "unavailable"],
  [failure("SERVER_ERROR", "Server returned HTTP status 503"), "unavailable"],
  [failure("SERVER_ERROR", "Server returned HTTP status 401"), "unavailable"],
  [failure("SERVER_ERROR", "Server returned HTTP status 429"), "unavailable"],
  [failure("SQLITE_ERROR", "no such table: sessions"), "unavailable"],
  [new TypeError("fetch failed"), "unavailable"],
  [failure("ConnectionRefused"), "unavailable"],
  [new Error("Network connection lost."), "unavailable"],
  [new DOMException("late", "TimeoutError"), "unavailable"],
])("says what to do about %s", (error, code) => {
  const fault = toStoreFault(error);
  expect(fault).toBeInstanceOf(AppError);
  expect(fault).toMatchObject({ code, cause: error, retryAfter: code === "unavailable" ? 1 : undefined });
});

it.each([
  failure("SQLITE_CONSTRAINT"),
  failure("SQLITE_ERROR", "near SELCT"),
  failure("SERVER_ERROR", "Server returned HTTP status 400"),
  new TypeError("undefined is not a function"),
  "text",
])("leaves %s as our own failure", (error) => {
  expect(toStoreFault(error)).toBe(error);
});

it("names a file that is no database", async () => {
  const folder = await mkdtemp(join(tmpdir(), "dragoman-"));
  const path = join(folder, "x.db");
  await writeFile(path, "not a database ".repeat(500));
  await expect(openFileDatabase(path, createFileClient)).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("damaged"),
  });
  await expect(openFileDatabase(join(folder, "no", "x.db"), createFileClient)).rejects.toMatchObject({
    code: "unavailable",
  });
  await rm(folder, { recursive: true });
});

it("answers 507 while the disk is full, stores nothing then, and recovers by itself", async () => {
  const backend = await createFileBackend();
  const database = await backend.open();
  await migrate(database, MIGRATIONS);
  const store = storeOver(database);
  const { rows } = await database.write.execute("PRAGMA page_count");
  await database.write.execute(`PRAGMA max_page_count = ${rows[0]?.page_count}`);
  const { id } = await store.sessions.open("ann", "new");
  const message = { role: "user" as const, content: [{ type: "text" as const, text: "x".repeat(100_000) }] };
  await expect(store.sessions.append("ann", id, 0, [message])).rejects.toMatchObject({
    code: "storage_full",
    status: 507,
  });
  expect(await store.sessions.append("ann", id, 0, [message])).toBe(1);
  await store.close();
  await backend.close();
});

it("says when it was closed", async () => {
  const backend = await createFileBackend();
  const store = await openStore(backend);
  await store.ping();
  await store.close();
  await expect(store.ping()).rejects.toMatchObject({ code: "unavailable" });
  await expect(store.sessions.open("ann", "new")).rejects.toMatchObject({ code: "unavailable" });
  await backend.close();
});

it.runIf(hasSqld)(`answers 503 while a server is away, and goes on when it is back${sqldNote}`, async () => {
  const sqld = await startSqld();
  const database = openRemoteDatabase({ url: sqld.url }, createWebClient);
  await migrate(database, MIGRATIONS);
  const store = storeOver(database);
  const { id } = await store.sessions.open("ann", "kept");
  await sqld.kill();
  await expect(store.ping()).rejects.toMatchObject({ code: "unavailable", status: 503 });
  await expect(store.sessions.open("ann", "new")).rejects.toMatchObject({ code: "unavailable" });
  await sqld.start();
  await store.ping();
  expect((await store.sessions.open("ann", "kept")).id).toBe(id);
  closeDatabase(database);
  await sqld.close();
});
