/** R9: whatever is sent to whatever route, the process stays, and the answer is one that the contract has words for. */
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { STATUS } from "../../src/errors.ts";
import type { Family, Operation } from "../../src/http/openapi/operation.ts";
import { ROUTES } from "../../src/http/openapi/routes.ts";
import { createHome, createService, type TestHome, type TestService, toolbox } from "../http/service.ts";
import { scriptedModel } from "../scripted-model.ts";
import { asBytes, fromSchema, mutated } from "./arbitrary-body.ts";
import { LIMIT_MS, times } from "./extent.ts";

const CASES = times(60, 2_000);

let home: TestHome;
let service: TestService;
/** Ids that are there, so that what is behind them is met too. */
const known: { session: string; run: string; message: string } = { session: "", run: "", message: "" };
const unhandled: unknown[] = [];
const onUnhandled = (error: unknown) => unhandled.push(error);

beforeAll(async () => {
  process.on("unhandledRejection", onUnhandled);
  home = await createHome();
  const env = {
    SESSION_WAIT: "0",
    ALLOW_AUTO_APPROVE: "1",
    // Nobody is there to be asked again.
    UPSTREAM_RETRIES: "0",
    ANTHROPIC_API_KEY: "sk-ant-x",
    GROQ_API_KEY: "gsk_x",
  };
  const model = scriptedModel([{ text: "well" }]);
  service = await createService(home, { model, env, tools: toolbox() });
  await renew();
});
afterAll(async () => {
  await service.close();
  await home.close();
  process.off("unhandledRejection", onUnhandled);
});

async function renew(): Promise<void> {
  const reply = (await (await service.post("/api/chat", { message: "hello" })).json()) as Record<
    string,
    string
  >;
  Object.assign(known, { session: reply.session_id, run: reply.run_id, message: reply.message_id });
}

const id = fc.oneof(
  fc.constantFrom<keyof typeof known>("session", "run", "message").map((kind) => () => known[kind]),
  fc
    .constantFrom("ses_x", "%00", "..%2f", "%ff", "a".repeat(3_000), "%F0%9F%98%80", "__proto__")
    .map((x) => () => x),
  fc
    .string({ minLength: 1, maxLength: 30 })
    .map((x) => () => encodeURIComponent(x.replaceAll(/[.\\/\ud800-\udfff]/g, "_"))),
);

const word = fc.oneof(
  fc.constantFrom(
    "",
    "0",
    "1",
    "200",
    "201",
    "-1",
    "1e9",
    "NaN",
    "ses_x",
    "%00",
    "%ff",
    "%",
    "[]",
    "x".repeat(2_000),
  ),
  fc.string({ maxLength: 12 }).map((x) => encodeURIComponent(x.replaceAll(/[\ud800-\udfff]/g, "_"))),
);
const query = fc.dictionary(
  fc.constantFrom("limit", "cursor", "q", "after", "session_id", "beta", "x"),
  word,
  {
    maxKeys: 3,
  },
);

/** Values of headers are bytes; a client can send no line ends in them. */
const headerValue = fc.oneof(
  fc.constantFrom(
    "",
    "1",
    "-1",
    "continue",
    "deny",
    "none",
    "all",
    "ses_x",
    "openai",
    "nobody",
    "application/xml",
  ),
  fc.stringMatching(/^[\x20-\x7e]{0,40}$/),
);
const headers = fc.dictionary(
  fc.constantFrom(
    ...["idempotency-key", "last-event-id", "x-session-id", "x-provider", "x-agent-tools", "x-approval"],
    ...["x-on-disconnect", "x-agent-events", "anthropic-version", "anthropic-beta", "x-request-id", "accept"],
    ...["content-type", "authorization", "x-api-key", "x-access-token"],
  ),
  headerValue,
  { maxKeys: 3 },
);

/** A fault in the words of the family: with a sentence, and a name for it. */
function named(family: Family, body: unknown): unknown {
  const own = body as Record<string, Record<string, unknown>> & { detail?: unknown; code?: unknown };
  if (family === "mcp") {
    const { message, data } = own.error as { message: unknown; data: { code: unknown } };
    return [
      typeof message,
      message !== "",
      Object.keys(STATUS).includes(String(data.code)) ? "string" : data,
    ];
  }
  if (family === "chat" || family === "messages")
    return [typeof own.error?.message, own.error?.message !== "", typeof own.error?.type];
  return [
    typeof own.detail,
    own.detail !== "",
    Object.keys(STATUS).includes(String(own.code)) ? "string" : own.code,
  ];
}

async function judge(route: Operation, path: string, init: RequestInit): Promise<void> {
  const response = await service.request(path, init);
  const text = await response.text();
  const what = `${route.method} ${path} -> ${response.status} ${text.slice(0, 500)}`;
  expect(response.status, what).not.toBe(500);
  if (route.family !== "public") expect(text.includes('"code":"internal"'), what).toBe(false);
  // What the document shows of a status by itself is compared with it elsewhere.
  if (response.status < 400 || route.replies[response.status]) return;
  expect(response.headers.get("content-type"), what).toContain("json");
  const family = response.headers.get("content-type")?.includes("problem") ? "api" : route.family;
  expect(named(family, JSON.parse(text)), what).toEqual(["string", true, "string"]);
}

const routes: [string, Operation][] = (ROUTES as readonly Operation[]).map((route) => [
  `${route.method} ${route.path}`,
  route,
]);

describe("generated requests", () => {
  test.each(routes)(`%s, ${CASES} of them`, { timeout: LIMIT_MS }, async (_, route) => {
    const right = route.body ? fromSchema(route.body.schema) : fc.jsonValue({ maxDepth: 2 });
    const bodies = asBytes(
      fc.oneof({ arbitrary: right, weight: 2 }, { arbitrary: mutated(right), weight: 3 }),
    );
    const hasBody = route.method !== "get";
    await fc.assert(
      fc.asyncProperty(id, query, headers, bodies, fc.boolean(), async (anId, asked, sent, bytes, isJson) => {
        const path = route.path.replace(/\{\w+\}/, anId());
        const text = Object.entries(asked)
          .map(([name, value]) => `${name}=${value}`)
          .join("&");
        await judge(route, text === "" ? path : `${path}?${text}`, {
          method: route.method.toUpperCase(),
          headers: {
            ...(isJson || !("content-type" in sent) ? { ...sent, "content-type": "application/json" } : sent),
          },
          ...(hasBody ? { body: bytes } : {}),
        });
      }),
      { numRuns: CASES },
    );
    if (route.method === "delete") await renew();
    expect(unhandled).toEqual([]);
    expect(service.logged.filter(([level]) => level === "error")).toEqual([]);
    expect((await service.request("/readyz")).status).toBe(200);
  });
});
