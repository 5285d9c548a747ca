/** Digests at once: what WebCrypto does costs a short text ten times as much as its digest. */
import { createHash } from "node:crypto";

/** Hex SHA-256 of the text's UTF-8. */
export function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
