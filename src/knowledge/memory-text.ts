/** Bounds of what a memory is made of, and texts within them. */
import { AppError } from "../errors.ts";

/** Characters. */
export const DOCUMENT_LIMIT = 4_000;
export const CATEGORY_LIMIT = 64;
export const QUOTE_LIMIT = 500;
const DEFAULT_CATEGORY = "general";

/** Without what two texts of the same words may differ in. */
export function flat(text: string): string {
  return text.normalize("NFKC").toLowerCase().replace(/\s+/g, " ").trim();
}

/** A quote within its bounds. */
export function shortened(text: string): string {
  const words = text.trim();
  return words.length <= QUOTE_LIMIT ? words : `${words.slice(0, QUOTE_LIMIT - 1).toWellFormed()}…`;
}

/** Throws AppError `invalid_request`. */
export function cleanDocument(text: string): string {
  const document = text.replaceAll("\0", "").toWellFormed().trim();
  if (document !== "" && document.length <= DOCUMENT_LIMIT) return document;
  throw new AppError(
    "invalid_request",
    `document: a memory is a text of 1 to ${DOCUMENT_LIMIT} characters, and this has ${document.length}. Put longer texts into a note.`,
    { param: "document" },
  );
}

export function cleanCategory(text: string): string {
  const category = text.replaceAll("\0", "").toWellFormed().trim();
  return category === "" ? DEFAULT_CATEGORY : category.slice(0, CATEGORY_LIMIT);
}
