/**
 * The fetch that providers are asked with. Their addresses come from the configuration, and keys go nowhere else: a
 * redirect is followed on the server that was configured, never to another, whatever the header that holds the key.
 */
import { AppError } from "../errors.ts";
import type { Fetch } from "./upstream.ts";

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** Those after which a POST is a GET without its body, as browsers have it. */
const FORGETFUL: ReadonlySet<number> = new Set([301, 302, 303]);
const MOST_REDIRECTS = 3;

/** Throws AppError `upstream_unreachable` for a redirect that is not followed, and whatever `send` throws. */
export function createConfiguredFetch(send: Fetch = fetch): Fetch {
  return async (input, init) => {
    let address: RequestInfo | URL = input;
    for (let redirects = 0; ; redirects++) {
      const response = await send(address, { ...init, redirect: "manual" });
      if (!REDIRECTS.has(response.status)) return response;
      await response.body?.cancel();
      address = nextAddress(String(address), init?.method ?? "GET", response, redirects);
    }
  };
}

function nextAddress(from: string, method: string, { status, headers }: Response, redirects: number): string {
  const location = headers.get("location");
  if (!location || !URL.canParse(location, from))
    throw refused(from, `answered ${status} without saying where to go instead`);
  const { origin } = new URL(from);
  const to = new URL(location, from);
  if (to.origin !== origin && to.origin !== origin.replace(/^http:/, "https:"))
    throw refused(from, `redirects to ${to.origin}, where no key is sent`);
  if (FORGETFUL.has(status) && method.toUpperCase() !== "GET")
    throw refused(from, `redirects to ${to.origin}${to.pathname} with ${status}, which loses the request`);
  if (redirects === MOST_REDIRECTS) throw refused(from, "redirects again and again");
  return to.href;
}

function refused(from: string, what: string): AppError {
  return new AppError(
    "upstream_unreachable",
    `${new URL(from).origin} ${what}. Set the base URL of this provider to the address that it has now.`,
  );
}
