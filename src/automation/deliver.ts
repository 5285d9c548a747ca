/** Posts what webhooks are to be told, again and again until it is taken or given up. Each attempt is on record. */
import type { KeyVault } from "../agent/key-vault.ts";
import type { Deliveries } from "../core/automation.ts";
import type { Delivery, DeliveryResult } from "../core/occurrences.ts";
import type { Platform } from "../core/platform.ts";
import { AppError } from "../errors.ts";
import { webhookHeaders } from "./webhook.ts";

/** Pauses behind each attempt in vain; after as many and one more it is given up. Milliseconds. */
export const RETRY_MS = [5_000, 60_000, 5 * 60_000, 30 * 60_000, 2 * 3_600_000, 8 * 3_600_000];
/** For an answer. Milliseconds. */
const PATIENCE_MS = 15_000;
/** Nobody else takes it up meanwhile. Milliseconds. */
const CLAIM_MS = 60_000;
/** Posts under way at once in a process. */
export const POSTS_AT_ONCE = 20;
/** Of an answer nothing is read. Bytes. */
const MAX_BYTES = 1024;

export interface CourierParts {
  deliveries: Deliveries;
  vault: KeyVault | undefined;
  platform: Pick<Platform, "fetch" | "now" | "log" | "background">;
}

/** However much is due, as after a day on which nobody could be reached: so many posts at once, the next as one ends. */
export class Courier {
  readonly #parts: CourierParts;
  /** One of a post each, and until when it is taken: on Workers a post may have ended with its request, unnoticed. */
  readonly #slots = new Map<symbol, number>();
  #waiting = false;
  #stopped = false;

  constructor(parts: CourierParts) {
    this.#parts = parts;
  }

  /** Takes up nothing more. */
  stop(): void {
    this.#stopped = true;
  }

  /** Begins what is due, and does not wait for the answers. Returns how many. */
  async deliverDue(): Promise<number> {
    const { deliveries, platform } = this.#parts;
    let begun = 0;
    while (!this.#stopped) {
      // Taken at once: others may ask while the database does.
      const slots = this.#takeSlots();
      this.#waiting = slots.length === 0;
      if (this.#waiting) break;
      const now = platform.now();
      let due: Delivery[] = [];
      try {
        due = await deliveries.claim(now, new Date(now.getTime() + CLAIM_MS), slots.length);
      } finally {
        for (const slot of slots.slice(due.length)) this.#slots.delete(slot);
      }
      for (const [i, delivery] of due.entries())
        platform.background(this.#post(delivery, slots[i] as symbol));
      begun += due.length;
      if (due.length < slots.length) break;
    }
    return begun;
  }

  #takeSlots(): symbol[] {
    const now = performance.now();
    for (const [slot, until] of this.#slots) if (until < now) this.#slots.delete(slot);
    const slots = Array.from({ length: POSTS_AT_ONCE - this.#slots.size }, () => Symbol());
    for (const slot of slots) this.#slots.set(slot, now + CLAIM_MS);
    return slots;
  }

  async #post(delivery: Delivery, slot: symbol): Promise<void> {
    try {
      await attempt(this.#parts, delivery);
    } finally {
      this.#slots.delete(slot);
    }
    if (this.#waiting) await this.deliverDue();
  }
}

async function attempt(courier: CourierParts, delivery: Delivery): Promise<void> {
  const { deliveries, platform } = courier;
  const result = await post(courier, delivery);
  if (result.status !== "delivered")
    platform.log("warning", "webhook not delivered", {
      ...{ job_id: delivery.jobId, attempt: delivery.attempt, status: result.status, error: result.error },
    });
  await deliveries.settle(delivery, delivery.attempt, result);
}

async function post({ platform, vault }: CourierParts, delivery: Delivery): Promise<DeliveryResult> {
  const { url, body, jobId, scheduledAt } = delivery;
  const secret = await vault?.open(delivery.sealedSecret);
  if (!secret)
    return ended(
      platform,
      "failed",
      null,
      "The webhook's secret cannot be read any more: set webhook_url anew.",
    );
  const signed = { id: `${jobId}_${scheduledAt.getTime()}`, at: platform.now(), body };
  const headers = { "content-type": "application/json", ...(await webhookHeaders(secret, signed)) };
  try {
    const response = await platform.fetch(url, {
      ...{ method: "POST", headers, body, redirect: "manual", timeoutMs: PATIENCE_MS, maxBytes: MAX_BYTES },
    });
    await response.body?.cancel().catch(() => {});
    const { status } = response;
    if (status >= 200 && status < 300) return ended(platform, "delivered", status, null);
    // The standard's word for: never again.
    if (status === 410) return ended(platform, "failed", status, "The address says that it is gone (410).");
    return again(platform, delivery, status, `The address answered with ${status}.`);
  } catch (error) {
    const sentence = error instanceof AppError ? error.message : "The post failed inside the service.";
    const hopeless =
      error instanceof AppError && (error.code === "forbidden" || error.code === "invalid_request");
    return hopeless ? ended(platform, "failed", null, sentence) : again(platform, delivery, null, sentence);
  }
}

function ended(
  { now }: CourierParts["platform"],
  status: "delivered" | "failed",
  httpStatus: number | null,
  error: string | null,
): DeliveryResult {
  return { status, httpStatus, error, nextAt: null, at: now() };
}

function again(
  platform: CourierParts["platform"],
  { attempt }: Delivery,
  httpStatus: number | null,
  error: string,
): DeliveryResult {
  const pause = RETRY_MS[attempt - 1];
  if (pause === undefined)
    return ended(platform, "failed", httpStatus, `${error} Given up after ${attempt} attempts.`);
  const at = platform.now();
  return { status: "pending", httpStatus, error, nextAt: new Date(at.getTime() + pause), at };
}
