/** `/api/files`: what is in the workspace of the agent, to look at and to fetch. */
import { type Context, Hono } from "hono";
import { getMimeType } from "hono/utils/mime";
import * as z from "zod";
import type { FileEntry, Workspace } from "../core/platform.ts";
import { AppError } from "../errors.ts";
import type { Services } from "../services.ts";
import { type ByteRange, respond } from "./byte-range.ts";
import type { AppEnv } from "./env.ts";
import { wholeNumber } from "./validate.ts";

/** Entries of one page. */
const PAGE = 1_000;
const LARGEST_PAGE = 10_000;
/** Bytes read at once. */
const CHUNK_BYTES = 1024 * 1024;
/** Types that a browser may show; everything else is saved. */
const SHOWN = /^(text\/(?!html)|image\/(?!svg)|audio\/|video\/|application\/(json|pdf)$)/;
/** Whatever a file says, it does nothing in the name of this service. */
const POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; media-src 'self'";

export const fileView = z
  .object({
    name: z.string(),
    is_dir: z.boolean(),
    size: z.int().describe("Bytes; 0 for a folder."),
    modified_at: z.string(),
  })
  .meta({ id: "File" });

export const fileList = z
  .object({
    directory: z.string().describe("Relative to the workspace; `.` is the workspace itself."),
    files: z.array(fileView).describe("Folders first, then by name."),
    next_cursor: z.string().nullable(),
  })
  .meta({ id: "FileList" });

export function fileRoutes({ platform }: Services): Hono<AppEnv> {
  return new Hono<AppEnv>()
    .get("/", async (c) => {
      const limit = wholeNumber(c.req.query("limit"), "limit", 1, LARGEST_PAGE) ?? PAGE;
      const files = platform.files(c.get("owner"));
      const directory = await files.stat(pathOf(c));
      const entries = await files.list(directory.path);
      const start = afterCursor(entries, c.req.query("cursor"));
      const page = entries.slice(start, start + limit);
      return c.json({
        directory: directory.path || ".",
        files: page.map(encodeFile),
        next_cursor: start + limit < entries.length ? cursorOf(page.at(-1) as FileEntry) : null,
      });
    })
    .get("/content", async (c) => {
      const files = platform.files(c.get("owner"));
      const path = pathOf(c);
      if (path === "")
        throw new AppError("invalid_request", "path: say which file, for example ?path=notes/today.md.", {
          param: "path",
        });
      const entry = await files.stat(path);
      if (entry.directory)
        throw new AppError(
          "invalid_request",
          `path: '${entry.path || "."}' is a folder. GET /api/files?path= lists what is in it.`,
          { param: "path" },
        );
      return respond(c.req.raw, {
        size: entry.size,
        etag: versionOf(entry),
        headers: headersOf(entry, c.req.query("download") !== undefined),
        body: (range) => contentOf(files, entry, range),
      });
    });
}

function pathOf(c: Context<AppEnv>): string {
  return c.req.query("path") ?? "";
}

function encodeFile({ name, directory, size, modifiedAt }: FileEntry): z.output<typeof fileView> {
  return { name, is_dir: directory, size, modified_at: modifiedAt.toISOString() };
}

/** Names stay where they are while others come and go: a cursor names the last entry that was shown. */
function cursorOf({ name, directory }: FileEntry): string {
  return (directory ? "d/" : "f/") + encodeURIComponent(name);
}

function afterCursor(entries: readonly FileEntry[], cursor: string | undefined): number {
  if (cursor === undefined || cursor === "") return 0;
  const at = entries.findIndex((entry) => cursorOf(entry) === cursor);
  if (at !== -1) return at + 1;
  throw new AppError(
    "invalid_request",
    "cursor: the entry that it names is not there any more. Leave it out and list again from the beginning.",
    { param: "cursor" },
  );
}

/** Changes when the file does. */
function versionOf({ size, modifiedAt }: FileEntry): string {
  return `"${size.toString(36)}-${modifiedAt.getTime().toString(36)}"`;
}

function headersOf({ name, modifiedAt }: FileEntry, download: boolean): Record<string, string> {
  const type = getMimeType(name) ?? "application/octet-stream";
  const disposition = !download && SHOWN.test(type) ? "inline" : "attachment";
  return {
    "content-type": type,
    // RFC 6266: the plain name is for clients that do not know the other.
    "content-disposition": `${disposition}; filename="${name.replace(/[^\x20-\x7e]|["\\%]/g, "_")}"; filename*=UTF-8''${extendedValue(name)}`,
    "last-modified": modifiedAt.toUTCString(),
    "cache-control": "private, no-cache",
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
  };
}

/** RFC 8187, which permits less than encodeURIComponent leaves. */
function extendedValue(name: string): string {
  return encodeURIComponent(name.toWellFormed()).replace(
    /['()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** Piece by piece, as the reader asks. A file that is replaced meanwhile ends the stream: half of each would be neither. */
function contentOf(files: Workspace, entry: FileEntry, range: ByteRange): ReadableStream<Uint8Array> {
  let { start } = range;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const limit = Math.min(CHUNK_BYTES, range.end - start);
        const bytes = await files.read(entry.path, { offset: start, limit });
        if (bytes.length < limit || versionOf(await files.stat(entry.path)) !== versionOf(entry))
          throw new AppError(
            "conflict",
            `The file '${entry.path}' was changed while it was read. Try again.`,
          );
        controller.enqueue(bytes);
        start += bytes.length;
        if (start === range.end) controller.close();
      },
    },
    { highWaterMark: 0 },
  );
}
