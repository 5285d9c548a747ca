/** Zod schemas -> the components of the OpenAPI document. */
import * as z from "zod";

export type Json = Record<string, unknown>;

/** Converts all schemas in one go, so that each named one becomes one component, wherever it is used. */
export class Schemas {
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
