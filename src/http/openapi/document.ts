/** The table of routes -> one OpenAPI 3.1 document. Its schemas are those that validate: nothing is said twice. */
import * as z from "zod";
import {
  COMMON_FAULTS,
  exampleFault,
  FAULT_SCHEMAS,
  type FaultStatus,
  MEANINGS,
  PASSED_ON,
} from "./faults.ts";
import type { Body, EventStream, Examples, Family, Operation, Reply, ReplyHeader } from "./operation.ts";

type Json = Record<string, unknown>;

const INTRODUCTION = `A self-hosted agent behind every SDK's base URL. Point any client built for the OpenAI or the Anthropic API at \`/v1\`, or speak to the agent at \`/api/chat\`, where runs survive their clients and tool calls wait for approval.

Every response carries \`x-request-id\`. Lists take \`limit\` and \`cursor\` and return \`next_cursor\`.`;

const TAGS: Record<string, string> = {
  Chat: "Talk to the agent, and decide what it may do.",
  Runs: "What the agent is doing or has done, whatever door it came through.",
  Sessions: "Conversations that the server keeps.",
  "Chat completions": "For clients of the OpenAI API.",
  Messages: "For clients of the Anthropic API.",
  "MCP servers": "Programs whose tools the agent has.",
  MCP: "Dragoman as a tool of other programs.",
  Agents: "Agents with a name, and what makes them different from the default one.",
  Memory: "What the agent remembers of its user from conversation to conversation.",
  Notes: "What is written down, with images.",
  Automation: "What the agent does by itself, at its time.",
  Speech: "Texts read aloud.",
  Models: "What `model` may be.",
  Files: "The workspace of the agent.",
  Tools: "What the agent can do.",
  Service: "Health, and this document.",
};

const HEADERS: Record<ReplyHeader, string> = {
  "x-run-id": "The run that the request has started or gone on with.",
  "x-session-id": "Its session.",
  "x-upstream-model": "The model id that the provider was asked for.",
  "x-estimated": "`1`: the count is an estimate.",
  etag: "The version of what was sent, for `if-none-match`, `if-range` and `if-match`.",
  "content-range": "Which bytes of how many.",
  "idempotency-replayed": "`true`: the stored response of an earlier request with this `Idempotency-Key`.",
};

const SECURITY: Record<Family, readonly Record<string, readonly string[]>[]> = {
  public: [],
  api: [{ accessToken: [] }, {}],
  mcp: [{ accessToken: [] }, { accessToken: [], providerKeyHeader: [] }, { providerKeyHeader: [] }, {}],
  chat: [{ providerKey: [] }, { providerKey: [], accessTokenHeader: [] }, {}],
  messages: [
    { apiKey: [] },
    { providerKey: [] },
    { apiKey: [], accessTokenHeader: [] },
    { providerKey: [], accessTokenHeader: [] },
    {},
  ],
};

const SECURITY_SCHEMES = {
  accessToken: {
    type: "http",
    scheme: "bearer",
    description:
      "On `/api` and `/mcp`: one of ACCESS_TOKENS, or with AUTH=key your provider key. A service on loopback without tokens wants neither.",
  },
  providerKey: {
    type: "http",
    scheme: "bearer",
    description:
      "On `/v1`: your provider key. Its prefix says who answers: `sk-ant-` Anthropic, `gsk_` Groq, `sk-` OpenAI, anything else Gemini. Where there are access tokens: `<token>:<key>`, or the token alone to use the operator's key.",
  },
  apiKey: {
    type: "apiKey",
    in: "header",
    name: "x-api-key",
    description: "The same, as the Anthropic SDK sends it.",
  },
  providerKeyHeader: {
    type: "apiKey",
    in: "header",
    name: "x-provider-key",
    description: "On `/mcp`: your provider key. Without one the operator's is used, where there is one.",
  },
  accessTokenHeader: {
    type: "apiKey",
    in: "header",
    name: "x-access-token",
    description: "On `/v1`: one of ACCESS_TOKENS, beside the provider key.",
  },
};

export function openapiDocument(routes: readonly Operation[]): Json {
  const schemas = new Schemas();
  const faults = new Map<string, Json>();
  const paths: Record<string, Json> = {};
  for (const route of routes) {
    paths[route.path] ??= {};
    (paths[route.path] as Json)[route.method] = operation(route, schemas, faults);
  }
  const components = {
    schemas: {} as Json,
    responses: Object.fromEntries(faults),
    headers: Object.fromEntries(Object.entries(HEADERS).map(([name, text]) => [name, header(text)])),
    securitySchemes: SECURITY_SCHEMES,
  };
  const used = new Set(routes.map((route) => route.tag));
  const document = {
    openapi: "3.1.0",
    info: {
      title: "Dragoman",
      version: "1.0.0",
      description: INTRODUCTION,
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "/" }],
    tags: [...used].map((name) => ({ name, description: TAGS[name] })),
    paths,
    components,
  };
  components.schemas = schemas.resolve();
  return document;
}

function header(description: string): Json {
  return { description, schema: { type: "string" } };
}

function operation(route: Operation, schemas: Schemas, faults: Map<string, Json>): Json {
  const { id, tag, summary, description, family, body, upload } = route;
  const out: Json = { operationId: id, tags: [tag], summary };
  if (description !== undefined) out.description = description;
  const parameters = [
    ...parametersOf("path", route.params, schemas),
    ...parametersOf("query", route.query, schemas),
    ...parametersOf("header", route.headers, schemas),
  ];
  if (parameters.length > 0) out.parameters = parameters;
  if (body) out.requestBody = { required: true, content: { "application/json": jsonContent(body, schemas) } };
  if (upload) out.requestBody = { required: true, content: { [upload.type]: uploadContent(upload) } };
  const responses: Json = {};
  for (const [status, reply] of Object.entries(route.replies)) responses[status] = response(reply, schemas);
  for (const status of faultsOf(route)) {
    const name = `${FAULT_NAMES[family]}${status}`;
    if (!faults.has(name)) faults.set(name, fault(family, status, schemas));
    responses[status] ??= { $ref: `#/components/responses/${name}` };
  }
  if (502 in responses) {
    const name = `${FAULT_NAMES[family]}PassedOn`;
    if (!faults.has(name)) faults.set(name, { ...fault(family, 502, schemas), description: PASSED_ON });
    responses.default = { $ref: `#/components/responses/${name}` };
  }
  out.responses = responses;
  out.security = SECURITY[family];
  return out;
}

function uploadContent(upload: Required<Operation>["upload"]): Json {
  if (upload.type === "application/jsonl") return { schema: { type: "string" } };
  const properties = Object.fromEntries(
    upload.files.map((name) => [name, { type: "string", format: "binary" }]),
  );
  return { schema: { type: "object", properties, required: upload.files } };
}

function parametersOf(place: string, object: z.ZodObject | undefined, schemas: Schemas): Json[] {
  return Object.entries(object?.shape ?? {}).map(([name, field]) => {
    const schema = field as z.ZodType;
    const required = !schema.safeParse(undefined).success;
    const out: Json = { name, in: place, required };
    if (schema.description !== undefined) out.description = schema.description;
    out.schema = schemas.use(schema);
    return out;
  });
}

function jsonContent({ schema, examples }: Body, schemas: Schemas): Json {
  return { schema: schemas.use(schema), examples: named(examples) };
}

function named(examples: Examples): Json {
  return Object.fromEntries(
    Object.entries(examples).map(([name, value]) => [keyOf(name), { summary: name, value }]),
  );
}

/** A key of the specification has no spaces. */
function keyOf(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
}

function response(reply: Reply, schemas: Schemas): Json {
  const out: Json = { description: reply.description };
  if (reply.headers)
    out.headers = Object.fromEntries(
      reply.headers.map((name) => [name, { $ref: `#/components/headers/${name}` }]),
    );
  const content: Json = {};
  if (reply.json) content["application/json"] = jsonContent(reply.json, schemas);
  if (reply.events) content["text/event-stream"] = eventContent(reply.events, schemas);
  if (reply.text)
    content[reply.text] = {
      schema: { type: reply.text === "application/json" ? "object" : "string" },
    };
  // In OpenAPI 3.1 bytes have no schema: the media type says it.
  for (const type of reply.bytes ?? []) content[type] = { schema: {} };
  if (Object.keys(content).length > 0) out.content = content;
  return out;
}

/** A stream is text; each of its events has JSON inside. */
function eventContent({ schema, framing, examples }: EventStream, schemas: Schemas): Json {
  const texts = Object.entries(examples).map(([name, events]) => [name, framed(framing, events)] as const);
  return {
    schema: {
      type: "string",
      description: "Server-sent events. The schema of the JSON in each `data:` line is in `contentSchema`.",
      contentMediaType: "application/json",
      contentSchema: schemas.use(schema),
    },
    examples: named(Object.fromEntries(texts)),
  };
}

function framed(framing: EventStream["framing"], events: readonly unknown[]): string {
  const frames = events.map((event, index) => {
    const data = `data: ${JSON.stringify(event)}\n\n`;
    if (framing === "bare" || framing === "plain") return data;
    if (framing === "message") return `event: message\n${data}`;
    return (
      (framing === "named" ? `event: ${(event as { type: string }).type}\n` : `id: ${index + 1}\n`) + data
    );
  });
  return frames.join("") + (framing === "bare" ? "data: [DONE]\n\n" : "");
}

const FAULT_NAMES: Record<Family, string> = {
  public: "Problem",
  api: "Problem",
  chat: "Chat",
  messages: "Messages",
  mcp: "Mcp",
};

export function faultsOf({ family, body, faults = [] }: Operation): FaultStatus[] {
  const common = COMMON_FAULTS[family];
  const all = new Set([...common.all, ...(body ? common.body : []), ...(faults as readonly FaultStatus[])]);
  return [...all].sort((a, b) => a - b);
}

function fault(family: Family, status: FaultStatus, schemas: Schemas): Json {
  const schema = FAULT_SCHEMAS[family];
  const type = schema === FAULT_SCHEMAS.api ? "application/problem+json" : "application/json";
  const content = { schema: schemas.use(schema), example: exampleFault(family, status) };
  return { description: MEANINGS[status], content: { [type]: content } };
}

/** Converts all schemas in one go, so that each named one becomes one component, wherever it is used. */
class Schemas {
  readonly #used: { schema: z.ZodType; place: Json }[] = [];

  /** What stands for the schema in the document; it is filled in by {@link resolve}. */
  use(schema: z.ZodType): Json {
    const place: Json = {};
    this.#used.push({ schema, place });
    return place;
  }

  /** The components. */
  resolve(): Json {
    const each = z.object(Object.fromEntries(this.#used.map(({ schema }, index) => [index, schema])));
    const { properties = {}, $defs = {} } = z.toJSONSchema(each, {
      io: "input",
      override: ({ jsonSchema }) => tidy(jsonSchema as Json),
    });
    for (const [index, { place }] of this.#used.entries()) Object.assign(place, referring(properties[index]));
    return referring($defs) as Json;
  }
}

/** Leaves out what says nothing to a reader: the limits of exact integers, and patterns that a format already names. */
function tidy(schema: Json): void {
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum;
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum;
  if (schema.format !== undefined) delete schema.pattern;
  delete schema.id;
  const { propertyNames } = schema;
  if (JSON.stringify(propertyNames) === '{"type":"string"}') delete schema.propertyNames;
}

/** `#/$defs/Run` -> `#/components/schemas/Run`, everywhere inside. */
function referring(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(referring);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      key === "$ref" && typeof inner === "string"
        ? inner.replace("#/$defs/", "#/components/schemas/")
        : referring(inner),
    ]),
  );
}
