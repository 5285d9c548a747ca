/** E1 on a host: what is checked is what is connected to, on real servers. Runs on Node here, and on Bun by its neighbour. */
import { lookup } from "node:dns/promises";
import { hostname } from "node:os";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { parseAddress, refusalOf } from "../../src/core/address.ts";
import type { GuardedInit } from "../../src/core/fetch.ts";
import { createLocalFetch } from "../../src/platform/local-fetch.ts";
import { CERTIFICATE } from "../web-certificate.ts";
import { startWebServer, type WebRequest, type WebServer } from "../web-server.ts";
import { INVALID_HOSTS, PRIVATE_HOSTS } from "./private-addresses.ts";

/** A second address of this machine for a server of its own. */
const OTHER_LOOPBACK = "127.0.0.2";
const MIB = 1024 * 1024;
/** What this machine's name leads to, where it is known. */
const machine = await lookup(hostname()).then(
  ({ address }) => address,
  () => "8.8.8.8",
);
const isPrivate = refusalOf(parseAddress(machine) ?? []) !== null;

let web: WebServer;
let secure: WebServer;
beforeAll(async () => {
  [web, secure] = await Promise.all([startWebServer(), startWebServer({ tls: true })]);
});
afterAll(async () => {
  await Promise.all([web, secure].map((server) => server[Symbol.asyncDispose]()));
});
beforeEach(() => {
  for (const server of [web, secure]) server.requests.length = 0;
});

/** The test's internet: names that lead to the servers here, whose address is taken for a public one. */
const names: Record<string, string[]> = {
  "site.example": ["127.0.0.1"],
  "other.example": ["127.0.0.1"],
  "private.example": ["10.0.0.1"],
  "mixed.example": ["127.0.0.1", "192.168.0.1"],
  "nowhere.example": [],
};
const asked: string[] = [];
const lookUp = async (name: string): Promise<string[]> => {
  asked.push(name);
  const found = names[name];
  if (found) return found;
  throw Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), { code: "ENOTFOUND" });
};
const guarded = createLocalFetch({ allow: ["127.0.0.1"], lookup: lookUp });
const site = (path: string, name = "site.example") => `http://${name}:${web.port}${path}`;
const secureSite = (path: string, name = "site.example") => `https://${name}:${secure.port}${path}`;
const to = (target: string, more = "") => `/redirect?to=${encodeURIComponent(target)}${more}`;

async function echo(url: string, init?: GuardedInit): Promise<WebRequest> {
  return (await (await guarded(url, init)).json()) as WebRequest;
}

describe("E1: no spelling of a private address is connected to", () => {
  const closed = createLocalFetch({ lookup: lookUp });
  test.each(PRIVATE_HOSTS)("%s", async (host) => {
    const before = web.connections;
    asked.length = 0;
    await expect(closed(`http://${host}:${web.port}/text`)).rejects.toMatchObject({ code: "forbidden" });
    expect([web.connections, asked]).toEqual([before, []]);
  });
  test.each(INVALID_HOSTS)("%s", async (host) => {
    await expect(closed(`http://${host}/`)).rejects.toMatchObject({ code: "invalid_request" });
  });

  test("nor behind a name, not even where another of its addresses is public", async () => {
    for (const name of ["private.example", "mixed.example"])
      await expect(guarded(site("/text", name))).rejects.toMatchObject({ code: "forbidden" });
    await expect(guarded(site("/text", "mixed.example"))).rejects.toThrow(
      `http://mixed.example:${web.port} may not be fetched: mixed.example leads to 192.168.0.1, which is a private address.`,
    );
    expect(web.requests).toEqual([]);
  });

  test.skipIf(!isPrivate)("nor behind what the system's own resolver says", async () => {
    const before = web.connections;
    await expect(createLocalFetch()(`http://${hostname()}:${web.port}/`)).rejects.toMatchObject({
      code: "forbidden",
      message: expect.stringContaining(machine),
    });
    expect(web.connections).toBe(before);
  });

  test.each(PRIVATE_HOSTS)("nor at the end of a redirect to %s", async (host) => {
    const closedBehind = createLocalFetch({ allow: ["site.example"], lookup: lookUp });
    const before = web.connections;
    const failure = closedBehind(site(to(`http://${host}:${web.port}/text`)));
    await expect(failure).rejects.toMatchObject({ code: "forbidden" });
    await expect(failure).rejects.toThrow(`http://site.example:${web.port} redirects to `);
    expect(web.connections).toBe(before + 1);
  });
});

describe.skipIf(process.platform !== "linux")("E1: a name that changes its address", () => {
  let inside: WebServer;
  beforeAll(async () => {
    inside = await startWebServer({ host: OTHER_LOOPBACK, port: web.port });
  });
  afterAll(() => inside[Symbol.asyncDispose]());

  /** Leads to the public server when it is asked first, and inside from then on. */
  function rebinding() {
    let times = 0;
    const lookup = async () => [times++ === 0 ? "127.0.0.1" : OTHER_LOOPBACK];
    return { fetch: createLocalFetch({ allow: ["127.0.0.1"], lookup }), times: () => times };
  }

  test("between check and use is asked once, and the connection goes to what was checked", async () => {
    const { fetch, times } = rebinding();
    const response = await fetch(site("/echo", "rebind.example"));
    expect(((await response.json()) as WebRequest).headers.host).toBe(`rebind.example:${web.port}`);
    expect([times(), web.requests.length, inside.connections]).toEqual([1, 1, 0]);
  });

  test("between two requests is checked anew", async () => {
    const { fetch, times } = rebinding();
    await (await fetch(site("/text", "rebind.example"))).text();
    await expect(fetch(site("/text", "rebind.example"))).rejects.toMatchObject({ code: "forbidden" });
    expect([times(), inside.connections]).toEqual([2, 0]);
  });

  test("between a request and its redirect is checked anew", async () => {
    const { fetch, times } = rebinding();
    await expect(fetch(site(to("/text"), "rebind.example"))).rejects.toThrow(
      `rebind.example leads to ${OTHER_LOOPBACK}, which is a loopback address`,
    );
    expect([times(), inside.connections]).toEqual([2, 0]);
  });

  test("is found where it was checked, though the first of its addresses does not answer", async () => {
    const both = createLocalFetch({ allow: ["127.0.0.0/8"], lookup: async () => ["127.0.0.9", "127.0.0.1"] });
    expect(await (await both(site("/text"))).text()).toBe("hello");
  });
});

describe("P4, FETCH_ALLOW and trust", () => {
  test("our own port is never reached, whatever is allowed", async () => {
    const own = { allow: ["0.0.0.0/0", "::/0", "localhost"], ownPort: () => web.port, lookup: lookUp };
    const before = web.connections;
    for (const host of [
      "127.0.0.1",
      "127.7.7.7",
      "2130706433",
      "localhost",
      "[::ffff:7f00:1]",
      "0.0.0.0",
      "site.example",
    ])
      for (const trusted of [false, true])
        await expect(createLocalFetch(own)(`http://${host}:${web.port}/`, { trusted })).rejects.toThrow(
          "is the service itself",
        );
    expect(web.connections).toBe(before);
    const other = createLocalFetch({ ...own, ownPort: () => 1 });
    expect(await (await other(`http://localhost:${web.port}/text`)).text()).toBe("hello");
  });

  test("a trusted address may be private; what it redirects to elsewhere may not", async () => {
    const strict = createLocalFetch({ lookup: lookUp });
    const trusted = true;
    expect(await (await strict(`${web.url}/text`, { trusted })).text()).toBe("hello");
    expect(await (await strict(`${web.url}${to("/text")}`, { trusted })).text()).toBe("hello");
    await expect(strict(`${web.url}${to(site("/text"))}`, { trusted })).rejects.toMatchObject({
      code: "forbidden",
    });
    await expect(strict("file:///etc/passwd", { trusted })).rejects.toMatchObject({ code: "forbidden" });
    await expect((await strict(`${web.url}/bytes`, { trusted, maxBytes: 99 })).text()).rejects.toMatchObject({
      code: "payload_too_large",
    });
  });
});

describe("requests", () => {
  test("carry method, headers and body, and none of what belongs to the connection", async () => {
    const headers = {
      "x-api-key": "k",
      host: "internal",
      connection: "upgrade",
      "transfer-encoding": "chunked",
    };
    const got = await echo(site("/echo?q=1#part"), { method: "post", headers, body: "grün" });
    expect(got).toMatchObject({ method: "POST", path: "/echo?q=1", body: "grün" });
    expect(got.headers).toMatchObject({
      "x-api-key": "k",
      host: `site.example:${web.port}`,
      "content-length": "5",
      "content-type": "text/plain;charset=UTF-8",
      "accept-encoding": "gzip, deflate, br",
    });
    expect(got.headers).not.toHaveProperty("transfer-encoding");
    const bytes = await echo(site("/echo"), { method: "PUT", body: new TextEncoder().encode("bytes") });
    expect(bytes).toMatchObject({ method: "PUT", body: "bytes" });
    expect((await echo(site("/echo"), { method: "POST" })).headers["content-length"]).toBe("0");
  });

  test("carry the user of the address as a header", async () => {
    const response = await guarded(`http://me:p%40ss@site.example:${web.port}/echo`);
    expect(response.url).toBe(site("/echo"));
    const { headers } = (await response.json()) as WebRequest;
    expect(headers.authorization).toBe(`Basic ${btoa("me:p@ss")}`);
    const own = { headers: { authorization: "Bearer t" } };
    expect((await echo(`http://me@site.example:${web.port}/echo`, own)).headers.authorization).toBe(
      "Bearer t",
    );
  });

  test.each<[GuardedInit, string]>([
    [{ method: "CONNECT" }, "invalid_request"],
    [{ method: "G E T" }, "invalid_request"],
    [{ body: "x" }, "invalid_request"],
    [{ headers: { authorization: "Bearer s3cret\n" }, body: "x" }, "invalid_request"],
    [{ headers: { "bad name": "s3cret" } }, "invalid_request"],
  ])("that make no sense are refused: %j", async (init, code) => {
    await expect(guarded(site("/echo"), init)).rejects.toMatchObject({ code });
  });

  test("get answers as they are", async () => {
    const response = await guarded(site("/text?status=404&type=text/html"));
    expect(response.status).toBe(404);
    expect(response.headers.get("content-type")).toBe("text/html");
    expect(response.url).toBe(site("/text?status=404&type=text/html"));
    expect(response.redirected).toBe(false);
    const head = await guarded(site("/text"), { method: "HEAD" });
    expect([head.status, await head.text()]).toEqual([200, ""]);
    const empty = await guarded(site("/text?status=204&body="));
    expect([empty.status, empty.body]).toEqual([204, null]);
  });
});

describe("redirects", () => {
  test.each([
    ...[
      [301, "POST", "GET"],
      [302, "POST", "GET"],
      [303, "POST", "GET"],
      [303, "PUT", "GET"],
      [307, "POST", "POST"],
    ],
    ...[
      [308, "POST", "POST"],
      [301, "PUT", "PUT"],
      [302, "DELETE", "DELETE"],
      [303, "HEAD", "HEAD"],
    ],
  ] as [number, string, string][])("%i of %s becomes %s", async (status, method, then) => {
    const body = method === "HEAD" || method === "DELETE" ? undefined : "text";
    const headers = { "content-type": "text/x" };
    const response = await guarded(site(to("/echo", `&status=${status}`)), { method, body, headers });
    await response.body?.cancel();
    expect([response.url, response.redirected]).toEqual([site("/echo"), true]);
    const last = web.requests[1];
    expect([last?.method, last?.body]).toEqual([then, then === "GET" ? "" : (body ?? "")]);
    expect(last?.headers["content-type"]).toBe(then === "GET" ? undefined : "text/x");
  });

  test("five are followed, a sixth is not", async () => {
    const chain = (n: number): string => (n === 0 ? "/text" : to(chain(n - 1)));
    expect(await (await guarded(site(chain(5)))).text()).toBe("hello");
    web.requests.length = 0;
    await expect(guarded(site(chain(6)))).rejects.toMatchObject({
      code: "unreachable",
      message: expect.stringContaining("redirects more than 5 times"),
    });
    expect(web.requests.length).toBe(6);
  });

  test("are handed out or refused on demand", async () => {
    const response = await guarded(site(to("http://10.0.0.1/")), { redirect: "manual" });
    expect([response.status, response.headers.get("location")]).toEqual([302, "http://10.0.0.1/"]);
    await response.body?.cancel();
    await expect(guarded(site(to("/text")), { redirect: "error" })).rejects.toMatchObject({
      code: "unreachable",
    });
    await expect(guarded(site("/redirect?to=http://"))).rejects.toMatchObject({ code: "unreachable" });
    await expect(guarded(site(to("file:///etc/passwd")))).rejects.toMatchObject({ code: "forbidden" });
  });

  const secrets = {
    ...{ authorization: "Bearer s", cookie: "a=s", "x-api-key": "s", "proxy-authorization": "s" },
    "mcp-session-id": "s",
  };
  test("keep credentials on the origin and nowhere else", async () => {
    const headers = { ...secrets, "accept-language": "de" };
    expect((await echo(site(to("/echo")), { headers })).headers).toMatchObject(secrets);
    const elsewhere = [site("/echo", "other.example"), site(to(site("/echo")), "other.example")];
    for (const target of elsewhere) {
      const got = await echo(site(to(target)), { headers });
      expect(got.headers["accept-language"]).toBe("de");
      for (const name of Object.keys(secrets)) expect(got.headers).not.toHaveProperty(name);
    }
    expect(
      (await echo(`http://me:s@site.example:${web.port}${to(elsewhere[0] as string)}`)).headers,
    ).not.toHaveProperty("authorization");
    const named = `http://me:s@other.example:${web.port}/echo`;
    const response = await guarded(site(to(named)));
    expect(response.url).toBe(site("/echo", "other.example"));
    expect(((await response.json()) as WebRequest).headers).not.toHaveProperty("authorization");
  });
});

describe("TLS", () => {
  test("wants a certificate that is trusted, for the name and not for the address", async () => {
    await expect(guarded(secureSite("/text"))).rejects.toMatchObject({
      code: "unreachable",
      message: expect.stringContaining("has no certificate that can be trusted"),
    });
    expect(secure.requests).toEqual([]);
    const before = getCACertificates("default");
    setDefaultCACertificates([...before, CERTIFICATE]);
    try {
      const got = await echo(secureSite("/echo"));
      expect(got.headers.host).toBe(`site.example:${secure.port}`);
      for (const url of [
        secureSite("/echo", "other.example"),
        `${secure.url}/echo`,
        secureSite("/echo", "site.example."),
      ])
        if (url.includes("site.example")) expect((await guarded(url)).status).toBe(200);
        else await expect(guarded(url)).rejects.toThrow("has no certificate");
      await downgrade();
    } finally {
      setDefaultCACertificates(before);
    }
  });

  /** From https to http: credentials and bodies stay behind. */
  async function downgrade(): Promise<void> {
    const headers = { authorization: "Bearer s" };
    const got = await echo(secureSite(to(site("/echo"))), { headers });
    expect(got.headers).not.toHaveProperty("authorization");
    web.requests.length = 0;
    const post = { method: "POST", body: "secret" };
    await expect(guarded(secureSite(to(site("/echo"), "&status=307")), post)).rejects.toThrow(
      "readable on the way",
    );
    expect(web.requests).toEqual([]);
    expect((await echo(site(to(secureSite("/echo"), "&status=307")), post)).body).toBe("secret");
  }
});

describe("bodies", () => {
  test.each(["gzip", "deflate", "deflate-raw", "br"])("in %s are decoded", async (encoding) => {
    const body = "wörter ".repeat(20_000);
    const response = await guarded(site(`/text?encoding=${encoding}&body=${encodeURIComponent("wörter ")}`));
    expect(await response.text()).toBe("wörter ");
    expect(response.headers.get("content-encoding")).toBeNull();
    const long = await guarded(site(`/bytes?encoding=${encoding}&n=${body.length}`));
    expect((await long.bytes()).length).toBe(body.length);
  });

  test("in another encoding, or in two, are refused", async () => {
    for (const encoding of ["zstd", "gzip, gzip", "br,gzip"])
      await expect(guarded(site(`/text?encoding=${encoding}`))).rejects.toThrow("cannot be read");
  });

  test("that are not what they say are a failure", async () => {
    for (const encoding of ["gzip", "deflate", "br"]) {
      const response = await guarded(site(`/text?encoding=${encoding}&lie&body=${"plain".repeat(99)}`));
      await expect(response.text()).rejects.toMatchObject({ code: "unreachable" });
    }
  });

  test.each([
    ["as they come", "/bytes"],
    ["unfolded from gzip", "/bytes?encoding=gzip"],
    ["unfolded from br", "/bytes?encoding=br"],
  ])("end at 10 MiB, counted %s", async (_how, path) => {
    const response = await guarded(site(path));
    let total = 0;
    const read = async () => {
      for await (const piece of response.body as unknown as AsyncIterable<Uint8Array>) total += piece.length;
    };
    await expect(read()).rejects.toMatchObject({
      code: "payload_too_large",
      message: `What http://site.example:${web.port} sends is larger than 10 MiB.`,
    });
    expect(total).toBeLessThanOrEqual(10 * MIB);
    expect(total).toBeGreaterThan(9 * MIB);
    await web.idle();
  });

  test("end there too when they unfold to nothing", async () => {
    const response = await guarded(site("/nothing"), { maxBytes: MIB });
    await expect(response.text()).rejects.toMatchObject({ code: "payload_too_large" });
    await web.idle();
  });

  test("of exactly the limit pass, one byte more does not", async () => {
    const size = async (n: number) =>
      (await (await guarded(site(`/bytes?n=${n}`), { maxBytes: 70_000 })).bytes()).length;
    expect(await size(70_000)).toBe(70_000);
    await expect(size(70_001)).rejects.toThrow("larger than 70000 bytes");
  });

  test("stream: the first piece comes while the rest is still due", async () => {
    const response = await guarded(site("/slow"));
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    expect(new TextDecoder().decode((await reader.read()).value)).toBe("first");
    await reader.cancel();
    await web.idle();
  });

  test("that nobody reads are not read ahead", async () => {
    const before = web.sent;
    const response = await guarded(site("/bytes"), { maxBytes: Number.MAX_SAFE_INTEGER });
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    // The server writes until the buffers of both sides and of the system are full.
    let sent = -1;
    while (sent !== web.sent) {
      sent = web.sent;
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
    expect(sent - before).toBeLessThan(16 * MIB);
    await reader.cancel();
    await web.idle();
  });

  test("that break off are a failure, not an end", async () => {
    await expect((await guarded(site("/cut"))).text()).rejects.toMatchObject({
      code: "unreachable",
      message: expect.stringContaining(`http://site.example:${web.port}`),
    });
  });
});

describe("time and abort", () => {
  test.each(["/hang", "/slow", to("/hang"), to("/slow")])("the clock runs over all of %s", async (path) => {
    const read = async () => (await guarded(site(path), { timeoutMs: 80 })).text();
    await expect(read()).rejects.toMatchObject({
      code: "unreachable",
      message: `http://site.example:${web.port} took longer than 0.08 s. Try again later.`,
    });
    await web.idle();
  });

  test("a resolver that does not answer is under the same clock", async () => {
    const stuck = createLocalFetch({ lookup: () => new Promise(() => {}) });
    await expect(stuck("http://a.example/", { timeoutMs: 20 })).rejects.toThrow("took longer than 0.02 s");
  });

  test("an answer that nobody reads is closed when its time is over", async () => {
    await guarded(site("/slow"), { timeoutMs: 50 });
    expect(web.open).toBe(1);
    await web.idle();
  });

  test.each(["/hang", "/slow", "/bytes"])("an abort of %s throws its reason", async (path) => {
    const controller = new AbortController();
    const reason = new Error("enough");
    const read = async () => {
      const { body } = await guarded(site(path), {
        signal: controller.signal,
        maxBytes: 1024 * MIB,
        timeoutMs: 0,
      });
      for await (const _ of body as unknown as AsyncIterable<Uint8Array>)
        setTimeout(() => controller.abort(reason), 0);
    };
    if (path === "/hang") setTimeout(() => controller.abort(reason), 50);
    await expect(read()).rejects.toBe(reason);
    await web.idle();
  });

  test("an abort before the start asks nobody", async () => {
    const before = web.connections;
    const signal = AbortSignal.abort("never");
    await expect(guarded(site("/text"), { signal })).rejects.toBe("never");
    expect(web.connections).toBe(before);
  });
});

describe("what cannot be reached", () => {
  test.each<[string, () => string, string]>([
    ["an unknown name", () => "http://unknown.example/", "There is no such name: unknown.example."],
    ["a name without address", () => "http://nowhere.example/", "The name has no address: nowhere.example."],
    ["a closed port", () => "http://127.0.0.1:1/", "http://127.0.0.1:1 refuses connections."],
    ["something else than HTTP", () => site("/garbage"), "site.example"],
    ["no address at all", () => "not a url", "That is no address"],
  ])("%s is said in a sentence", async (_what, url, sentence) => {
    await expect(guarded(url())).rejects.toThrow(sentence);
    await expect(guarded(url())).rejects.toMatchObject({ name: "AppError" });
  });

  test("no sentence repeats user, path or query", async () => {
    for (const url of [
      `http://me:s3cret@10.0.0.1/s3cret?s3cret`,
      `http://me:s3cret@127.0.0.1:1/s3cret?s3cret`,
      `http://me:s3cret@site.example:${web.port}/cut?s3cret`,
      `http://me:s3cret@site.example:${web.port}/redirect?to=http://me:s3cret@10.0.0.1/s3cret`,
      "http://me:s3cret@[/s3cret",
    ]) {
      const failure = await guarded(url)
        .then((response) => response.text())
        .catch(String);
      expect(failure).toContain("AppError");
      expect(failure).not.toContain("s3cret");
    }
  });
});
