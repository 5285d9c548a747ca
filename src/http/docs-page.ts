/** The page at `/docs`: everything that it needs is in it, but for the document that it shows. */
import { DOCS_SCRIPT } from "./docs-script.ts";
import { DOCS_STYLE } from "./docs-style.ts";

export const DOCS_PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Dragoman API</title>
<link rel="icon" href="data:,">
<style>${DOCS_STYLE}</style>
</head>
<body>
<div id="shell">
<aside id="side">
<div class="top">
<h1>Dragoman</h1>
<div class="links"><a href="openapi.json">openapi.json</a></div>
<button id="menu" type="button" aria-expanded="false">Menu</button>
</div>
<input id="filter" type="search" placeholder="Filter" aria-label="Filter the endpoints">
<nav aria-label="Endpoints"></nav>
</aside>
<main><noscript><p>This page is drawn by a script. What it would show is in <a href="openapi.json">openapi.json</a>.</p></noscript></main>
</div>
<script>${DOCS_SCRIPT}</script>
</body>
</html>
`;

/** Nothing but this page's own script and style runs, nothing but this service is asked, and nobody frames it. */
export async function docsPolicy(): Promise<string> {
  const [script, style] = await Promise.all([sourceOf(DOCS_SCRIPT), sourceOf(DOCS_STYLE)]);
  return [
    "default-src 'none'",
    `script-src ${script}`,
    `style-src ${style}`,
    "connect-src 'self'",
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}

async function sourceOf(text: string): Promise<string> {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  return `'sha256-${btoa(String.fromCharCode(...hash))}'`;
}
