/** `/openapi.json` and `/docs`. Both are made when they are first asked for. */
import { Hono } from "hono";
import { DOCS_PAGE, docsPolicy } from "./docs-page.ts";
import type { AppEnv } from "./env.ts";
import { openapiDocument } from "./openapi/document.ts";
import { ROUTES } from "./openapi/routes.ts";

/** Browsers may keep a copy, but ask before they use it: the next release has another. */
const REVALIDATE = "no-cache";

export function docsRoutes(): Hono<AppEnv> {
  let document: string | undefined;
  let policy: Promise<string> | undefined;
  return new Hono<AppEnv>()
    .get("/openapi.json", (c) => {
      document ??= JSON.stringify(openapiDocument(ROUTES));
      return c.body(document, 200, {
        "content-type": "application/json; charset=utf-8",
        "cache-control": REVALIDATE,
        "x-content-type-options": "nosniff",
      });
    })
    .get("/docs", async (c) => {
      policy ??= docsPolicy();
      return c.body(DOCS_PAGE, 200, {
        "content-type": "text/html; charset=utf-8",
        "cache-control": REVALIDATE,
        "content-security-policy": await policy,
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "referrer-policy": "no-referrer",
      });
    });
}
