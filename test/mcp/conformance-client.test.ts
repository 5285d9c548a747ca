/** The conformance suite and our client: the service itself, with a person at a browser where a server wants one. */
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { serve } from "@hono/node-server";
import { beforeAll, expect, test } from "vitest";
import { type Check, failuresOf, runConformance, scenariosOf } from "./conformance.ts";
import { runClient, type Task } from "./conformance-client.ts";

const COMMAND = fileURLToPath(new URL("./conformance-command.ts", import.meta.url));

/** Scenarios that do not apply, and why. All others have to pass. */
const NOT_OURS: Record<string, string> = {
  "elicitation-sep1034-client-defaults":
    "Servers cannot ask people through the agent: the capability is not declared.",
  "auth/client-credentials-jwt":
    "An extension, for programs without a person. A key in `headers` does that here.",
  "auth/client-credentials-basic":
    "An extension, for programs without a person. A key in `headers` does that here.",
  "auth/cross-app-access-complete-flow":
    "An extension, for a company's identity provider, which the service does not sign in with.",
};

let all: string[];
let results: Map<string, Check[]>;
/** What our client says of its tasks, by scenario. */
const said = new Map<string, string>();

beforeAll(async () => {
  // One after the other: one of them measures time.
  let line = Promise.resolve("");
  const control = serve({
    async fetch(request) {
      const task = (await request.json()) as Task;
      line = line.then(() => runClient(task)).catch((error: Error) => `${error.stack}`);
      const words = await line;
      said.set(task.scenario, words);
      return new Response(words);
    },
    port: 0,
    hostname: "127.0.0.1",
  });
  if (!control.listening) await once(control, "listening");
  const url = `http://127.0.0.1:${(control.address() as AddressInfo).port}/`;
  const command = `"${process.execPath}" "${COMMAND}" ${url}`;
  const [names, { scenarios }] = await Promise.all([
    scenariosOf("client"),
    runConformance(["client", "--suite", "all", "--command", command]),
  ]);
  all = names;
  results = scenarios;
  control.close();
});

test("every scenario that there is has been run, or has a reason", () => {
  expect(all.length).toBeGreaterThan(20);
  expect([...results.keys()].sort()).toEqual([...all].sort());
  expect(all).toEqual(expect.arrayContaining(Object.keys(NOT_OURS)));
});

test("every scenario that applies has passed", () => {
  const failed = [...results]
    .filter(([name]) => !(name in NOT_OURS))
    .flatMap(([name, checks]) =>
      failuresOf(checks).map((failure) => `${name}: ${failure}\n${said.get(name)}`),
    );
  expect(failed).toEqual([]);
  for (const [name, checks] of results)
    if (!(name in NOT_OURS))
      expect(checks.filter(({ status }) => status === "SUCCESS").length, name).toBeGreaterThan(0);
});

test("none that has a reason would pass", () => {
  const passing = Object.keys(NOT_OURS).filter((name) => failuresOf(results.get(name) ?? []).length === 0);
  expect(passing).toEqual([]);
});
