/** `search_web` over HTTP with servers that imitate the engines. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { parseConfig, secretsOf } from "../../src/config.ts";
import type { ToolContext, ToolOutput } from "../../src/core/tool.ts";
import { createLocalFetch } from "../../src/platform/local-fetch.ts";
import { createSearchWeb } from "../../src/tools/search-web.ts";
import { createExa } from "../../src/tools/web/exa.ts";
import { refused, said } from "./fixture.ts";
import { DUCK_CHALLENGE, type Engines, KEY, type Reply, startEngines } from "./web/engines.ts";

let engines: Engines;
beforeAll(async () => {
  engines = await startEngines();
});
afterEach(() => {
  engines.fault = undefined;
  engines.asked.length = 0;
});
afterAll(() => engines.stop());

const SETTINGS: Record<string, () => Record<string, string>> = {
  tavily: () => ({ TAVILY_API_KEY: KEY }),
  brave: () => ({ BRAVE_API_KEY: KEY }),
  exa: () => ({ EXA_API_KEY: KEY }),
  searxng: () => ({ SEARXNG_URL: `${engines.url}/searxng/` }),
  duckduckgo: () => ({}),
};
const NAMES = Object.keys(SETTINGS);
const KEYED = ["tavily", "brave", "exa"];

function context(fetch: ToolContext["fetch"] = createLocalFetch()): ToolContext {
  const signal = new AbortController().signal;
  return {
    owner: "ann",
    runId: "run_1",
    callId: "call_1",
    signal,
    fetch,
    progress() {},
  } as unknown as ToolContext;
}

async function search(env: Record<string, string>, args: object): Promise<ToolOutput> {
  const tool = createSearchWeb(parseConfig({ ...engines.env, ...env }, { runtime: "node" }).search);
  // As the loop does with what a tool throws.
  return await tool.run(tool.args.parse(args), context()).catch((error: Error) => ({
    content: [{ type: "text", text: error.message }],
    failed: true,
  }));
}

describe.each(NAMES)("%s", (name) => {
  const env = () => SETTINGS[name]!();

  test("results have title, address, excerpt and date, and no markup", async () => {
    const text = said(await search(env(), { query: "dragomans" }));
    expect(text).toMatch(/^3 results for "dragomans" \(/);
    expect(text).toContain("1. Dragomans — a history\n   https://example.org/dragomans\n");
    expect(text).toContain("2. Pera in 1700\n   https://example.com/pera?a=1&b=2\n");
    expect(text).toContain("Interpreters & guides of the Porte.");
    if (name !== "tavily") expect(text).toContain("2026-03-04");
    expect(text).not.toMatch(/<strong>|&amp;|duckduckgo\.com|Buy dragomans/);
  });

  test("no more results than were asked for", async () => {
    const text = said(await search(env(), { query: "dragomans", max_results: 2 }));
    expect(text).toMatch(/^2 results/);
    expect(text).not.toContain("example.net");
  });

  test("freshness reaches the engine in its own words", async () => {
    said(await search(env(), { query: "dragomans", freshness: "week" }));
    const [asked] = engines.asked;
    const sent = `${asked?.query}&${asked?.body}`;
    expect(sent).toMatch(/time_range"?[:=]"?week|freshness=pw|startPublishedDate|df=w/);
  });

  test("nothing found is an answer and no failure", async () => {
    expect(said(await search(env(), { query: "nothing" }))).toContain('found nothing for "nothing"');
  });

  const faults: [string, Reply, RegExp][] = [
    [
      "too many searches",
      { status: 429, headers: { "retry-after": "7" }, body: "{}" },
      name === "duckduckgo" ? /refuses searches/ : /fewer searches.*in 7 seconds/,
    ],
    ["a fault of its own", { status: 503, body: "<html>busy" }, /has a fault of its own \(503\)/],
    [
      "a redirect",
      { status: 302, headers: { location: "http://169.254.169.254/" }, body: "" },
      /redirect \(302\).*operator/,
    ],
    [
      "a refusal in words",
      { status: 400, body: JSON.stringify({ detail: { error: `bad ${KEY}` } }) },
      /did not accept the search \(400: bad/,
    ],
  ];
  test.each(faults)("%s has its sentence", async (_, fault, sentence) => {
    engines.fault = fault;
    const text = refused(await search(env(), { query: "dragomans" }));
    expect(text).toMatch(sentence);
    if (KEYED.includes(name)) expect(text).not.toContain(KEY);
  });

  const broken = ["", "<html><body>hello</body></html>", '{"results": ', '{"results": "none"}', "null", "[]"];
  test.each(broken)("an answer that is none (%j) is told as such", async (body) => {
    engines.fault = { body };
    const text = refused(await search(env(), { query: "dragomans" }));
    expect(text).toMatch(name === "duckduckgo" ? /has changed its page.*TAVILY_API_KEY/ : /not its JSON/);
  });

  test("an engine that is not there", async () => {
    const gone = await startEngines();
    await gone.stop();
    const env = {
      ...gone.env,
      ...SETTINGS[name]!(),
      ...(name === "searxng" ? { SEARXNG_URL: gone.url } : {}),
    };
    expect(refused(await search(env, { query: "dragomans" }))).toContain(gone.host);
  });
});

describe.each(KEYED)("the key of %s", (name) => {
  test("K1 a wrong one is the operator's to mend, and is not repeated", async () => {
    const setting = `${name.toUpperCase()}_API_KEY`;
    const text = refused(await search({ [setting]: "wrong-key-of-the-tests" }, { query: "dragomans" }));
    expect(text).toContain(`refused the key. Tell the operator to check ${setting}.`);
    expect(text).not.toContain("wrong-key-of-the-tests");
  });

  test("K1 travels in a header and never in the address", async () => {
    await search(SETTINGS[name]!(), { query: "dragomans" });
    const [{ query, body, path } = { query: "", body: "", path: "" }] = engines.asked;
    expect(`${path}?${query} ${body}`).not.toContain(KEY);
  });
});

test("entries without an address, and those that lead elsewhere, are left out", async () => {
  const results = [
    { title: "no address" },
    { url: "javascript:alert(1)", title: "x" },
    7,
    null,
    { url: "https://ok.example/" },
    { url: "https://ok.example/" },
  ];
  engines.fault = { body: JSON.stringify({ results }) };
  expect(said(await search({ TAVILY_API_KEY: KEY }, { query: "q" }))).toBe(
    '1 result for "q" (Tavily)\n\n1. (no title)\n   https://ok.example/',
  );
});

test("what hides in a result does not reach the model", async () => {
  const title = "Safe\u202e title\u200b \u{e0041}\u{e0042}\nSecond line";
  engines.fault = {
    body: JSON.stringify({ results: [{ url: "https://a.example/", title, content: "x".repeat(5000) }] }),
  };
  const text = said(await search({ TAVILY_API_KEY: KEY }, { query: "q" }));
  expect(text).toContain("1. Safe title Second line\n");
  expect(text.length).toBeLessThan(1_500);
});

test("SearXNG says which of its engines were silent, and how to allow JSON", async () => {
  expect(said(await search(SETTINGS.searxng!(), { query: "q" }))).toContain(
    "[engines that did not answer: brave]",
  );
  engines.fault = { status: 403, body: "Forbidden" };
  expect(refused(await search(SETTINGS.searxng!(), { query: "q" }))).toContain("search.formats");
});

test.each([DUCK_CHALLENGE, { ...DUCK_CHALLENGE, status: 200 }, { status: 403, body: "" }])(
  "DuckDuckGo's refusal says which settings give a search with a key",
  async (fault) => {
    engines.fault = fault;
    const text = refused(await search({}, { query: "q" }));
    expect(text).toMatch(/refuses searches.*TAVILY_API_KEY, BRAVE_API_KEY, EXA_API_KEY or SEARXNG_URL/);
  },
);

test("Exa's freshness is a date", async () => {
  const exa = createExa({ apiKey: KEY, baseUrl: `${engines.url}/exa` }, () =>
    Date.parse("2026-11-21T12:00:00Z"),
  );
  await exa.search({ query: "q", limit: 1, freshness: "week" }, context());
  expect(JSON.parse(engines.asked[0]!.body).startPublishedDate).toBe("2026-11-14T12:00:00.000Z");
});

describe("which engine", () => {
  const chosen = (env: Record<string, string>) => parseConfig(env, { runtime: "node" }).search.provider;

  test("the first that is configured, unless one is named", () => {
    expect(chosen({})).toBe("duckduckgo");
    expect(chosen({ SEARXNG_URL: "http://s" })).toBe("searxng");
    expect(chosen({ SEARXNG_URL: "http://s", EXA_API_KEY: "e", BRAVE_API_KEY: "b" })).toBe("brave");
    expect(chosen({ SEARCH_PROVIDER: "duckduckgo", TAVILY_API_KEY: "t" })).toBe("duckduckgo");
  });

  test("one that is named has to be configured", () => {
    expect(() => chosen({ SEARCH_PROVIDER: "exa" })).toThrow("SEARCH_PROVIDER=exa needs EXA_API_KEY");
    expect(() => chosen({ SEARCH_PROVIDER: "searxng" })).toThrow("needs SEARXNG_URL");
    expect(() => chosen({ SEARXNG_URL: "http://ann:pw@s" })).toThrow("SEARXNG_URL has to be");
  });

  test("K2 every key is known to the redaction, those of other engines too", () => {
    const config = parseConfig(
      { TAVILY_API_KEY: "t-1", BRAVE_API_KEY: "b-1", EXA_API_KEY: "e-1" },
      { runtime: "node" },
    );
    expect(secretsOf(config)).toEqual(expect.arrayContaining(["t-1", "b-1", "e-1"]));
  });
});

test.each([
  {},
  { query: "  " },
  { query: "x".repeat(401) },
  { query: "q", max_results: 21 },
  { query: "q", freshness: "hour" },
])("arguments that no engine takes are refused: %j", (args) => {
  const tool = createSearchWeb(parseConfig({}, { runtime: "node" }).search);
  expect(tool.args.safeParse(args).success).toBe(false);
});
