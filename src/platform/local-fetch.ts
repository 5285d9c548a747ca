/** The guarded way out on Node and Bun: names are resolved once, and connections go to what was checked. */
import { lookup as lookUp } from "node:dns/promises";
import type { IncomingMessage, RequestOptions } from "node:http";
import { isIPv6, type LookupFunction } from "node:net";
import { networkInterfaces } from "node:os";
import { createEgress, type EgressOptions, hostOf, nameOf, portOf } from "../core/egress.ts";
import type { GuardedFetch } from "../core/fetch.ts";
import { AppError } from "../errors.ts";
import { createGuardedFetch } from "./guarded-fetch.ts";
import { ACCEPT_ENCODING, openBody } from "./local-body.ts";
import type { Hop } from "./redirects.ts";

/** Some pages have policies of that size. Bytes. */
const HEADER_BYTES = 64 * 1024;
const NO_BODY = new Set([204, 205, 304]);

export interface LocalFetchOptions extends Omit<EgressOptions, "ownAddresses"> {
  /** All addresses of a name; default: the system's resolver. */
  lookup?: ((host: string) => Promise<string[]>) | undefined;
}

export function createLocalFetch({ lookup = resolveAll, ...options }: LocalFetchOptions = {}): GuardedFetch {
  const egress = createEgress({ ...options, ownAddresses });
  return createGuardedFetch(egress, async (hop, signal, maxBytes) => {
    const { url, trusted, via } = hop;
    let addresses = egress.knownAddresses(url, trusted);
    if (addresses === null) {
      addresses = await resolve(hostOf(url), lookup);
      egress.checkAddresses(url, addresses, trusted, via);
    }
    signal.throwIfAborted();
    return toResponse(await request(hop, addresses, signal), hop, maxBytes);
  });
}

async function resolveAll(host: string): Promise<string[]> {
  return (await lookUp(host, { all: true })).map(({ address }) => address);
}

async function resolve(host: string, lookup: (host: string) => Promise<string[]>): Promise<string[]> {
  const addresses = await lookup(host).catch((cause: unknown) => {
    const why =
      codeOf(cause) === "ENOTFOUND" ? "There is no such name" : "The name could not be looked up just now";
    throw new AppError("unreachable", `${why}: ${host}. Check the address, or try again later.`, { cause });
  });
  if (addresses.length > 0) return addresses;
  throw new AppError("unreachable", `The name has no address: ${host}. Check how it is written.`);
}

/**
 * A connection of its own: one that is kept could be to where the name led before. The name stays the host's for the
 * certificate and the `host` header; where it leads is told by the only lookup there is, ours.
 */
async function request(hop: Hop, addresses: string[], signal: AbortSignal): Promise<IncomingMessage> {
  const { url, method, headers, body } = hop;
  const client = await (url.protocol === "https:" ? import("node:https") : import("node:http"));
  const options: RequestOptions & { rejectUnauthorized: true } = {
    ...{ method, signal, agent: false, maxHeaderSize: HEADER_BYTES, rejectUnauthorized: true },
    hostname: hostOf(url),
    port: portOf(url),
    path: url.pathname + url.search,
    headers: { ...Object.fromEntries(headers), "accept-encoding": ACCEPT_ENCODING },
    lookup: pinnedTo(addresses),
  };
  return new Promise((resolve, reject) => {
    let answered = false;
    const answer = (message: IncomingMessage): void => {
      answered = true;
      resolve(message);
    };
    const fail = (cause?: unknown): void => {
      // Every connection closes in the end: an error for that would cost its stack.
      if (!answered) reject(new AppError("unreachable", `${nameOf(url)} ${sentenceOf(cause)}`, { cause }));
    };
    const outgoing = client.request(options);
    outgoing.once("response", answer).on("error", fail).once("close", fail);
    outgoing.end(typeof body === "string" ? Buffer.from(body) : (body ?? undefined));
  });
}

function pinnedTo(addresses: string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: isIPv6(address) ? 6 : 4 }));
  const first = all[0] as (typeof all)[number];
  return (_name, options, callback) =>
    options.all ? callback(null, all) : callback(null, first.address, first.family);
}

function toResponse(message: IncomingMessage, { url, method }: Hop, maxBytes: number): Response {
  const status = message.statusCode ?? 0;
  if (status < 200 || status > 599) {
    message.destroy();
    throw new AppError(
      "unreachable",
      `${nameOf(url)} answered with the status ${status}, which means nothing.`,
    );
  }
  const headers = new Headers();
  const { rawHeaders } = message;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2)
    headers.append(rawHeaders[i] as string, rawHeaders[i + 1] as string);
  if (method === "HEAD" || NO_BODY.has(status)) {
    message.destroy();
    return new Response(null, { status, headers });
  }
  const encoding = headers.get("content-encoding")?.trim().toLowerCase() ?? "";
  const body = openBody(message, encoding, url, maxBytes);
  // They describe what came over the wire, which nobody behind here sees.
  if (encoding !== "") for (const name of ["content-encoding", "content-length"]) headers.delete(name);
  return new Response(body, { status, headers });
}

/** What this machine is called on its networks, loopback aside. */
function ownAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address));
}

function codeOf(error: unknown): string {
  return String((error as NodeJS.ErrnoException | undefined)?.code ?? "");
}

/** What went wrong, behind the name of the server. */
function sentenceOf(error: unknown): string {
  const code = codeOf(error);
  if (code === "ECONNREFUSED") return "refuses connections. Check that it runs, and its port.";
  if (/^(ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL)$/.test(code))
    return "cannot be reached from here. Check the address, or try again later.";
  if (/CERT|SELF_SIGNED|ISSUER|^ERR_TLS|^ERR_SSL|^EPROTO/.test(code))
    return `has no certificate that can be trusted (${code}).`;
  if (code.startsWith("HPE_")) return "does not answer in HTTP. Check the port.";
  return "closed the connection before it answered. Try again later.";
}
