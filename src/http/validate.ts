/** What comes in on `/api`: bodies, page sizes and numbers, with every problem named at once. */
import type { Context } from "hono";
import * as z from "zod";
import { AppError } from "../errors.ts";
import { toProblem } from "../protocols/problem.ts";
import { type BodyLimits, readJson } from "./body.ts";
import type { AppEnv } from "./env.ts";

/** Problems that one answer lists. */
const PROBLEMS_LIMIT = 20;
const PAGE = 50;
const LARGEST_PAGE = 200;

/** Throws AppError as readJson does, or `invalid_request` with `details.errors`, `[{path, message}]`. */
export async function readBody<T>(c: Context<AppEnv>, schema: z.ZodType<T>, limits: BodyLimits): Promise<T> {
  const body = await readJson(c.req.raw, limits);
  holdKey(c, body);
  const result = schema.safeParse(body);
  if (result.success) return result.data;
  const first = toProblem(result.error, body);
  const errors = result.error.issues.slice(0, PROBLEMS_LIMIT).map((issue) => {
    const { param = "", message } = toProblem(new z.ZodError([issue]), body);
    return { path: param, message };
  });
  const { code, message, param } = first;
  throw new AppError(code, message, { param, details: { errors } });
}

/** Before anything is said about the body: what is wrong with it may quote the key. */
function holdKey(c: Context<AppEnv>, body: unknown): void {
  const key = (body as { api_key?: unknown } | null)?.api_key;
  if (typeof key === "string") c.get("redaction")?.hold(key);
}

export interface Page {
  limit: number;
  cursor: string | undefined;
}

/** `limit` and `cursor` of a list. */
export function pageOf(c: Context<AppEnv>): Page {
  return {
    limit: wholeNumber(c.req.query("limit"), "limit", 1, LARGEST_PAGE) ?? PAGE,
    cursor: c.req.query("cursor") || undefined,
  };
}

/** undefined where it is absent. Throws AppError `invalid_request` for what is no whole number between the two. */
export function wholeNumber(
  value: string | undefined,
  param: string,
  least: number,
  most: number,
): number | undefined {
  if (value === undefined || value === "") return undefined;
  const number = /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN;
  if (number >= least && number <= most) return number;
  const message = `${param} has to be a whole number from ${least} to ${most}, but it is '${value.slice(0, 40)}'.`;
  throw new AppError("invalid_request", message, { param, details: { errors: [{ path: param, message }] } });
}
