/**
 * Which IP addresses are no place on the public internet. Pure; the ranges are those that the IANA IPv4 and IPv6
 * Special-Purpose Address Registries and the multicast and address-space registries do not call globally reachable, and
 * the fixed addresses at which clouds hand out credentials.
 */

/** 4 or 16 bytes. */
export type Address = readonly number[];

export interface Network {
  bytes: Address;
  /** Bits that count, from the front. */
  prefix: number;
}

/** Why an address may not be reached. */
export interface Refusal {
  /** "a private address", as part of a sentence. */
  what: string;
  /** Credentials of the machine are given out there: a range around it does not allow it. */
  metadata: boolean;
}

/** Metadata and platform services of AWS (IMDS, ECS, EKS), Google, Azure (and its wire server), Alibaba, Oracle. */
const METADATA = [
  "169.254.169.254",
  "169.254.170.2",
  "169.254.170.23",
  "168.63.129.16",
  "100.100.100.200",
  "192.0.0.192",
  "fd00:ec2::254",
  "fd00:ec2::23",
  "fd20:ce::254",
].map(networkOf);

/** The first that holds an address names it. */
const RANGES = (
  [
    ["0.0.0.0/8", "an unspecified address"],
    ["10.0.0.0/8", "a private address"],
    ["100.64.0.0/10", "a carrier's shared address"],
    ["127.0.0.0/8", "a loopback address"],
    ["169.254.0.0/16", "a link-local address"],
    ["172.16.0.0/12", "a private address"],
    ["192.0.0.0/24", "reserved for protocols"],
    ["192.0.2.0/24", "reserved for documentation"],
    ["192.88.99.0/24", "a retired relay address"],
    ["192.168.0.0/16", "a private address"],
    ["198.18.0.0/15", "reserved for benchmarks"],
    ["198.51.100.0/24", "reserved for documentation"],
    ["203.0.113.0/24", "reserved for documentation"],
    ["224.0.0.0/4", "a multicast address"],
    ["255.255.255.255", "the broadcast address"],
    ["240.0.0.0/4", "a reserved address"],
    ["::", "an unspecified address"],
    ["::1", "a loopback address"],
    ["64:ff9b:1::/48", "a local translation address"],
    ["100::/64", "a discard-only address"],
    ["fc00::/7", "a private address"],
    ["fe80::/10", "a link-local address"],
    ["fec0::/10", "a site-local address"],
    ["ff00::/8", "a multicast address"],
    // Teredo, ORCHID, benchmarks and other protocols' own.
    ["2001::/23", "reserved for protocols"],
    ["2001:db8::/32", "reserved for documentation"],
    ["2002::/16", "a 6to4 address"],
    ["3fff::/20", "reserved for documentation"],
  ] as const
).map(([range, what]) => ({ network: networkOf(range), what }));

/** The only IPv6 space that is given out for the public internet. */
const GLOBAL_6 = networkOf("2000::/3");
/** IPv6 addresses that are an IPv4 one in their last 32 bits, and lead there: mapped, and the well-known NAT64 prefix. */
const CARRIERS_OF_4 = ["::ffff:0:0/96", "64:ff9b::/96"].map(networkOf);

const LOOPBACK = ["127.0.0.0/8", "::1"].map(networkOf);
const UNSPECIFIED = ["0.0.0.0/8", "::"].map(networkOf);

/** Dotted decimal with four parts, or any spelling of RFC 4291, with or without brackets and zone; null for what is none. */
export function parseAddress(text: string): Address | null {
  const bare = text.replace(/^\[(.*)\]$/, "$1");
  return bare.includes(":") ? parse6(bare.replace(/%.*$/, "")) : parse4(bare);
}

/** An address with or without `/bits`; null for what is none. */
export function parseNetwork(text: string): Network | null {
  const [, address = text, bits] = /^(.+)\/(\d{1,3})$/.exec(text) ?? [];
  const bytes = parseAddress(address);
  if (bytes === null) return null;
  const prefix = bits === undefined ? bytes.length * 8 : Number(bits);
  return prefix <= bytes.length * 8 ? { bytes, prefix } : null;
}

export function contains({ bytes, prefix }: Network, address: Address): boolean {
  if (bytes.length !== address.length) return false;
  const whole = prefix >> 3;
  for (let i = 0; i < whole; i++) if (bytes[i] !== address[i]) return false;
  const rest = 8 - (prefix & 7);
  return rest === 8 || (bytes[whole] as number) >> rest === (address[whole] as number) >> rest;
}

/** Where packets to the address go: the IPv4 address that it carries, or itself. */
export function destination(address: Address): Address {
  return CARRIERS_OF_4.some((network) => contains(network, address)) ? address.slice(12) : address;
}

/** Why the address is none of the public internet; null where it is one. */
export function refusalOf(address: Address): Refusal | null {
  const target = destination(address);
  if (METADATA.some((network) => contains(network, target)))
    return { what: "a cloud's metadata address", metadata: true };
  const range = RANGES.find(({ network }) => contains(network, target));
  if (range) return { what: range.what, metadata: false };
  if (target.length === 4 || contains(GLOBAL_6, target)) return null;
  return { what: "outside the public address space", metadata: false };
}

/** Whether this machine answers there whatever its own addresses are. */
export function isThisMachine(address: Address): boolean {
  const target = destination(address);
  return [...LOOPBACK, ...UNSPECIFIED].some((network) => contains(network, target));
}

export function sameAddress(a: Address, b: Address): boolean {
  const [x, y] = [destination(a), destination(b)];
  return x.length === y.length && x.every((byte, i) => byte === y[i]);
}

function networkOf(text: string): Network {
  return parseNetwork(text) as Network;
}

function parse4(text: string): Address | null {
  const parts = text.split(".");
  if (parts.length !== 4 || !parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part))) return null;
  const bytes = parts.map(Number);
  return bytes.every((byte) => byte <= 255) ? bytes : null;
}

function parse6(text: string): Address | null {
  const [head = "", tail, more] = text.split("::");
  if (more !== undefined) return null;
  const before = groups(head, tail === undefined);
  const after = tail === undefined ? [] : groups(tail, true);
  if (before === null || after === null) return null;
  const gap = 16 - before.length - after.length;
  if (tail === undefined ? gap !== 0 : gap < 2) return null;
  return [...before, ...Array<number>(gap).fill(0), ...after];
}

/** The bytes of groups with colons between them; the last may be an IPv4 address where they are the end. */
function groups(text: string, isEnd: boolean): number[] | null {
  if (text === "") return [];
  const bytes: number[] = [];
  const parts = text.split(":");
  for (const [i, part] of parts.entries()) {
    if (isEnd && i === parts.length - 1 && part.includes(".")) {
      const last = parse4(part);
      if (last === null) return null;
      bytes.push(...last);
    } else if (/^[0-9a-f]{1,4}$/i.test(part)) {
      const group = Number.parseInt(part, 16);
      bytes.push(group >> 8, group & 0xff);
    } else return null;
  }
  return bytes;
}
