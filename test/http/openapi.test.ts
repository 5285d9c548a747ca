import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as z from "zod";
import { createApp } from "../../src/app.ts";
import { openapiDocument } from "../../src/http/openapi/document.ts";
import { exampleFault, FAULT_SCHEMAS, type FaultStatus, MEANINGS } from "../../src/http/openapi/faults.ts";
import { DOOR_ALIASES, type Family, type Operation } from "../../src/http/openapi/operation.ts";
import { ROUTES } from "../../src/http/openapi/routes.ts";
import { scriptedModel } from "../scripted-model.ts";
import { type OpenapiForm, openapiForm } from "./openapi-form.ts";
import { createHome, createService, type TestHome, type TestService } from "./service.ts";

const routes: readonly Operation[] = ROUTES;
const named = routes.map((route) => [`${route.method} ${route.path}`, route] as const);

let home: TestHome;
let service: TestService;
let document: OpenapiForm;

beforeAll(async () => {
  home = await createHome();
  service = await createService(home, { model: scriptedModel([{ text: "hello" }]) });
  document = (await (await service.request("/openapi.json")).json()) as OpenapiForm;
});
afterAll(async () => {
  await service.close();
  await home.close();
});

/** Every value inside, with its path. */
function* inside(value: unknown, path: string[] = []): Generator<{ path: string[]; value: unknown }> {
  yield { path, value };
  if (typeof value !== "object" || value === null) return;
  for (const [key, inner] of Object.entries(value)) yield* inside(inner, [...path, key]);
}

function atPointer(pointer: string): unknown {
  const keys = pointer.slice(2).split("/");
  return keys.reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], document);
}

describe("the table of routes", () => {
  test("is what the app has mounted: nothing undescribed, nothing invented", () => {
    const mounted = new Set<string>();
    for (const { method, path } of createApp(service.services).routes) {
      // Middleware.
      if (method === "ALL") continue;
      const alias = DOOR_ALIASES.find((base) => path.startsWith(`${base}/`));
      const own = alias ? `/v1${path.slice(alias.length)}` : path;
      mounted.add(`${method.toLowerCase()} ${own.replaceAll(/:(\w+)(\{[^/]*\})?/g, "{$1}")}`);
    }
    expect([...mounted].sort()).toEqual(named.map(([name]) => name).sort());
    expect(routes).toHaveLength(mounted.size);
  });

  test("says of the doors' other addresses what is so", () => {
    const mounted = createApp(service.services).routes.map(({ path }) => path);
    for (const base of DOOR_ALIASES)
      for (const { path, description = "" } of routes.filter((route) => route.path.startsWith("/v1/"))) {
        expect(mounted).toContain(base + path.slice(3).replace("{id}", ":id{.+}"));
        if (path === "/v1/messages" || path === "/v1/chat/completions") expect(description).toContain(base);
      }
  });

  test.each(named)("%s declares the parameters of its path", (_, { path, params }) => {
    const wanted = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    expect(Object.keys(params?.shape ?? {})).toEqual(wanted);
  });

  test.each(named)("%s has examples that its schemas accept", (_, { body, replies }) => {
    for (const [name, value] of Object.entries(body?.examples ?? {})) accept(body?.schema, value, name);
    for (const { json, events } of Object.values(replies)) {
      for (const [name, value] of Object.entries(json?.examples ?? {}))
        accept(json?.schema, value, name, true);
      for (const [name, stream] of Object.entries(events?.examples ?? {})) {
        expect(stream.length).toBeGreaterThan(0);
        for (const event of stream) accept(events?.schema, event, name, true);
      }
    }
  });

  test("has an example for whatever has a schema", () => {
    for (const { body, replies } of routes)
      for (const each of [body, ...Object.values(replies).flatMap(({ json, events }) => [json, events])])
        if (each) expect(Object.keys(each.examples).length).toBeGreaterThan(0);
  });

  test("shows each family's errors in that family's shape", () => {
    for (const family of Object.keys(FAULT_SCHEMAS) as Family[])
      for (const status of Object.keys(MEANINGS).map(Number) as FaultStatus[])
        accept(FAULT_SCHEMAS[family], exampleFault(family, status), `${family} ${status}`, true);
  });
});

/** `whole`: and says nothing that the schema does not know. */
function accept(schema: z.ZodType | undefined, value: unknown, name: string, whole = false): void {
  const result = schema?.safeParse(value);
  expect(result?.error?.issues ?? [], name).toEqual([]);
  if (whole) expect(result?.data).toEqual(value);
}

describe("the document", () => {
  test("is OpenAPI 3.1", () => {
    expect(openapiForm.safeParse(document).error?.issues ?? []).toEqual([]);
  });

  test("is made once and the same for everybody", async () => {
    const [a, b] = await Promise.all([service.request("/openapi.json"), service.request("/openapi.json")]);
    expect(a.headers.get("content-type")).toContain("application/json");
    expect(await a.text()).toBe(await b.text());
    expect(document).toEqual(JSON.parse(JSON.stringify(openapiDocument(ROUTES))));
  });

  test("has no reference that leads nowhere, and no component that nothing refers to", () => {
    const referred = new Set<string>();
    for (const { path, value } of inside(document))
      if (path.at(-1) === "$ref") {
        expect(atPointer(value as string), String(value)).toBeTypeOf("object");
        referred.add(value as string);
      }
    for (const kind of ["schemas", "responses"] as const)
      for (const name of Object.keys(document.components[kind]))
        expect(referred).toContain(`#/components/${kind}/${name}`);
  });

  test("names each operation once, with a tag and credentials that are described", () => {
    const operations = Object.values(document.paths).flatMap((item) => Object.values(item));
    expect(operations).toHaveLength(ROUTES.length);
    expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(operations.length);
    const tags = document.tags.map(({ name }) => name);
    for (const { tags: own, security } of operations) {
      expect(tags).toContain(own[0]);
      for (const name of security.flatMap((each) => Object.keys(each)))
        expect(Object.keys(document.components.securitySchemes)).toContain(name);
    }
  });

  test("has JSON Schemas that accept its own examples", () => {
    const $defs = JSON.parse(
      JSON.stringify(document.components.schemas).replaceAll("#/components/schemas/", "#/$defs/"),
    );
    const reread = (schema: object) => {
      const own = JSON.parse(JSON.stringify(schema).replaceAll("#/components/schemas/", "#/$defs/"));
      return z.fromJSONSchema({ ...own, $defs });
    };
    let checked = 0;
    for (const { value } of inside(document)) {
      const media = value as {
        schema?: object;
        examples?: Record<string, { value: unknown }>;
        example?: unknown;
      };
      if (!media?.schema || !(media.examples || media.example)) continue;
      const values = Object.values(media.examples ?? {}).map((example) => example.value);
      for (const example of media.example ? [media.example] : values) {
        expect(reread(media.schema).safeParse(example).error?.issues ?? []).toEqual([]);
        checked++;
      }
    }
    expect(checked).toBeGreaterThan(60);
  });

  test("is made from the schemas that validate", async () => {
    const chat = document.components.schemas.ChatRequest as { required: string[]; properties: object };
    expect(chat.required).toEqual(["message"]);
    for (const body of [{}, { message: "" }, { message: 1 }, { message: "x", provider: "other" }]) {
      const response = await service.post("/api/chat", body);
      expect(response.status).toBe(400);
      const { param } = (await response.json()) as { param: string };
      expect(Object.keys(chat.properties)).toContain(param);
    }
  });
});

describe("access", () => {
  test("the document and its page need no token, and everything else does", async () => {
    const locked = await createService(home, {
      model: scriptedModel([{ text: "hello" }]),
      env: { ACCESS_TOKENS: "ann:a-token-of-the-tests-1234567890" },
    });
    for (const path of ["/openapi.json", "/docs", "/healthz"])
      expect((await locked.request(path)).status, path).toBe(200);
    for (const path of ["/api/runs", "/docs/", "/docs/x", "/DOCS", "/openapi.json/", "/openapi"])
      expect((await locked.request(path)).status, path).toBe(401);
    for (const path of ["//docs", "/docs/..%2fapi%2fruns", "/docs%00"])
      expect((await locked.request(path)).status, path).not.toBe(200);
    await locked.close();
  });

  test("A2 holds for them as for all others", async () => {
    for (const path of ["/openapi.json", "/docs"]) {
      expect((await service.request(path, { headers: { host: "evil.example" } })).status).toBe(403);
      expect((await service.request(path, { headers: { origin: "https://evil.example" } })).status).toBe(403);
    }
  });
});

describe("/docs", () => {
  test("brings all that it needs, and its policy lets nothing else run", async () => {
    const response = await service.request("/docs");
    const page = await response.text();
    expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(response.headers.get("x-content-type-options")).toBe("nosniff");
    const policy = response.headers.get("content-security-policy") ?? "";
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toContain("unsafe");
    for (const tag of ["script", "style"]) {
      const blocks = [...page.matchAll(new RegExp(`<${tag}[^>]*>(.*?)</${tag}>`, "gs"))];
      expect(blocks).toHaveLength(1);
      expect(policy).toContain(`${tag}-src 'sha256-${await sha256(blocks[0]?.[1] ?? "")}'`);
    }
    expect(page.match(/https?:\/\/[^"'\s]*/g)).toBeNull();
    expect(page.match(/ (style|on\w+)=/g)).toBeNull();
  });

  test("writes what the document says as text", async () => {
    const page = await (await service.request("/docs")).text();
    const script = page.slice(page.indexOf("<script>") + 8, page.indexOf("</script>"));
    expect(() => new Function(script)).not.toThrow();
    expect(script).not.toMatch(
      /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function/,
    );
  });
});

async function sha256(text: string): Promise<string> {
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Buffer.from(hash).toString("base64");
}
