/**
 * The file system that the virtual shell sees below `/workspace`: the tree of an owner's rows, with contents fetched
 * when they are first read, and the difference to write back at the end. Errors are worded as the shell's commands
 * expect them (`ENOENT: …`).
 */
import type { FsStat, IFileSystem } from "just-bash/browser";
import type { FileChanges, FileRows, StoredFile } from "../core/store.ts";
import { AppError } from "../errors.ts";
import { comparePaths, nameOf, parentOf } from "./paths.ts";
import { appended, type Encoding, isBinary, latin1, toBytes } from "./virtual-bytes.ts";
import { changesBetween, type StoredNode, type VirtualFile } from "./virtual-changes.ts";
import { newDirectory, normal, refuseInside, VirtualTree } from "./virtual-tree.ts";
import { MAX_VIRTUAL_FILE_BYTES } from "./virtual-workspace.ts";

/** Files and directories that one shell can have before it. */
const MAX_ENTRIES = 50_000;
/** Bytes of file content that one command may read and write in all. */
const MAX_COMMAND_BYTES = 64 * 1024 * 1024;
const PAGE = 2_000;
const FILE_MODE = 0o644;

export class VirtualFiles implements IFileSystem {
  readonly #rows: FileRows;
  readonly #owner: string;
  readonly #tree = new VirtualTree();
  readonly #stored = new Map<string, StoredNode>();
  #held = 0;

  private constructor(rows: FileRows, owner: string) {
    this.#rows = rows;
    this.#owner = owner;
  }

  /** Reads names, sizes and modes; no contents. */
  static async load(rows: FileRows, owner: string): Promise<VirtualFiles> {
    const files = new VirtualFiles(rows, owner);
    let after: string | null = null;
    while (true) {
      const page: StoredFile[] = await rows.below(owner, "", after, PAGE);
      for (const row of page) files.#addRow(row);
      if (page.length < PAGE) return files;
      if (files.#stored.size > MAX_ENTRIES) {
        throw new AppError(
          "payload_too_large",
          `The workspace has more than ${MAX_ENTRIES} files, too many for its shell. Remove some of them.`,
        );
      }
      after = page[page.length - 1]!.path;
    }
  }

  #addRow(row: StoredFile): void {
    this.#stored.set(row.path, { directory: row.directory, mode: row.mode });
    // Path order puts a directory before what is in it.
    const parent = this.#tree.find(parentOf(row.path));
    if (parent?.kind !== "directory") return;
    const { mode, modifiedAt: mtime, size } = row;
    parent.children.set(
      nameOf(row.path),
      row.directory
        ? { kind: "directory", children: new Map(), mode, mtime }
        : { kind: "file", bytes: null, source: row.path, size, mode, mtime },
    );
  }

  /** What the store has to change to be as this tree is now. */
  changes(): Promise<FileChanges> {
    const now = new Map(this.#tree.entries());
    return changesBetween(this.#stored, now, (path, file) => this.#savedContent(path, file));
  }

  /** null for a file that was moved here and has been removed beside the command. */
  async #savedContent(path: string, file: VirtualFile): Promise<Uint8Array | null> {
    if (file.bytes === null && this.#held + file.size > MAX_COMMAND_BYTES) {
      throw new AppError(
        "payload_too_large",
        `The command moved more than ${MAX_COMMAND_BYTES} bytes of files, so nothing of it was kept. Move fewer at once.`,
      );
    }
    return await this.#content(path, file).catch((error) => {
      if (error instanceof AppError) throw error;
      return null;
    });
  }

  /** Contents are bounded as a whole, whether they were read or written. */
  #hold(path: string, size: number): void {
    if (size > MAX_VIRTUAL_FILE_BYTES) throw new Error(`EFBIG: file too large, write '${path}'`);
    this.#held += size;
    if (this.#held > MAX_COMMAND_BYTES) {
      throw new Error(`ENOSPC: the command touches more than ${MAX_COMMAND_BYTES} bytes, '${path}'`);
    }
  }

  async #content(path: string, file: VirtualFile): Promise<Uint8Array> {
    if (file.bytes !== null) return file.bytes;
    this.#hold(path, file.size);
    const bytes = file.source === null ? null : await this.#rows.read(this.#owner, file.source);
    if (bytes === null) throw new Error(`ENOENT: no such file or directory, open '${path}'`);
    // A write may have come first while the row was on its way.
    file.bytes ??= bytes;
    return file.bytes;
  }

  async readFileBuffer(path: string): Promise<Uint8Array> {
    const node = this.#tree.get(path, "open");
    if (node.kind === "directory") {
      throw new Error(`EISDIR: illegal operation on a directory, read '${path}'`);
    }
    return await this.#content(path, node);
  }

  async readFile(path: string, options?: Encoding): Promise<string> {
    const bytes = await this.readFileBuffer(path);
    return isBinary(options) ? latin1(bytes) : new TextDecoder().decode(bytes);
  }

  async writeFile(path: string, content: string | Uint8Array, options?: Encoding): Promise<void> {
    this.#put(path, toBytes(content, options));
  }

  #put(path: string, bytes: Uint8Array, mode?: number): void {
    const at = normal(path);
    const parent = this.#tree.makeParents(at);
    const before = at === "" ? this.#tree.root : parent.children.get(nameOf(at));
    if (before?.kind === "directory") {
      throw new Error(`EISDIR: illegal operation on a directory, write '${path}'`);
    }
    if (before?.bytes) this.#held -= before.bytes.length;
    this.#hold(path, bytes.length);
    parent.children.set(nameOf(at), {
      kind: "file",
      bytes,
      source: null,
      size: bytes.length,
      mode: mode ?? before?.mode ?? FILE_MODE,
      mtime: new Date(),
    });
  }

  async appendFile(path: string, content: string | Uint8Array, options?: Encoding): Promise<void> {
    const added = toBytes(content, options);
    const node = this.#tree.find(normal(path));
    if (node?.kind !== "file") return this.#put(path, added.slice());
    const before = await this.#content(path, node);
    this.#put(path, appended(before, added), node.mode);
  }

  async exists(path: string): Promise<boolean> {
    try {
      return this.#tree.find(normal(path)) !== null;
    } catch {
      return false;
    }
  }

  async stat(path: string): Promise<FsStat> {
    const node = this.#tree.get(path, "stat");
    const directory = node.kind === "directory";
    return {
      isFile: !directory,
      isDirectory: directory,
      isSymbolicLink: false,
      mode: node.mode,
      size: node.kind === "file" ? (node.bytes?.length ?? node.size) : 0,
      mtime: node.mtime,
    };
  }

  lstat(path: string): Promise<FsStat> {
    return this.stat(path);
  }

  async mkdir(path: string, options?: { recursive?: boolean }): Promise<void> {
    const at = normal(path);
    const existing = this.#tree.find(at);
    if (existing !== null) {
      if (options?.recursive && existing.kind === "directory") return;
      throw new Error(`EEXIST: file already exists, mkdir '${path}'`);
    }
    if (options?.recursive && this.#tree.find(parentOf(at)) === null) {
      await this.mkdir(`/${parentOf(at)}`, options);
    }
    this.#tree.parent(at, "mkdir").children.set(nameOf(at), newDirectory());
  }

  async readdirWithFileTypes(path: string) {
    const node = this.#tree.get(path, "scandir");
    if (node.kind === "file") throw new Error(`ENOTDIR: not a directory, scandir '${path}'`);
    const entries = [...node.children].map(([name, child]) => ({
      name,
      isFile: child.kind === "file",
      isDirectory: child.kind === "directory",
      isSymbolicLink: false,
    }));
    return entries.sort((a, b) => comparePaths(a.name, b.name));
  }

  async readdir(path: string): Promise<string[]> {
    return (await this.readdirWithFileTypes(path)).map((entry) => entry.name);
  }

  async rm(path: string, options?: { recursive?: boolean; force?: boolean }): Promise<void> {
    const at = normal(path);
    const node = this.#tree.find(at);
    if (node === null) {
      if (options?.force) return;
      throw new Error(`ENOENT: no such file or directory, rm '${path}'`);
    }
    if (node.kind === "directory" && node.children.size > 0 && !options?.recursive) {
      throw new Error(`ENOTEMPTY: directory not empty, rm '${path}'`);
    }
    if (at === "") node.kind === "directory" && node.children.clear();
    else this.#tree.parent(at, "rm").children.delete(nameOf(at));
  }

  async cp(from: string, to: string, options?: { recursive?: boolean }): Promise<void> {
    const node = this.#tree.get(from, "cp");
    if (node.kind === "file") {
      // A copy of its own: an append to one of the two must not show in the other.
      this.#put(to, (await this.#content(from, node)).slice(), node.mode);
      return;
    }
    if (!options?.recursive) throw new Error(`EISDIR: is a directory, cp '${from}'`);
    refuseInside("copy", from, to);
    await this.mkdir(to, { recursive: true });
    for (const name of [...node.children.keys()]) await this.cp(`${from}/${name}`, `${to}/${name}`, options);
  }

  async mv(from: string, to: string): Promise<void> {
    const node = this.#tree.get(from, "mv");
    const target = normal(to);
    const source = normal(from);
    if (source === target) return;
    if (node.kind === "directory") refuseInside("move", from, to);
    const parent = this.#tree.parent(target, "mv");
    const before = parent.children.get(nameOf(target));
    if (target === "" || (before?.kind === "directory" && before.children.size > 0)) {
      throw new Error(`ENOTEMPTY: directory not empty, mv '${to}'`);
    }
    if (before?.kind === "directory" && node.kind === "file") {
      throw new Error(`EISDIR: is a directory, mv '${to}'`);
    }
    this.#tree.parent(source, "mv").children.delete(nameOf(source));
    parent.children.set(nameOf(target), node);
  }

  async chmod(path: string, mode: number): Promise<void> {
    this.#tree.get(path, "chmod").mode = mode & 0o7777;
  }

  async utimes(path: string, _atime: Date, mtime: Date): Promise<void> {
    this.#tree.get(path, "utimes").mtime = mtime;
  }

  async symlink(_target: string, path: string): Promise<void> {
    throw new Error(`ENOTSUP: this workspace keeps no symbolic links, symlink '${path}'`);
  }

  async link(_existing: string, path: string): Promise<void> {
    throw new Error(`ENOTSUP: this workspace keeps no hard links, link '${path}'`);
  }

  async readlink(path: string): Promise<string> {
    this.#tree.get(path, "readlink");
    throw new Error(`EINVAL: invalid argument, readlink '${path}'`);
  }

  async realpath(path: string): Promise<string> {
    this.#tree.get(path, "realpath");
    return `/${normal(path)}`;
  }

  resolvePath(base: string, path: string): string {
    return `/${normal(path.startsWith("/") ? path : `${base}/${path}`)}`;
  }

  getAllPaths(): string[] {
    return ["/", ...[...this.#tree.entries()].map(([path]) => `/${path}`)];
  }
}
