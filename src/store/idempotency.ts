/** Answers that were given under an `Idempotency-Key`. */
import type { IdempotencyKeys, StoredAnswer } from "../core/store.ts";
import { joinPieces } from "./pieces.ts";
import type { Reader } from "./reader.ts";
import { toPieces, toStorable, toStorableJson } from "./text.ts";
import type { WriteQueue } from "./write-queue.ts";

/** Expired keys of anybody that one new key clears away. */
const CLEARED_AT_ONCE = 20;
/** A request that outlasts its hold may still store its answer so long after, if nobody took the key. Milliseconds. */
const GRACE_MS = 60 * 60 * 1000;

const CLEAR = `DELETE FROM idempotency_keys WHERE rowid IN
  (SELECT rowid FROM idempotency_keys WHERE expires_at <= ? LIMIT ${CLEARED_AT_ONCE})`;
const FORGET_EXPIRED = "DELETE FROM idempotency_keys WHERE owner = ? AND key = ? AND expires_at <= ?";
const TAKE = `INSERT INTO idempotency_keys (owner, key, fingerprint, expires_at) VALUES (?, ?, ?, ?)
  ON CONFLICT (owner, key) DO NOTHING`;
const READ =
  "SELECT fingerprint, status, headers, body, pieces FROM idempotency_keys WHERE owner = ? AND key = ?";
/** The first answer stands. */
const FINISH = `UPDATE idempotency_keys SET status = ?, headers = ?, body = ?, pieces = ?, expires_at = ?
  WHERE owner = ? AND key = ? AND status IS NULL`;
const FINISH_PIECE = `INSERT INTO idempotency_pieces (owner, key, piece, content)
  SELECT owner, key, ?, ? FROM idempotency_keys WHERE owner = ? AND key = ? AND status IS NULL`;
const RELEASE = "DELETE FROM idempotency_keys WHERE owner = ? AND key = ? AND status IS NULL";

export function createIdempotencyKeys(reader: Reader, writer: WriteQueue): IdempotencyKeys {
  return {
    async take(owner, rawKey, rawFingerprint, now, holdUntil) {
      const [key, fingerprint, at] = [toStorable(rawKey), toStorable(rawFingerprint), now.getTime()];
      const [, , taken, read] = await writer.batch([
        { sql: CLEAR, args: [at - GRACE_MS] },
        { sql: FORGET_EXPIRED, args: [owner, key, at] },
        { sql: TAKE, args: [owner, key, fingerprint, holdUntil.getTime()] },
        { sql: READ, args: [owner, key] },
      ]);
      if (taken!.rowsAffected === 1) return { state: "new" };
      const row = read!.rows[0]!;
      if (row.fingerprint !== fingerprint) return { state: "other" };
      if (row.status === null) return { state: "busy" };
      const pieces = row.pieces as number;
      const answer: StoredAnswer = {
        status: row.status as number,
        headers: JSON.parse(row.headers as string) as StoredAnswer["headers"],
        body: await joinPieces(reader, "answer", [owner, key], row.body as string, pieces),
      };
      return { state: "done", answer };
    },

    async finish(owner, rawKey, answer, expiresAt) {
      const key = toStorable(rawKey);
      const [body, ...rest] = toPieces(toStorable(answer.body));
      const row = [answer.status, toStorableJson(answer.headers), body, rest.length + 1, expiresAt.getTime()];
      await writer.batch([
        ...rest.map((piece, index) => ({ sql: FINISH_PIECE, args: [index + 1, piece, owner, key] })),
        { sql: FINISH, args: [...row, owner, key] },
      ]);
    },

    async release(owner, key) {
      await writer.batch([{ sql: RELEASE, args: [owner, toStorable(key)] }]);
    },
  };
}
