/** Text of a server that a model or a person is shown: nothing in it that is not seen, and no more of it than is read. */

/** Control, format and bidirectional characters, fillers and tags; blanks of a line and its end are seen. */
const UNSEEN = /(?![\t\n])[\p{C}\p{Default_Ignorable_Code_Point}\u2028\u2029\u2800]/gu;

export function plainText(text: string, limit: number): string {
  // A flood of them is not gone through: none of it would be shown.
  const clean = cut(text, limit * 4)
    .toWellFormed()
    .replaceAll(UNSEEN, "");
  return clean.length <= limit ? clean : `${cut(clean, limit - 1)}…`;
}

/** At most `limit` UTF-16 units, never half a character. */
export function cut(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const last = text.charCodeAt(limit - 1);
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? limit - 1 : limit);
}
