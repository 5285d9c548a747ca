/**
 * One local server that imitates the search engines as their public documentation describes them (paths, headers, limits,
 * error bodies), and serves pages that a test puts there.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Reply {
  status?: number;
  headers?: Record<string, string>;
  body: string | Uint8Array;
}

export interface Asked {
  path: string;
  method: string;
  headers: IncomingMessage["headers"];
  query: URLSearchParams;
  body: string;
}

export interface Engines {
  /** `127.0.0.1:<port>`. */
  host: string;
  url: string;
  /** The settings that lead to it; without keys. */
  env: Record<string, string>;
  asked: Asked[];
  /** In place of what the engine would say, until it is unset. */
  fault: Reply | undefined;
  /** Pages by their path. */
  pages: Map<string, Reply>;
  stop(): Promise<void>;
}

export const KEY = "key-of-the-tests-0123456789";

export async function startEngines(): Promise<Engines> {
  const asked: Asked[] = [];
  const pages = new Map<string, Reply>();
  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? "/", "http://localhost");
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const call: Asked = {
      path: url.pathname,
      method: request.method ?? "",
      headers: request.headers,
      query: url.searchParams,
      body: Buffer.concat(chunks).toString(),
    };
    asked.push(call);
    send(response, engines.fault ?? pages.get(url.pathname) ?? ENGINES[url.pathname]?.(call) ?? NOT_FOUND);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const url = `http://${host}`;
  const engines: Engines = {
    ...{ host, url, asked, pages, fault: undefined },
    env: {
      TAVILY_BASE_URL: `${url}/tavily`,
      BRAVE_BASE_URL: `${url}/brave`,
      EXA_BASE_URL: `${url}/exa`,
      DUCKDUCKGO_BASE_URL: `${url}/duck`,
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return engines;
}

const NOT_FOUND: Reply = { status: 404, body: "nothing here" };

function send(response: ServerResponse, { status = 200, headers = {}, body }: Reply): void {
  response.writeHead(status, headers);
  response.end(body);
}

function json(value: unknown, status = 200): Reply {
  return { status, headers: { "content-type": "application/json" }, body: JSON.stringify(value) };
}

/** The pages that every engine knows. */
export const FOUND = [
  {
    title: "Dragomans — a history",
    url: "https://example.org/dragomans",
    text: "Interpreters & guides of the Porte.",
    date: "2026-03-04",
  },
  {
    title: "Pera in 1700",
    url: "https://example.com/pera?a=1&b=2",
    text: "Where the dragomans lived.",
    date: "2025-12-30",
  },
  { title: "Third", url: "https://example.net/third", text: "A third page.", date: "2024-01-02" },
];

const ENGINES: Record<string, (call: Asked) => Reply> = {
  "/tavily/search": ({ method, headers, body }) => {
    if (method !== "POST") return json({ detail: "Method Not Allowed" }, 405);
    if (headers.authorization !== `Bearer ${KEY}`)
      return json({ detail: { error: "Unauthorized: missing or invalid API key." } }, 401);
    const { query, max_results, time_range } = JSON.parse(body);
    if (max_results > 20) return json({ detail: { error: "max_results has to be 20 at most" } }, 400);
    if (time_range !== undefined && !["day", "week", "month", "year"].includes(time_range))
      return json({ detail: { error: "Invalid time range" } }, 400);
    const results = found(query).slice(0, max_results);
    return json({
      query,
      follow_up_questions: null,
      answer: null,
      images: [],
      results: results.map(({ title, url, text }, i) => ({
        url,
        title,
        content: text,
        score: 0.9 - i / 10,
        raw_content: null,
      })),
      response_time: 0.7,
      request_id: "5b2c",
    });
  },
  "/brave/res/v1/web/search": ({ headers, query }) => {
    if (headers["x-subscription-token"] !== KEY) {
      const error = {
        id: "5d83",
        code: "SUBSCRIPTION_TOKEN_INVALID",
        detail: "The provided subscription token is invalid.",
        status: 422,
        meta: { component: "authentication" },
      };
      return json({ type: "ErrorResponse", error, time: 1_663_072_993 }, 422);
    }
    const count = Number(query.get("count"));
    const freshness = query.get("freshness");
    if (count > 20 || (freshness !== null && !/^p[dwmy]$/.test(freshness)))
      return json(
        {
          type: "ErrorResponse",
          error: { code: "VALIDATION", status: 422, detail: "Unable to validate request parameter(s)" },
        },
        422,
      );
    const results = found(query.get("q") ?? "").slice(0, count);
    const head = { type: "search", query: { original: query.get("q") } };
    if (results.length === 0) return json(head);
    return json({
      ...head,
      web: {
        type: "search",
        results: results.map(({ title, url, text, date }) => ({
          ...{ type: "search_result", subtype: "generic", title: title.replaceAll("&", "&amp;"), url },
          description: `<strong>${text.replaceAll("&", "&amp;")}</strong>`,
          ...{ page_age: `${date}T00:00:00`, age: date, language: "en", family_friendly: true },
        })),
      },
    });
  },
  "/exa/search": ({ headers, body }) => {
    if (headers["x-api-key"] !== KEY)
      return json({ requestId: "67207943", error: "Invalid API key", tag: "INVALID_API_KEY" }, 401);
    const { query, numResults, contents } = JSON.parse(body);
    if (numResults > 100)
      return json({ requestId: "1", error: "Too many results", tag: "INVALID_NUM_RESULTS" }, 400);
    if (typeof contents?.highlights !== "object")
      return json({ requestId: "1", error: "no contents", tag: "INVALID_REQUEST_BODY" }, 400);
    return json({
      requestId: "b5947044",
      resolvedSearchType: "neural",
      results: found(query)
        .slice(0, numResults)
        .map(({ title, url, text, date }) => ({
          ...{
            id: url,
            url,
            title,
            publishedDate: `${date}T00:00:00.000Z`,
            author: null,
            highlights: [text],
            highlightScores: [0.4],
          },
        })),
      costDollars: { total: 0.005 },
    });
  },
  "/searxng/search": ({ query }) => {
    if (query.get("format") !== "json") return { headers: { "content-type": "text/html" }, body: "<html>" };
    const results = found(query.get("q") ?? "");
    return json({
      query: query.get("q"),
      number_of_results: results.length,
      results: results.map(({ title, url, text, date }) => ({
        ...{
          url,
          title,
          content: text,
          publishedDate: `${date}T00:00:00`,
          engine: "wikipedia",
          engines: ["wikipedia"],
          score: 1,
          category: "general",
        },
      })),
      ...{ answers: [], corrections: [], infoboxes: [], suggestions: [] },
      unresponsive_engines: [["brave", "too many requests"]],
    });
  },
  "/duck/html/": ({ method, headers, body }) => {
    if (method !== "POST" || headers["content-type"] !== "application/x-www-form-urlencoded")
      return { status: 403, body: "" };
    return duckPage(found(new URLSearchParams(body).get("q") ?? ""));
  },
};

/** A search for `nothing` finds nothing. */
function found(query: string): typeof FOUND {
  return query.includes("nothing") ? [] : FOUND;
}

export function duckPage(results: typeof FOUND): Reply {
  const one = ({ title, url, text, date }: (typeof FOUND)[number], i: number) => {
    // Some links are direct, others lead through their counter.
    const target =
      i % 2
        ? `//duckduckgo.com/l/?uddg=${encodeURIComponent(url)}&amp;rut=b50856`
        : url.replaceAll("&", "&amp;");
    return `<div class="result results_links results_links_deep web-result ">
  <div class="links_main links_deep result__body">
    <h2 class="result__title"><a rel="nofollow" class="result__a" href="${target}">${title}</a></h2>
    <div class="result__extras"><div class="result__extras__url">
      <span class="result__icon"><a rel="nofollow" href="${target}"><img class="result__icon__img" width="16" height="16" alt="" src="//external-content.duckduckgo.com/ip3/x.ico"></a></span>
      <a class="result__url" href="${target}">example</a><span>&nbsp; &nbsp; ${date}T00:00:00.0000000</span>
    </div></div>
    <a class="result__snippet" href="${target}"><b>${text.replaceAll("&", "&amp;")}</b></a>
    <div class="clear"></div>
  </div></div>`;
  };
  const ad = `<div class="result results_links results_links_deep result--ad web-result"><div class="links_main"><h2 class="result__title">
    <a rel="nofollow" class="result__a" href="//duckduckgo.com/y.js?ad_domain=shop.example&amp;u3=x">Buy dragomans</a></h2></div></div>`;
  const none = `<div class="result results_links results_links_deep result--no-result"><div class="no-results">No results.</div></div>`;
  const body = `<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Transitional//EN" "http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd">
<html xmlns="http://www.w3.org/1999/xhtml"><head><title>q at DuckDuckGo</title></head><body class="body--html">
<form action="/html/" method="post"><input name="q" value="q"><select name="df"><option value="d">Past Day</option></select></form>
<div class="serp__results"><div id="links" class="results">${results.length === 0 ? none : ad + results.map(one).join("\n")}
<div class="nav-link"><form action="/html/" method="post"><input type="submit" value="Next"></form></div></div></div></body></html>`;
  return { headers: { "content-type": "text/html; charset=UTF-8" }, body };
}

export const DUCK_CHALLENGE: Reply = {
  status: 202,
  headers: { "content-type": "text/html; charset=UTF-8" },
  body: `<html><head><title>DuckDuckGo</title></head><body><form id="challenge-form" action="//duckduckgo.com/anomaly.js?cc=botnet">
<div class="anomaly-modal__mask"><div class="anomaly-modal__modal"><div class="anomaly-modal__title">Unfortunately, bots use DuckDuckGo too.</div></div></div></form></body></html>`,
};
