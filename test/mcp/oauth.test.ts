import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { parseConfig } from "../../src/config.ts";
import { authFetch } from "../../src/mcp/oauth-fetch.ts";
import { createLocalFetch } from "../../src/platform/local-fetch.ts";
import { createHome, createService, json, type TestHome, type TestService } from "../http/service.ts";
import { scriptedModel } from "../scripted-model.ts";
import { KNOWN_CLIENT, type OAuthWorld, startOAuthWorld } from "./oauth-server.ts";

const MINUTE_MS = 60_000;
const TOOL = "tracker__issues";

let home: TestHome;
let world: OAuthWorld;
const open: (() => Promise<void>)[] = [];

beforeEach(async () => {
  [home, world] = await Promise.all([createHome(), startOAuthWorld()]);
});
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
  await Promise.all([home.close(), world.close()]);
});

async function start(env: Record<string, string> = {}): Promise<TestService> {
  const calls = [{ id: "call_1", name: TOOL, args: {} }];
  const model = scriptedModel([
    { calls },
    { text: "Done." },
    { calls },
    { text: "Done." },
    { calls },
    { text: "Done." },
  ]);
  const allow = env.FETCH_ALLOW === undefined ? [] : [env.FETCH_ALLOW];
  const service = await createService(home, {
    model,
    env,
    fetch: createLocalFetch({ allow }),
    recovers: true,
  });
  open.push(() => service.close());
  return service;
}

type Headers = Record<string, string>;

const connect = (service: TestService, more: object = {}, headers: Headers = {}) =>
  service.post("/api/mcp/connect", { server_id: "tracker", url: world.url, ...more }, headers);

async function stateOf(service: TestService, headers: Headers = {}) {
  return (await json(await service.request("/api/mcp/servers", { headers }))).servers.tracker;
}

async function begin(service: TestService, headers: Headers = {}): Promise<URL> {
  const response = await service.request("/api/mcp/oauth/tracker/start", { headers });
  const body = await json(response);
  expect(response.status, body.detail).toBe(200);
  return new URL(body.authorization_url);
}

/** What a browser does at the authorization server: it is sent back, and where to. */
async function consent(address: URL): Promise<URL> {
  const response = await fetch(address, { redirect: "manual" });
  expect(response.status).toBe(302);
  return new URL(response.headers.get("location") ?? "");
}

/** As browsers come from another site. */
const RETURNING = {
  "sec-fetch-site": "cross-site",
  "sec-fetch-mode": "navigate",
  "sec-fetch-dest": "document",
};

async function comeBack(service: TestService, back: URL, headers: Headers = RETURNING) {
  const response = await service.request(back.pathname + back.search, { headers });
  return { status: response.status, page: await response.text(), headers: response.headers };
}

/** Where the button of the page leads. */
function confirmationIn(page: string): URL {
  const action = /<form method="get" action="([^"]+)">/.exec(page)?.[1] ?? "";
  const token = /<input type="hidden" name="confirmation" value="([\w-]+)">/.exec(page)?.[1] ?? "";
  expect([action, token.length], page).toEqual(["/api/mcp/oauth/callback", 43]);
  return new URL(`${action}?confirmation=${token}`, "http://127.0.0.1:8000");
}

async function authorize(service: TestService, headers: Headers = {}): Promise<void> {
  const { status, page } = await comeBack(service, await consent(await begin(service, headers)));
  expect(status, page).toBe(200);
  expect(page).not.toContain("could not connect");
}

/** The agent calls the server's tool; what it was told. */
async function use(service: TestService): Promise<string> {
  const { tools } = await json(await service.post("/api/chat", { message: "Which issues are there?" }));
  return tools[0].output;
}

const grants = () => world.tokenRequests.map(({ grant, outcome }) => `${grant} ${outcome}`);

describe("the way of a person", () => {
  test("a server that refuses is saved and says where to authorize it; then its tools are used", async () => {
    const service = await start();
    const refused = await connect(service);
    expect(refused.status).toBe(502);
    expect((await json(refused)).detail).toContain("GET /api/mcp/oauth/tracker/start");
    expect(await stateOf(service)).toMatchObject({
      status: "needs_reauth",
      toolNames: [],
      authorize_at: "/api/mcp/oauth/tracker/start",
    });
    await authorize(service);
    expect(await stateOf(service)).toMatchObject({
      status: "connected",
      toolNames: [TOOL],
      authorize_at: null,
    });
    expect(await use(service)).toBe("No issues.");
    expect(world.calls).toEqual(["issues"]);
    expect(grants()).toEqual(["authorization_code issued"]);
  });

  test("it registers itself, proves the code to be its own, and says for what the token is", async () => {
    const service = await start();
    await connect(service);
    await authorize(service);
    const redirectUri = "http://127.0.0.1:8000/api/mcp/oauth/callback";
    expect(world.registrations).toMatchObject([
      {
        client_name: "Dragoman",
        redirect_uris: [redirectUri],
        grant_types: ["authorization_code", "refresh_token"],
      },
    ]);
    const asked = Object.fromEntries(world.authorizations[0] ?? []);
    expect(asked).toMatchObject({
      response_type: "code",
      code_challenge_method: "S256",
      redirect_uri: redirectUri,
      resource: world.url,
    });
    expect(asked.state?.length).toBeGreaterThanOrEqual(43);
    // A second time it is known.
    await authorize(service);
    expect(world.registrations).toHaveLength(1);
  });

  test("a browser is sent there, a program is told the address", async () => {
    const service = await start();
    await connect(service);
    const response = await service.request("/api/mcp/oauth/tracker/start", {
      headers: { accept: "text/html,application/xhtml+xml,*/*;q=0.8" },
    });
    expect(response.status).toBe(302);
    expect(response.headers.get("location")).toContain(`${world.issuer}/authorize?`);
    expect(response.headers.get("cache-control")).toBe("no-store");
  });

  test("PUBLIC_URL says where browsers come back to, and who we are", async () => {
    const service = await start({ PUBLIC_URL: "https://agent.example" });
    await connect(service);
    const asked = (await begin(service)).searchParams;
    expect(asked.get("redirect_uri")).toBe("https://agent.example/api/mcp/oauth/callback");
    const document = await json(await service.request("/client-metadata.json"));
    expect(document).toMatchObject({
      client_id: "https://agent.example/client-metadata.json",
      redirect_uris: ["https://agent.example/api/mcp/oauth/callback"],
    });
    const other = await start({ PUBLIC_URL: "http://agent.example" });
    expect((await other.request("/client-metadata.json")).status).toBe(404);
  });

  test.each(["https://agent.example/path", "ftp://agent.example", "agent.example"])(
    "PUBLIC_URL is an origin, and not %s",
    (value) => {
      expect(() => parseConfig({ PUBLIC_URL: value }, { runtime: "node" })).toThrow("PUBLIC_URL");
    },
  );

  test("a server over the older transport asks for it in the same way", async () => {
    const service = await start();
    expect((await json(await connect(service, { transport: "sse" }))).detail).toContain(
      "oauth/tracker/start",
    );
    expect((await stateOf(service)).status).toBe("needs_reauth");
  });

  test("a client that is registered already is used, and its secret is not shown", async () => {
    world.settings.registers = false;
    const service = await start();
    await connect(service);
    const without = await service.request("/api/mcp/oauth/tracker/start");
    expect(without.status).toBe(502);
    expect((await json(without)).detail).toContain("dynamic client registration");
    await connect(service, { oauth: KNOWN_CLIENT });
    await authorize(service);
    expect(world.tokenRequests).toEqual([{ grant: "authorization_code", outcome: "issued", auth: "basic" }]);
    expect(world.registrations).toEqual([]);
    const shown = await (await service.request("/api/mcp/servers")).text();
    expect(shown).not.toContain(KNOWN_CLIENT.client_secret);
  });

  test("what needs more than was granted says so, and a wider authorization is asked for", async () => {
    world.settings.callScope = "issues:read";
    const service = await start();
    await connect(service);
    await authorize(service);
    expect(await use(service)).toContain("wider authorization (issues:read)");
    expect(world.calls).toEqual([]);
    await authorize(service);
    expect(world.authorizations.map((asked) => asked.get("scope"))).toEqual([null, "issues:read"]);
    expect(await use(service)).toBe("No issues.");
  });

  test("K1: nothing that was granted is in the database in clear, in the log or in an answer", async () => {
    const service = await start();
    await connect(service, { oauth: KNOWN_CLIENT });
    await authorize(service);
    await use(service);
    const { readFile, readdir } = await import("node:fs/promises");
    const { dirname, join } = await import("node:path");
    const folder = dirname(home.backend.path);
    const files = await Promise.all(
      (await readdir(folder)).map((name) => readFile(join(folder, name), "latin1")),
    );
    const shown = await (await service.request("/api/mcp/servers")).text();
    for (const text of [...files, JSON.stringify(service.logged), shown])
      expect(text).not.toMatch(/access-[0-9a-f]{8}-|refresh-[0-9a-f]{8}-|a-secret-of-the-known-client/);
    expect(files.join("")).toContain("tracker");
  });
});

describe("tokens", () => {
  test("one that is about to end is renewed before it is used", async () => {
    const service = await start();
    await connect(service);
    await authorize(service);
    home.clock.now = new Date(home.clock.now.getTime() + 3600 * 1000 - 10_000);
    expect(await use(service)).toBe("No issues.");
    expect(grants()).toEqual(["authorization_code issued", "refresh_token issued"]);
  });

  test("one that is refused is renewed, and the call is made once", async () => {
    const service = await start();
    await connect(service);
    await authorize(service);
    for (let round = 1; round <= 2; round++) {
      world.expire();
      expect(await use(service)).toBe("No issues.");
      expect(world.calls).toHaveLength(round);
    }
    expect(grants().slice(1)).toEqual(["refresh_token issued", "refresh_token issued"]);
  });

  test("a refresh token that is revoked leaves the server to a person", async () => {
    const service = await start();
    await connect(service);
    await authorize(service);
    world.revoke();
    expect(await use(service)).toContain("Nothing was done");
    await vi.waitFor(async () => expect((await stateOf(service)).status).toBe("needs_reauth"));
    // It is not tried again with what is known to be worthless.
    expect(grants()).toEqual(["authorization_code issued", "refresh_token invalid_grant"]);
    await authorize(service);
    expect((await stateOf(service)).status).toBe("connected");
  });

  test("an authorization server that does not work is no reason to trouble a person", async () => {
    const service = await start();
    await connect(service);
    await authorize(service);
    world.expire();
    world.settings.broken = 503;
    expect(await use(service)).toContain("has not renewed it now");
    expect((await stateOf(service)).status).not.toBe("needs_reauth");
    world.settings.broken = undefined;
    await vi.waitFor(async () => expect((await stateOf(service)).status).toBe("connected"), 5_000);
    expect(await use(service)).toBe("No issues.");
  });

  test("R3: two processes that need a new one at once get one, and both use it", async () => {
    const [one, two] = [await start(), await start()];
    await connect(one);
    await authorize(one);
    await two.services.tick();
    await vi.waitFor(async () => expect((await stateOf(two)).status).toBe("connected"));
    world.expire();
    // Nobody gets one before both have asked for it.
    let asking = 0;
    world.settings.beforeRefresh = async () => {
      asking++;
      await new Promise((resolve) => setTimeout(resolve, 100));
    };
    expect(await Promise.all([use(one), use(two)])).toEqual(["No issues.", "No issues."]);
    expect(asking).toBe(1);
    expect(grants().slice(1)).toEqual(["refresh_token issued"]);
  });

  test("another process takes part when a person has authorized with the first", async () => {
    const [one, two] = [await start(), await start()];
    await connect(one);
    await authorize(one);
    await two.services.tick();
    await vi.waitFor(async () => expect((await stateOf(two)).status).toBe("connected"));
    world.revoke();
    await use(two);
    await vi.waitFor(async () => expect((await stateOf(two)).status).toBe("needs_reauth"));
    await authorize(one);
    await two.services.tick();
    await vi.waitFor(async () => expect((await stateOf(two)).status).toBe("connected"));
  });

  test("they go with the server, and with its address", async () => {
    const service = await start();
    await connect(service);
    await authorize(service);
    await connect(service, { url: `${world.url}?other` });
    expect((await stateOf(service)).status).toBe("needs_reauth");
    await connect(service);
    await authorize(service);
    await service.request("/api/mcp/saved/tracker", { method: "DELETE" });
    await connect(service);
    expect((await stateOf(service)).status).toBe("needs_reauth");
  });
});

test("a token that comes when the server has another address already is nobody's", async () => {
  const service = await start();
  await connect(service);
  await authorize(service);
  world.expire();
  const elsewhere = await startOAuthWorld();
  open.push(() => elsewhere.close());
  world.settings.beforeRefresh = async () => {
    const { mcp } = service.store;
    const spec = await mcp.get("local", "tracker");
    if (!spec) throw new Error("It is gone.");
    await mcp.save("local", { ...spec, url: elsewhere.url }, { sealed: null, active: true, lastError: null });
  };
  await use(service);
  expect(grants()).toContain("refresh_token issued");
  await service.services.mcp.reconnect("local", "tracker").catch(() => {});
  await vi.waitFor(async () => expect((await stateOf(service)).status).toBe("needs_reauth"));
  expect(elsewhere.shown).toEqual([]);
});

describe("the way back", () => {
  test("is open once", async () => {
    const service = await start();
    await connect(service);
    const back = await consent(await begin(service));
    const [first, second] = await Promise.all([comeBack(service, back), comeBack(service, back)]);
    expect([first.status, second.status].sort()).toEqual([200, 410]);
    expect((await comeBack(service, back)).status).toBe(410);
    expect(grants()).toEqual(["authorization_code issued"]);
  });

  test("is closed to a wrong state, a late one, and one that a later start has made void", async () => {
    const service = await start();
    await connect(service);
    const early = await consent(await begin(service));
    const back = await consent(await begin(service));
    expect((await comeBack(service, early)).status).toBe(410);
    const wrong = new URL(back);
    wrong.searchParams.set("state", "A".repeat(43));
    expect((await comeBack(service, wrong)).status).toBe(410);
    const none = new URL(back);
    none.searchParams.delete("state");
    expect((await comeBack(service, none)).status).toBe(410);
    home.clock.now = new Date(home.clock.now.getTime() + 11 * MINUTE_MS);
    expect((await comeBack(service, back)).status).toBe(410);
    expect(grants()).toEqual([]);
  });

  test("A5: leads to the owner and the server that it was begun for, whoever comes", async () => {
    const ann = { authorization: "Bearer token-of-ann-1234567890" };
    const ben = { authorization: "Bearer token-of-ben-1234567890" };
    const service = await start({
      ACCESS_TOKENS: "ann:token-of-ann-1234567890,ben:token-of-ben-1234567890",
      FETCH_ALLOW: "127.0.0.1",
    });
    await connect(service, {}, ann);
    const foreign = await service.request("/api/mcp/oauth/tracker/start", { headers: ben });
    const unknown = await service.request("/api/mcp/oauth/nothing/start", { headers: ben });
    expect([foreign.status, unknown.status]).toEqual([404, 404]);
    expect((await service.request("/api/mcp/oauth/tracker/start")).status).toBe(401);
    await connect(service, {}, ben);
    const back = await consent(await begin(service, ann));
    const { page } = await comeBack(service, back, { ...RETURNING, ...ben });
    expect((await comeBack(service, confirmationIn(page))).status).toBe(200);
    expect((await stateOf(service, ann)).status).toBe("connected");
    expect((await stateOf(service, ben)).status).toBe("needs_reauth");
  });

  describe("A5: where there are several owners, whose link anybody may have opened", () => {
    const ann = { authorization: "Bearer token-of-ann-1234567890" };
    const env = { ACCESS_TOKENS: "ann:token-of-ann-1234567890", FETCH_ALLOW: "127.0.0.1" };
    const annTo = async () => {
      const service = await start(env);
      await connect(service, {}, ann);
      return { service, back: await consent(await begin(service, ann)) };
    };

    test("nothing is granted before a click on a page that names who gets it", async () => {
      const { service, back } = await annTo();
      const { status, page, headers } = await comeBack(service, back);
      expect(status).toBe(200);
      expect(page).toMatch(/<b>ann<\/b>.*<b>tracker<\/b>/);
      expect(page).toContain(new URL(world.url).host);
      expect(page).not.toMatch(/<script|<style|\s(style|on\w+)=/);
      expect(page).not.toContain(back.searchParams.get("code"));
      const policy = headers.get("content-security-policy");
      expect(policy).toMatch(/default-src 'none'.*form-action 'self'; frame-ancestors 'none'/);
      expect(headers.get("cache-control")).toBe("no-store");
      expect(headers.get("referrer-policy")).toBe("no-referrer");
      expect(grants()).toEqual([]);
      expect((await stateOf(service, ann)).status).toBe("needs_reauth");

      const yes = confirmationIn(page);
      expect((await service.request(yes.pathname + yes.search, { method: "HEAD" })).status).toBe(401);
      const confirmed = await comeBack(service, yes, { ...RETURNING, "sec-fetch-site": "same-origin" });
      expect(confirmed.page).toContain("The agent of ann may use tracker now.");
      expect((await stateOf(service, ann)).status).toBe("connected");
      expect(grants()).toEqual(["authorization_code issued"]);
    });

    test("the address, and the click, are good for once", async () => {
      const { service, back } = await annTo();
      const yes = confirmationIn((await comeBack(service, back)).page);
      expect((await comeBack(service, back)).status).toBe(410);
      const statuses = await Promise.all([comeBack(service, yes), comeBack(service, yes)]);
      expect(statuses.map(({ status }) => status).sort()).toEqual([200, 410]);
      expect(grants()).toEqual(["authorization_code issued"]);
    });

    test("there is no way around the click", async () => {
      const { service, back } = await annTo();
      const state = back.searchParams.get("state") ?? "";
      const made = (query: Record<string, string>) =>
        new URL(`?${new URLSearchParams(query)}`, back.origin + back.pathname);
      expect((await comeBack(service, made({ confirmation: state }))).status).toBe(410);
      const again = await consent(await begin(service, ann));
      const yes = confirmationIn((await comeBack(service, again)).page);
      const confirmation = yes.searchParams.get("confirmation") ?? "";
      expect((await comeBack(service, made({ state: confirmation, code: "mine" }))).status).toBe(410);
      expect((await comeBack(service, made({ confirmation: "A".repeat(43) }))).status).toBe(410);
      expect(grants()).toEqual([]);
    });

    test("a click that comes late, or after another start, is void", async () => {
      const { service, back } = await annTo();
      const early = confirmationIn((await comeBack(service, back)).page);
      const late = confirmationIn((await comeBack(service, await consent(await begin(service, ann)))).page);
      expect((await comeBack(service, early)).status).toBe(410);
      home.clock.now = new Date(home.clock.now.getTime() + 11 * MINUTE_MS);
      expect((await comeBack(service, late)).status).toBe(410);
      expect(grants()).toEqual([]);
    });

    test("the start says as whom, and a refusal needs no click", async () => {
      world.settings.refusal = "no";
      const { service, back } = await annTo();
      const started = await json(await service.request("/api/mcp/oauth/tracker/start", { headers: ann }));
      expect(started.owner).toBe("ann");
      expect((await comeBack(service, back)).status).toBe(410);
      const later = await consent(await begin(service, ann));
      expect((await comeBack(service, later)).status).toBe(403);
    });
  });

  test("a refusal is shown, and nothing in it is run", async () => {
    world.settings.refusal = `no <script>alert(1)</script> "for you"`;
    const service = await start();
    await connect(service);
    const { status, page, headers } = await comeBack(service, await consent(await begin(service)));
    expect(status).toBe(403);
    expect(page).toContain("no &lt;script&gt;alert(1)&lt;/script&gt; &quot;for you&quot;");
    expect(headers.get("content-security-policy")).toContain("default-src 'none'");
    expect(headers.get("referrer-policy")).toBe("no-referrer");
    expect(headers.get("cache-control")).toBe("no-store");
    expect((await stateOf(service)).status).toBe("needs_reauth");
  });

  test("an answer of another authorization server is refused", async () => {
    world.settings.answeringIssuer = "https://evil.example";
    const service = await start();
    await connect(service);
    const { status, page } = await comeBack(service, await consent(await begin(service)));
    expect(status).toBe(403);
    expect(page).toContain("another authorization server");
    expect(grants()).toEqual([]);
    const nameless = await consent(await begin(service));
    nameless.searchParams.delete("iss");
    expect((await comeBack(service, nameless)).status).toBe(403);
  });

  test.each([
    ["a resource that is not the server", "resource", "https://evil.example/mcp"],
    ["an issuer that is not the one it was found at", "issuer", "https://evil.example"],
  ] as const)("metadata with %s is not believed", async (_, name, value) => {
    world.settings[name] = value;
    const service = await start();
    await connect(service);
    const response = await service.request("/api/mcp/oauth/tracker/start");
    expect(response.status).toBe(502);
    expect((await json(response)).detail).toContain("evil.example");
    expect(world.registrations).toEqual([]);
  });

  test("A2: a browser may come from another site, by navigating and in no other way", async () => {
    const service = await start();
    await connect(service);
    const back = await consent(await begin(service));
    for (const headers of [
      { "sec-fetch-site": "cross-site" },
      { ...RETURNING, "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image" },
      { ...RETURNING, "sec-fetch-dest": "iframe" },
      { ...RETURNING, origin: "https://evil.example" },
      { ...RETURNING, host: "evil.example" },
    ])
      expect((await comeBack(service, back, headers)).status).toBe(403);
    for (const path of ["/api/mcp/oauth/tracker/start", "/api/mcp/servers", "/api/mcp/oauth/callback/"])
      expect((await service.request(path, { headers: RETURNING })).status).toBe(403);
    const post = await service.request(back.pathname + back.search, { method: "POST", headers: RETURNING });
    expect(post.status).toBe(403);
    const head = await service.request(back.pathname + back.search, { method: "HEAD" });
    expect(head.status).toBe(405);
    expect((await comeBack(service, back)).status).toBe(200);
  });

  test("A4: where there are tokens it needs none, and nothing else goes without", async () => {
    const service = await start({ ACCESS_TOKENS: "ann:token-of-ann-1234567890" });
    expect((await service.request("/api/mcp/oauth/callback?state=x&code=y")).status).toBe(410);
    for (const method of ["POST", "HEAD", "PUT"])
      expect((await service.request("/api/mcp/oauth/callback", { method })).status).toBe(401);
    for (const path of ["/api/mcp/oauth/callback/", "/api/mcp/oauth/Callback", "/api/mcp/oauth/x/start"])
      expect((await service.request(path)).status).toBe(401);
  });
});

describe("E1: what a server refers to", () => {
  const trust = async (server: string, address: string, trusted = true) => {
    const seen: (boolean | undefined)[] = [];
    const fetchFn = authFetch(
      {
        fetch: async (_, init) => {
          seen.push(init?.trusted);
          return new Response();
        },
        ...{ trusted, callerMark: Promise.resolve("mark") },
      },
      server,
    );
    await fetchFn(address, { method: "GET" });
    return seen[0];
  };

  test("is trusted no further than the server: its own origin, and this machine for a server on it", async () => {
    expect(await trust("https://mcp.example/mcp", "https://mcp.example/token")).toBe(true);
    expect(await trust("https://mcp.example/mcp", "https://auth.example/token")).toBe(false);
    expect(await trust("https://mcp.example/mcp", "http://127.0.0.1:8000/token")).toBe(false);
    expect(await trust("http://10.0.0.5/mcp", "http://169.254.169.254/")).toBe(false);
    expect(await trust("http://localhost:3000/mcp", "http://127.0.0.1:9000/token")).toBe(true);
    expect(await trust("http://localhost:3000/mcp", "http://169.254.169.254/")).toBe(false);
    expect(await trust("http://localhost:3000/mcp", "http://localhost:3000/token", false)).toBe(false);
  });
});
