import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { join, PICTURES, PNG, pictureNamed, pngOf, pngOfBytes } from "../knowledge/pictures.ts";
import { scriptedModel } from "../scripted-model.ts";
import { createHome, createService, json, START, type TestHome, type TestService } from "./service.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

let home: TestHome;
let service: TestService;

beforeAll(async () => {
  home = await createHome();
});
afterAll(() => home.close());
beforeEach(async () => {
  home.clock.now = START;
  await open();
});
afterEach(async () => {
  const database = await home.backend.open();
  for (const table of ["notes", "images"]) await database.write.execute(`DELETE FROM ${table}`);
  for (const each of [database.write, database.read]) each.close();
  await service.close();
});

async function open(env: Record<string, string> = {}): Promise<void> {
  await service?.close();
  service = await createService(home, { model: scriptedModel([{ text: "ok" }]), env });
}

/** Rows of images and of their bytes. */
async function stored(): Promise<[number, number]> {
  const database = await home.backend.open();
  const count = async (table: string) => {
    const { rows } = await database.read.execute(`SELECT count(*) AS n FROM ${table}`);
    return Number(rows[0]?.n);
  };
  const counts: [number, number] = [await count("images"), await count("image_chunks")];
  for (const each of [database.write, database.read]) each.close();
  return counts;
}

function formOf(bytes: Uint8Array<ArrayBuffer> | string, name = "picture.png", field = "file"): FormData {
  const form = new FormData();
  form.append(field, new Blob([bytes]), name);
  return form;
}

/** A form is written out first, as it comes from a client. */
async function upload(body: BodyInit, headers: Record<string, string> = {}): Promise<Response> {
  const init = { method: "POST", headers };
  if (!(body instanceof FormData)) return service.request("/api/notes/upload", { ...init, body });
  const form = new Response(body);
  const type = form.headers.get("content-type") as string;
  const bytes = await form.arrayBuffer();
  return service.request("/api/notes/upload", {
    ...init,
    body: bytes,
    headers: { "content-type": type, ...headers },
  });
}
/** Compared at once: element by element it takes seconds. */
const same = (a: ArrayBuffer, b: Uint8Array) => Buffer.from(a).equals(b);
const pathOf = (url: string) => url.slice(new URL(url).origin.length);
const see = (url: string, init: RequestInit = {}) => service.request(pathOf(url), init);

describe("E3: real images are taken by their bytes", () => {
  test.each(PICTURES)("$name", async ({ type, bytes }) => {
    const response = await upload(formOf(bytes, "whatever.exe"));
    expect(response.status).toBe(201);
    const image = await json(response);
    expect(image).toEqual({
      id: expect.stringMatching(/^img_[2-7a-z]{32}$/),
      url: `http://127.0.0.1:8000/api/notes/images/${image.id}`,
      content_type: type,
      size: bytes.length,
      width: 7,
      height: 5,
      created_at: START.toISOString(),
    });
    expect(response.headers.get("location")).toBe(image.url);
    const shown = await see(image.url);
    expect(new Uint8Array(await shown.arrayBuffer())).toEqual(bytes);
    expect(Object.fromEntries(shown.headers)).toMatchObject({
      "content-type": type,
      "content-length": String(bytes.length),
      "content-disposition": expect.stringMatching(/^inline; filename="img_\w+\.(png|jpg|gif|webp)"$/),
      "content-security-policy": "sandbox; default-src 'none'",
      "x-content-type-options": "nosniff",
      "cache-control": "private, max-age=31536000, immutable",
      "accept-ranges": "bytes",
    });
  });

  test("of ten mebibytes, in pieces", async () => {
    const bytes = pngOfBytes(10 * 1024 * 1024);
    const image = await json(await upload(formOf(bytes)));
    expect(image.size).toBe(bytes.length);
    expect(await stored()).toEqual([1, 10]);
    expect(same(await (await see(image.url)).arrayBuffer(), bytes)).toBe(true);
    const range = await see(image.url, { headers: { range: "bytes=1048000-3145800" } });
    expect(range.status).toBe(206);
    expect(range.headers.get("content-range")).toBe(`bytes 1048000-3145800/${bytes.length}`);
    expect(same(await range.arrayBuffer(), bytes.subarray(1_048_000, 3_145_801))).toBe(true);
  });

  test("with other fields beside it", async () => {
    const form = formOf(PNG);
    form.append("caption", "a picture");
    expect((await upload(form)).status).toBe(201);
  });
});

const SVG = '<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>';
const ARCHIVE = join("PK\x05\x06", new Uint8Array(18));
const EXIF = join(new Uint8Array([0xff, 0xd8, 0xff]), "<?php system($_GET['c']); ?>");

describe("E3: what is refused, and nothing of it is stored", () => {
  test.each<[string, () => BodyInit, number, string]>([
    ["a renamed script", () => formOf("#!/bin/sh\nrm -rf /\n"), 415, "not a PNG, JPEG, WebP or GIF image"],
    ["a page named .png", () => formOf("<html><script>alert(1)</script>"), 415, "by its bytes"],
    ["SVG", () => formOf(SVG, "picture.svg"), 415, "SVG and other formats are not taken"],
    ["SVG named .png", () => formOf(SVG), 415, "SVG and other formats are not taken"],
    [
      "a PNG with a page behind it",
      () => formOf(join(PNG, "<script>alert(1)</script>")),
      400,
      "25 bytes follow",
    ],
    ["a PNG with an archive behind it", () => formOf(join(PNG, ARCHIVE)), 400, "22 bytes follow"],
    ["a GIF that is a script", () => formOf("GIF89a/*aaaa*/=1;alert(1)//;"), 400, "not whole, or not only"],
    [
      "a GIF with a script behind it",
      () => formOf(join(pictureNamed("gif"), "alert(1)")),
      400,
      "8 bytes follow",
    ],
    [
      "a JPEG with a page behind it",
      () => formOf(join(pictureNamed("jpeg"), "<html>")),
      400,
      "6 bytes follow",
    ],
    [
      "a WebP with an archive behind it",
      () => formOf(join(pictureNamed("webp"), ARCHIVE)),
      400,
      "22 bytes follow",
    ],
    ["a script with the head of a JPEG", () => formOf(EXIF), 400, "it ends before it is complete"],
    [
      "a header of 30,000 × 30,000",
      () => formOf(pngOf(30_000, 30_000)),
      413,
      "30000 × 30000 pixels by its header",
    ],
    [
      "a header of the largest numbers",
      () => formOf(pngOf(4294967295, 4294967295)),
      413,
      "at most 40 megapixels",
    ],
    ["a header of no size", () => formOf(pngOf(0, 5)), 400, "its header gives it no size"],
    ["a truncated PNG", () => formOf(PNG.slice(0, -5)), 400, "it ends before it is complete"],
    [
      "a truncated JPEG",
      () => formOf(pictureNamed("jpeg").slice(0, 250)),
      400,
      "it ends before it is complete",
    ],
    ["a truncated GIF", () => formOf(pictureNamed("gif").slice(0, -1)), 400, "it ends before it is complete"],
    [
      "a truncated WebP",
      () => formOf(pictureNamed("webp").slice(0, 60)),
      400,
      "it ends before it is complete",
    ],
    ["11 MiB", () => formOf(pngOfBytes(11 * 1024 * 1024)), 413, "larger than 10 MiB"],
    ["one byte over 10 MiB", () => formOf(pngOfBytes(10 * 1024 * 1024 + 1)), 413, "larger than 10 MiB"],
    [
      "a wrong field name",
      () => formOf(PNG, "x.png", "image"),
      400,
      "in the field 'file', but it is in 'image'",
    ],
    ["an empty file", () => formOf(""), 400, "The file is empty"],
    ["two files", () => twoFiles("file"), 400, "The form has 2 files"],
    ["two files, one in another field", () => twoFiles("other"), 400, "The form has 2 files"],
    ["a field of text", () => textForm("file"), 400, "has no file in it but text"],
    ["no file at all", () => textForm("caption"), 400, "The form has no file"],
  ])("%s", async (_, body, status, sentence) => {
    const response = await upload(body());
    const problem = await json(response);
    expect([response.status, problem.status, response.headers.get("content-type")]).toEqual([
      ...[status, status],
      "application/problem+json",
    ]);
    expect(problem.detail).toContain(sentence);
    expect(await stored()).toEqual([0, 0]);
  });

  test("40 megapixels are taken, one row more is not", async () => {
    expect((await upload(formOf(pngOf(8_000, 5_000)))).status).toBe(201);
    expect((await upload(formOf(pngOf(8_000, 5_001)))).status).toBe(413);
  });

  test.each([
    ["JSON posing as an upload", '{"file":"x"}', "application/json", 415, "has to be multipart/form-data"],
    ["JSON said to be a form", '{"file":"x"}', "multipart/form-data; boundary=b", 400, "not a form"],
    ["a form without a boundary", "--b--", "multipart/form-data", 400, "names no boundary"],
    ["an image as the body", PNG, "image/png", 415, "has to be multipart/form-data"],
    ["a plain form", "file=x", "application/x-www-form-urlencoded", 415, "has to be multipart/form-data"],
    ["nothing", "", "multipart/form-data; boundary=b", 400, "not a form"],
  ])("%s", async (_, body, type, status, sentence) => {
    const response = await upload(body, { "content-type": type });
    expect([response.status, (await json(response)).detail]).toEqual([
      status,
      expect.stringContaining(sentence),
    ]);
    expect(await stored()).toEqual([0, 0]);
  });

  test("no content type, and a compressed body", async () => {
    const bytes = new Uint8Array(await new Response(formOf(PNG)).arrayBuffer());
    expect((await upload(bytes)).status).toBe(415);
    const headers = { "content-type": "multipart/form-data; boundary=b", "content-encoding": "gzip" };
    expect((await upload(bytes, headers)).status).toBe(415);
  });

  test("A3: bytes are counted as they arrive, and no more of them are asked for", async () => {
    let sent = 0;
    const head = new TextEncoder().encode(
      '--b\r\ncontent-disposition: form-data; name="file"; filename="x"\r\n\r\n',
    );
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        controller.enqueue(sent === 0 ? head : new Uint8Array(1024 * 1024));
        sent += 1;
      },
    });
    const init = { duplex: "half" } as RequestInit;
    const response = await service.request("/api/notes/upload", {
      ...init,
      ...{ method: "POST", body, headers: { "content-type": "multipart/form-data; boundary=b" } },
    });
    expect(response.status).toBe(413);
    expect(sent).toBeLessThan(15);
    expect(await stored()).toEqual([0, 0]);
  });

  test("A2: a form of another site does not get here", async () => {
    for (const [name, value] of [
      ["origin", "https://evil.example"],
      ["origin", "null"],
      ["sec-fetch-site", "cross-site"],
    ] as const)
      expect((await upload(formOf(PNG), { [name]: value })).status).toBe(403);
    expect(await stored()).toEqual([0, 0]);
  });
});

function twoFiles(second: string): FormData {
  const form = formOf(PNG);
  form.append(second, new Blob([PNG]), "second.png");
  return form;
}

function textForm(name: string): FormData {
  const form = new FormData();
  form.append(name, "text");
  return form;
}

describe("an image is served", () => {
  test("with etag and ranges, and HEAD", async () => {
    const { url } = await json(await upload(formOf(PNG)));
    const whole = await see(url);
    const etag = whole.headers.get("etag") as string;
    expect(etag).toMatch(/^"[0-9a-f]{32}"$/);
    const again = await see(url, { headers: { "if-none-match": etag } });
    expect([again.status, await again.text()]).toEqual([304, ""]);
    const part = await see(url, { headers: { range: "bytes=1-3" } });
    expect([part.status, await part.text()]).toEqual([206, "PNG"]);
    expect((await see(url, { headers: { range: "bytes=1-3", "if-range": '"other"' } })).status).toBe(200);
    const behind = await see(url, { headers: { range: "bytes=5000-" } });
    expect([behind.status, (await json(behind)).code]).toEqual([416, "invalid_request"]);
    const head = await see(url, { method: "HEAD" });
    expect([head.status, head.headers.get("content-length"), await head.text()]).toEqual([200, "199", ""]);
    expect((await see(url.replace(/.$/, (last: string) => (last === "a" ? "b" : "a")))).status).toBe(404);
  });

  test("behind a proxy that ends TLS its address says so", async () => {
    const response = await upload(formOf(PNG), { "x-forwarded-proto": "https" });
    expect((await json(response)).url).toMatch(/^https:\/\/127\.0\.0\.1:8000\/api\/notes\/images\/img_/);
  });

  test.each([
    ["by token", { ACCESS_TOKENS: "ann:token-a,bob:token-b" }, "token-a", "token-b"],
    ["by key", { AUTH: "key" }, "sk-key-of-ann", "sk-key-of-bob"],
  ])("A5: %s to its owner, and to whoever has its signed address", async (_, env, ann, bob) => {
    await open(env);
    const as = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
    const { id, url } = await json(await upload(formOf(PNG), as(ann).headers));
    expect(url).toMatch(/\?signature=[\w-]{24}$/);
    const bare = url.slice(0, url.indexOf("?"));
    expect((await see(bare, as(ann))).status).toBe(200);
    expect((await see(url)).status).toBe(200);
    expect((await see(url, { method: "HEAD" })).status).toBe(200);
    expect((await see(bare)).status).toBe(401);
    // The signature is the grant, whatever else the request shows: without the token it would be served as well.
    for (const token of [ann, bob, "nobody"]) expect((await see(url, as(token))).status).toBe(200);
    // Without a signature that holds, who says that he is Bob gets what is Bob's.
    for (const address of [bare, `${bare}?signature=${"A".repeat(24)}`]) {
      const foreign = await see(address, as(bob));
      const nobodys = await see(address.replace(id, `img_${"a".repeat(32)}`), as(bob));
      expect([foreign.status, (await json(foreign)).detail]).toEqual([404, (await json(nobodys)).detail]);
      expect((await see(address, as(ann))).status).toBe(200);
    }
    // A signature is that of one image, whole, and opens nothing else.
    const other = await json(await upload(formOf(PNG), as(ann).headers));
    const [, signature = ""] = url.split("?signature=");
    for (const address of [
      `${bare}?signature=${signature.slice(0, -1)}`,
      `${bare}?signature=${signature.replace(/^./, (first: string) => (first === "A" ? "B" : "A"))}`,
      `${bare}?signature=`,
      `http://127.0.0.1:8000/api/notes/images/${other.id}?signature=${signature}`,
      `http://127.0.0.1:8000/api/notes?signature=${signature}`,
      `http://127.0.0.1:8000/api/notes/${id}?signature=${signature}`,
    ])
      expect([address, (await see(address)).status]).toEqual([address, 401]);
    expect((await see(url, { method: "DELETE" })).status).toBe(401);
    const wrong = await see(bare, as("nobody"));
    expect(wrong.status).toBe("AUTH" in env ? 404 : 401);
  });
});

test("Idempotency-Key: an upload that is sent again is stored once", async () => {
  const headers = { "idempotency-key": "upload-1" };
  const first = await json(await upload(formOf(PNG), headers));
  const again = await upload(formOf(PNG, "renamed.png"), headers);
  expect([again.status, again.headers.get("idempotency-replayed")]).toEqual([201, "true"]);
  expect(await json(again)).toEqual(first);
  expect((await upload(formOf(pictureNamed("gif")), headers)).status).toBe(422);
  expect(await stored()).toEqual([1, 1]);
});

describe("images that no note shows", () => {
  const later = (ms: number) => {
    home.clock.now = new Date(home.clock.now.getTime() + ms);
  };
  const status = async (url: string) => (await see(url)).status;
  const note = async (content: string) =>
    (await json(await service.post("/api/notes", { title: "x", content }))).note_id as string;
  const put = (id: string, content: string) =>
    service.request(`/api/notes/${id}`, { method: "PUT", json: { content } });
  const remove = (id: string) => service.request(`/api/notes/${id}`, { method: "DELETE" });

  test("are swept after a day, those that are shown stay", async () => {
    const [kept, lost] = await Promise.all([1, 2].map(async () => json(await upload(formOf(PNG)))));
    await note(`# A note\n\n![a picture](${kept.url})`);
    later(DAY_MS - 1);
    await service.services.tick();
    expect([await status(kept.url), await status(lost.url)]).toEqual([200, 200]);
    later(2);
    await service.services.tick();
    expect([await status(kept.url), await status(lost.url)]).toEqual([200, 404]);
    expect(await stored()).toEqual([1, 1]);
  });

  test("a day counts from when the last note let go of it", async () => {
    const { url } = await json(await upload(formOf(PNG)));
    const [one, two] = [await note(`<img src="${url}">`), await note(`[see](${url}?x=y)`)];
    later(10 * DAY_MS);
    await put(one, "nothing");
    later(2 * DAY_MS);
    await service.services.tick();
    expect(await status(url)).toBe(200);
    await remove(two);
    later(DAY_MS - 1);
    await service.services.tick();
    expect(await status(url)).toBe(200);
    later(2);
    await service.services.tick();
    expect(await status(url)).toBe(404);
  });

  test("a change that keeps an image, or takes it back, keeps it", async () => {
    const { url } = await json(await upload(formOf(PNG)));
    const id = await note(`![](${url})`);
    later(5 * DAY_MS);
    await put(id, `![](${url}) and more`);
    await service.services.tick();
    await put(id, "without");
    await put(id, `![](${url})`);
    later(5 * DAY_MS);
    await service.services.tick();
    expect(await status(url)).toBe(200);
  });

  test("are not kept by a note of somebody else", async () => {
    await open({ ACCESS_TOKENS: "ann:token-a,bob:token-b" });
    const { url } = await json(await upload(formOf(PNG), { authorization: "Bearer token-a" }));
    const bob = { authorization: "Bearer token-b" };
    await service.post("/api/notes", { title: "x", content: `![](${url})` }, bob);
    later(DAY_MS + 1);
    await service.services.tick();
    expect(await stored()).toEqual([0, 0]);
  });

  test("are swept in portions, and what was cut off is swept too", async () => {
    const database = await home.backend.open();
    const rows = Array.from({ length: 120 }, (_, n) => ({
      sql: `INSERT INTO images SELECT ?, 'local', ?, 'image/png', 1, 1, 1, '', 'database', 0, 0`,
      args: [`img_${n}`, ["pending", "ready", "condemned"][n % 3] as string],
    }));
    await database.write.batch(rows, "write");
    for (const each of [database.write, database.read]) each.close();
    for (const left of [70, 20, 0, 0]) {
      await service.services.tick();
      expect(await stored()).toEqual([left, 0]);
    }
  });
});
