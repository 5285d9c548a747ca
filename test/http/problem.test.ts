/** What of an error is cut out where it holds a key, and what stays whatever keys there are. */
import { Hono } from "hono";
import { expect, test } from "vitest";
import { createRedaction } from "../../src/core/redaction.ts";
import { AppError } from "../../src/errors.ts";
import type { AppEnv } from "../../src/http/env.ts";
import { errorResponse } from "../../src/http/problem.ts";
import { json } from "./service.ts";

const KEY = "sk-canary-0123456789";

async function answer(path: string, error: AppError, ...keys: string[]) {
  const redaction = createRedaction();
  for (const key of keys) redaction.hold(key);
  const app = new Hono<AppEnv>()
    .use(async (c, next) => {
      c.set("redaction", redaction);
      await next();
    })
    .get(path, () => {
      throw error;
    })
    .onError((thrown, c) => errorResponse(c, thrown));
  return json(await app.request(path));
}

const PATHS = ["/api/runs", "/v1/messages", "/v1/chat/completions", "/mcp"];

test.each(PATHS)("K2: a quoted key is cut out at %s", async (path) => {
  const error = new AppError("invalid_request", `'${KEY}' is no model.`, {
    ...{ param: `headers["${KEY}"]`, upstreamType: `no ${KEY}`, upstreamCode: KEY },
    details: { errors: [{ path: KEY, message: `${KEY} is wrong` }] },
  });
  expect(JSON.stringify(await answer(path, error, KEY))).not.toContain("canary");
});

test.each(PATHS)("words of the interface are nobody's key at %s", async (path) => {
  const error = () =>
    new AppError("invalid_request", "No.", {
      upstreamType: "invalid_request_error",
      upstreamCode: "model_not_found",
    });
  const words = ["invalid_request", "invalid_request_error", "model_not_found", "about:blank"];
  expect(await answer(path, error(), ...words)).toEqual(await answer(path, error()));
});
