/** Names and directories of the virtual shell's files, and the errors of paths that lead nowhere, worded as its commands expect them. */
import { joinPath, normalizePath, parentOf } from "./paths.ts";
import type { VirtualDirectory, VirtualNode } from "./virtual-changes.ts";

const DIRECTORY_MODE = 0o755;

export class VirtualTree {
  readonly root: VirtualDirectory = newDirectory();

  /** Everything, a directory before what is in it. */
  *entries(directory = this.root, path = ""): Generator<[string, VirtualNode]> {
    for (const [name, node] of directory.children) {
      const child = joinPath(path, name);
      yield [child, node];
      if (node.kind === "directory") yield* this.entries(node, child);
    }
  }

  find(path: string): VirtualNode | null {
    let node: VirtualNode = this.root;
    if (path === "") return node;
    for (const name of path.split("/")) {
      if (node.kind !== "directory") return null;
      const next = node.children.get(name);
      if (next === undefined) return null;
      node = next;
    }
    return node;
  }

  get(path: string, action: string): VirtualNode {
    const node = this.find(normal(path));
    if (node === null) throw new Error(`ENOENT: no such file or directory, ${action} '${path}'`);
    return node;
  }

  parent(path: string, action: string): VirtualDirectory {
    const parent = this.find(parentOf(path));
    if (parent === null) throw new Error(`ENOENT: no such file or directory, ${action} '${path}'`);
    if (parent.kind === "file") throw new Error(`ENOTDIR: not a directory, ${action} '${path}'`);
    return parent;
  }

  /** Made where they are missing: an error here would end the whole script, not just the redirection. */
  makeParents(path: string): VirtualDirectory {
    let at = this.root;
    for (const name of parentOf(path).split("/")) {
      if (name === "") continue;
      const next = at.children.get(name) ?? newDirectory();
      if (next.kind === "file") throw new Error(`ENOTDIR: not a directory, open '${path}'`);
      at.children.set(name, next);
      at = next;
    }
    return at;
  }
}

export function newDirectory(): VirtualDirectory {
  return { kind: "directory", children: new Map(), mode: DIRECTORY_MODE, mtime: new Date() };
}

/** Paths come absolute and start at the mount. */
export function normal(path: string): string {
  try {
    return normalizePath(path.replace(/^\/+/, ""), []);
  } catch (error) {
    throw new Error(`EINVAL: ${(error as Error).message}`);
  }
}

export function refuseInside(verb: string, from: string, to: string): void {
  if (`${normal(to)}/`.startsWith(`${normal(from)}/`)) {
    throw new Error(`EINVAL: cannot ${verb} '${from}' into itself, '${to}'`);
  }
}
