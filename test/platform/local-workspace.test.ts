import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Workspace } from "../../src/core/platform.ts";
import { AppError } from "../../src/errors.ts";
import { createLocalWorkspace } from "../../src/platform/local-workspace.ts";
import { collect, decode, encode, failureOf, workspaceContract } from "./workspace.contract.ts";

function temporary(): string {
  return realpathSync(mkdtempSync(join(tmpdir(), "dragoman-workspace-")));
}

workspaceContract("a folder of the host", async () => {
  const folder = temporary();
  return {
    workspace: createLocalWorkspace(join(folder, "work")),
    dispose: async () => rmSync(folder, { recursive: true, force: true }),
  };
});

test("a file's time is cut to milliseconds, by whichever runtime looks", async () => {
  const folder = temporary();
  try {
    writeFileSync(join(folder, "a"), "");
    utimesSync(join(folder, "a"), 1_795_280_888.1217, 1_795_280_888.1217);
    const { modifiedAt } = await createLocalWorkspace(folder).stat("a");
    expect(modifiedAt.getTime()).toBe(1_795_280_888_121);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

describe("links and other things that only a host has", () => {
  let folder: string;
  let root: string;
  let outside: string;
  let workspace: Workspace;
  beforeEach(() => {
    folder = temporary();
    root = join(folder, "work");
    outside = join(folder, "outside");
    mkdirSync(outside);
    writeFileSync(join(outside, "secret"), "secret");
    workspace = createLocalWorkspace(root);
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  test("E2: a link that leads out is refused by everything that would follow it", async () => {
    symlinkSync(outside, join(root, "dir"));
    symlinkSync(join(outside, "secret"), join(root, "file"));
    symlinkSync("../outside/secret", join(root, "relative"));
    symlinkSync("file", join(root, "chain"));
    symlinkSync(join(outside, "new"), join(root, "dangling"));
    for (const path of ["dir/secret", "file", "relative", "chain", "dangling"]) {
      expect(await failureOf(workspace.read(path))).toMatch(/invalid_request|not_found/);
      expect(await failureOf(workspace.stat(path))).toMatch(/invalid_request|not_found/);
      expect(await failureOf(workspace.write(path, encode("x")))).toBe("invalid_request");
    }
    expect(await failureOf(workspace.write("dir/new/file", encode("x")))).toBe("invalid_request");
    expect(await failureOf(workspace.list("dir"))).toBe("invalid_request");
    expect(await failureOf(workspace.remove("dir/secret"))).toBe("invalid_request");
    expect(await failureOf(collect(workspace.walk("dir")))).toBe("invalid_request");
    expect(await collect(workspace.walk(""))).toEqual([]);
    expect(readdirSync(outside)).toEqual(["secret"]);
    expect(readFileSync(join(outside, "secret"), "utf8")).toBe("secret");
  });

  test("E2: removing a link removes the link and not what it leads to", async () => {
    symlinkSync(outside, join(root, "dir"));
    await workspace.remove("dir");
    expect(existsSync(join(root, "dir"))).toBe(false);
    expect(readFileSync(join(outside, "secret"), "utf8")).toBe("secret");
  });

  test("links inside the workspace are followed, and not walked twice", async () => {
    await workspace.write("real/a", encode("one"));
    symlinkSync("real", join(root, "link"));
    symlinkSync("real/a", join(root, "alias"));
    expect(decode(await workspace.read("link/a"))).toBe("one");
    await workspace.write("alias", encode("two"));
    expect(decode(await workspace.read("real/a"))).toBe("two");
    expect(statSync(join(root, "alias")).isFile()).toBe(true);
    expect((await workspace.list("")).map(({ name, directory }) => [name, directory])).toEqual([
      ["link", true],
      ["real", true],
      ["alias", false],
    ]);
    expect(await collect(workspace.walk(""))).toEqual(["real/a"]);
  });

  test("E2: a loop of links ends in a sentence", async () => {
    symlinkSync("b", join(root, "a"));
    symlinkSync("a", join(root, "b"));
    expect(await failureOf(workspace.read("a"))).toBe("invalid_request");
    expect(await failureOf(workspace.write("a", encode("x")))).toBe("invalid_request");
  });

  test("E2: directories that are swapped for links while they are used never let anything out", async () => {
    mkdirSync(join(root, "swap"));
    writeFileSync(join(root, "swap", "secret"), "inside");
    symlinkSync(outside, join(root, "evil"));
    // A write may make the missing directory at any moment, so a move clears its way and tries again.
    const move = (from: string, to: string) => {
      for (;;) {
        try {
          rmSync(join(root, to), { recursive: true, force: true });
          return renameSync(join(root, from), join(root, to));
        } catch (error) {
          if (!existsSync(join(root, from))) throw error;
        }
      }
    };
    let swapping = true;
    const swapper = (async () => {
      while (swapping) {
        move("swap", "kept");
        move("evil", "swap");
        await new Promise((resolve) => setImmediate(resolve));
        move("swap", "evil");
        move("kept", "swap");
        await new Promise((resolve) => setImmediate(resolve));
      }
    })();
    const outcomes = { read: 0, refused: 0 };
    try {
      for (let i = 0; i < 150; i++) {
        const work = [
          workspace.read("swap/secret").then((bytes) => expect(decode(bytes)).toBe("inside")),
          workspace.write(`swap/${i}`, encode("x")),
          workspace.write(`swap/new-${i}/x`, encode("x")),
          collect(workspace.walk("")),
        ];
        for (const result of await Promise.allSettled(work)) {
          outcomes[result.status === "fulfilled" ? "read" : "refused"]++;
          if (result.status === "rejected") expect(result.reason).toBeInstanceOf(AppError);
        }
        expect(readdirSync(outside)).toEqual(["secret"]);
      }
    } finally {
      swapping = false;
      await swapper;
    }
    expect(outcomes.read).toBeGreaterThan(0);
    expect(outcomes.refused).toBeGreaterThan(0);
    expect(readFileSync(join(outside, "secret"), "utf8")).toBe("secret");
  });

  test("a replaced file keeps its permissions, and a hard link its own content", async () => {
    await workspace.write("run.sh", encode("#!/bin/sh\n"));
    chmodSync(join(root, "run.sh"), 0o754);
    linkSync(join(root, "run.sh"), join(root, "other"));
    await workspace.write("run.sh", encode("#!/bin/sh\necho\n"));
    expect(statSync(join(root, "run.sh")).mode & 0o777).toBe(0o754);
    expect(readFileSync(join(root, "other"), "utf8")).toBe("#!/bin/sh\n");
  });

  test("what is neither file nor directory is refused and does not block", async () => {
    execFileSync("mkfifo", [join(root, "pipe")]);
    expect(await failureOf(workspace.read("pipe"))).toBe("invalid_request");
    expect(await failureOf(workspace.write("pipe", encode("x")))).toBe("invalid_request");
    expect(await collect(workspace.walk(""))).toEqual([]);
  });

  test("a root that is a link itself can be named either way", async () => {
    symlinkSync(root, join(folder, "link"));
    const through = createLocalWorkspace(join(folder, "link"));
    await through.write("a", encode("x"));
    expect(through.root).toBe(root);
    expect((await through.stat(join(folder, "link", "a"))).path).toBe("a");
    expect((await through.stat(join(root, "a"))).path).toBe("a");
  });
});
