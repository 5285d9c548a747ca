/** The form of an OpenAPI 3.1 document, as far as the specification says it in terms of fields. */
import * as z from "zod";

const text = z.string().min(1);
const reference = z.strictObject({ $ref: text });
const jsonSchema = z.record(z.string(), z.unknown());
const example = z.strictObject({ summary: text, value: z.unknown() });
const mediaType = z
  .strictObject({
    schema: jsonSchema,
    example: z.unknown().optional(),
    examples: z.record(z.string().regex(/^[a-zA-Z0-9._-]+$/), example).optional(),
  })
  .refine((it) => it.example === undefined || it.examples === undefined, "one of example and examples");
const content = z.record(z.string().regex(/^([a-z]+|\*)\/([a-z+-]+|\*)$/), mediaType);
const header = z.strictObject({ description: text, schema: jsonSchema });
const response = z.strictObject({
  description: text,
  headers: z.record(z.string(), z.union([reference, header])).optional(),
  content: content.optional(),
});
const parameter = z
  .strictObject({
    name: text,
    in: z.enum(["path", "query", "header"]),
    required: z.boolean(),
    description: text.optional(),
    schema: jsonSchema,
  })
  .refine((it) => it.in !== "path" || it.required, "path parameters are required")
  .refine(
    (it) => it.in !== "header" || !/^(accept|content-type|authorization)$/i.test(it.name),
    "these headers are said elsewhere",
  );
const security = z.array(z.record(z.string(), z.array(z.string())));
const operation = z.strictObject({
  operationId: z.string().regex(/^[a-z][a-zA-Z]*$/),
  tags: z.array(text).length(1),
  summary: text,
  description: text.optional(),
  parameters: z.array(parameter).optional(),
  requestBody: z.strictObject({ required: z.boolean(), content }).optional(),
  responses: z
    .record(z.string().regex(/^([1-5]\d\d|default)$/), z.union([reference, response]))
    .refine((it) => Object.keys(it).some((status) => status.startsWith("2")), "some request succeeds"),
  security,
});
const securityScheme = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("http"), scheme: text, description: text }),
  z.strictObject({ type: z.literal("apiKey"), in: z.literal("header"), name: text, description: text }),
]);
const component = z.string().regex(/^[a-zA-Z0-9._-]+$/);

export const openapiForm = z.strictObject({
  openapi: z.string().regex(/^3\.1\.\d+$/),
  info: z.strictObject({
    title: text,
    version: text,
    description: text,
    license: z.strictObject({ name: text, identifier: text }),
  }),
  servers: z.array(z.strictObject({ url: text })),
  tags: z.array(z.strictObject({ name: text, description: text })),
  paths: z.record(
    z.string().regex(/^\//),
    z.partialRecord(z.enum(["get", "put", "post", "delete", "patch"]), operation),
  ),
  components: z.strictObject({
    schemas: z.record(component, jsonSchema),
    responses: z.record(component, response),
    headers: z.record(component, header),
    securitySchemes: z.record(component, securityScheme),
  }),
});

export type OpenapiForm = z.infer<typeof openapiForm>;
