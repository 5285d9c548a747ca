/** Faults as JSON-RPC errors, for the clients of our own MCP server. */
import type { Fault } from "../errors.ts";

export const INVALID_REQUEST = -32600;
export const METHOD_NOT_FOUND = -32601;
export const INVALID_PARAMS = -32602;
const INTERNAL_ERROR = -32603;
/** The first of those that the protocol leaves to servers. */
const SERVER_ERROR = -32000;

export type RpcFault = {
  jsonrpc: "2.0";
  error: { code: number; message: string; data: Record<string, unknown> };
  id: null;
};

/** A fault of the request as a whole, which belongs to none of the calls in it. */
export function rpcFault(fault: Fault, requestId: string): RpcFault {
  const data: Record<string, unknown> = { code: fault.code, request_id: requestId };
  if (fault.retryAfter !== undefined) data.retry_after = Math.ceil(fault.retryAfter);
  return { jsonrpc: "2.0", error: { code: codeOf(fault), message: fault.message, data }, id: null };
}

function codeOf({ code }: Fault): number {
  if (code === "invalid_request") return INVALID_REQUEST;
  return code === "internal" ? INTERNAL_ERROR : SERVER_ERROR;
}
