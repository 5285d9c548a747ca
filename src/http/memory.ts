/** `/api/memory`: what the agent remembers of its users, for the user to see, correct and take along. */
import { type Context, Hono } from "hono";
import { AppError } from "../errors.ts";
import type { Services } from "../services.ts";
import type { AppEnv } from "./env.ts";
import { exportLines, importLines, JSON_LINES } from "./memory-lines.ts";
import { encodeMemory, memoryChange, memoryRequest, toDraft } from "./memory-records.ts";
import { pageOf, readBody } from "./validate.ts";

/** Characters of a search. */
const QUERY_LIMIT = 500;
/** Results that a search gives on all its pages. */
const RESULTS_LIMIT = 1_000;

export function memoryRoutes({ memory: vault, config, platform }: Services): Hono<AppEnv> {
  const limits = { limit: config.body.apiLimit, timeoutMs: config.body.timeoutMs };

  async function search(c: Context<AppEnv>, query: string) {
    const { limit, cursor } = pageOf(c);
    const from = cursor === undefined ? 0 : positionOf(cursor);
    const most = Math.min(from + limit + 1, RESULTS_LIMIT);
    const category = categoryOf(c);
    const { signal } = c.req.raw;
    const { found, degraded } = await vault.search(c.get("owner"), query, {
      ...{ category, limit: most, prefix: true, signal },
    });
    const page = found.slice(from, from + limit);
    const more = found.length > from + limit;
    return {
      memories: page.map(({ memory }) => encodeMemory(memory)),
      next_cursor: more ? `r${from + limit}` : null,
      ...(degraded === null ? {} : { degraded }),
    };
  }

  return (
    new Hono<AppEnv>()
      .get("/", async (c) => {
        const owner = c.get("owner");
        const query = c.req.query("q")?.trim().slice(0, QUERY_LIMIT);
        const embedding = c.req.query("cursor") ? null : await vault.embedding(owner);
        const state = embedding ? { embedding } : {};
        if (query) return c.json({ ...(await search(c, query)), ...state });
        const { memories, next } = await vault.list(owner, { ...pageOf(c), category: categoryOf(c) });
        return c.json({ memories: memories.map(encodeMemory), next_cursor: next, ...state });
      })
      .post("/", async (c) => {
        const draft = toDraft(await readBody(c, memoryRequest, limits));
        const { outcome, memory, superseded } = await vault.remember(c.get("owner"), draft);
        const known = outcome === "strengthened";
        return c.json(
          {
            ...{ status: outcome, memory_id: memory.id, memory: encodeMemory(memory) },
            superseded: superseded.map(encodeMemory),
          },
          known ? 200 : 201,
          known ? {} : { location: `/api/memory/${memory.id}` },
        );
      })
      .delete("/", async (c) => c.json({ status: "deleted", deleted: await vault.clear(c.get("owner")) }))
      // Before the routes with an id.
      .get("/export", (c) =>
        c.body(exportLines(vault, c.get("owner"), platform.log), 200, {
          "content-type": JSON_LINES,
          "content-disposition": 'attachment; filename="memories.jsonl"',
        }),
      )
      .post("/import", async (c) => c.json(await importLines(c, vault, limits, platform.now())))
      .get("/:id", async (c) => c.json(encodeMemory(await vault.get(c.get("owner"), c.req.param("id")))))
      .patch("/:id", async (c) => {
        const { document, metadata } = await readBody(c, memoryChange, limits);
        const { category, importance } = metadata ?? {};
        const id = c.req.param("id");
        const memory = await vault.edit(c.get("owner"), id, { document, category, importance });
        return c.json({ status: "updated", memory_id: memory.id, memory: encodeMemory(memory) });
      })
      .delete("/:id", async (c) => {
        await vault.delete(c.get("owner"), c.req.param("id"));
        return c.json({ status: "deleted", deleted: 1 });
      })
      .get("/:id/history", async (c) => {
        const { memories, next } = await vault.history(c.get("owner"), c.req.param("id"), pageOf(c));
        return c.json({ memories: memories.map(encodeMemory), next_cursor: next });
      })
  );
}

function categoryOf(c: Context<AppEnv>): string | undefined {
  return c.req.query("category")?.trim() || undefined;
}

/** Of a search: how many results stand before. */
function positionOf(cursor: string): number {
  const position = /^r(\d{1,4})$/.exec(cursor)?.[1];
  if (position !== undefined) return Number(position);
  throw new AppError(
    "invalid_request",
    "cursor: this is not one of this search's. Pass `next_cursor` of the page before as it came, or leave it out.",
    { param: "cursor" },
  );
}
