/**
 * Dragoman as an MCP server: tools over Streamable HTTP. Stateless: every request gets a server and a transport of its own,
 * so that any replica can answer it. What the tools do is handed in.
 */
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import {
  type CallToolResult,
  CancelledNotificationSchema,
  InitializeRequestSchema,
  type JSONRPCMessage,
  JSONRPCMessageSchema,
  type RequestId,
  type Tool,
  type ToolAnnotations,
} from "@modelcontextprotocol/sdk/types.js";
import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/sdk/validation/cfworker";
import * as z from "zod";
import type { Log } from "../core/platform.ts";
import { AppError, toFault } from "../errors.ts";
import { INVALID_PARAMS, METHOD_NOT_FOUND } from "./rpc-fault.ts";

/** `Caller`: whatever the tools have to know of who calls. */
export interface ServedTool<Caller, Args = unknown> {
  name: string;
  title: string;
  /** For the model of the client. */
  description: string;
  args: z.ZodType<Args>;
  /** Of `structured` in what it answers. */
  result?: z.ZodType | undefined;
  hints: ToolAnnotations;
  /** It may take long: it answers in a stream, and tells what it is at. */
  long?: boolean | undefined;
  /** An AppError's sentence is a result for the model of the client; anything else is our failure. */
  run(args: Args, context: ServedContext<Caller>): Promise<ServedResult>;
}

export interface ServedContext<Caller> {
  caller: Caller;
  requestId: RequestId;
  /** Does nothing where the client has not asked to be told. */
  progress(message: string): void;
}

/** `structured` is sent as text, too, for clients that know no other results. */
export type ServedResult = { structured: Record<string, unknown> } | { content: CallToolResult["content"] };

export interface Served<Caller> {
  tools: readonly ServedTool<Caller>[];
  /** What the client's model is told about all of them. */
  instructions: string;
  /** What is wrong with the arguments of a call, in a sentence. */
  explain(error: z.ZodError, args: unknown): string;
  log: Log;
}

export interface ServedRequest<Caller> {
  caller: Caller;
  /** Its body is `body`. */
  request: Request;
  body: unknown;
  /** Gives up a call that an earlier request has made. */
  cancel(requestId: RequestId): void;
  /** Cuts secrets out of what is told about failures. */
  clean<T>(value: T): T;
}

const INFO = { name: "dragoman", title: "Dragoman", version: "0.1.0" };
/** Nothing here asks a client for anything that would have to be checked; the default of the SDK compiles code. */
const VALIDATOR = new CfWorkerJsonSchemaValidator();

/** How many requests are in a body, and whether one of them begins a conversation or takes long. Throws AppError. */
export function readMessages<Caller>({ tools }: Pick<Served<Caller>, "tools">, body: unknown) {
  const values: unknown[] = Array.isArray(body) ? body : [body];
  if (values.length === 0) throw noMessage();
  const messages = values.map(toMessage);
  const requests = messages.filter((message) => "method" in message && "id" in message);
  return {
    requests: requests.length,
    begins: requests.some(({ method }) => method === "initialize"),
    long: requests.some(({ params }) => tools.some(({ name, long }) => long && name === params?.name)),
  };
}

type Message = JSONRPCMessage & { method?: string; params?: { name?: unknown } | undefined };

function toMessage(value: unknown): Message {
  const parsed = JSONRPCMessageSchema.safeParse(value);
  if (!parsed.success) throw noMessage();
  const message = parsed.data as Message;
  if (message.method === "initialize" && !InitializeRequestSchema.safeParse(message).success)
    throw new AppError(
      "invalid_request",
      "initialize has to have params with protocolVersion, capabilities and clientInfo (name and version).",
    );
  return message;
}

function noMessage(): AppError {
  return new AppError(
    "invalid_request",
    'The body has to be a message of JSON-RPC 2.0, such as {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}.',
  );
}

/** `long`: what readMessages says. Nothing that a client sends is thrown; it is told. */
export async function serve<Caller>(
  served: Served<Caller>,
  asked: ServedRequest<Caller>,
  long: boolean,
): Promise<Response> {
  const server = new Server(INFO, {
    capabilities: { tools: {} },
    instructions: served.instructions,
    jsonSchemaValidator: VALIDATOR,
  });
  server.onerror = (error) => served.log("debug", "mcp server", { error: asked.clean(String(error)) });
  server.setNotificationHandler(CancelledNotificationSchema, ({ params }) => {
    if (params.requestId !== undefined) asked.cancel(params.requestId);
  });
  // In place of handlers of the SDK, whose faults are no sentences.
  server.fallbackRequestHandler = async ({ method, params }, { requestId, _meta, sendNotification }) => {
    if (method === "tools/list") return { tools: served.tools.map(listed) };
    if (method !== "tools/call")
      throw rpcError(
        METHOD_NOT_FOUND,
        `There is no method '${method.slice(0, 100)}' here: there are tools only.`,
      );
    const token = _meta?.progressToken;
    let progress = 0;
    return call(served, asked, params ?? {}, {
      caller: asked.caller,
      requestId,
      progress(message) {
        if (token === undefined) return;
        const told = { progressToken: token, progress: ++progress, message };
        // The client may have gone.
        sendNotification({ method: "notifications/progress", params: told }).catch(() => {});
      },
    });
  };
  const transport = new WebStandardStreamableHTTPServerTransport({
    sessionIdGenerator: undefined,
    enableJsonResponse: !long,
  });
  await server.connect(transport);
  return transport.handleRequest(asked.request, { parsedBody: asked.body });
}

async function call<Caller>(
  { tools, explain, log }: Served<Caller>,
  { clean }: ServedRequest<Caller>,
  params: Record<string, unknown>,
  context: ServedContext<Caller>,
): Promise<CallToolResult> {
  const tool = tools.find(({ name }) => name === params.name);
  if (!tool) {
    const names = tools.map(({ name }) => name).join(", ");
    const shown = String(params.name).slice(0, 100);
    throw rpcError(INVALID_PARAMS, `There is no tool '${shown}'. The tools are: ${names}.`);
  }
  const shown = params.arguments ?? {};
  const args = tool.args.safeParse(shown);
  if (!args.success) return failed(clean(explain(args.error, shown)));
  try {
    return toResult(await tool.run(args.data, context));
  } catch (error) {
    if (error instanceof AppError) return failed(clean(error.message));
    log("error", "a tool of the mcp server failed", {
      tool: tool.name,
      error: clean(String((error as Error).stack ?? error)),
    });
    throw new Error(toFault(error).message);
  }
}

function toResult(result: ServedResult): CallToolResult {
  if ("content" in result) return result;
  const text = JSON.stringify(result.structured);
  return { content: [{ type: "text", text }], structuredContent: result.structured };
}

function failed(text: string): CallToolResult {
  return { content: [{ type: "text", text }], isError: true };
}

function rpcError(code: number, message: string): Error {
  return Object.assign(new Error(message), { code });
}

const listings = new WeakMap<object, Tool>();

/** Made once: the conversion of schemas is the dear part. */
function listed<Caller>(tool: ServedTool<Caller>): Tool {
  let listing = listings.get(tool);
  if (!listing) {
    const { name, title, description, args, result, hints } = tool;
    listing = { name, title, description, inputSchema: schemaOf(args, "input"), annotations: hints };
    if (result) listing.outputSchema = schemaOf(result, "output");
    listings.set(tool, listing);
  }
  return listing;
}

function schemaOf(schema: z.ZodType, io: "input" | "output"): Tool["inputSchema"] {
  return z.toJSONSchema(schema, {
    io,
    override: ({ jsonSchema }) => tidy(jsonSchema),
  }) as Tool["inputSchema"];
}

/** Models read it: what says nothing to them is left out. */
function tidy(schema: z.core.JSONSchema.BaseSchema): void {
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum;
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum;
  if (schema.format !== undefined) delete schema.pattern;
}
