import { createHash } from "node:crypto";
import { mkdir, mkdtemp, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createLocalWorkspace } from "../../src/platform/local-workspace.ts";
import { scriptedModel } from "../scripted-model.ts";
import { createHome, createService, json, type TestHome, type TestService } from "./service.ts";

const BIG = Uint8Array.from({ length: 3_000_000 }, (_, i) => (i * 31) % 251);

/** The same files on the host and in the database. */
describe.each(["host", "virtual"] as const)("files: %s", (kind) => {
  let home: TestHome;
  let service: TestService;
  let root: string;
  let outside: string;

  beforeAll(async () => {
    outside = await mkdtemp(join(tmpdir(), "dragoman-outside-"));
    await writeFile(join(outside, "secret.txt"), "SECRET");
    root = await mkdtemp(join(tmpdir(), "dragoman-files-"));
    home = await createHome();
    const host = createLocalWorkspace(root);
    service = await createService(home, {
      model: scriptedModel([]),
      ...(kind === "host" ? { files: () => host } : {}),
    });
    const files = service.services.platform.files("local");
    const put = (path: string, text: string) => files.write(path, new TextEncoder().encode(text));
    await put("b.txt", "bee");
    await put("a.txt", "0123456789");
    await put("zoo/inside.md", "# Inside");
    await put("page.html", "<script>alert(1)</script>");
    await put("pic.svg", "<svg/>");
    await put("empty", "");
    await put(`räksmörgås "x"'.txt`, "å");
    await files.write("big.bin", BIG);
    if (kind === "host") {
      await symlink(outside, join(root, "way-out"));
      await symlink(join(outside, "secret.txt"), join(root, "secret-link"));
    }
  });
  afterAll(async () => {
    await service.close();
    await home.close();
    await rm(root, { recursive: true });
    await rm(outside, { recursive: true });
  });

  const fetchFile = (path: string, headers: Record<string, string> = {}, more = "") =>
    service.request(`/api/files/content?path=${encodeURIComponent(path)}${more}`, { headers });

  test("a folder: folders first, then by name", async () => {
    const body = await json(await service.request("/api/files"));
    expect(body.directory).toBe(".");
    expect(body.next_cursor).toBeNull();
    const names = body.files.map((file: { name: string }) => file.name);
    expect(names[0]).toBe("zoo");
    expect(names).toContain("b.txt");
    expect(names.indexOf("a.txt")).toBeLessThan(names.indexOf("b.txt"));
    expect(body.files.find((file: { name: string }) => file.name === "a.txt")).toEqual({
      ...{ name: "a.txt", is_dir: false, size: 10 },
      modified_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    });
    const below = await json(await service.request("/api/files?path=zoo"));
    expect(below).toMatchObject({ directory: "zoo", files: [{ name: "inside.md", is_dir: false }] });
  });

  test("a folder page by page is the folder", async () => {
    const all = await json(await service.request("/api/files"));
    const paged: unknown[] = [];
    let cursor: string | null = "";
    while (cursor !== null) {
      const page = await json(
        await service.request(`/api/files?limit=2&cursor=${encodeURIComponent(cursor)}`),
      );
      paged.push(...page.files);
      cursor = page.next_cursor;
    }
    expect(paged).toEqual(all.files);
    for (const query of ["limit=0", "limit=10001", "limit=x", "cursor=f/gone"])
      expect((await service.request(`/api/files?${query}`)).status).toBe(400);
  });

  test("a file, whole, by HEAD and in part", async () => {
    const whole = await fetchFile("a.txt");
    expect(whole.status).toBe(200);
    expect(whole.headers.get("content-type")).toMatch(/^text\/plain/);
    expect(whole.headers.get("content-length")).toBe("10");
    expect(whole.headers.get("x-content-type-options")).toBe("nosniff");
    expect(whole.headers.get("content-security-policy")).toContain("sandbox");
    expect(await whole.text()).toBe("0123456789");
    const etag = whole.headers.get("etag") as string;

    const head = await service.request("/api/files/content?path=a.txt", { method: "HEAD" });
    expect([head.status, head.headers.get("content-length"), await head.text()]).toEqual([200, "10", ""]);
    expect((await fetchFile("a.txt", { "if-none-match": etag })).status).toBe(304);
    expect((await fetchFile("a.txt", { "if-none-match": `"x", W/${etag}` })).status).toBe(304);

    const ranges: [string, string, string][] = [
      ["bytes=2-4", "234", "bytes 2-4/10"],
      ["bytes=7-", "789", "bytes 7-9/10"],
      ["bytes=-2", "89", "bytes 8-9/10"],
      ["bytes=-99", "0123456789", "bytes 0-9/10"],
      ["bytes=9-99", "9", "bytes 9-9/10"],
    ];
    for (const [range, text, shown] of ranges) {
      const part = await fetchFile("a.txt", { range });
      expect([part.status, await part.text(), part.headers.get("content-range")]).toEqual([206, text, shown]);
    }
    for (const range of ["bytes=10-", "bytes=-0", "bytes=99-100"]) {
      const refused = await fetchFile("a.txt", { range });
      expect([refused.status, (await json(refused)).detail]).toEqual([416, expect.stringContaining("10")]);
      expect(refused.headers.get("content-range")).toBe("bytes */10");
    }
    for (const range of ["bytes=4-2", "bytes=a-b", "lines=1-2", "bytes=0-1,3-4", "bytes=-"])
      expect((await fetchFile("a.txt", { range })).status).toBe(200);
    expect((await fetchFile("a.txt", { range: "bytes=0-1", "if-range": etag })).status).toBe(206);
    expect((await fetchFile("a.txt", { range: "bytes=0-1", "if-range": '"old"' })).status).toBe(200);
    expect(await (await fetchFile("empty")).text()).toBe("");
  });

  test("a large file keeps its bytes, however it is cut", async () => {
    const digest = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
    const whole = new Uint8Array(await (await fetchFile("big.bin")).arrayBuffer());
    expect(digest(whole)).toBe(digest(BIG));
    await fc.assert(
      fc.asyncProperty(fc.nat(BIG.length - 1), fc.nat(BIG.length - 1), async (one, other) => {
        const [start, last] = one < other ? [one, other] : [other, one];
        const part = await fetchFile("big.bin", { range: `bytes=${start}-${last}` });
        expect(part.headers.get("content-length")).toBe(String(last + 1 - start));
        expect(digest(new Uint8Array(await part.arrayBuffer()))).toBe(digest(BIG.slice(start, last + 1)));
      }),
      { numRuns: 10 },
    );
  });

  test("what a browser could run is saved, and names cannot break the header", async () => {
    for (const name of ["page.html", "pic.svg"])
      expect((await fetchFile(name)).headers.get("content-disposition")).toMatch(/^attachment/);
    expect((await fetchFile("a.txt")).headers.get("content-disposition")).toMatch(/^inline/);
    expect((await fetchFile("a.txt", {}, "&download=1")).headers.get("content-disposition")).toMatch(
      /^attachment/,
    );
    const odd = await fetchFile(`räksmörgås "x"'.txt`);
    expect(odd.headers.get("content-disposition")).toBe(
      `inline; filename="r_ksm_rg_s _x_'.txt"; filename*=UTF-8''r%C3%A4ksm%C3%B6rg%C3%A5s%20%22x%22%27.txt`,
    );
  });

  test("a file that is replaced while it is read ends the stream", async () => {
    const response = await fetchFile("big.bin");
    const reader = response.body?.getReader() as ReadableStreamDefaultReader<Uint8Array>;
    await reader.read();
    await service.services.platform.files("local").write("big.bin", BIG.slice(1));
    const rest = async () => {
      while (!(await reader.read()).done);
    };
    await expect(rest()).rejects.toThrow("changed while it was read");
    await service.services.platform.files("local").write("big.bin", BIG);
  });

  test("E2: nothing outside the workspace, by any spelling", async () => {
    const spellings = ["../", "..", "/etc/passwd", "zoo/../../etc", "a\0.txt", "../a.txt", "zoo/../.."];
    if (kind === "host") spellings.push("way-out", "way-out/secret.txt", "secret-link", outside);
    for (const path of spellings)
      for (const route of ["/api/files", "/api/files/content"]) {
        const response = await service.request(`${route}?path=${encodeURIComponent(path)}`);
        expect([path, route, response.status]).toEqual([path, route, 400]);
        expect(await response.text()).not.toContain("SECRET");
      }
  });

  test("E2: generated paths", async () => {
    const piece = fc.constantFrom(
      "..",
      ".",
      "",
      "zoo",
      "way-out",
      "secret-link",
      "a.txt",
      "\\..",
      "%2e%2e",
      "~",
      "…",
      "C:",
    );
    const path = fc.array(piece, { maxLength: 6 }).map((pieces) => pieces.join("/"));
    await fc.assert(
      fc.asyncProperty(path, fc.boolean(), async (generated, absolute) => {
        const spelled = absolute ? `/${generated}` : generated;
        for (const route of ["/api/files", "/api/files/content"]) {
          const response = await service.request(`${route}?path=${encodeURIComponent(spelled)}`);
          expect([200, 400, 404]).toContain(response.status);
          const text = await response.text();
          expect(text).not.toContain("SECRET");
          expect(text).not.toContain("secret.txt");
        }
      }),
      { numRuns: 60 },
    );
  });

  test("each mistake has its sentence", async () => {
    const cases: [string, number, string][] = [
      ["/api/files?path=gone", 404, "gone"],
      ["/api/files?path=a.txt", 400, "not a directory"],
      ["/api/files/content", 400, "path"],
      ["/api/files/content?path=zoo", 400, "folder"],
      ["/api/files/content?path=gone", 404, "gone"],
    ];
    for (const [path, status, word] of cases) {
      const response = await service.request(path);
      expect([path, response.status]).toEqual([path, status]);
      expect((await json(response)).detail).toContain(word);
    }
  });

  test.runIf(kind === "host")(
    "E2: a folder that is swapped for a link while it is listed and read",
    async () => {
      const swapped = join(root, "swap");
      await mkdir(swapped);
      await writeFile(join(swapped, "secret.txt"), "mine");
      let stop = false;
      const swapping = (async () => {
        while (!stop) {
          await rm(swapped, { recursive: true, force: true });
          await symlink(outside, swapped);
          await rm(swapped);
          await mkdir(swapped);
          await writeFile(join(swapped, "secret.txt"), "mine");
          await utimes(swapped, 1, 1);
        }
      })();
      for (let i = 0; i < 100; i++) {
        const response = await fetchFile("swap/secret.txt");
        expect([200, 400, 404, 409]).toContain(response.status);
        expect(await response.text().catch(() => "")).not.toContain("SECRET");
      }
      stop = true;
      await swapping;
    },
  );
});
