/** E1: which addresses are no place on the public internet, by the registries' ranges and in every spelling. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { contains, type Network, parseAddress, parseNetwork, refusalOf } from "../../src/core/address.ts";

/** As IANA's Special-Purpose Address Registries and multicast registries list them, globally reachable ones left out. */
const PRIVATE_4 = [
  ...["0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"],
  ...["192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24"],
  ...["203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"],
].map((text) => parseNetwork(text) as Network);
const PRIVATE_6 = [
  ...[
    "::/128",
    "::1/128",
    "64:ff9b:1::/48",
    "100::/64",
    "2001::/23",
    "2001:db8::/32",
    "2002::/16",
    "3fff::/20",
  ],
  ...["5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8", "::/96", "4000::/3", "8000::/1"],
].map((text) => parseNetwork(text) as Network);

/** An address inside the network: its first bits, and others behind. */
function within(network: Network, random: Uint8Array): number[] {
  return network.bytes.map((byte, i) => {
    const fixed = Math.min(8, Math.max(0, network.prefix - i * 8));
    const mask = (0xff << (8 - fixed)) & 0xff;
    return (byte & mask) | ((random[i] as number) & ~mask & 0xff);
  });
}

const bytes = (n: number) => fc.uint8Array({ minLength: n, maxLength: n });
const private4 = fc.tuple(fc.constantFrom(...PRIVATE_4), bytes(4)).map(([net, rest]) => within(net, rest));
const private6 = fc.tuple(fc.constantFrom(...PRIVATE_6), bytes(16)).map(([net, rest]) => within(net, rest));
const public4 = bytes(4)
  .map((address) => [...address])
  .filter((address) => !PRIVATE_4.some((net) => contains(net, address)))
  .filter((address) => address.join(".") !== "168.63.129.16");

/** Numbers as C's inet_aton reads them: any base, the last one standing for all bytes that are left. */
const spelled4 = (address: fc.Arbitrary<number[]>) =>
  fc
    .tuple(address, fc.integer({ min: 1, max: 4 }), fc.array(fc.nat(5), { minLength: 4, maxLength: 4 }))
    .map(([parts, count, styles]) => {
      const last = parts.slice(count - 1).reduce((sum, byte) => sum * 256 + byte, 0);
      return [...parts.slice(0, count - 1), last].map((n, i) => inStyle(n, styles[i] as number)).join(".");
    });

function inStyle(n: number, style: number): string {
  if (style === 1) return `0x${n.toString(16)}`;
  if (style === 2) return `0X000${n.toString(16).toUpperCase()}`;
  if (style === 3) return `00${n.toString(8)}`;
  if (style === 4) return String(n).replace(/\d/g, (digit) => String.fromCharCode(0xff10 + Number(digit)));
  if (style === 5) return String(n).replace(/\d/g, (digit) => `%3${digit}`);
  return String(n);
}

/** With and without zeros, in either case, with a gap wherever there are zeros, the end dotted or not. */
const spelled6 = (address: fc.Arbitrary<number[]>) =>
  fc
    .tuple(address, fc.boolean(), fc.boolean(), fc.boolean(), fc.nat(6))
    .map(([all, pad, upper, dotted, gap]) => {
      const groups = Array.from({ length: 8 }, (_, i) =>
        (((all[2 * i] as number) << 8) | (all[2 * i + 1] as number)).toString(16).padStart(pad ? 4 : 1, "0"),
      );
      if (dotted) groups.splice(6, 2, all.slice(12).join("."));
      let text = groups.join(":");
      if (/^0+$/.test(groups[gap] ?? "")) {
        const [before, after] = [groups.slice(0, gap), groups.slice(gap + 1)];
        text = `${before.join(":")}::${after.join(":")}`;
      }
      return upper ? text.toUpperCase() : text;
    });

const refused = (host: string): boolean => {
  const address = parseAddress(new URL(`http://${host}/`).hostname);
  return address !== null && refusalOf(address) !== null;
};
const hex = (parts: number[]) => parts.map((byte) => byte.toString(16).padStart(2, "0")).join("");
const inside6 = (prefix: string, parts: number[]) => `[${prefix}${hex(parts).replace(/^(.{4})/, "$1:")}]`;

describe("E1: any spelling of an address", () => {
  test("of a private IPv4 range is refused", () => {
    fc.assert(fc.property(spelled4(private4), (host) => refused(host)));
  });
  test("of a public IPv4 address is not", () => {
    fc.assert(fc.property(spelled4(public4), (host) => !refused(host)));
  });
  test("of a private IPv6 range is refused", () => {
    fc.assert(
      fc.property(spelled6(private6), (text) => refused(`[${text}]`)),
      { examples: [["::1"], ["::"]] },
    );
  });
  test("of a public IPv6 address is not", () => {
    const public6 = bytes(16)
      .map((address) => within(parseNetwork("2000::/3") as Network, address))
      .filter((address) => !PRIVATE_6.some((net) => contains(net, address)));
    fc.assert(fc.property(spelled6(public6), (text) => !refused(`[${text}]`)));
  });
  test("inside IPv6 counts as the IPv4 address where packets go to it, and is refused where that is unclear", () => {
    fc.assert(
      fc.property(private4, (address) => {
        for (const prefix of ["::ffff:", "64:ff9b::", "64:ff9b:1::", "::"])
          expect(refused(inside6(prefix, address))).toBe(true);
        expect(refused(`[2002:${hex(address).replace(/^(.{4})/, "$1:")}::1]`)).toBe(true);
      }),
    );
    fc.assert(
      fc.property(public4, (address) => {
        for (const prefix of ["::ffff:", "64:ff9b::"]) expect(refused(inside6(prefix, address))).toBe(false);
      }),
    );
  });
});

test.each([
  "",
  "1.2.3",
  "1.2.3.256",
  "01.2.3.4",
  "1.2.3.4.5",
  "::1::",
  ":::",
  "1:2:3:4:5:6:7",
  "1::2:3:4:5:6:7:8",
  "g::1",
  "12345::",
  "name",
])("%j is no address", (text) => expect(parseAddress(text)).toBeNull());

test("what a resolver adds to an address is no part of it", () => {
  expect(parseAddress("fe80::1%eth0")).toEqual(parseAddress("[FE80:0::1]"));
  expect(parseAddress("::ffff:10.0.0.1")).toEqual(parseAddress("::ffff:a00:1"));
});

test("ranges", () => {
  expect(parseNetwork("10.0.0.0/33")).toBeNull();
  expect(parseNetwork("::/129")).toBeNull();
  const network = parseNetwork("10.1.128.0/17") as Network;
  expect(contains(network, parseAddress("10.1.128.1") ?? [])).toBe(true);
  expect(contains(network, parseAddress("10.1.127.255") ?? [])).toBe(false);
  expect(contains(parseNetwork("0.0.0.0/0") as Network, [1, 2, 3, 4])).toBe(true);
});
