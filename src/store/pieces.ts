/** Puts together texts that were too long for one value; see text.ts for the sizes. */
import type { Reader } from "./reader.ts";
import { PIECES_PER_READ } from "./text.ts";

/** A table of pieces, and how its rows say what they belong to. */
const SELECT = {
  message: "SELECT content FROM message_pieces WHERE message_id = ?",
  handedBack: "SELECT content FROM handed_back_pieces WHERE turn_id = ?",
  run: "SELECT content FROM run_pieces WHERE run_id = ? AND part = ?",
  answer: "SELECT content FROM idempotency_pieces WHERE owner = ? AND key = ?",
} as const;

/** The first piece and those that follow. `keys`: the parameters that the table's statement asks for. */
export async function joinPieces(
  reader: Reader,
  table: keyof typeof SELECT,
  keys: string[],
  first: string,
  pieces: number,
): Promise<string> {
  let text = first;
  for (let from = 1; from < pieces; from += PIECES_PER_READ) {
    const rows = await reader.rows({
      sql: `${SELECT[table]} AND piece >= ? AND piece < ? ORDER BY piece`,
      args: [...keys, from, from + PIECES_PER_READ],
    });
    for (const row of rows) text += row.content as string;
  }
  return text;
}
