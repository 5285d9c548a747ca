/** Settings of memory, and of where the images of notes are kept. */
import * as z from "zod";
import type { BucketConfig, EmbeddingConfig } from "../config.ts";
import type { Values } from "../settings.ts";
import { address, choice, duration, httpUrl, key, number, setting, text } from "./kinds.ts";

export const MEMORY = {
  MEMORY_RECALL_TOKENS: number(
    500,
    0,
    20_000,
    "Tokens of a conversation's prompt that what is remembered of its user may have; 0 is none.",
  ),
  MEMORY_EXTRACTION: setting<"off" | "on">({
    default: "off",
    description:
      "`on`: once a session has been idle, its model is asked what of the user's words is worth remembering.",
    ...choice(["off", "on"]),
    fallback: "off",
  }),
  MEMORY_EXTRACTION_IDLE: duration(300, "How long a session has to be idle for that.", 1),
  MEMORY_EXTRACTION_TOKENS: number(4_000, 1_000, 200_000, "Tokens that one such look may cost, in and out."),
  EMBEDDING_PROVIDER: setting<"openai" | "gemini" | undefined>({
    default: "none",
    description:
      "Memories are searched by meaning too, with vectors of this provider: `openai` or `gemini`, or what imitates one.",
    ...choice(["openai", "gemini"]),
    fallback: undefined,
  }),
  EMBEDDING_MODEL: setting<string | undefined>({
    default: "`text-embedding-3-small` or `gemini-embedding-001`",
    description: "The model that makes them. Another one makes them anew, in the background.",
    allowed: "a model id",
    parse: text,
    fallback: undefined,
  }),
  EMBEDDING_BASE_URL: setting<string | undefined>({
    default: "the provider's",
    description: "Where the requests for vectors go; with it no key of the provider's is used.",
    allowed: "an http or https URL",
    parse: z
      .string()
      .refine(httpUrl)
      .transform((url) => url.replace(/\/+$/, "")),
    fallback: undefined,
  }),
  EMBEDDING_API_KEY: key("The key for them.", "the operator's key for the provider"),
};

export const IMAGES = {
  S3_ENDPOINT: address(
    "An S3-compatible service that keeps the images of notes, instead of the database: `https://s3.eu-central-1.amazonaws.com`, or that of MinIO or R2.",
    "none",
  ),
  S3_BUCKET: {
    default: "none",
    description: "The bucket for images.",
    allowed: "the name of a bucket: 3 to 63 letters, digits, dots, hyphens and underscores",
    parse: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]$/),
    fallback: undefined as string | undefined,
  },
  S3_REGION: {
    default: "us-east-1",
    description: "The region of the bucket; `auto` for R2.",
    allowed: "a name of letters, digits and hyphens",
    parse: z.string().regex(/^[a-z0-9-]{1,64}$/),
    fallback: "us-east-1",
  },
  S3_ACCESS_KEY_ID: key("Who the service is to the bucket."),
  S3_SECRET_ACCESS_KEY: key("The secret that requests to the bucket are signed with."),
};

/** All four or none: half of them would keep images where nobody expects them. */
export function bucketOf(values: Values, problems: string[]): BucketConfig | undefined {
  const names = ["S3_ENDPOINT", "S3_BUCKET", "S3_ACCESS_KEY_ID", "S3_SECRET_ACCESS_KEY"] as const;
  const missing = names.filter((name) => values[name] === undefined);
  const { S3_ENDPOINT, S3_BUCKET, S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY, S3_REGION } = values;
  if (S3_ENDPOINT && S3_BUCKET && S3_ACCESS_KEY_ID && S3_SECRET_ACCESS_KEY)
    return {
      endpoint: S3_ENDPOINT,
      bucket: S3_BUCKET,
      region: S3_REGION,
      accessKeyId: S3_ACCESS_KEY_ID,
      secretAccessKey: S3_SECRET_ACCESS_KEY,
    };
  const wrong = problems.some((problem) => names.some((name) => problem.startsWith(`${name} `)));
  if (missing.length < names.length && !wrong)
    problems.push(`A bucket for images needs ${missing.join(" and ")} too: set them, or none of S3_*.`);
  return undefined;
}

/** SDKs send some key or other. */
export const NO_KEY = "none";

/** A key goes to the address that it belongs to: the provider's own is not sent to EMBEDDING_BASE_URL. */
export function embeddingOf(values: Values, problems: string[]): EmbeddingConfig | undefined {
  const provider = values.EMBEDDING_PROVIDER;
  if (provider === undefined) {
    if (values.EMBEDDING_MODEL !== undefined || values.EMBEDDING_BASE_URL !== undefined)
      problems.push(
        "EMBEDDING_PROVIDER has to be set too: openai or gemini, whose protocol is spoken there.",
      );
    return undefined;
  }
  const [key, url, model] =
    provider === "openai"
      ? [values.OPENAI_API_KEY, values.OPENAI_BASE_URL, "text-embedding-3-small"]
      : [values.GEMINI_API_KEY, values.GEMINI_BASE_URL, "gemini-embedding-001"];
  const baseUrl = values.EMBEDDING_BASE_URL ?? url;
  const apiKey = values.EMBEDDING_API_KEY ?? (values.EMBEDDING_BASE_URL === undefined ? key : undefined);
  if (apiKey === undefined && baseUrl === undefined)
    problems.push(
      `EMBEDDING_API_KEY or ${provider.toUpperCase()}_API_KEY has to be set with EMBEDDING_PROVIDER=${provider}.`,
    );
  return { provider, model: values.EMBEDDING_MODEL ?? model, apiKey: apiKey ?? NO_KEY, baseUrl };
}
