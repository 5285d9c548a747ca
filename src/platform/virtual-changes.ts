/** The nodes of a virtual file tree, and what a store has to change to become as the tree is. */
import type { FileChanges } from "../core/store.ts";
import { parentOf } from "./paths.ts";

export interface VirtualDirectory {
  kind: "directory";
  children: Map<string, VirtualNode>;
  mode: number;
  mtime: Date;
}

export interface VirtualFile {
  kind: "file";
  /** null until it is read; `source` then says from which row. */
  bytes: Uint8Array | null;
  /** The row that holds these bytes; null once they are new. */
  source: string | null;
  size: number;
  mode: number;
  mtime: Date;
}

export type VirtualNode = VirtualDirectory | VirtualFile;

export interface StoredNode {
  directory: boolean;
  mode: number;
}

/** `content` gives the bytes of a file that has to be written, or null where it is gone. */
export async function changesBetween(
  stored: ReadonlyMap<string, StoredNode>,
  now: ReadonlyMap<string, VirtualNode>,
  content: (path: string, file: VirtualFile) => Promise<Uint8Array | null>,
): Promise<FileChanges> {
  const changes: FileChanges = { remove: [], write: [], makeDirectories: [] };
  for (const [path, before] of stored) {
    const node = now.get(path);
    if (node !== undefined && (node.kind === "directory") === before.directory) continue;
    // A directory takes what is in it along.
    const above = parentOf(path);
    if (stored.has(above) && now.get(above)?.kind !== "directory") continue;
    changes.remove.push(path);
  }
  for (const [path, node] of now) {
    const before = stored.get(path);
    if (node.kind === "directory") {
      if (before?.directory !== true) changes.makeDirectories.push(path);
    } else if (before === undefined || node.source !== path || before.mode !== node.mode) {
      const bytes = await content(path, node);
      if (bytes !== null) changes.write.push({ path, bytes, mode: node.mode });
    }
  }
  return changes;
}
