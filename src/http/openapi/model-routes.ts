/** `/v1/models`. */
import * as z from "zod";
import { model, modelList } from "./door-replies.ts";
import type { Operation } from "./operation.ts";
import { provider } from "./parameters.ts";

export const MODEL_ROUTES = [
  {
    id: "listModels",
    method: "get",
    path: "/v1/models",
    tag: "Models",
    summary: "List models",
    description:
      "The agents and, with a key, the provider's own models, remembered for five minutes. `limit`, `after_id` and `before_id` page the list in Anthropic's shape. Also answers below `/openai/v1` and `/v1/v1`.",
    family: "chat",
    query: z.object({
      limit: z.int().min(1).max(1000).optional().describe("Default 20."),
      after_id: z.string().optional(),
      before_id: z.string().optional(),
    }),
    headers: z.object({
      "x-provider": provider,
      "anthropic-version": z.string().optional().describe("Gives the list Anthropic's shape."),
    }),
    replies: {
      200: {
        description: "What `model` may be.",
        json: {
          schema: modelList,
          examples: {
            "For OpenAI's SDK": {
              object: "list",
              data: [{ id: "dragoman", object: "model", created: 0, owned_by: "dragoman" }],
            },
            "For Anthropic's SDK": {
              data: [
                {
                  type: "model",
                  id: "dragoman",
                  display_name: "Dragoman",
                  created_at: "1970-01-01T00:00:00.000Z",
                },
              ],
              has_more: false,
              first_id: "dragoman",
              last_id: "dragoman",
            },
          },
        },
      },
    },
    faults: [400],
  },
  {
    id: "getModel",
    method: "get",
    path: "/v1/models/{id}",
    tag: "Models",
    summary: "Get a model",
    family: "chat",
    params: z.object({
      id: z
        .string()
        .describe("May hold slashes.")
        .meta({ examples: ["dragoman"] }),
    }),
    headers: z.object({ "x-provider": provider, "anthropic-version": z.string().optional() }),
    replies: {
      200: {
        description: "The model.",
        json: {
          schema: model,
          examples: {
            "For OpenAI's SDK": { id: "dragoman", object: "model", created: 0, owned_by: "dragoman" },
          },
        },
      },
    },
    faults: [404],
  },
] as const satisfies readonly Operation[];
