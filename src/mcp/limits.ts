/** Every limit that a connection to an MCP server has. */

/** Bytes of one message; a larger one is dropped as it arrives. */
export const MESSAGE_BYTES = 10 * 1024 * 1024;
/** Messages that answer nothing (notifications, requests of the server): so many at once, and so many more a second. */
export const UNASKED_BURST = 500;
export const UNASKED_PER_SECOND = 200;
/** So many beyond that end the connection. */
export const UNASKED_DROPPED = 20_000;
/** Messages that are none of the protocol's, until the connection ends. A stray line of a log is forgiven. */
export const MALFORMED_LIMIT = 200;
/** Pages of a list of tools, and tools in all. */
export const LIST_PAGES = 50;
export const TOOLS_LIMIT = 500;
/** Milliseconds for one page, and for the goodbye. */
export const LIST_TIMEOUT_MS = 30_000;
export const GOODBYE_MS = 1_000;
/** Milliseconds for one call, however much progress it reports. */
export const LONGEST_CALL_MS = 30 * 60 * 1000;
/** Lists that are read again for a change: soonest after the news, and soonest after the last time. Milliseconds. */
export const LIST_DEBOUNCE_MS = 300;
export const LIST_PAUSE_MS = 1_000;
/** Between attempts to reach a server: the first pause, and the longest. Milliseconds. */
export const FIRST_PAUSE_MS = 500;
export const LONGEST_PAUSE_MS = 5 * 60 * 1000;
/** A connection that has stood so long was a good one: the pauses begin anew. Milliseconds. */
export const STABLE_MS = 30_000;
