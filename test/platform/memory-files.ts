/** FileRows in a map: what the real store is compared with, and what terminals run over in tests of their own. */
import type { FileChanges, FileRows, StoredFile } from "../../src/core/store.ts";
import { comparePaths, parentOf } from "../../src/platform/paths.ts";

interface Row {
  bytes: Uint8Array | null;
  mode: number;
  modifiedAt: Date;
}

export function createMemoryFiles(): FileRows {
  const owners = new Map<string, Map<string, Row>>();
  const of = (owner: string) => {
    const rows = owners.get(owner) ?? new Map<string, Row>();
    owners.set(owner, rows);
    return rows;
  };
  const toStored = ([path, row]: [string, Row]): StoredFile => ({
    path,
    directory: row.bytes === null,
    size: row.bytes?.length ?? 0,
    mode: row.mode,
    modifiedAt: row.modifiedAt,
  });
  const makeDirectory = (rows: Map<string, Row>, path: string): void => {
    if (path === "") return;
    makeDirectory(rows, parentOf(path));
    const row = rows.get(path);
    if (row !== undefined && row.bytes !== null) throw new Error(`${path} is a file`);
    if (row === undefined) rows.set(path, { bytes: null, mode: 0o755, modifiedAt: new Date() });
  };
  const apply = (rows: Map<string, Row>, changes: FileChanges): void => {
    for (const path of changes.remove) {
      for (const key of [...rows.keys()]) if (key === path || key.startsWith(`${path}/`)) rows.delete(key);
    }
    for (const path of changes.makeDirectories) makeDirectory(rows, path);
    for (const { path, bytes, mode } of changes.write) {
      makeDirectory(rows, parentOf(path));
      rows.set(path, { bytes: bytes.slice(), mode: mode ?? 0o644, modifiedAt: new Date() });
    }
  };
  return {
    async stat(owner, path) {
      const row = of(owner).get(path);
      return row === undefined ? null : toStored([path, row]);
    },
    async read(owner, path) {
      return of(owner).get(path)?.bytes?.slice() ?? null;
    },
    async list(owner, path) {
      return [...of(owner)].filter(([key]) => parentOf(key) === path && key !== "").map(toStored);
    },
    async below(owner, path, after, limit) {
      return [...of(owner)]
        .filter(([key]) => path === "" || key.startsWith(`${path}/`))
        .filter(([key]) => after === null || comparePaths(key, after) > 0)
        .sort(([a], [b]) => comparePaths(a, b))
        .slice(0, limit)
        .map(toStored);
    },
    async apply(owner, changes) {
      const copy = new Map(of(owner));
      apply(copy, changes);
      owners.set(owner, copy);
    },
  };
}
