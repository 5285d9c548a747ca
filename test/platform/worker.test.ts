import { expect, test, vi } from "vitest";
import type { Config } from "../../src/config.ts";
import type { Platform } from "../../src/core/platform.ts";
import type { Service } from "../../src/platform/service.ts";
import { createWorkerHandler } from "../../src/platform/worker.ts";
import { service } from "../../src/service.ts";

const ENV = { LIBSQL_URL: "http://127.0.0.1:1", ACCESS_TOKENS: "alice:t1" };
const connection = { address: () => undefined };

/** The real service with other routes. */
function routedTo(compose: Service["compose"]): Service {
  return { ...service, compose };
}

test("vars and secrets are settings, other bindings are not", async () => {
  let seen: Config | undefined;
  let platform: Platform | undefined;
  const held: Promise<unknown>[] = [];
  const handler = createWorkerHandler(
    { ...ENV, MAX_STEPS: 7, LOG_LEVEL: "silent", ASSETS: { fetch() {} } },
    (work) => held.push(work),
    routedTo((config, given) => {
      seen = config;
      platform = given;
      return () => new Response("composed");
    }),
  );
  const response = await handler(new Request("https://edge.example/"), connection);
  expect(await response.text()).toBe("composed");
  expect(seen).toMatchObject({ runtime: "workerd", run: { maxSteps: 7 }, terminal: "virtual" });
  expect(platform?.files("alice").root).toBe("/workspace");
  expect(platform?.terminal?.("alice").kind).toBe("virtual");
  platform?.background(Promise.reject(new Error("nobody's fault")));
  await Promise.all(held);
  expect(held).toHaveLength(1);
});

test("wrong settings answer every request with 503 and stand in the log alone", async () => {
  const print = vi.spyOn(console, "log").mockImplementation(() => {});
  const handler = createWorkerHandler(
    { LIBSQL_URL: ENV.LIBSQL_URL },
    () => {},
    routedTo(() => expect.fail("was composed")),
  );
  const response = await handler(new Request("https://edge.example/v1/models"), connection);
  expect(response.status).toBe(503);
  expect(await response.text()).not.toContain("ACCESS_TOKENS");
  expect(print.mock.calls.join()).toContain("ACCESS_TOKENS");
  print.mockRestore();
});

test("there is a secret for keys at rest: SECRET_KEY, and without it the access tokens", async () => {
  const secretWith = (env: Record<string, string>): string | undefined => {
    let secret: string | undefined;
    const compose: Service["compose"] = (_config, platform) => {
      secret = platform.secret;
      return () => new Response();
    };
    createWorkerHandler({ ...ENV, ...env }, () => {}, routedTo(compose));
    return secret;
  };
  const own = "a-secret-of-at-least-thirty-two-characters";
  expect(secretWith({ SECRET_KEY: own })).toBe(own);
  expect(secretWith({})).toBe(secretWith({}));
  expect(secretWith({})).not.toBe(secretWith({ ACCESS_TOKENS: "alice:t2" }));
});
