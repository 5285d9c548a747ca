/** A helper of the benchmark: an MCP server over HTTP that does as little as one can, in a process of its own. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const TOOL = {
  name: "echo",
  description: "Says it back.",
  inputSchema: { type: "object", properties: { text: { type: "string" } } },
  annotations: { readOnlyHint: true },
};

function resultOf(method: string, params: { arguments?: { text?: string }; protocolVersion?: string }) {
  if (method === "tools/list") return { tools: [TOOL] };
  if (method === "tools/call") return { content: [{ type: "text", text: params.arguments?.text ?? "" }] };
  const { protocolVersion } = params;
  return { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "bench", version: "1.0.0" } };
}

const server = createServer(async (request, response) => {
  if (request.method !== "POST") return response.writeHead(405).end();
  const { id, method, params } = JSON.parse(Buffer.concat(await request.toArray()).toString());
  if (id === undefined) return response.writeHead(202).end();
  const body = JSON.stringify({ jsonrpc: "2.0", id, result: resultOf(method, params ?? {}) });
  response.writeHead(200, { "content-type": "application/json" }).end(body);
}).listen(0, "127.0.0.1");
await once(server, "listening");
process.send?.({ port: (server.address() as AddressInfo).port });
process.once("disconnect", () => process.exit());
