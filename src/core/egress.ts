/**
 * Where requests may go whose address the service did not choose (E1), and what the operator has allowed in FETCH_ALLOW.
 * Pure: names are resolved by whoever can.
 */
import { AppError } from "../errors.ts";
import {
  type Address,
  contains,
  destination,
  isThisMachine,
  type Network,
  parseAddress,
  parseNetwork,
  refusalOf,
  sameAddress,
} from "./address.ts";

export interface EgressOptions {
  /** Entries of FETCH_ALLOW. */
  allow?: readonly string[] | undefined;
  /** The port this service listens on, once it does. */
  ownPort?: (() => number | undefined) | undefined;
  /** The addresses of this machine other than loopback. */
  ownAddresses?: (() => readonly string[]) | undefined;
}

export interface Egress {
  /**
   * What the text of the URL says: scheme, port, names that are nobody's on the internet, addresses. Throws AppError
   * `forbidden`. `via` is the URL that led there.
   */
  checkUrl(url: URL, trusted: boolean, via?: URL): void;
  /** All addresses of the URL's name at once: one that may not be reached refuses them all. Throws AppError `forbidden`. */
  checkAddresses(url: URL, addresses: readonly string[], trusted: boolean, via?: URL): void;
  /** Where to connect without asking a resolver: an address itself, what is allowed of `localhost`; null for other names. */
  knownAddresses(url: URL, trusted: boolean): string[] | null;
}

/** One entry of FETCH_ALLOW. */
type Allowed = { port: number | undefined } & ({ host: string } | { network: Network });

/** What this service is, and never somebody's to fetch: its routes are behind the approvals of its user (P4). */
const OWN = "with this port is the service itself, which is not to be reached from within";
const HINT = "The operator can allow it in FETCH_ALLOW.";

/**
 * Names that lead nowhere on the public internet (RFC 6761, RFC 6762, RFC 8375, and .internal as ICANN reserved it, below
 * which clouds have their metadata), for runtimes that do not see what a name resolves to.
 */
const PRIVATE_NAMES = /^(.*\.)?(localhost|localdomain|local|internal|home\.arpa)$/;

/** Characters that a name can have at most (RFC 1035), and those of it in a sentence. */
const LONGEST_NAME = 253;
const LONGEST_SHOWN = 300;

/** What `localhost` and the names below it mean, without asking anybody (RFC 6761). */
const LOCALHOST = /^(.*\.)?localhost$/;
const LOCALHOST_ADDRESSES = ["127.0.0.1", "::1"];

/** `host`, `host:port`, an address, `address:port`, `[v6]:port` or a range in CIDR; null for anything else. */
export function parseAllowed(entry: string): Allowed | null {
  const range = parseNetwork(entry);
  if (range) return { network: carried(range), port: undefined };
  const [, host, digits] = /^(\[[^\]]+\]|[^:/?#@\s]+)(?::(\d{1,5}))?$/.exec(entry) ?? [];
  if (host === undefined || !URL.canParse(`http://${host}/`)) return null;
  const port = digits === undefined ? undefined : Number(digits);
  if (port !== undefined && (port < 1 || port > 65_535)) return null;
  const name = hostOf(new URL(`http://${host}/`));
  const network = parseNetwork(name);
  if (network === null && !/^[a-z0-9._-]+$/.test(name)) return null;
  return network ? { network: carried(network), port } : { host: name, port };
}

/** The name or address of a URL without brackets and the dot that may stand at its end. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
}

export function portOf(url: URL): number {
  return url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
}

export function createEgress(options: EgressOptions = {}): Egress {
  const allowed = (options.allow ?? []).map(parseAllowed).filter((entry) => entry !== null);

  const nameAllowed = (url: URL): boolean =>
    allowed.some((entry) => "host" in entry && entry.host === hostOf(url) && fits(entry, url));
  const addressAllowed = (url: URL, address: Address, metadata: boolean): boolean =>
    allowed.some(
      (entry) =>
        "network" in entry &&
        fits(entry, url) &&
        contains(entry.network, destination(address)) &&
        !(metadata && entry.network.prefix < entry.network.bytes.length * 8),
    );

  function isOwn(url: URL, address: Address): boolean {
    if (options.ownPort?.() !== portOf(url)) return false;
    if (isThisMachine(address)) return true;
    return (options.ownAddresses?.() ?? []).some((text) => {
      const own = parseAddress(text);
      return own !== null && sameAddress(own, address);
    });
  }

  /** Why not, as the end of a sentence about the address; null where it may be reached. */
  function reasonAgainst(url: URL, text: string, trusted: boolean): { what: string; hint: string } | null {
    const address = parseAddress(text);
    if (address === null) return { what: "is no address", hint: "" };
    if (isOwn(url, address)) return { what: OWN, hint: "" };
    const refusal = trusted ? null : refusalOf(address);
    if (refusal === null || addressAllowed(url, address, refusal.metadata)) return null;
    if (!refusal.metadata && nameAllowed(url)) return null;
    return { what: `is ${refusal.what}`, hint: HINT };
  }

  function refuse(url: URL, because: string, hint: string, via: URL | undefined): never {
    const led = via ? `${nameOf(via)} redirects to ${nameOf(url)}, which` : nameOf(url);
    throw new AppError("forbidden", `${led} may not be fetched: ${because}.${hint && ` ${hint}`}`);
  }

  function checkAddresses(url: URL, addresses: readonly string[], trusted: boolean, via?: URL): void {
    const host = hostOf(url);
    for (const address of addresses) {
      const reason = reasonAgainst(url, address, trusted);
      if (reason === null) continue;
      const subject = address === host ? address : `${host} leads to ${address}, which`;
      refuse(url, `${subject} ${reason.what}`, reason.hint, via);
    }
  }

  /** Either of its addresses is enough: a server often listens on one of them alone. */
  function checkLocalhost(url: URL, trusted: boolean, via: URL | undefined): void {
    const reasons = LOCALHOST_ADDRESSES.map((address) => reasonAgainst(url, address, trusted));
    const reason = reasons.find((one) => one?.what === OWN) ?? reasons[0];
    if (reason && (reason.what === OWN || reasons.every((one) => one !== null)))
      refuse(url, `${hostOf(url)} ${reason.what}`, reason.hint, via);
  }

  return {
    checkUrl(url, trusted, via) {
      if (url.protocol !== "http:" && url.protocol !== "https:")
        refuse(url, "only http and https addresses are", "", via);
      const host = hostOf(url);
      // Resolvers may read what is around an empty part as an address, which the URL's parser then has not seen.
      if (host.split(".").includes("") || host.length > LONGEST_NAME) refuse(url, "that is no name", "", via);
      if (LOCALHOST.test(host)) checkLocalhost(url, trusted, via);
      else if (parseAddress(host)) checkAddresses(url, [host], trusted, via);
      else if (!trusted && PRIVATE_NAMES.test(host) && !nameAllowed(url))
        refuse(url, `${host} is a name of private networks`, HINT, via);
    },
    checkAddresses,
    knownAddresses(url, trusted) {
      const host = hostOf(url);
      if (parseAddress(host)) return [host];
      if (!LOCALHOST.test(host)) return null;
      return LOCALHOST_ADDRESSES.filter((address) => reasonAgainst(url, address, trusted) === null);
    },
  };
}

/** For sentences: where it is, without what may hold a secret (user, path, query). */
export function nameOf(url: URL): string {
  return (url.host === "" ? url.protocol : `${url.protocol}//${url.host}`).slice(0, LONGEST_SHOWN);
}

function fits({ port }: Allowed, url: URL): boolean {
  return port === undefined || port === portOf(url);
}

/** A single address as the place that it leads to, which is how addresses are compared. */
function carried(network: Network): Network {
  if (network.prefix < network.bytes.length * 8) return network;
  const bytes = destination(network.bytes);
  return { bytes, prefix: bytes.length * 8 };
}
