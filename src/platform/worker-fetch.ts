/**
 * The guarded way out on Workers, where there is no resolver of ours: addresses and names are checked as they stand. What
 * a public name leads to is the runtime's to refuse: Cloudflare's network has no private addresses to reach, and workerd's
 * own default (`allow = ["public"]`) refuses them after its lookup, at the connection.
 */
import { createEgress, type EgressOptions } from "../core/egress.ts";
import type { GuardedFetch } from "../core/fetch.ts";
import { createGuardedFetch } from "./guarded-fetch.ts";

export function createWorkerFetch(options: EgressOptions = {}): GuardedFetch {
  const egress = createEgress(options);
  return createGuardedFetch(egress, ({ url, method, headers, body }, signal) =>
    fetch(url, { method, headers, body: body as BodyInit | null, signal, redirect: "manual" }),
  );
}
