/** Pages that are being read in parts, for a few minutes: the second part comes from the same text as the first. */
import type { WebText } from "./page.ts";

const KEPT_MS = 10 * 60 * 1000;
const MAX_CHARS = 8_000_000;

export interface PageCache {
  get(owner: string, url: string): WebText | undefined;
  put(owner: string, url: string, page: WebText): void;
}

export function createPageCache(now: () => number = Date.now): PageCache {
  /** In the order in which they were put. */
  const pages = new Map<string, { page: WebText; until: number }>();
  let chars = 0;
  const keyOf = (owner: string, url: string) => JSON.stringify([owner, url]);
  const drop = (key: string) => {
    chars -= pages.get(key)?.page.text.length ?? 0;
    pages.delete(key);
  };
  return {
    get(owner, url) {
      const key = keyOf(owner, url);
      const entry = pages.get(key);
      if (!entry) return undefined;
      if (entry.until > now()) return entry.page;
      drop(key);
      return undefined;
    },
    put(owner, url, page) {
      const key = keyOf(owner, url);
      drop(key);
      pages.set(key, { page, until: now() + KEPT_MS });
      chars += page.text.length;
      for (const [oldest, { until }] of pages) {
        if (chars <= MAX_CHARS && until > now()) break;
        drop(oldest);
      }
    },
  };
}
