/** `reasoning_details`, the form in which OpenRouter and its like stream thinking with its signatures. */

export type ReasoningDetail = Record<string, unknown>;

/** Fields that arrive in pieces. All others arrive whole. */
const PIECEMEAL = ["text", "summary", "data"] as const;

/**
 * Joins the pieces to the details they continue: those of the same type and index as the last one. Returns the words
 * that were added.
 */
export function mergeDetails(details: ReasoningDetail[], pieces: unknown[]): string {
  let words = "";
  for (const piece of pieces as (ReasoningDetail | null)[]) {
    if (typeof piece !== "object" || piece === null) continue;
    const said = piece.text ?? piece.summary;
    if (typeof said === "string") words += said;
    const last = details.at(-1);
    if (last && last.type === piece.type && last.index === piece.index && !isOther(last, piece))
      join(last, piece);
    else details.push({ ...piece });
  }
  return words;
}

function isOther(last: ReasoningDetail, piece: ReasoningDetail): boolean {
  return typeof piece.id === "string" && typeof last.id === "string" && piece.id !== last.id;
}

function join(last: ReasoningDetail, piece: ReasoningDetail): void {
  for (const [name, value] of Object.entries(piece)) {
    if (value === null || value === undefined) continue;
    const before = last[name];
    const grows = (PIECEMEAL as readonly string[]).includes(name);
    last[name] = grows && typeof before === "string" && typeof value === "string" ? before + value : value;
  }
}
