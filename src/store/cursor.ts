/** Where a page ends, as an opaque word for the caller: the keys of its last row. */
import { AppError } from "../errors.ts";
import { isStorable } from "./text.ts";

/** Characters that a cursor of ours never has more of. */
const LENGTH_LIMIT = 500;

export function toCursor(...keys: (string | number)[]): string {
  return btoa(JSON.stringify(keys)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** Of a list by time: milliseconds and id. Throws AppError `invalid_request` for what is no cursor. */
export function fromTimeCursor(cursor: string): [number, string] {
  const [time, id, ...rest] = decode(cursor);
  if (Number.isSafeInteger(time) && typeof id === "string" && isStorable(id) && rest.length === 0)
    return [time as number, id];
  throw notOurs();
}

/** Of a list by number. Throws AppError `invalid_request` for what is no cursor. */
export function fromNumberCursor(cursor: string): number {
  const [at, ...rest] = decode(cursor);
  if (Number.isSafeInteger(at) && rest.length === 0) return at as number;
  throw notOurs();
}

function decode(cursor: string): unknown[] {
  if (cursor.length > LENGTH_LIMIT) throw notOurs();
  try {
    const keys: unknown = JSON.parse(atob(cursor.replaceAll("-", "+").replaceAll("_", "/")));
    if (Array.isArray(keys)) return keys;
  } catch {
    // Said below.
  }
  throw notOurs();
}

function notOurs(): AppError {
  return new AppError(
    "invalid_request",
    "cursor: this is not one of the service's own. Pass `next_cursor` of the page before as it came, or leave it out.",
    { param: "cursor" },
  );
}
