/** What libSQL throws, in the words of the house. */
import { AppError } from "../errors.ts";

const RETRY_SECONDS = 1;

/** The libSQL code, or the empty string. Read structurally: file and HTTP client bring classes of their own. */
export function codeOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : "";
}

/** The statement of a batch that failed, counted from 0. */
export function failedStatement(error: unknown): number | undefined {
  const at = error instanceof Error && "statementIndex" in error ? error.statementIndex : undefined;
  return typeof at === "number" ? at : undefined;
}

export function isConstraint(error: unknown): boolean {
  return codeOf(error).startsWith("SQLITE_CONSTRAINT");
}

/** Another writer holds the lock, or a server has too much to do: nothing was done, and the same may be tried again. */
export function isBusy(error: unknown): boolean {
  const code = codeOf(error);
  return code.startsWith("SQLITE_BUSY") || code.startsWith("SQLITE_LOCKED") || httpStatus(error) === 429;
}

export function isTooLarge(error: unknown): boolean {
  return codeOf(error) === "RESPONSE_TOO_LARGE";
}

/** A server passes SQLite's own words on under a code that says nothing. */
export function isMissingTable(error: unknown): boolean {
  return error instanceof Error && error.message.includes("no such table");
}

/**
 * An AppError for what an operator or a retry can mend. Everything else (a constraint, a wrong statement) is returned
 * as it came and counts as our own failure.
 */
export function toStoreFault(error: unknown): unknown {
  if (error instanceof AppError) return error;
  const [code, message] = explain(error) ?? [];
  if (code === undefined || message === undefined) return error;
  return new AppError(code, message, {
    cause: error,
    retryAfter: code === "unavailable" ? RETRY_SECONDS : undefined,
  });
}

function explain(error: unknown): ["unavailable" | "storage_full", string] | undefined {
  if (isBusy(error))
    return ["unavailable", "The database is busy with others. Nothing was stored; try again."];
  if (isMissingTable(error))
    return [
      "unavailable",
      "The database lacks its tables. Restart the service, or run `npm run migrate:edge` for a database on a server.",
    ];
  const code = codeOf(error);
  // The file client's own failure to open carries no code.
  if (code === "" && error instanceof Error && error.message.includes("Unable to open"))
    return diskFault(error);
  switch (code.split("_", 2).join("_")) {
    case "SQLITE_FULL":
      return ["storage_full", "The disk that holds the database is full. Make room; nothing was stored."];
    case "SQLITE_CORRUPT":
    case "SQLITE_NOTADB":
      return [
        "unavailable",
        "The database file is damaged. Put a backup in its place and restart the service.",
      ];
    case "SQLITE_CANTOPEN":
    case "SQLITE_READONLY":
    case "SQLITE_PERM":
    case "SQLITE_IOERR":
      return diskFault(error);
    case "SQLITE_AUTH":
      return ["unavailable", "The database refused access. Check LIBSQL_AUTH_TOKEN."];
    case "SERVER_ERROR":
      return serverFault(error);
    case "CLIENT_CLOSED":
    case "HRANA_CLOSED":
      return ["unavailable", "The connection to the database was closed. Nothing was stored; try again."];
  }
  if (isUnreachable(error))
    return [
      "unavailable",
      "The database server cannot be reached. Check LIBSQL_URL and that the server runs.",
    ];
  return undefined;
}

function diskFault(error: unknown): ["unavailable" | "storage_full", string] {
  const text = error instanceof Error ? `${error.message} ${codeOf(error)}` : "";
  return /disk is full|no space|ENOSPC|quota/i.test(text)
    ? ["storage_full", "The disk that holds the database is full. Make room; nothing was stored."]
    : [
        "unavailable",
        "The database file cannot be read or written. Check DATA_DIR, its disk and its permissions.",
      ];
}

function serverFault(error: unknown): ["unavailable", string] | undefined {
  const status = httpStatus(error);
  if (status === 401 || status === 403)
    return ["unavailable", "The database server refused the credentials. Check LIBSQL_AUTH_TOKEN."];
  if (status === undefined || status >= 500)
    return [
      "unavailable",
      "The database server answered with an error. It may not have stored this; try again.",
    ];
  return undefined;
}

/** The client says it in its message only. */
function httpStatus(error: unknown): number | undefined {
  if (codeOf(error) !== "SERVER_ERROR") return undefined;
  const status = /HTTP status (\d{3})/.exec((error as Error).message)?.[1];
  return status === undefined ? undefined : Number(status);
}

/** No connection: TypeError on Node, an error with a code on Bun, words on workerd; and a name when the deadline is over. */
function isUnreachable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error.name === "TimeoutError" || error.name === "AbortError") return true;
  if (/^E(CONN|HOST|NET|PIPE|TIMEDOUT)|^ConnectionRefused|^ConnectionClosed|^UND_/.test(codeOf(error)))
    return true;
  return /fetch failed|network connection lost|unable to connect|connection (refused|reset|closed)/i.test(
    error.message,
  );
}
