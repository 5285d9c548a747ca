/** The way out where a test means nothing to go out. */
import type { GuardedFetch } from "../src/core/fetch.ts";

export const noFetch: GuardedFetch = (url) =>
  Promise.reject(new Error(`this test fetches nothing, but ${url}`));
