/** Short texts that come with markup in them, without it. */
import { Parser } from "htmlparser2";

export function plainOf(html: string): string {
  if (!/[<&]/.test(html)) return html;
  let text = "";
  const ontext = (piece: string) => {
    text += piece;
  };
  const parser = new Parser({ ontext }, { decodeEntities: true });
  parser.end(html);
  return text;
}
