/** The conformance suite against `/mcp`. */

import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { AppEnv } from "../../src/http/env.ts";
import { guard } from "../../src/http/guard.ts";
import { mcpServerRoutes } from "../../src/http/mcp-server.ts";
import { createQuota } from "../../src/http/quota.ts";
import { createHome, createService, type TestHome, type TestService } from "../http/service.ts";
import { scriptedModel } from "../scripted-model.ts";
import { type Check, failuresOf, runConformance, scenariosOf } from "./conformance.ts";
import { CONFORMANCE_TOOLS } from "./conformance-tools.ts";

const NOTHING_ELSE = "There are tools only: the capability is not declared.";
const NO_ASKING =
  "Without sessions there is no way for the client's answer to a request of the server's to find it.";

/** Scenarios that do not apply, and why. All others have to pass. */
const NOT_OURS: Record<string, string> = {
  "logging-set-level": NOTHING_ELSE,
  "tools-call-with-logging": NOTHING_ELSE,
  "completion-complete": NOTHING_ELSE,
  "resources-list": NOTHING_ELSE,
  "resources-read-text": NOTHING_ELSE,
  "resources-read-binary": NOTHING_ELSE,
  "resources-templates-read": NOTHING_ELSE,
  "resources-subscribe": NOTHING_ELSE,
  "resources-unsubscribe": NOTHING_ELSE,
  "prompts-list": NOTHING_ELSE,
  "prompts-get-simple": NOTHING_ELSE,
  "prompts-get-with-args": NOTHING_ELSE,
  "prompts-get-embedded-resource": NOTHING_ELSE,
  "prompts-get-with-image": NOTHING_ELSE,
  "tools-call-sampling": NO_ASKING,
  "tools-call-elicitation": NO_ASKING,
  "elicitation-sep1034-defaults": NO_ASKING,
  "elicitation-sep1330-enums": NO_ASKING,
  "server-sse-polling":
    "Streams are not resumed: an answer is sent once, and what it tells of is in the session that read_session shows.",
};

let home: TestHome;
let service: TestService;
let server: ReturnType<typeof serve>;
let results: Map<string, Check[]>;
let all: string[];

beforeAll(async () => {
  home = await createHome();
  service = await createService(home, { model: scriptedModel([{ text: "hello" }]) });
  const { services } = service;
  const quota = createQuota({ requestsPerMinute: 0, runs: 0, now: Date.now });
  const app = new Hono<AppEnv>()
    .use(guard(services.config.access))
    .route("/mcp", mcpServerRoutes(services, quota, CONFORMANCE_TOOLS));
  server = serve({ fetch: (request) => app.fetch(request), port: 0, hostname: "127.0.0.1" });
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
  const [names, { scenarios }] = await Promise.all([
    scenariosOf("server"),
    runConformance(["server", "--url", url, "--suite", "all"]),
  ]);
  all = names;
  results = scenarios;
});
afterAll(async () => {
  await new Promise((resolve) => server.close(resolve));
  await service.close();
  await home.close();
});

test("every scenario that there is has been run, or has a reason", () => {
  expect(all.length).toBeGreaterThan(25);
  expect([...results.keys()].sort()).toEqual([...all].sort());
  expect(all).toEqual(expect.arrayContaining(Object.keys(NOT_OURS)));
});

test("every scenario that applies has passed", () => {
  const failed = [...results]
    .filter(([name]) => !(name in NOT_OURS))
    .flatMap(([name, checks]) => failuresOf(checks).map((failure) => `${name}: ${failure}`));
  expect(failed).toEqual([]);
  for (const [name, checks] of results)
    if (!(name in NOT_OURS))
      expect(checks.filter(({ status }) => status === "SUCCESS").length, name).toBeGreaterThan(0);
});

test("none that has a reason would pass", () => {
  const passing = Object.keys(NOT_OURS).filter((name) => {
    const checks = results.get(name) ?? [];
    return failuresOf(checks).length === 0 && checks.some(({ status }) => status === "SUCCESS");
  });
  expect(passing).toEqual([]);
});
