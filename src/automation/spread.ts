/**
 * When a watchdog looks next: at a place of its own within the interval, so that those that were made together, or were
 * all due after a sleep, do not look together for ever. Pure.
 */

/** Those of one step look at once: waking up for each would cost more than its look. Milliseconds. */
const STEP_MS = 2_000;

/** Behind `now` by at most the interval; the same place each time. */
export function nextLook(id: string, now: Date, intervalMs: number): Date {
  const time = now.getTime();
  const behind = time + intervalMs - placeOf(id, intervalMs);
  return new Date(time + intervalMs - (behind % intervalMs));
}

function placeOf(id: string, intervalMs: number): number {
  let hash = 0;
  for (let i = 0; i < id.length; i++) hash = (Math.imul(hash, 31) + id.charCodeAt(i)) >>> 0;
  return (hash % Math.max(1, Math.floor(intervalMs / STEP_MS))) * STEP_MS;
}
