/** The table of routes -> one OpenAPI 3.1 document. Its schemas are those that validate: nothing is said twice. */
import type * as z from "zod";
import { HEADERS, INTRODUCTION, SECURITY, SECURITY_SCHEMES, TAGS } from "./document-texts.ts";
import {
  COMMON_FAULTS,
  exampleFault,
  FAULT_SCHEMAS,
  type FaultStatus,
  MEANINGS,
  PASSED_ON,
} from "./faults.ts";
import type { Body, EventStream, Examples, Family, Operation, Reply } from "./operation.ts";
import { type Json, Schemas } from "./schemas.ts";

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
