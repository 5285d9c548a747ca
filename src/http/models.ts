/** `GET /v1/models`, in OpenAI's shape or, for clients that say `anthropic-version`, in Anthropic's. */
import { type Context, Hono } from "hono";
import { AGENT } from "../agent/target.ts";
import type { ModelAdapter, ModelInfo } from "../core/model.ts";
import { AppError } from "../errors.ts";
import type { Services } from "../services.ts";
import { credentialsOf } from "./credentials.ts";
import type { AppEnv } from "./env.ts";

/** How long a provider's list is believed. Milliseconds. */
const FRESH_MS = 5 * 60_000;
/** Entries of one page in Anthropic's shape unless the client says otherwise, and at most. */
const PAGE = 20;
const LARGEST_PAGE = 1000;

export function modelRoutes(services: Services): Hono<AppEnv> {
  const lists = new WeakMap<ModelAdapter, { at: number; models: Promise<ModelInfo[]> }>();

  /** The agents, and with a key the provider's own models. */
  async function all(c: Context<AppEnv>): Promise<ModelInfo[]> {
    const named = await services.store.agents.names(c.get("owner"));
    const agents: ModelInfo[] = [{ id: AGENT, ownedBy: AGENT, displayName: "Dragoman" }];
    for (const { name } of named) agents.push({ id: `${AGENT}/${name}`, ownedBy: AGENT, displayName: name });
    if (c.get("providerKey") === undefined) return agents;
    const adapter = await services.models.adapter(credentialsOf(c, services.models));
    return [...agents, ...(await listed(adapter))];
  }

  function listed(adapter: ModelAdapter): Promise<ModelInfo[]> {
    const now = services.platform.now().getTime();
    const known = lists.get(adapter);
    if (known && now - known.at < FRESH_MS) return known.models;
    // One question for all who ask meanwhile, so it is nobody's to cancel.
    const models = adapter.models(AbortSignal.timeout(services.config.upstream.firstByteMs));
    lists.set(adapter, { at: now, models });
    models.catch(() => lists.delete(adapter));
    return models;
  }

  return new Hono<AppEnv>()
    .get("/", async (c) => {
      const models = await all(c);
      return c.json(
        isAnthropic(c) ? anthropicPage(c, models) : { object: "list", data: models.map(openaiModel) },
      );
    })
    .get("/:id{.+}", async (c) => {
      const id = c.req.param("id");
      const model = (await all(c)).find((known) => known.id === id);
      if (!model)
        throw new AppError(
          "not_found",
          `There is no model '${id}' for this key. GET /v1/models lists what there is.`,
          {
            param: "model",
            upstreamCode: "model_not_found",
          },
        );
      return c.json(isAnthropic(c) ? anthropicModel(model) : openaiModel(model));
    });
}

function isAnthropic(c: Context<AppEnv>): boolean {
  return c.req.header("anthropic-version") !== undefined;
}

function openaiModel(model: ModelInfo) {
  return { id: model.id, object: "model", created: model.created ?? 0, owned_by: model.ownedBy };
}

function anthropicModel(model: ModelInfo) {
  const created = new Date((model.created ?? 0) * 1000).toISOString();
  return { type: "model", id: model.id, display_name: model.displayName ?? model.id, created_at: created };
}

/** Anthropic's cursors are ids: `after_id`, `before_id`, `limit`. */
function anthropicPage(c: Context<AppEnv>, models: ModelInfo[]) {
  const limit = limitOf(c.req.query("limit"));
  const after = c.req.query("after_id");
  const before = c.req.query("before_id");
  let rest = models;
  if (after !== undefined) rest = rest.slice(indexOf(models, after, "after_id") + 1);
  else if (before !== undefined) rest = rest.slice(0, indexOf(models, before, "before_id"));
  const backwards = after === undefined && before !== undefined;
  const page = backwards ? rest.slice(-limit) : rest.slice(0, limit);
  return {
    data: page.map(anthropicModel),
    has_more: page.length < rest.length,
    first_id: page[0]?.id ?? null,
    last_id: page.at(-1)?.id ?? null,
  };
}

function limitOf(value: string | undefined): number {
  if (value === undefined) return PAGE;
  const limit = Number(value);
  if (Number.isInteger(limit) && limit >= 1 && limit <= LARGEST_PAGE) return limit;
  throw new AppError(
    "invalid_request",
    `limit has to be a whole number from 1 to ${LARGEST_PAGE}, but it is '${value}'.`,
    {
      param: "limit",
    },
  );
}

function indexOf(models: ModelInfo[], id: string, param: string): number {
  const index = models.findIndex((model) => model.id === id);
  if (index === -1) throw new AppError("invalid_request", `${param}: there is no model '${id}'.`, { param });
  return index;
}
