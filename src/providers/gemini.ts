/**
 * The Gemini API as an upstream.
 *
 * `@google/genai` writes and sends the requests. A `fetch` of its own for each call hands its response to the stream
 * reader here, with headers and all: the SDK's reader loses `retry-after`, and takes a cut stream for a finished one.
 * The browser build is the one that needs nothing but Web standards; it runs on every runtime.
 */
import { GoogleGenAI, type HttpOptions } from "@google/genai/web";
import type { ModelEvent } from "../core/event.ts";
import type { ModelAdapter, ModelInfo, ModelRequest } from "../core/model.ts";
import { AppError, toFault } from "../errors.ts";
import { replyError } from "./gemini-error.ts";
import { modelId } from "./gemini-model.ts";
import { type GeminiParameters, toParameters } from "./gemini-request.ts";
import { GeminiDecoder } from "./gemini-stream.ts";
import { type AdapterOptions, type Fetch, streamUpstream } from "./upstream.ts";
import { upstreamError } from "./upstream-error.ts";

const API_VERSION = "v1beta";
export const BASE_URL = "https://generativelanguage.googleapis.com";
/** The most that the API gives at once. */
const MODELS_PER_PAGE = 1_000;

export function createGeminiAdapter(options: AdapterOptions): ModelAdapter {
  return new GeminiAdapter(options);
}

class GeminiAdapter implements ModelAdapter {
  readonly provider = "gemini";
  readonly #options: AdapterOptions;
  readonly #fetch: Fetch;
  readonly #client: GoogleGenAI;

  constructor(options: AdapterOptions) {
    this.#options = options;
    this.#fetch = options.fetch ?? fetch;
    this.#client = new GoogleGenAI({
      apiKey: options.key,
      vertexai: false,
      httpOptions: splitBaseUrl(options.baseUrl ?? BASE_URL),
    });
  }

  async *stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelEvent, void, void> {
    let parameters: GeminiParameters;
    try {
      parameters = toParameters(request);
    } catch (error) {
      yield { type: "failed", fault: toFault(error) };
      return;
    }
    const decoderOptions = { model: modelId(request.model), oneCall: request.parallelTools === false };
    yield* streamUpstream(
      {
        provider: "gemini",
        key: this.#options.key,
        open: (attempt) => this.#open(request, parameters, attempt),
        decoder: () => new GeminiDecoder(decoderOptions),
      },
      this.#options.limits,
      signal,
    );
  }

  async #open(request: ModelRequest, parameters: GeminiParameters, signal: AbortSignal): Promise<Response> {
    let answer: Response | undefined;
    const httpOptions = this.#httpOptions(signal, (response) => {
      answer = response;
      // The SDK gets an empty reply, and nobody reads the iterator that it makes of it.
      return new Response();
    });
    if (request.extra?.family === "gemini") httpOptions.extraBody = request.extra.fields;
    if (request.headers?.family === "gemini") httpOptions.headers = request.headers.fields;
    await this.#client.models.generateContentStream({
      ...parameters,
      config: {
        ...parameters.config,
        httpOptions,
        automaticFunctionCalling: { disable: true },
        automaticContinuation: false,
      },
    });
    if (!answer) throw new Error("The Gemini SDK has sent nothing.");
    return answer;
  }

  async models(signal: AbortSignal): Promise<ModelInfo[]> {
    return this.#ask(signal, async (httpOptions) => {
      const out: ModelInfo[] = [];
      const pages = await this.#client.models.list({ config: { pageSize: MODELS_PER_PAGE, httpOptions } });
      for await (const model of pages) {
        if (!model.name) continue;
        // The list has models for embeddings, images and speech too.
        if (model.supportedActions && !model.supportedActions.includes("generateContent")) continue;
        out.push({ id: modelId(model.name), displayName: model.displayName, ownedBy: "google" });
      }
      return out;
    });
  }

  async countTokens(request: ModelRequest, signal: AbortSignal): Promise<number> {
    const { model, contents, config } = toParameters(request);
    return this.#ask(signal, async (httpOptions) => {
      // The SDK writes contents only; the API counts a whole request, if contents are not there as well.
      const generateContentRequest = {
        model: `models/${modelId(model)}`,
        contents,
        systemInstruction: config.systemInstruction,
        tools: config.tools,
        toolConfig: config.toolConfig,
      };
      const counted = await this.#client.models.countTokens({
        model,
        contents: undefined as unknown as GeminiParameters["contents"],
        config: { httpOptions: { ...httpOptions, extraBody: { generateContentRequest } } },
      });
      if (typeof counted.totalTokens !== "number")
        throw new AppError(
          "upstream_unreachable",
          "Gemini counted no tokens. Check the base URL configured for it.",
        );
      return counted.totalTokens;
    });
  }

  /** One request with one reply, within the time that a reply's first byte may take. */
  async #ask<Reply>(signal: AbortSignal, send: (httpOptions: HttpOptions) => Promise<Reply>): Promise<Reply> {
    const clock = AbortSignal.timeout(this.#options.limits.firstByteMs);
    try {
      return await send(this.#httpOptions(AbortSignal.any([signal, clock])));
    } catch (error) {
      if (signal.aborted) throw new AppError("cancelled", "The request was cancelled.");
      if (clock.aborted)
        throw new AppError(
          "upstream_timeout",
          `Gemini did not answer within ${this.#options.limits.firstByteMs / 1000} s. Try again.`,
        );
      throw upstreamError(error, "gemini", this.#options.key);
    }
  }

  /**
   * The options of one call: its signal, and errors read while their headers are at hand. `keep` takes a good response
   * and gives what the SDK is to see in its place.
   */
  #httpOptions(signal: AbortSignal, keep?: (response: Response) => Response): HttpOptions {
    const send = this.#fetch;
    const key = this.#options.key;
    return {
      fetch: async (input, init) => {
        const response = await send(input, { ...init, signal });
        if (!response.ok) throw await replyError(response, key);
        return keep ? keep(response) : response;
      },
    };
  }
}

/** The SDK wants the version apart from the address, and configurations have it at its end as often as not. */
export function splitBaseUrl(url: string): HttpOptions {
  const base = url.replace(/\/+$/, "");
  const version = /\/(v\d+(?:alpha|beta)?\d*)$/.exec(base);
  return version
    ? { baseUrl: base.slice(0, version.index), apiVersion: version[1] }
    : { baseUrl: base, apiVersion: API_VERSION };
}
