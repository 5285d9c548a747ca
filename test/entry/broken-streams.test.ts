/** K2: what breaks while an answer is on its way is told by the log, which redacts, and by nothing that prints past it. */
import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { type BucketServer, startBucketServer } from "../bucket-server.ts";
import { PNG } from "../knowledge/pictures.ts";
import { startUpstream, type UpstreamServer } from "../upstream-server.ts";
import { type ServiceProcess, startProcess, stop } from "./service-process.ts";

const KEY = "sk-a-key-that-no-line-may-show";
const CHUNK = `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta: { content: "half" }, finish_reason: null }] })}\n\n`;
const JSON_POST = { method: "POST", headers: { "content-type": "application/json" } };

describe.each(["node", "bun"] as const)("K2: on %s", (runtime) => {
  let upstream: UpstreamServer;
  let bucket: BucketServer;
  let service: ServiceProcess;
  let url: string;

  beforeAll(async () => {
    upstream = await startUpstream();
    bucket = await startBucketServer();
    service = startProcess(runtime, {
      OPENAI_BASE_URL: `${upstream.url}/v1`,
      OPENAI_API_KEY: KEY,
      LOG_LEVEL: "debug",
      S3_ENDPOINT: bucket.endpoint,
      S3_BUCKET: bucket.bucket,
      S3_REGION: bucket.region,
      S3_ACCESS_KEY_ID: bucket.accessKeyId,
      S3_SECRET_ACCESS_KEY: bucket.secretAccessKey,
    });
    url = await service.url;
  });
  afterAll(async () => {
    await stop(service);
    await bucket.close();
    await upstream[Symbol.asyncDispose]();
  });

  const banner = /^[\s\S]*listens +http:\S+\n(?:[^{\n].*\n|\n)*/;
  const printed = () => service.stderr().replace(banner, "");
  /** Waits for the log line of the request with this id, and then for what would be printed beside it. */
  async function logged(id: string): Promise<string> {
    await vi.waitFor(() => expect(printed()).toContain(id), { timeout: 3_000, interval: 20 });
    const next = `after-${id}`;
    await fetch(`${url}/v1/nothing`, { headers: { "x-request-id": next } });
    await vi.waitFor(() => expect(printed()).toContain(next), { timeout: 3_000, interval: 20 });
    return printed();
  }

  function expectJsonLines(text: string): void {
    for (const line of text.trimEnd().split("\n")) expect(() => JSON.parse(line), line).not.toThrow();
    expect(text).not.toContain(KEY);
  }

  const chat = (path: string, id: string, body: object) =>
    fetch(url + path, {
      ...JSON_POST,
      headers: { ...JSON_POST.headers, "x-request-id": id },
      body: JSON.stringify(body),
    });
  const v1 = { model: "m", stream: true, messages: [{ role: "user", content: "hello" }] };

  test("an upstream that cuts its stream", async () => {
    upstream.answer((response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(CHUNK);
      setTimeout(() => response.destroy(), 50);
    });
    await (await chat("/v1/chat/completions", "cut-chat-stream", v1)).text().catch(() => "");
    await (await chat("/api/chat", "cut-native-stream", { message: "hello", stream: true })).text();
    expectJsonLines(await logged("cut-native-stream"));
  });

  test("an upstream that cuts its audio", async () => {
    upstream.answer((response) => {
      response.writeHead(200, { "content-type": "audio/mpeg" });
      response.write(Buffer.alloc(20_000, 7));
      setTimeout(() => response.destroy(), 100);
    });
    const speech = { input: `Say ${KEY}.`, model: "tts-1", voice: "alloy" };
    const response = await chat("/v1/audio/speech", "cut-audio", speech);
    expect(response.status).toBe(200);
    await expect(response.arrayBuffer()).rejects.toThrow();
    expectJsonLines(await logged("cut-audio"));
  });

  test("a store that fails when an image is read", async () => {
    const form = new FormData();
    form.append("file", new Blob([PNG], { type: "image/png" }), "a.png");
    const upload = await fetch(`${url}/api/notes/upload`, { method: "POST", body: form });
    expect(upload.status).toBe(201);
    const image = ((await upload.json()) as { url: string }).url;
    bucket.fault = { status: 500, body: `InternalError ${KEY}` };
    const answer = await fetch(image, { headers: { "x-request-id": "image-broken" } })
      .then((response) => response.text())
      .catch(() => "");
    expect(answer).toBe("");
    const log = await logged("image-broken");
    expectJsonLines(log);
    expect(log).toContain('"message":"a response stream broke"');
  });

  test("a client that goes in the middle", async () => {
    upstream.answer((response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(CHUNK);
    });
    for (const [path, body] of [
      ["/v1/chat/completions", v1],
      ["/api/chat", { message: "hello", stream: true }],
    ] as const) {
      const { hostname, port } = new URL(url);
      const socket = connect(Number(port), hostname);
      const text = JSON.stringify(body);
      socket.write(
        `POST ${path} HTTP/1.1\r\nhost: ${hostname}:${port}\r\nx-request-id: client-gone-${path.length}\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`,
      );
      await once(socket, "data");
      socket.resetAndDestroy();
      expectJsonLines(await logged(`client-gone-${path.length}`));
    }
  });
});
