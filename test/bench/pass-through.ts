/** What the service is measured against: Hono with one route that forwards, as little as a gateway can be. */
import { Hono } from "hono";

const upstream = process.env.UPSTREAM ?? "";
const port = Number(process.env.PORT);
const app = new Hono();
app.get("/healthz", (c) => c.json({ status: "ok" }));
app.post("/v1/*", async (c) => {
  const { headers, signal } = c.req.raw;
  const sent = new Headers({ "content-type": "application/json" });
  for (const name of ["authorization", "x-api-key"])
    if (headers.has(name)) sent.set(name, headers.get(name) ?? "");
  const body = await c.req.text();
  const reply = await fetch(upstream + c.req.path, { method: "POST", headers: sent, body, signal });
  const type = reply.headers.get("content-type") ?? "";
  return new Response(reply.body, { status: reply.status, headers: { "content-type": type } });
});

if ("Bun" in globalThis)
  Bun.serve({ port, hostname: "127.0.0.1", fetch: app.fetch, idleTimeout: 0, maxRequestBodySize: 1e9 });
else (await import("@hono/node-server")).serve({ fetch: app.fetch, port, hostname: "127.0.0.1" });
