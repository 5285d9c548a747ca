/** What a setting is, and the kinds of values that several of them have. */
import * as z from "zod";

/** What a setting is and how its text becomes a value. */
export interface Setting<T = unknown> {
  /** As the README shows it: the default value, or in words what happens without it. */
  default: string;
  description: string;
  /** What is allowed, after "has to be". */
  allowed: string;
  /** The value is never repeated, in messages or anywhere else. */
  secret?: boolean;
  parse: z.ZodType<T, string>;
  /** The value when the variable is unset or empty. */
  fallback: T;
}

const LONGEST_DURATION_S = 86_400;

export function setting<T>(entry: Setting<T>): Setting<T> {
  return entry;
}

export const text = z.string();

export function number(fallback: number, least: number, most: number, description: string): Setting<number> {
  const whole = /^\d{1,15}$/;
  return {
    default: String(fallback),
    description,
    allowed: `a whole number from ${least} to ${most}`,
    parse: z
      .string()
      .refine((value) => whole.test(value) && Number(value) >= least && Number(value) <= most)
      .transform(Number),
    fallback,
  };
}

/** Money, in the currency of MODEL_PRICES. */
export function amount(fallback: number, description: string): Setting<number> {
  const decimal = /^\d{1,9}(\.\d{1,6})?$/;
  return {
    default: String(fallback),
    description,
    allowed: "an amount above 0",
    parse: z
      .string()
      .refine((value) => decimal.test(value) && Number(value) > 0)
      .transform(Number),
    fallback,
  };
}

/** Seconds in the environment, whole milliseconds in the configuration. */
export function duration(fallbackSeconds: number, description: string, least = 0.001): Setting<number> {
  const decimal = /^\d{1,6}(\.\d{1,6})?$/;
  return {
    default: String(fallbackSeconds),
    description: `${description} Seconds.`,
    allowed: `a number of seconds from ${least} to ${LONGEST_DURATION_S}`,
    parse: z
      .string()
      .refine((value) => decimal.test(value) && Number(value) >= least && Number(value) <= LONGEST_DURATION_S)
      .transform((value) => Math.ceil(Number(value) * 1000)),
    fallback: fallbackSeconds * 1000,
  };
}

export function choice<const T extends string>(values: readonly T[]) {
  return {
    allowed: `one of ${values.join(", ")}`,
    parse: z.string().toLowerCase().pipe(z.enum(values)) as unknown as z.ZodType<T, string>,
  };
}

export function flag(description: string): Setting<boolean> {
  return {
    default: "0",
    description,
    allowed: "0 or 1",
    parse: z
      .enum(["0", "1", "false", "true"])
      .transform((value) => value === "1" || value === "true") as z.ZodType<boolean, string>,
    fallback: false,
  };
}

/** A comma-separated list, each entry through `entry`; null there refuses the whole. */
export function list<T>(entry: (item: string) => T | null): z.ZodType<T[], string> {
  return z.string().transform((value, context) => {
    const out: T[] = [];
    for (const item of value.split(",")) {
      const trimmed = item.trim();
      if (trimmed === "") continue;
      const parsed = entry(trimmed);
      if (parsed === null) {
        context.addIssue({ code: "custom", message: "entry" });
        return z.NEVER;
      }
      out.push(parsed);
    }
    return out;
  });
}

/** `left=right`, split at the last `=`. */
export function pair(item: string): [string, string] | null {
  const at = item.lastIndexOf("=");
  const left = item.slice(0, at).trim();
  const right = item.slice(at + 1).trim();
  return at > 0 && left !== "" && right !== "" ? [left, right] : null;
}

export function httpUrl(value: string): boolean {
  return URL.canParse(value) && /^https?:$/.test(new URL(value).protocol);
}

/** An address that requests are sent to, without a slash at the end. A password in it could not be kept. */
export function address(description: string, byDefault: string): Setting<string | undefined> {
  return {
    default: byDefault,
    description,
    allowed: "an http or https URL without a user name, query or fragment",
    parse: z
      .string()
      .refine((value) => httpUrl(value) && /^[^?#@]+$/.test(value))
      .transform((url) => url.replace(/\/+$/, "")),
    fallback: undefined,
  };
}

/** A key without blanks; its value is shown nowhere. */
export function key(description: string, byDefault = "none"): Setting<string | undefined> {
  return {
    default: byDefault,
    description,
    allowed: "a key without blanks",
    secret: true,
    parse: z.string().regex(/^\S+$/),
    fallback: undefined,
  };
}
