/** A small S3-like server: it keeps objects in memory, and checks every signature as its protocol says, on its own. */
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface BucketServer {
  endpoint: string;
  accessKeyId: string;
  secretAccessKey: string;
  region: string;
  bucket: string;
  /** By path. */
  objects: Map<string, { type: string; bytes: Buffer }>;
  requests: { method: string; path: string; headers: IncomingMessage["headers"] }[];
  /** What it answers with in place of what it should. */
  fault: { status: number; body: string } | undefined;
  close(): Promise<void>;
}

export async function startBucketServer(): Promise<BucketServer> {
  const account = {
    accessKeyId: "AKIATESTOFDRAGOMAN",
    secretAccessKey: "secret/of+the+tests-0123456789abcdef",
    region: "eu-central-1",
    bucket: "pictures",
  };
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => refuse(response, 500, String(error)));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const state: BucketServer = {
    ...account,
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    objects: new Map(),
    requests: [],
    fault: undefined,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "", url: path = "", headers } = request;
    const body = Buffer.concat(await request.toArray());
    state.requests.push({ method, path, headers });
    if (state.fault) return refuse(response, state.fault.status, state.fault.body);
    if (!isSigned(request, body, account)) return refuse(response, 403, "SignatureDoesNotMatch");
    if (!path.startsWith(`/${account.bucket}/`)) return refuse(response, 404, "NoSuchBucket");
    const object = state.objects.get(path);
    if (method === "PUT") {
      if (headers["content-length"] !== String(body.length))
        return refuse(response, 411, "MissingContentLength");
      state.objects.set(path, { type: headers["content-type"] ?? "", bytes: body });
      response.writeHead(200).end();
    } else if (method === "DELETE") {
      state.objects.delete(path);
      response.writeHead(204).end();
    } else if (method === "GET" && object) {
      const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? "") ?? [];
      const part =
        first === undefined ? object.bytes : object.bytes.subarray(Number(first), Number(last) + 1);
      response.writeHead(first === undefined ? 200 : 206, { "content-type": object.type }).end(part);
    } else refuse(response, 404, "NoSuchKey");
  }
  return state;
}

function refuse(response: ServerResponse, status: number, code: string): void {
  response.writeHead(status, { "content-type": "application/xml" });
  response.end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>about ${code}</Message></Error>`);
}

/** Written from the description of the protocol, apart from the code under test. */
function isSigned(request: IncomingMessage, body: Buffer, account: Record<string, string>): boolean {
  const { headers, method = "", url = "" } = request;
  const shown =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/.exec(
      headers.authorization ?? "",
    );
  if (!shown) return false;
  const [, id, date, region, names = "", signature = ""] = shown;
  const time = String(headers["x-amz-date"]);
  const hash = createHash("sha256").update(body).digest("hex");
  if (id !== account.accessKeyId || region !== account.region || !time.startsWith(date ?? "?")) return false;
  if (headers["x-amz-content-sha256"] !== hash || !names.split(";").includes("host")) return false;
  const [path, query = ""] = url.split("?");
  const lines = names.split(";").map((name) => `${name}:${headers[name]}\n`);
  const canonical = `${method}\n${path}\n${query}\n${lines.join("")}\n${names}\n${hash}`;
  const scope = `${date}/${region}/s3/aws4_request`;
  const toSign = `AWS4-HMAC-SHA256\n${time}\n${scope}\n${createHash("sha256").update(canonical).digest("hex")}`;
  const key = scope
    .split("/")
    .reduce<Buffer>(
      (above, part) => createHmac("sha256", above).update(part).digest(),
      Buffer.from(`AWS4${account.secretAccessKey}`),
    );
  const wanted = createHmac("sha256", key).update(toSign).digest();
  return timingSafeEqual(wanted, Buffer.from(signature, "hex"));
}
