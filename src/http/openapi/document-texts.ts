/** What the OpenAPI document says beside its routes: introduction, tags, headers and ways to say who one is. */
import type { Family, ReplyHeader } from "./operation.ts";

export const INTRODUCTION = `A self-hosted agent behind every SDK's base URL. Point any client built for the OpenAI or the Anthropic API at \`/v1\`, or speak to the agent at \`/api/chat\`, where runs survive their clients and tool calls wait for approval.

Every response carries \`x-request-id\`. Lists take \`limit\` and \`cursor\` and return \`next_cursor\`.`;

export const TAGS: Record<string, string> = {
  Chat: "Talk to the agent, and decide what it may do.",
  Runs: "What the agent is doing or has done, whatever door it came through.",
  Sessions: "Conversations that the server keeps.",
  "Chat completions": "For clients of the OpenAI API.",
  Messages: "For clients of the Anthropic API.",
  "MCP servers": "Programs whose tools the agent has.",
  MCP: "Dragoman as a tool of other programs.",
  Agents: "Agents with a name, and what makes them different from the default one.",
  Memory: "What the agent remembers of its user from conversation to conversation.",
  Notes: "What is written down, with images.",
  Automation: "What the agent does by itself, at its time.",
  Speech: "Texts read aloud.",
  Models: "What `model` may be.",
  Files: "The workspace of the agent.",
  Tools: "What the agent can do.",
  Service: "Health, and this document.",
};

export const HEADERS: Record<ReplyHeader, string> = {
  "x-run-id": "The run that the request has started or gone on with.",
  "x-session-id": "Its session.",
  "x-upstream-model": "The model id that the provider was asked for.",
  "x-estimated": "`1`: the count is an estimate.",
  etag: "The version of what was sent, for `if-none-match`, `if-range` and `if-match`.",
  "content-range": "Which bytes of how many.",
  "idempotency-replayed": "`true`: the stored response of an earlier request with this `Idempotency-Key`.",
};

export const SECURITY: Record<Family, readonly Record<string, readonly string[]>[]> = {
  public: [],
  api: [{ accessToken: [] }, {}],
  mcp: [{ accessToken: [] }, { accessToken: [], providerKeyHeader: [] }, { providerKeyHeader: [] }, {}],
  chat: [{ providerKey: [] }, { providerKey: [], accessTokenHeader: [] }, {}],
  messages: [
    { apiKey: [] },
    { providerKey: [] },
    { apiKey: [], accessTokenHeader: [] },
    { providerKey: [], accessTokenHeader: [] },
    {},
  ],
};

export const SECURITY_SCHEMES = {
  accessToken: {
    type: "http",
    scheme: "bearer",
    description:
      "On `/api` and `/mcp`: one of ACCESS_TOKENS, or with AUTH=key your provider key. A service on loopback without tokens wants neither.",
  },
  providerKey: {
    type: "http",
    scheme: "bearer",
    description:
      "On `/v1`: your provider key. Its prefix says who answers: `sk-ant-` Anthropic, `gsk_` Groq, `sk-` OpenAI, anything else Gemini. Where there are access tokens: `<token>:<key>`, or the token alone to use the operator's key.",
  },
  apiKey: {
    type: "apiKey",
    in: "header",
    name: "x-api-key",
    description: "The same, as the Anthropic SDK sends it.",
  },
  providerKeyHeader: {
    type: "apiKey",
    in: "header",
    name: "x-provider-key",
    description: "On `/mcp`: your provider key. Without one the operator's is used, where there is one.",
  },
  accessTokenHeader: {
    type: "apiKey",
    in: "header",
    name: "x-access-token",
    description: "On `/v1`: one of ACCESS_TOKENS, beside the provider key.",
  },
};
