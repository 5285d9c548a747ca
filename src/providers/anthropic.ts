/** The adapter for Anthropic's Messages API, and for servers that speak it. */
import { BaseAnthropic, type ClientOptions } from "@anthropic-ai/sdk/client";
import { APIConnectionTimeoutError, APIError } from "@anthropic-ai/sdk/core/error";
import { Models } from "@anthropic-ai/sdk/resources/models";
import type { ModelAdapter, ModelInfo, ModelRequest } from "../core/model.ts";
import { AppError } from "../errors.ts";
import { FAMILY } from "./anthropic-media.ts";
import { type Body, writeCountRequest, writeRequest } from "./anthropic-request.ts";
import { AnthropicDecoder } from "./anthropic-stream.ts";
import { createSdkPost, type SdkPost, type SdkPostExtras } from "./sdk-post.ts";
import { type AdapterOptions, streamUpstream } from "./upstream.ts";
import { upstreamError } from "./upstream-error.ts";

const BASE_URL = "https://api.anthropic.com";
/** The clock is watched in upstream.ts; the SDK's own is set to the longest that a timer takes. Milliseconds. */
const NO_TIMEOUT_MS = 2_147_483_647;
/** The version before the SDK's: later ones refuse sampling, even at its defaults. */
const VERSION_WITH_SAMPLING = "2023-06-01";
/** Models per page: the API's most. */
const PAGE_SIZE = 1000;

/** Subscription tokens are accepted with this beta only. */
const OAUTH_PREFIX = "sk-ant-oat";
const OAUTH_BETA = "oauth-2025-04-20";

export function createAnthropicAdapter(options: AdapterOptions): ModelAdapter {
  return new AnthropicAdapter(options);
}

class AnthropicAdapter implements ModelAdapter {
  readonly provider = "anthropic" as const;
  readonly #options: AdapterOptions;
  /** Without the resources of the whole client, which are most of the SDK. */
  readonly #client: BaseAnthropic;
  readonly #oauth: boolean;
  readonly #stream: SdkPost;

  constructor(options: AdapterOptions) {
    this.#options = options;
    this.#oauth = options.key.startsWith(OAUTH_PREFIX);
    this.#client = new BaseAnthropic(clientOptions(options, this.#oauth));
    this.#stream = createSdkPost({
      client: this.#client,
      errors: APIError,
      path: "/v1/messages",
      fetch: options.fetch ?? fetch,
    });
  }

  async *stream(request: ModelRequest, signal: AbortSignal) {
    const { key, limits } = this.#options;
    let body: Body | undefined;
    yield* streamUpstream(
      {
        provider: "anthropic",
        key,
        open: (attempt) => {
          body ??= writeRequest(request);
          return this.#stream(body, attempt, this.#extras(request, body));
        },
        decoder: () => new AnthropicDecoder(),
      },
      limits,
      signal,
    );
  }

  async models(signal: AbortSignal): Promise<ModelInfo[]> {
    return this.#once(signal, async (timeout) => {
      const found: ModelInfo[] = [];
      const headers = this.#oauth ? { "anthropic-beta": OAUTH_BETA } : {};
      const pages = new Models(this.#client).list({ limit: PAGE_SIZE }, { signal, timeout, headers });
      for await (const model of pages) {
        const created = Date.parse(model.created_at) / 1000;
        found.push({
          id: model.id,
          // The epoch itself stands for an unknown date.
          created: created > 0 ? Math.floor(created) : undefined,
          displayName: model.display_name,
          ownedBy: "anthropic",
        });
      }
      return found;
    });
  }

  async countTokens(request: ModelRequest, signal: AbortSignal): Promise<number> {
    return this.#once(signal, async (timeout) => {
      const body = writeCountRequest(request);
      const counted = await this.#count(body, request, signal, timeout);
      if (typeof counted?.input_tokens === "number") return counted.input_tokens;
      throw new AppError("upstream_unreachable", "Anthropic's token counter answered without a count.");
    });
  }

  /** The client's own `post`, since `messages.countTokens` takes fields named like its options out of the body. */
  #count(body: object, request: ModelRequest, signal: AbortSignal, timeout: number) {
    return this.#client.post<{ input_tokens?: number } | undefined>("/v1/messages/count_tokens", {
      body,
      ...this.#extras(request, body),
      signal,
      timeout,
    });
  }

  #extras(request: ModelRequest, body: object): SdkPostExtras {
    const passed = request.headers?.family === FAMILY ? request.headers.fields : {};
    return {
      headers: this.#headers(passed, body),
      query: passed["anthropic-beta"] === undefined ? undefined : { beta: "true" },
    };
  }

  #headers(passed: Record<string, string>, body: object): Record<string, string> {
    const { "anthropic-beta": named = "", ...headers } = passed;
    const betas =
      !this.#oauth || named.includes(OAUTH_BETA) ? named : named ? `${named},${OAUTH_BETA}` : OAUTH_BETA;
    // Empty where the client asked for the beta endpoint without a name.
    if (betas !== "") headers["anthropic-beta"] = betas;
    const sampled = "temperature" in body || "top_p" in body || "top_k" in body;
    if (sampled) headers["anthropic-version"] ??= VERSION_WITH_SAMPLING;
    return headers;
  }

  /** A call that is answered in one piece: it has as long as a stream has for its first byte. */
  async #once<T>(signal: AbortSignal, call: (timeout: number) => Promise<T>): Promise<T> {
    const { key, limits } = this.#options;
    try {
      return await call(limits.firstByteMs);
    } catch (error) {
      if (signal.aborted) throw new AppError("cancelled", "The request was cancelled.");
      if (error instanceof APIConnectionTimeoutError)
        throw new AppError(
          "upstream_timeout",
          `Anthropic did not answer within ${limits.firstByteMs / 1000} s. Try again.`,
        );
      throw upstreamError(error, "anthropic", key);
    }
  }
}

/**
 * Nothing is read from the environment but ANTHROPIC_CUSTOM_HEADERS, which the SDK does not let be. It sends keys and
 * tokens alike as `Authorization: Bearer`; servers behind a configured address may know the older `x-api-key` only, so
 * there a key goes in both, of which Anthropic itself takes the latter.
 */
function clientOptions({ key, baseUrl, fetch }: AdapterOptions, oauth: boolean): ClientOptions {
  return {
    ...(oauth ? { authToken: key } : { apiKey: key }),
    // The SDK adds the version's path itself.
    baseURL: baseUrl?.replace(/\/v1\/?$/, "") ?? BASE_URL,
    webhookKey: null,
    maxRetries: 0,
    timeout: NO_TIMEOUT_MS,
    logLevel: "off",
    openTelemetry: false,
    defaultHeaders: baseUrl !== undefined && !oauth ? { "x-api-key": key } : {},
    ...(fetch ? { fetch } : {}),
  };
}
