/** The table of routes as the type that hono's client reads, so that what is documented, validated and typed is one. */
import type { Hono } from "hono";
import type { StatusCode } from "hono/utils/http-status";
import type * as z from "zod";
import type { FAULT_SCHEMAS, FaultStatus } from "./faults.ts";
import type { Operation } from "./operation.ts";
import type { Route } from "./routes.ts";

/** `/api/runs/{id}/stop` -> `/api/runs/:id/stop` */
type HonoPath<Path extends string> = Path extends `${infer Head}{${infer Name}}${infer Tail}`
  ? `${Head}:${Name}${HonoPath<Tail>}`
  : Path;

type In<Field> = Field extends z.ZodType ? z.input<Field> : never;

type Input<R> = (R extends { params: infer Params } ? { param: In<Params> } : object) &
  (R extends { query: infer Query } ? { query?: In<Query> } : object) &
  (R extends { headers: infer Headers } ? { header?: In<Headers> } : object) &
  (R extends { body: { schema: infer Body } } ? { json: In<Body> } : object);

/** A reply with a JSON form and a stream is typed as the JSON: whoever asks for the stream reads the body. */
type Reply<R> = R extends { json: { schema: infer Body extends z.ZodType } }
  ? { output: z.output<Body>; outputFormat: "json" }
  : R extends { events: object }
    ? { output: string; outputFormat: "event-stream" }
    : R extends { text: "application/json" }
      ? { output: unknown; outputFormat: "json" }
      : { output: string; outputFormat: "text" };

type Replies<R extends Operation, Replies = R["replies"]> = {
  [Status in keyof Replies & number]: Reply<Replies[Status]> & { input: Input<R>; status: Status };
}[keyof Replies & number];

/** Aliases, no interfaces: hono looks for index signatures. */
type Fault<R extends Operation> = {
  input: Input<R>;
  output: z.output<(typeof FAULT_SCHEMAS)[R["family"]]>;
  outputFormat: "json";
  /** hono knows no 529. */
  status: Extract<Exclude<FaultStatus, keyof R["replies"]>, StatusCode>;
};

export type ApiSchema = {
  [Path in Route["path"] as HonoPath<Path>]: {
    [R in Extract<Route, { path: Path }> as `$${R["method"]}`]: Replies<R> | Fault<R>;
  };
};

export type AppType = Hono<object, ApiSchema, "/">;
