/** Replies in the form in which the Gemini API sends them. Signatures are base64 with all of its alphabet. */

export const SIGNATURE = "CtQBAePx3+8/abcXYZ0189+/AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

function sse(...chunks: unknown[]): string {
  return chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("");
}

function chunk(
  parts: unknown[],
  usageMetadata: Record<string, unknown>,
  rest: { finishReason?: string; responseId?: string; modelVersion?: string } = {},
): Record<string, unknown> {
  const { finishReason, ...top } = rest;
  return {
    candidates: [{ content: { parts, role: "model" }, ...(finishReason ? { finishReason } : {}), index: 0 }],
    usageMetadata,
    modelVersion: "gemini-2.5-flash",
    responseId: "resp-text",
    ...top,
  };
}

export const TEXT = sse(
  chunk([{ text: "Grüße" }], { promptTokenCount: 9, totalTokenCount: 9 }),
  chunk([{ text: " aus Köln" }], { promptTokenCount: 9, candidatesTokenCount: 4, totalTokenCount: 13 }),
  chunk([{ text: " – und" }], { promptTokenCount: 9, candidatesTokenCount: 7, totalTokenCount: 16 }),
  chunk(
    [{ text: " 🌻 dazu." }],
    { promptTokenCount: 9, candidatesTokenCount: 12, totalTokenCount: 21 },
    {
      finishReason: "STOP",
    },
  ),
);

const CALLS_USAGE = {
  promptTokenCount: 71,
  cachedContentTokenCount: 40,
  candidatesTokenCount: 34,
  thoughtsTokenCount: 190,
  totalTokenCount: 295,
};

/** Two calls in one event and one in the next; only the first is signed; none has an id. */
export const PARALLEL_CALLS = sse(
  chunk(
    [
      { functionCall: { name: "get_weather", args: { city: "Bonn" } }, thoughtSignature: SIGNATURE },
      { functionCall: { name: "get_weather", args: { city: "Rome" } } },
    ],
    CALLS_USAGE,
  ),
  chunk([{ functionCall: { name: "now", args: {} } }], CALLS_USAGE),
  chunk([{ text: "" }], CALLS_USAGE, { finishReason: "STOP" }),
);

const THINKING_USAGE = {
  promptTokenCount: 5,
  candidatesTokenCount: 4,
  thoughtsTokenCount: 61,
  totalTokenCount: 70,
};

/** The signature of streamed text comes last, with no text of its own. */
export const THINKING = sse(
  chunk([{ text: "**Adding**\n\n", thought: true }], { promptTokenCount: 5, thoughtsTokenCount: 30 }),
  chunk([{ text: "Six times seven.", thought: true }], { promptTokenCount: 5, thoughtsTokenCount: 61 }),
  chunk([{ text: "It is" }], { promptTokenCount: 5, thoughtsTokenCount: 61, candidatesTokenCount: 2 }),
  chunk([{ text: " 42." }], THINKING_USAGE),
  chunk([{ text: "", thoughtSignature: SIGNATURE }], THINKING_USAGE, { finishReason: "STOP" }),
);

const CODE_USAGE = { promptTokenCount: 8, toolUsePromptTokenCount: 20, candidatesTokenCount: 3 };

export const CODE = sse(
  chunk(
    [{ executableCode: { language: "PYTHON", code: "print(6*7)" }, thoughtSignature: SIGNATURE }],
    CODE_USAGE,
  ),
  chunk([{ codeExecutionResult: { outcome: "OUTCOME_OK", output: "42\n" } }], CODE_USAGE),
  chunk([{ text: "42" }], CODE_USAGE, { finishReason: "STOP" }),
);

export const BLOCKED = sse({
  promptFeedback: { blockReason: "PROHIBITED_CONTENT" },
  usageMetadata: { promptTokenCount: 6, totalTokenCount: 6 },
  modelVersion: "gemini-2.5-flash",
});

export const MALFORMED = sse({
  candidates: [
    {
      content: {},
      finishReason: "MALFORMED_FUNCTION_CALL",
      index: 0,
      finishMessage: "Malformed function call: print(default_api.get_weather(",
    },
  ],
  usageMetadata: { promptTokenCount: 6, totalTokenCount: 6 },
});

export const BAD_KEY = {
  error: {
    code: 400,
    message: "API key not valid. Please pass a valid API key.",
    status: "INVALID_ARGUMENT",
    details: [
      {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        reason: "API_KEY_INVALID",
        domain: "googleapis.com",
        metadata: { service: "generativelanguage.googleapis.com" },
      },
    ],
  },
};

export const QUOTA = {
  error: {
    code: 429,
    message: "You exceeded your current quota.",
    status: "RESOURCE_EXHAUSTED",
    details: [
      { "@type": "type.googleapis.com/google.rpc.QuotaFailure", violations: [] },
      { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "20s" },
    ],
  },
};
