/** What the virtual workspace should do, as simply as it can be said: the oracle of the property test. */
import type { FileChanges } from "../../src/core/store.ts";

interface Entry {
  /** null: a directory. */
  bytes: Uint8Array | null;
  mode: number;
}

/** SQLite's order: by the bytes of the text. */
const byBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b));
const parentOf = (path: string) => path.split("/").slice(0, -1).join("/");

export class ModelFiles {
  entries = new Map<string, Entry>();

  /** false, and nothing changed, when a name would have to be file and directory at once. */
  apply(changes: FileChanges): boolean {
    const next = new Map(this.entries);
    const makeDirectory = (path: string): boolean => {
      if (path === "") return true;
      if (!makeDirectory(parentOf(path))) return false;
      if (!next.has(path)) next.set(path, { bytes: null, mode: 0o755 });
      return next.get(path)?.bytes === null;
    };
    for (const gone of changes.remove)
      for (const path of [...next.keys()])
        if (gone === "" || path === gone || path.startsWith(`${gone}/`)) next.delete(path);
    for (const path of changes.makeDirectories) if (!makeDirectory(path)) return false;
    for (const { path, bytes, mode } of changes.write) {
      if (!makeDirectory(parentOf(path))) return false;
      const before = next.get(path);
      if (before?.bytes === null) return false;
      next.set(path, { bytes, mode: mode ?? before?.mode ?? 0o644 });
    }
    this.entries = next;
    return true;
  }

  rows() {
    return [...this.entries]
      .toSorted(([a], [b]) => byBytes(a, b))
      .map(([path, { bytes, mode }]) => ({
        path,
        directory: bytes === null,
        size: bytes?.length ?? 0,
        mode,
      }));
  }

  directories(): string[] {
    return this.rows()
      .filter((row) => row.directory)
      .map((row) => row.path);
  }

  /** Folders first. */
  list(directory: string): string[] {
    const children = this.rows().filter((row) => parentOf(row.path) === directory);
    return children.toSorted((a, b) => Number(b.directory) - Number(a.directory)).map((row) => row.path);
  }
}
