/**
 * From workspace paths to host paths that are inside the root after every symlink. What only looks a name up is asked at once:
 * through the thread pool it would cost the event loop itself ten times as much, and a tool asks a dozen times.
 */
import type { Stats } from "node:fs";
import { closeSync, constants, existsSync, lstatSync, mkdirSync, openSync, realpathSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { AppError } from "../errors.ts";
import {
  isDirectory,
  nameOf,
  normalizePath,
  notDirectory,
  notFound,
  outside,
  parentOf,
  quote,
} from "./paths.ts";

export interface Located {
  /** Normalised workspace path. */
  path: string;
  /** Real path of the directory that holds it; inside the root. */
  parent: string;
  /** Real path of the file itself, symlinks followed, or where it would be made. */
  real: string;
  exists: boolean;
}

export interface LocalPaths {
  readonly root: string;
  normalize(path: string): string;
  /** Follows symlinks, the last one too. @throws `not_found` when a parent, or a symlink's target, is missing. */
  locate(path: string): Promise<Located>;
  /** Like {@link locate}, and the file has to be there. */
  existing(path: string): Promise<Located>;
  /** The place of an entry, without following it if it is a symlink itself. */
  entry(path: string): Promise<string>;
  /** Makes the missing parents of a path, each one checked before the next is made in it. */
  makeParents(path: string): Promise<void>;
  /**
   * Runs `work` on a directory that cannot be exchanged meanwhile, and hands it the path to use for what is in it.
   * Where the system has no such path (macOS), it is the directory's own, and {@link isReal} has to be asked again.
   * @throws AppError `conflict` when a real directory is not, or no longer, at this path.
   */
  pinned<T>(directory: string, path: string, work: (base: string) => Promise<T>): Promise<T>;
  /** Whether a directory is still where {@link locate} found it. */
  isReal(directory: string): Promise<boolean>;
}

/** Linux names what a descriptor has open: a path through it stays in that directory, whatever is renamed. */
const DESCRIPTORS = "/proc/self/fd";

/** Makes the root where it is missing. */
export function createLocalPaths(givenRoot: string): LocalPaths {
  const given = resolve(givenRoot);
  mkdirSync(given, { recursive: true });
  const root = realpathSync(given);
  const roots = root === given ? [root] : [root, given];
  const prefix = root === "/" ? "/" : `${root}/`;
  const inside = (real: string) => real === root || real.startsWith(prefix);

  const normalize = (path: string) => normalizePath(path, roots);
  const hasDescriptors = existsSync(DESCRIPTORS);

  async function pinned<T>(directory: string, path: string, work: (base: string) => Promise<T>): Promise<T> {
    const flags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
    const descriptor = orFail(
      () => openSync(directory, flags),
      // A link where a directory was is ELOOP or ENOTDIR, as the system likes.
      (error) =>
        codeOf(error) === "ELOOP" || codeOf(error) === "ENOTDIR" ? replaced(path) : toAppError(error, path),
    );
    try {
      const base = hasDescriptors ? join(DESCRIPTORS, String(descriptor)) : directory;
      if (realpathSync.native(base) !== directory) throw replaced(path);
      return await work(base);
    } catch (error) {
      throw toAppError(error, path);
    } finally {
      closeSync(descriptor);
    }
  }

  function realDirectory(path: string): string {
    if (path === "") return root;
    const real = orFail(
      () => realpathSync.native(join(root, path)),
      (error) => toAppError(error, path),
    );
    if (!inside(real)) throw outside(path);
    return real;
  }

  async function locate(path: string): Promise<Located> {
    const normal = normalize(path);
    if (normal === "") return { path: "", parent: root, real: root, exists: true };
    const parent = realDirectory(parentOf(normal));
    const place = join(parent, nameOf(normal));
    const real = realOf(place, (error) =>
      codeOf(error) === "ENOTDIR" ? notDirectory(parentOf(normal)) : toAppError(error, normal),
    );
    if (real !== null) {
      if (!inside(real)) throw outside(path);
      return { path: normal, parent: resolve(real, ".."), real, exists: true };
    }
    if (statsAt(place)?.isSymbolicLink()) {
      throw new AppError(
        "invalid_request",
        `${quote(normal)} is a symbolic link to something that is not there.`,
      );
    }
    return { path: normal, parent, real: place, exists: false };
  }

  return {
    root,
    normalize,
    locate,
    pinned,
    async existing(path) {
      const located = await locate(path);
      if (!located.exists) throw notFound(located.path);
      return located;
    },
    async entry(path) {
      const normal = normalize(path);
      if (normal === "") return root;
      return join(realDirectory(parentOf(normal)), nameOf(normal));
    },
    async makeParents(path) {
      const parent = parentOf(normalize(path));
      if (parent === "") return;
      let at = "";
      for (const name of parent.split("/")) {
        const above = realDirectory(at);
        at = at === "" ? name : `${at}/${name}`;
        await pinned(above, at, (base) => mkdir(join(base, name))).catch((error) => {
          if (codeOf(error) !== "EEXIST") throw error;
        });
      }
      const real = realDirectory(parent);
      if (!statsAt(real)?.isDirectory()) throw notDirectory(parent);
    },
    async isReal(directory) {
      return realOf(directory, () => null) === directory;
    },
  };
}

/** What is at a place itself, be it a link; null where nothing can be seen. */
export function statsAt(place: string): Stats | null {
  try {
    return lstatSync(place);
  } catch {
    return null;
  }
}

/** null where nothing is, or where `fault` makes null of what prevents it. */
function realOf(place: string, fault: (error: unknown) => unknown): string | null {
  try {
    return realpathSync.native(place);
  } catch (error) {
    const thrown = codeOf(error) === "ENOENT" ? null : fault(error);
    if (thrown === null) return null;
    throw thrown;
  }
}

function orFail<T>(work: () => T, fault: (error: unknown) => unknown): T {
  try {
    return work();
  } catch (error) {
    throw fault(error);
  }
}

export function replaced(path: string): AppError {
  return new AppError("conflict", `${quote(path)} was replaced while it was used. Try again.`);
}

/** For `.catch`: rethrows with {@link toAppError}. */
export function failAs(path: string): (error: unknown) => never {
  return (error) => {
    throw toAppError(error, path);
  };
}

export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

/** The system's errors as sentences about a workspace path. What is unknown goes on as it is. */
export function toAppError(error: unknown, path: string): unknown {
  if (error instanceof AppError) return error;
  switch (codeOf(error)) {
    case "ENOENT":
      return notFound(path);
    case "ENOTDIR":
      return notDirectory(path);
    case "EISDIR":
      return isDirectory(path);
    case "ELOOP":
      return new AppError("invalid_request", `${quote(path)} goes through too many symbolic links.`);
    case "ENAMETOOLONG":
      return new AppError("invalid_request", `The path ${quote(path)} is too long for this system.`);
    case "EACCES":
    case "EPERM":
    case "EROFS":
      return new AppError("forbidden", `The system does not permit access to ${quote(path)}.`, {
        cause: error,
      });
    case "ENOSPC":
    case "EDQUOT":
      return new AppError("storage_full", "The disk that holds the workspace is full. Free some space.", {
        cause: error,
      });
    default:
      return error;
  }
}
