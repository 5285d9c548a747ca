/** `/openapi.json` and `/docs`. Both are made when they are first asked for. */
import { Hono } from "hono";
import type { AppEnv } from "./env.ts";

/** Browsers may keep a copy, but ask before they use it: the next release has another. */
const REVALIDATE = "no-cache";

/** Loaded when it is asked for: a service that nobody reads about has no use for it. */
async function writeDocument(): Promise<string> {
  const [{ openapiDocument }, { ROUTES }] = await Promise.all([
    import("./openapi/document.ts"),
    import("./openapi/routes.ts"),
  ]);
  return JSON.stringify(openapiDocument(ROUTES));
}

async function writePage(): Promise<{ page: string; policy: string }> {
  const { DOCS_PAGE, docsPolicy } = await import("./docs-page.ts");
  return { page: DOCS_PAGE, policy: await docsPolicy() };
}

export function docsRoutes(): Hono<AppEnv> {
  let document: Promise<string> | undefined;
  let written: ReturnType<typeof writePage> | undefined;
  return new Hono<AppEnv>()
    .get("/openapi.json", async (c) => {
      document ??= writeDocument();
      return c.body(await document, 200, {
        "content-type": "application/json; charset=utf-8",
        "cache-control": REVALIDATE,
        "x-content-type-options": "nosniff",
      });
    })
    .get("/docs", async (c) => {
      written ??= writePage();
      const { page, policy } = await written;
      return c.body(page, 200, {
        "content-type": "text/html; charset=utf-8",
        "cache-control": REVALIDATE,
        "content-security-policy": policy,
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "referrer-policy": "no-referrer",
      });
    });
}
