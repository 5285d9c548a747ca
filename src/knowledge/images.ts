/** Images of notes: taken by their bytes (E3), kept with a blob store, and swept when no note shows them. */
import { readImage } from "../core/image-format.ts";
import type { BlobStore, ImageRecord, ImageRows, Images } from "../core/notes.ts";
import type { Log } from "../core/platform.ts";
import { AppError } from "../errors.ts";

/** Bytes. */
export const IMAGE_LIMIT = 10 * 1024 * 1024;
/** Width times height. */
const PIXEL_LIMIT = 40_000_000;
/** How long an image is kept that no note shows. */
const UNUSED_MS = 24 * 60 * 60 * 1000;
/** Images removed in one sweep. */
const SWEPT_AT_ONCE = 50;

export interface ImageParts {
  rows: ImageRows;
  /** All there are, the one for new images first: what another has stays readable. */
  blobs: readonly [BlobStore, ...BlobStore[]];
  now(): Date;
  log: Log;
}

export function createImages({ rows, blobs, now, log }: ImageParts): Images {
  const [newest] = blobs;
  const storeOf = ({ store }: Pick<ImageRecord, "store">): BlobStore => {
    const found = blobs.find(({ name }) => name === store);
    if (found) return found;
    throw new AppError(
      "unavailable",
      "The image is in a bucket that is not configured any more: set S3_ENDPOINT and the settings beside it again.",
    );
  };

  return {
    async add(owner, bytes) {
      const { type, width, height } = accept(bytes);
      const sha256 = toHex(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)));
      const image = { type, width, height, size: bytes.length, sha256, store: newest.name };
      // The row comes first, so that nothing is stored that no sweep would find.
      const id = await rows.begin(owner, image);
      await newest.put(owner, id, bytes, type);
      await rows.publish(owner, id);
      return { ...image, id, owner, createdAt: now() };
    },

    find: (owner, id) => rows.get(owner, id),
    findLinked: (id) => rows.linked(id),
    seen: async (owner, ids) => seenBy(await rows.among(owner, ids)),
    read: (image, range = { start: 0, end: image.size }) => storeOf(image).read(image.owner, image.id, range),

    async sweep() {
      const before = new Date(now().getTime() - UNUSED_MS);
      for (const image of await rows.condemn(before, SWEPT_AT_ONCE)) {
        try {
          await storeOf(image).remove(image.owner, image.id);
          await rows.remove([image.id]);
        } catch (error) {
          // It stays condemned, and the next sweep tries again.
          log("warning", "image not removed", { image: image.id, error: String(error) });
        }
      }
    },
  };
}

function accept(bytes: Uint8Array) {
  if (bytes.length > IMAGE_LIMIT) throw tooLarge();
  const read = readImage(bytes);
  if (!("problem" in read)) {
    if (read.width * read.height <= PIXEL_LIMIT) return read;
    throw new AppError(
      "payload_too_large",
      `The image has ${read.width} × ${read.height} pixels by its header; at most 40 megapixels are taken. Send a smaller copy.`,
      { param: "file" },
    );
  }
  if (read.problem === "broken")
    throw new AppError(
      "invalid_request",
      `The image is not whole, or not only an image: ${read.why}. Save it anew with an image program, and send that.`,
      { param: "file" },
    );
  throw new AppError(
    "unsupported_media_type",
    "The file is not a PNG, JPEG, WebP or GIF image by its bytes, whatever its name and type say. SVG and other formats are not taken: convert it first.",
    { param: "file" },
  );
}

export function tooLarge(): AppError {
  return new AppError("payload_too_large", "The image is larger than 10 MiB. Send a smaller copy.", {
    param: "file",
  });
}

/** Bytes of a note's images, together and of one, and how many, that go to a model: base64 makes a third more of them. */
const SEEN_TOGETHER = 8 * 1024 * 1024;
const SEEN_EACH = 3.5 * 1024 * 1024;
const SEEN_COUNT = 5;

/** The first images of a note, as far as a model may be sent them. */
function seenBy(shown: readonly ImageRecord[]) {
  const images: ImageRecord[] = [];
  let bytes = 0;
  for (const image of shown) {
    if (images.length === SEEN_COUNT) break;
    if (image.size > SEEN_EACH || bytes + image.size > SEEN_TOGETHER) continue;
    images.push(image);
    bytes += image.size;
  }
  return { images, left: shown.length - images.length };
}

function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
