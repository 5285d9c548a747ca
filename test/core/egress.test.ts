/** E1, P4: where requests to addresses from outside may go, and what FETCH_ALLOW changes. */
import { describe, expect, test } from "vitest";
import { parseConfig } from "../../src/config.ts";
import { createEgress, type EgressOptions, parseAllowed } from "../../src/core/egress.ts";
import { INVALID_HOSTS, PRIVATE_HOSTS, PUBLIC_HOSTS } from "../platform/private-addresses.ts";

/** The sentence of the refusal, or null. */
function check(
  url: string,
  options: EgressOptions = {},
  { trusted = false, addresses = [] as string[] } = {},
) {
  const egress = createEgress(options);
  try {
    egress.checkUrl(new URL(url), trusted);
    egress.checkAddresses(new URL(url), addresses, trusted);
    return null;
  } catch (error) {
    expect(error).toMatchObject({ name: "AppError", code: "forbidden", status: 403 });
    return (error as Error).message;
  }
}

describe("E1: the text of a URL", () => {
  test.each(PRIVATE_HOSTS)("%s is refused", (host) => {
    expect(check(`http://${host}/`)).toMatch(/ may not be fetched: /);
    expect(check(`https://${host}:8443/a?b#c`)).toMatch(/ may not be fetched: /);
  });
  test.each(INVALID_HOSTS)("%s is no URL", (host) => expect(URL.canParse(`http://${host}/`)).toBe(false));
  test.each(PUBLIC_HOSTS)("%s may be asked", (host) => expect(check(`https://${host}/`)).toBeNull());
  test.each([
    "ftp://a.example/",
    "file:///etc/passwd",
    "data:text/plain,a",
    "blob:http://a/b",
    "ws://a.example/",
    "javascript:1",
  ])("%s is refused", (url) =>
    expect(check(url, {}, { trusted: true })).toContain("only http and https addresses are"),
  );
});

describe("sentences", () => {
  test("stay short, however long the name is", () => {
    expect(check(`http://${"a.".repeat(9_999)}example/`)?.length).toBeLessThan(400);
    expect(check(`http://${"a.".repeat(120)}example/`)).toBeNull();
  });
  test("say which address and why, and nothing of user, path and query", () => {
    expect(check("http://me:secret@10.0.0.1:81/private?key=secret")).toBe(
      "http://10.0.0.1:81 may not be fetched: 10.0.0.1 is a private address. The operator can allow it in FETCH_ALLOW.",
    );
    expect(check("https://a.example/", {}, { addresses: ["8.8.8.8", "fe80::1%eth0"] })).toBe(
      "https://a.example may not be fetched: a.example leads to fe80::1%eth0, which is a link-local address. The operator can allow it in FETCH_ALLOW.",
    );
  });
  test("say what redirected there", () => {
    const refuse = () =>
      createEgress().checkUrl(new URL("http://[::1]/"), false, new URL("https://a.example/x?key=secret"));
    expect(refuse).toThrow(
      "https://a.example redirects to http://[::1], which may not be fetched: ::1 is a loopback address.",
    );
  });
});

test("one refused address of a name refuses them all", () => {
  expect(check("http://a.example/", {}, { addresses: ["8.8.8.8", "1.1.1.1", "2606:4700::1"] })).toBeNull();
  expect(check("http://a.example/", {}, { addresses: ["8.8.8.8", "::ffff:192.168.0.1"] })).toContain(
    "::ffff:192.168.0.1",
  );
  expect(check("http://a.example/", {}, { addresses: ["not an address"] })).toContain("is no address");
});

describe("FETCH_ALLOW", () => {
  const at = (url: string, allow: string, addresses: string[] = []) =>
    check(url, { allow: [allow] }, { addresses }) === null;

  test("lets an address be reached, with one port or with any", () => {
    expect(at("http://10.0.0.1/", "10.0.0.1")).toBe(true);
    expect(at("http://10.0.0.1:99/", "10.0.0.1")).toBe(true);
    expect(at("http://10.0.0.1:99/", "10.0.0.1:99")).toBe(true);
    expect(at("https://10.0.0.1/", "10.0.0.1:443")).toBe(true);
    expect(at("http://10.0.0.1:98/", "10.0.0.1:99")).toBe(false);
    expect(at("http://10.0.0.2/", "10.0.0.1")).toBe(false);
    expect(at("http://[fd00::1]:99/", "[fd00::1]:99")).toBe(true);
    expect(at("http://[fd00::1]/", "fd00::1")).toBe(true);
    expect(at("http://[::ffff:10.0.0.1]/", "10.0.0.1")).toBe(true);
    expect(at("http://10.0.0.1/", "::ffff:10.0.0.1")).toBe(true);
  });
  test("lets a range be reached, by address and by name", () => {
    expect(at("http://10.1.2.3/", "10.1.0.0/16")).toBe(true);
    expect(at("http://10.2.0.1/", "10.1.0.0/16")).toBe(false);
    expect(at("http://a.example/", "10.1.0.0/16", ["10.1.2.3"])).toBe(true);
    expect(at("http://a.example/", "10.1.0.0/16", ["10.1.2.3", "10.2.0.1"])).toBe(false);
    expect(at("http://[fd12::1]/", "fd00::/8")).toBe(true);
  });
  test("lets a name be reached wherever it leads, but not what else leads there", () => {
    expect(at("http://nas.local/", "nas.local", ["192.168.1.9"])).toBe(true);
    expect(at("http://NAS.local.:8080/", "Nas.local:8080", ["192.168.1.9"])).toBe(true);
    expect(at("http://nas.local/", "nas.local:8080", ["192.168.1.9"])).toBe(false);
    expect(at("http://other.example/", "nas.local", ["192.168.1.9"])).toBe(false);
  });
  test("of localhost or of one of its addresses opens localhost to that", () => {
    const known = (allow: string[]) =>
      createEgress({ allow }).knownAddresses(new URL("http://localhost:11434/"), false);
    expect(at("http://localhost:11434/", "localhost:11434")).toBe(true);
    expect(known(["localhost:11434"])).toEqual(["127.0.0.1", "::1"]);
    expect(at("http://localhost:11434/", "127.0.0.1:11434")).toBe(true);
    expect(known(["127.0.0.1:11434"])).toEqual(["127.0.0.1"]);
    expect(at("http://localhost:11435/", "127.0.0.1:11434")).toBe(false);
  });
  test("opens a metadata address only by its own name", () => {
    expect(at("http://169.254.169.254/", "169.254.0.0/16")).toBe(false);
    expect(at("http://169.254.169.254/", "0.0.0.0/0")).toBe(false);
    expect(at("http://a.example/", "a.example", ["169.254.169.254"])).toBe(false);
    expect(at("http://169.254.169.254/", "169.254.169.254")).toBe(true);
  });
  test.each([
    "",
    "a b",
    "http://a",
    "a/b",
    "10.0.0.0/33",
    "a:0",
    "a:65536",
    "a:b",
    "u@a",
    "[::1",
    "*.lan",
    "::1/129",
  ])("%j is no entry", (entry) => expect(parseAllowed(entry)).toBeNull());
});

describe("P4: the service itself is never reached", () => {
  const own: EgressOptions = {
    allow: ["0.0.0.0/0", "::/0", "localhost", "a.localhost", "box.lan", "me.example"],
    ownPort: () => 8000,
    ownAddresses: () => ["192.168.1.5", "2606:4700::5"],
  };
  test.each([
    "127.0.0.1",
    "127.9.9.9",
    "2130706433",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "localhost",
    "a.localhost",
    "0.0.0.0",
    "[::]",
    "192.168.1.5",
    "[::ffff:192.168.1.5]",
    "[2606:4700::5]",
  ])("as %s", (host) => {
    for (const trusted of [false, true])
      expect(check(`http://${host}:8000/api/chat`, own, { trusted })).toContain("is the service itself");
    expect(check(`http://${host}:8001/`, own)).toBeNull();
  });
  test("under a name", () => {
    for (const addresses of [["127.0.0.1"], ["192.168.1.6", "192.168.1.5"], ["::ffff:7f00:1"]])
      expect(check("http://box.lan:8000/", own, { addresses })).toContain("is the service itself");
    expect(check("http://box.lan/", { ...own, ownPort: () => 80 }, { addresses: ["127.0.0.1"] })).toContain(
      "itself",
    );
    expect(check("https://box.lan/", { ...own, ownPort: () => 443 }, { addresses: ["127.0.0.1"] })).toContain(
      "itself",
    );
  });
});

test("a trusted address is reached wherever it is", () => {
  for (const host of ["10.0.0.1", "localhost", "nas.local"])
    expect(check(`http://${host}:8080/`, {}, { trusted: true, addresses: ["192.168.0.1"] })).toBeNull();
});

test("FETCH_ALLOW is read with the other settings", () => {
  const read = (FETCH_ALLOW: string) => parseConfig({ FETCH_ALLOW }, { runtime: "node" }).fetch.allow;
  expect(read("")).toEqual([]);
  expect(read("Localhost:11434, 10.0.0.0/8 ,[::1]:80")).toEqual([
    "localhost:11434",
    "10.0.0.0/8",
    "[::1]:80",
  ]);
  expect(() => read("localhost,http://box.lan")).toThrow(
    "FETCH_ALLOW has to be host names, addresses or CIDR ranges with commas between them",
  );
});
