/**
 * Main content of web pages on Workers. There are no threads: a page is read in one go, so less of it is looked at than
 * elsewhere, and the runtime's limit of CPU time is what ends a page that is made to be slow.
 */
import type { ReadHtml } from "../core/platform.ts";
import { AppError } from "../errors.ts";

const MAX_CHARS = 1024 * 1024;

export const readHtml: ReadHtml = async (html, { url, signal }) => {
  // What takes pages apart is large, and evaluated when there is one.
  const { readPage } = await import("./html-page.ts");
  signal.throwIfAborted();
  try {
    return readPage(html, { url, maxChars: MAX_CHARS });
  } catch (cause) {
    throw new AppError("invalid_request", `${url} cannot be taken apart. Look for another source of it.`, {
      cause,
    });
  }
};
