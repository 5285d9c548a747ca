/** What every blob store has to do, whatever it keeps its bytes in; and how a bucket fails. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { BlobStore } from "../../src/core/notes.ts";
import { createImages } from "../../src/knowledge/images.ts";
import { createBucket } from "../../src/knowledge/images-bucket.ts";
import { createLocalFetch } from "../../src/platform/local-fetch.ts";
import { type BucketServer, startBucketServer } from "../bucket-server.ts";
import { BACKENDS, type Backend, createFileBackend, openStore, type TestStore } from "../store/backends.ts";
import { PNG, pngOfBytes } from "./pictures.ts";

interface Kind {
  name: string;
  available: boolean;
  open(): Promise<{ blobs: BlobStore; store: TestStore; close(): Promise<void> }>;
}

const NOW = new Date("2026-11-20T10:00:00.000Z");
const bucketOf = (server: BucketServer, change: Partial<BucketServer> = {}) =>
  createBucket({ ...server, ...change, fetch: createLocalFetch(), now: () => NOW });

const KINDS: Kind[] = [
  ...BACKENDS.map(
    ({ name, available, create }): Kind => ({
      name: `rows in ${name}`,
      available,
      async open() {
        const backend = await create();
        const store = await openStore(backend);
        return { blobs: store.imageChunks, store, close: () => closeBoth(store, backend) };
      },
    }),
  ),
  {
    name: "a bucket",
    available: true,
    async open() {
      const server = await startBucketServer();
      const backend = await createFileBackend();
      const store = await openStore(backend);
      return {
        blobs: bucketOf(server),
        store,
        async close() {
          await server.close();
          await closeBoth(store, backend);
        },
      };
    },
  },
];

async function closeBoth(store: TestStore, backend: Backend): Promise<void> {
  await store.close();
  await backend.close();
}

async function bytesOf(stream: ReadableStream<Uint8Array>): Promise<Uint8Array> {
  return new Uint8Array(await new Response(stream as ReadableStream<Uint8Array<ArrayBuffer>>).arrayBuffer());
}

/** Compared at once: element by element it takes seconds. */
const same = (a: Uint8Array, b: Uint8Array) => Buffer.from(a).equals(b);

describe.each(KINDS.filter((kind) => kind.available))("$name", (kind) => {
  let opened: Awaited<ReturnType<Kind["open"]>>;
  beforeAll(async () => {
    opened = await kind.open();
  });
  afterAll(() => opened.close());

  const row = () =>
    opened.store.images.begin("ann", {
      ...{ type: "image/png", size: 1, width: 1, height: 1, sha256: "", store: opened.blobs.name },
    });

  test.each([1, 1024 * 1024, 1024 * 1024 + 1, 3_500_000])("keeps %i bytes", async (size) => {
    const { blobs } = opened;
    const bytes = Uint8Array.from({ length: size }, (_, at) => (at * 31) % 251);
    const id = await row();
    await blobs.put("ann", id, bytes, "image/png");
    expect(same(await bytesOf(blobs.read("ann", id, { start: 0, end: size })), bytes)).toBe(true);
    for (const [start, end] of [
      [0, 1],
      [size - 1, size],
      [Math.floor(size / 3), Math.ceil(size / 2)],
    ] as const)
      expect(same(await bytesOf(blobs.read("ann", id, { start, end })), bytes.subarray(start, end))).toBe(
        true,
      );
    await blobs.remove("ann", id);
    await expect(bytesOf(blobs.read("ann", id, { start: 0, end: 1 }))).rejects.toThrow();
    await blobs.remove("ann", id);
  });

  test("keeps owners apart", async () => {
    const { blobs } = opened;
    const id = await row();
    await blobs.put("ann", id, PNG, "image/png");
    await blobs.remove("bob", id);
    await expect(bytesOf(blobs.read("bob", id, { start: 0, end: 1 }))).rejects.toThrow();
    expect(await bytesOf(blobs.read("ann", id, { start: 0, end: PNG.length }))).toEqual(PNG);
  });

  test("asks for nothing before the reader does", async () => {
    const id = await row();
    await opened.blobs.put("ann", id, PNG, "image/png");
    const stream = opened.blobs.read("ann", id, { start: 0, end: PNG.length });
    await opened.blobs.remove("ann", id);
    await expect(bytesOf(stream)).rejects.toThrow();
  });

  test("is where images go, and goes empty when they are swept", async () => {
    const { store, blobs } = opened;
    const clock = { now: NOW };
    const parts = { rows: store.images, now: () => clock.now, log: () => {} };
    const images = createImages({ ...parts, blobs: [blobs] });
    const bytes = pngOfBytes(2_000_000);
    const image = await images.add("ann", bytes);
    expect(image).toMatchObject({ store: blobs.name, type: "image/png", size: bytes.length });
    expect(same(await bytesOf(images.read(image)), bytes)).toBe(true);
    clock.now = new Date("2030-01-01T00:00:00.000Z");
    await images.sweep();
    expect(await images.find("ann", image.id)).toBeNull();
    await expect(bytesOf(images.read(image))).rejects.toThrow();
  });
});

describe("a bucket at fault", () => {
  let server: BucketServer;
  let backend: Backend;
  let store: TestStore;
  beforeAll(async () => {
    server = await startBucketServer();
    backend = await createFileBackend();
    store = await openStore(backend);
  });
  afterAll(async () => {
    await server.close();
    await closeBoth(store, backend);
  });
  beforeEach(() => {
    server.fault = undefined;
    server.objects.clear();
    server.requests.length = 0;
  });

  const parts = () => ({ rows: store.images, now: () => NOW, log: () => {} });
  const add = (blobs: BlobStore) => createImages({ ...parts(), blobs: [blobs] }).add("ann", PNG);

  test.each([
    ["a wrong secret", { secretAccessKey: "other" }, "403 SignatureDoesNotMatch: check S3_ACCESS_KEY_ID"],
    ["a wrong region", { region: "us-east-1" }, "403 SignatureDoesNotMatch: check S3_ACCESS_KEY_ID"],
    ["a bucket that is not there", { bucket: "other" }, "404 NoSuchBucket: check S3_BUCKET"],
    ["nobody listening", { endpoint: "http://127.0.0.1:9" }, "cannot be reached"],
  ])("%s is said, and no image is there", async (_, change, sentence) => {
    const failure = await add(bucketOf(server, change)).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "unavailable", message: expect.stringContaining(sentence) });
    expect(String(failure)).not.toContain(server.secretAccessKey);
    expect(server.objects.size).toBe(0);
  });

  test("what it says itself is not passed on but for its code", async () => {
    server.fault = { status: 500, body: "InternalError" };
    const failure = await add(bucketOf(server)).catch((error: unknown) => error);
    expect(failure).toMatchObject({
      message: "The bucket for images answered with 500 InternalError. Try again later.",
    });
  });

  test("a redirect is not followed with our signature", async () => {
    server.fault = { status: 301, body: "PermanentRedirect" };
    await expect(add(bucketOf(server))).rejects.toThrow("301 PermanentRedirect");
    expect(server.requests).toHaveLength(1);
  });

  test("names show neither owner nor secret, and every request is signed anew", async () => {
    const image = await createImages({ ...parts(), blobs: [bucketOf(server)] }).add("ann.the.owner", PNG);
    const [path = ""] = server.objects.keys();
    expect(path).toMatch(new RegExp(`^/pictures/images/[0-9a-f]{16}/${image.id}$`));
    expect(JSON.stringify(server.requests)).not.toContain(server.secretAccessKey);
    expect(server.objects.get(path)?.type).toBe("image/png");
  });

  test("a sweep that fails is made up for, and stops nobody else's", async () => {
    const clock = { now: NOW };
    const logged: string[] = [];
    const chunks = store.imageChunks;
    const images = createImages({
      rows: store.images,
      blobs: [bucketOf(server), chunks],
      now: () => clock.now,
      log: (_, message) => void logged.push(message),
    });
    const image = await images.add("ann", PNG);
    const local = await createImages({ ...parts(), blobs: [chunks] }).add("ann", PNG);
    expect(await bytesOf(images.read(local))).toEqual(PNG);
    clock.now = new Date("2030-01-01T00:00:00.000Z");
    server.fault = { status: 503, body: "SlowDown" };
    await images.sweep();
    expect(logged).toContain("image not removed");
    expect(server.objects.size).toBe(1);
    expect([await images.find("ann", image.id), await images.find("ann", local.id)]).toEqual([null, null]);
    server.fault = undefined;
    await images.sweep();
    expect(server.objects.size).toBe(0);
    expect(await store.images.condemn(clock.now, 50)).toEqual([]);
  });

  test("images of a bucket that is not configured any more are said to be there", async () => {
    const image = await createImages({ ...parts(), blobs: [bucketOf(server)] }).add("ann", PNG);
    const images = createImages({ ...parts(), blobs: [store.imageChunks] });
    expect(() => images.read(image)).toThrow("set S3_ENDPOINT");
  });
});
