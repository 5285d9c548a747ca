/** Puts together texts that were too long for one value; see text.ts for the sizes. */
import type { Reader } from "./reader.ts";
import { PIECES_PER_READ } from "./text.ts";

/** The first piece and those that follow in `table`, whose rows name what they belong to in `key`. */
export async function joinPieces(
  reader: Reader,
  table: { name: "message_pieces"; key: "message_id" } | { name: "handed_back_pieces"; key: "turn_id" },
  id: string,
  first: string,
  pieces: number,
): Promise<string> {
  let text = first;
  for (let from = 1; from < pieces; from += PIECES_PER_READ) {
    const rows = await reader.rows({
      sql: `SELECT content FROM ${table.name} WHERE ${table.key} = ? AND piece >= ? AND piece < ? ORDER BY piece`,
      args: [id, from, from + PIECES_PER_READ],
    });
    for (const row of rows) text += row.content as string;
  }
  return text;
}
