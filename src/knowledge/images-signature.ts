/** AWS Signature Version 4 in the Authorization header, as the S3 API wants it. */

export interface Credentials {
  accessKeyId: string;
  secretAccessKey: string;
  region: string;
  /** Default `s3`. */
  service?: string | undefined;
}

export interface Unsigned {
  method: string;
  /** Its path is encoded as it is to be sent. */
  url: URL;
  headers?: Record<string, string> | undefined;
  body?: Uint8Array<ArrayBuffer> | undefined;
}

const ALGORITHM = "AWS4-HMAC-SHA256";
const encoder = new TextEncoder();

/** The headers to send: those given, `x-amz-date`, `x-amz-content-sha256` for S3, and `authorization`. */
export async function signRequest(
  request: Unsigned,
  credentials: Credentials,
  now: Date,
): Promise<Record<string, string>> {
  const { service = "s3", region, accessKeyId, secretAccessKey } = credentials;
  const time = now.toISOString().replaceAll(/[-:]|\.\d{3}/g, "");
  const date = time.slice(0, 8);
  const payload = hex(await crypto.subtle.digest("SHA-256", request.body ?? new Uint8Array(0)));
  const headers: Record<string, string> = { ...request.headers, "x-amz-date": time };
  if (service === "s3") headers["x-amz-content-sha256"] = payload;

  const signed = [...Object.entries(headers), ["host", request.url.host] as const]
    .map(([name, value]) => [name.toLowerCase(), value.trim().replaceAll(/ +/g, " ")] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const names = signed.map(([name]) => name).join(";");
  const canonical = [
    request.method,
    request.url.pathname,
    canonicalQuery(request.url.searchParams),
    ...signed.map(([name, value]) => `${name}:${value}`),
    "",
    names,
    payload,
  ].join("\n");

  const scope = `${date}/${region}/${service}/aws4_request`;
  const digest = hex(await crypto.subtle.digest("SHA-256", encoder.encode(canonical)));
  let key: BufferSource = encoder.encode(`AWS4${secretAccessKey}`);
  for (const part of scope.split("/")) key = await hmac(key, part);
  const signature = hex(await hmac(key, [ALGORITHM, time, scope, digest].join("\n")));
  headers.authorization = `${ALGORITHM} Credential=${accessKeyId}/${scope}, SignedHeaders=${names}, Signature=${signature}`;
  return headers;
}

function canonicalQuery(query: URLSearchParams): string {
  const pairs = [...query].map(([name, value]) => [encode(name), encode(value)] as const);
  pairs.sort(([a, x], [b, y]) => (a === b ? (x < y ? -1 : 1) : a < b ? -1 : 1));
  return pairs.map((pair) => pair.join("=")).join("&");
}

/** RFC 3986: encodeURIComponent leaves some signs that AWS wants encoded. */
function encode(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

async function hmac(key: BufferSource, text: string): Promise<ArrayBuffer> {
  const imported = await crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, [
    "sign",
  ]);
  return crypto.subtle.sign("HMAC", imported, encoder.encode(text));
}

function hex(bytes: ArrayBuffer): string {
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
