/** `/api/notes/upload` and `/api/notes/images`: pictures for notes, taken by their bytes and served so that they can only be seen (E3). */
import type { Context } from "hono";
import * as z from "zod";
import { IMAGE_TYPES, type ImageRecord, type ImageType } from "../core/notes.ts";
import { AppError } from "../errors.ts";
import { IMAGE_LIMIT, tooLarge } from "../knowledge/images.ts";
import type { Services } from "../services.ts";
import { readBytes } from "./body.ts";
import { respond } from "./byte-range.ts";
import type { AppEnv } from "./env.ts";
import { loggedBody } from "./logged-body.ts";
import { boundaryOf, type FormPart, parseForm } from "./multipart.ts";

/** Bytes of a form beside its file: boundaries, headers, other fields. */
const FORM_BYTES = 64 * 1024;
/** An image never changes under its name. */
const CACHE = "private, max-age=31536000, immutable";
/** Whatever else the bytes may be read as, they do nothing in the name of this service. */
const POLICY = "sandbox; default-src 'none'";
const EXTENSIONS: Record<ImageType, string> = {
  "image/png": "png",
  "image/jpeg": "jpg",
  "image/webp": "webp",
  "image/gif": "gif",
};

export const imageView = z
  .object({
    id: z.string(),
    url: z.string().describe("Absolute, to be put into the Markdown of a note."),
    content_type: z.enum(IMAGE_TYPES),
    size: z.int().describe("Bytes."),
    width: z.int().describe("Pixels."),
    height: z.int(),
    created_at: z.string(),
  })
  .meta({ id: "Image" });

/** The file of the form in a request, read once. */
async function uploadOf(c: Context<AppEnv>, timeoutMs: number): Promise<Uint8Array<ArrayBuffer>> {
  let upload = c.get("upload");
  if (!upload) {
    upload = await readUpload(c.req.raw, timeoutMs);
    c.set("upload", upload);
  }
  return upload;
}

async function readUpload(request: Request, timeoutMs: number): Promise<Uint8Array<ArrayBuffer>> {
  const boundary = boundaryOf(request.headers.get("content-type"));
  let body: Uint8Array;
  try {
    body = await readBytes(request, { limit: IMAGE_LIMIT + FORM_BYTES, timeoutMs });
  } catch (error) {
    throw error instanceof AppError && error.code === "payload_too_large" ? tooLarge() : error;
  }
  return fileOf(parseForm(body, boundary)).bytes as Uint8Array<ArrayBuffer>;
}

function fileOf(parts: FormPart[]): FormPart {
  const files = parts.filter(({ filename }) => filename !== undefined);
  const [file] = files;
  if (file && files.length === 1 && file.name === "file") {
    if (file.bytes.length > 0) return file;
    throw wrongForm("The file is empty: choose an image.");
  }
  if (files.length > 1) throw wrongForm(`The form has ${files.length} files: send one image at a time.`);
  if (file)
    throw wrongForm(`The image has to be in the field 'file', but it is in '${file.name.slice(0, 40)}'.`);
  const text = parts.some(({ name }) => name === "file");
  throw wrongForm(
    text
      ? "The field 'file' has no file in it but text: send it with a filename, for example curl -F file=@picture.png."
      : "The form has no file: send the image in the field 'file'.",
  );
}

function wrongForm(message: string): AppError {
  return new AppError("invalid_request", message, {
    param: "file",
    details: { errors: [{ path: "file", message }] },
  });
}

/** The image is what an upload asks for: clients write another boundary each time. */
export function uploadAsked({ config }: Services): (c: Context<AppEnv>) => Promise<unknown> {
  return async (c) => {
    const digest = await crypto.subtle.digest("SHA-256", await uploadOf(c, config.body.timeoutMs));
    return Array.from(new Uint8Array(digest));
  };
}

export async function uploadImage(c: Context<AppEnv>, { images, imageLinks, config }: Services) {
  const bytes = await uploadOf(c, config.body.timeoutMs);
  const image = await images.add(c.get("owner"), bytes);
  const path = await imageLinks.pathOf(image.id, config.access.mode !== "open");
  const url = new URL(path, baseOf(c)).href;
  return c.json(encodeImage(image, url), 201, { location: url });
}

/** Where the client has reached us. */
function baseOf(c: Context<AppEnv>): string {
  const { protocol, host } = new URL(c.req.url);
  // Behind a proxy that ends TLS the request itself came without.
  return c.req.header("x-forwarded-proto") === "https" ? `https://${host}` : `${protocol}//${host}`;
}

function encodeImage(image: ImageRecord, url: string): z.output<typeof imageView> {
  const { id, type, size, width, height, createdAt } = image;
  return { id, url, content_type: type, size, width, height, created_at: createdAt.toISOString() };
}

/** For its owner, or for whoever has a link that the guard has found to be ours. */
export async function serveImage(c: Context<AppEnv>, { images, platform }: Services): Promise<Response> {
  const id = c.req.param("id") ?? "";
  const image =
    c.get("imageLink") === id ? await images.findLinked(id) : await images.find(c.get("owner"), id);
  if (!image) throw new AppError("not_found", "There is no image with this id.");
  return respond(c.req.raw, {
    size: image.size,
    etag: `"${image.sha256.slice(0, 32)}"`,
    headers: {
      "content-type": image.type,
      "content-disposition": `inline; filename="${image.id}.${EXTENSIONS[image.type]}"`,
      "cache-control": CACHE,
      "content-security-policy": POLICY,
      "x-content-type-options": "nosniff",
    },
    body: (range) => loggedBody(images.read(image, range), platform.log),
  });
}
