/** Embedding models: OpenAI's, Gemini's, and every server that imitates one of them behind a configured base URL. */
import type { Embedder } from "../core/memory.ts";
import { AppError } from "../errors.ts";
import type { Fetch } from "./upstream.ts";
import { upstreamError, VENDOR_NAMES } from "./upstream-error.ts";

export interface EmbedderOptions {
  provider: "openai" | "gemini";
  model: string;
  key: string;
  /** The vendor's own address where absent. */
  baseUrl?: string | undefined;
  retries: number;
  fetch?: Fetch | undefined;
}

/** One request for all texts; the arrays of numbers in their order. Throws what the SDK throws. */
export type Ask = (texts: string[], purpose: "document" | "query", signal: AbortSignal) => Promise<unknown[]>;

export function createEmbedder(options: EmbedderOptions): Embedder {
  const { provider, model, key } = options;
  let ask: Promise<Ask> | undefined;
  return {
    model: `${provider}/${model}`,
    async embed(texts, purpose, signal) {
      try {
        ask ??= load(options);
        return toVectors(await (await ask)([...texts], purpose, signal), texts.length, options);
      } catch (error) {
        if (!signal.aborted) throw upstreamError(error, provider, key);
        if (signal.reason instanceof DOMException && signal.reason.name === "TimeoutError")
          throw new AppError(
            "upstream_timeout",
            `${VENDOR_NAMES[provider]} took too long to embed. Try again.`,
          );
        throw new AppError("cancelled", "The request was cancelled.", { cause: error });
      }
    },
  };
}

/** An SDK is loaded when it is first needed. */
async function load(options: EmbedderOptions): Promise<Ask> {
  return options.provider === "openai"
    ? (await import("./embeddings-openai.ts")).askOpenAI(options)
    : (await import("./embeddings-gemini.ts")).askGemini(options);
}

/** Throws AppError for what is not one array of numbers for each text, all of one length. */
function toVectors(answer: unknown[], texts: number, { provider, model }: EmbedderOptions): Float32Array[] {
  const vectors = answer.map((numbers) =>
    Array.isArray(numbers) && numbers.every(Number.isFinite) ? Float32Array.from(numbers as number[]) : null,
  );
  const length = vectors[0]?.length ?? 0;
  if (vectors.length === texts && length > 0 && vectors.every((vector) => vector?.length === length))
    return vectors as Float32Array[];
  throw new AppError(
    "upstream_unreachable",
    `${VENDOR_NAMES[provider]} answered with no vectors for ${model}. Check EMBEDDING_MODEL and the base URL.`,
  );
}
