/** Directories that are watched natively: what is told of them, and what is left open. */
import { execFileSync, spawnSync } from "node:child_process";
import {
  type FSWatcher,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  watch,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createLocalWatch, type LocalWatchOptions } from "../../src/platform/local-watch.ts";
import { bunPath } from "../runtimes.ts";

const WAIT = { timeout: 5_000, interval: 5 };

let folder: string;
let root: string;
const closing: (() => void)[] = [];
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "dragoman-watch-")));
  root = join(folder, "work");
  mkdirSync(root);
});
afterEach(() => {
  for (const close of closing.splice(0)) close();
  rmSync(folder, { recursive: true, force: true });
});

function open(path: string, options: LocalWatchOptions = {}) {
  const seen = { told: 0, ended: [] as string[], close: () => {} };
  seen.close = createLocalWatch(root, options)("ann", path, {
    onChange: () => void seen.told++,
    onEnd: (reason) => void seen.ended.push(reason),
  });
  closing.push(seen.close);
  return seen;
}

type Seen = ReturnType<typeof open>;

/** Nothing is told any more, and its watchers are where they should be. */
async function rest(seen: Seen): Promise<void> {
  for (let before = -1; before !== seen.told; ) {
    before = seen.told;
    await new Promise((resolve) => setTimeout(resolve, 150));
  }
}

async function tells(seen: Seen, change: () => void): Promise<void> {
  seen.told = 0;
  change();
  await vi.waitUntil(() => seen.told > 0, WAIT);
}

const file = (path: string, text = "x") => writeFileSync(join(root, path), text);
const folderAt = (path: string) => void mkdirSync(join(root, path), { recursive: true });

/** inotify's watches of this process. */
function watches(): number {
  const infos = readdirSync("/proc/self/fdinfo").map((fd) => {
    try {
      return readFileSync(`/proc/self/fdinfo/${fd}`, "utf8");
    } catch {
      return "";
    }
  });
  return infos.join("\n").match(/^inotify /gm)?.length ?? 0;
}

test("tells of files made, changed, renamed and deleted, at any depth", async () => {
  folderAt("in/a/b");
  const seen = open("in");
  await rest(seen);
  await tells(seen, () => file("in/a/b/one"));
  await rest(seen);
  await tells(seen, () => file("in/a/b/one", "changed"));
  await rest(seen);
  await tells(seen, () => renameSync(join(root, "in/a/b/one"), join(root, "in/a/two")));
  await rest(seen);
  await tells(seen, () => rmSync(join(root, "in/a/two")));
  seen.close();
  file("in/a/b/three");
  await rest(seen);
  const { told } = seen;
  file("in/a/b/four");
  await rest(seen);
  expect([seen.told, seen.ended]).toEqual([told, []]);
});

test("a directory that is not there yet, comes, goes and comes again", async () => {
  const seen = open("later/on");
  await rest(seen);
  await tells(seen, () => folderAt("later/on/deep"));
  await rest(seen);
  await tells(seen, () => file("later/on/deep/one"));
  rmSync(join(root, "later"), { recursive: true });
  await rest(seen);
  folderAt("later/on");
  await rest(seen);
  await tells(seen, () => file("later/on/two"));
  renameSync(join(root, "later"), join(root, "earlier"));
  folderAt("later/on");
  await rest(seen);
  await tells(seen, () => file("later/on/three"));
});

test.each([".", "in"])("a workspace that is gone (%s): it ends with a sentence", async (path) => {
  folderAt("in");
  const seen = open(path);
  await rest(seen);
  rmSync(root, { recursive: true });
  await vi.waitUntil(() => seen.ended.length > 0, WAIT);
  expect(seen.ended).toEqual(["the workspace is not there"]);
});

test("E2: a link is not followed, and what it leads to is not told", async () => {
  mkdirSync(join(folder, "outside/deep"), { recursive: true });
  folderAt("in");
  symlinkSync(join(folder, "outside"), join(root, "in/link"));
  symlinkSync(join(folder, "outside"), join(root, "out"));
  const [below, at] = [open("in"), open("out")];
  await Promise.all([rest(below), rest(at)]);
  const told = [below.told, at.told];
  writeFileSync(join(folder, "outside/deep/secret"), "x");
  writeFileSync(join(folder, "outside/secret"), "x");
  await Promise.all([rest(below), rest(at)]);
  expect([below.told, at.told]).toEqual(told);
  await tells(below, () => file("in/one"));
});

test("what a walk passes over is not told", async () => {
  folderAt("in/.git/objects");
  folderAt("in/node_modules/deep");
  const seen = open("in");
  await rest(seen);
  const { told } = seen;
  for (const path of [".git/objects/1", ".git/index", "node_modules/deep/1", ".dragoman-write-1"])
    file(`in/${path}`);
  await rest(seen);
  expect(seen.told).toBe(told);
  renameSync(join(root, "in/.dragoman-write-1"), join(root, "in/whole"));
  await vi.waitUntil(() => seen.told > told, WAIT);
});

describe.runIf(process.platform === "linux")("on Linux", () => {
  test("nothing is left open, and the same directories are watched by number, not by file", async () => {
    for (let i = 0; i < 50; i++) {
      folderAt(`in/d${i}/e`);
      file(`in/d${i}/e/file`);
    }
    const before = watches();
    const seen = open("in");
    await rest(seen);
    // The workspace, the directory, and a hundred below it.
    expect(watches() - before).toBe(102);
    rmSync(join(root, "in/d0"), { recursive: true });
    renameSync(join(root, "in/d1"), join(folder, "away"));
    await rest(seen);
    expect(watches() - before).toBe(98);
    seen.close();
    expect(watches()).toBe(before);
  });

  test("more directories than it may watch: it ends with a sentence, and gives all of them back", async () => {
    const before = watches();
    folderAt("in/a/b");
    const small = open("in", { limit: 4 });
    await rest(small);
    expect([small.ended, watches() - before]).toEqual([[], 4]);
    folderAt("in/a/b/c");
    await vi.waitUntil(() => small.ended.length > 0, WAIT);
    expect(small.ended).toEqual(["with it there would be more than 4 directories to watch natively"]);
    expect(watches()).toBe(before);
  });

  test("thousands of changes between two looks at the queue do not leave it behind", async () => {
    folderAt("in/late");
    const seen = open("in");
    await rest(seen);
    // As long as this lasts no event is read, and the queue of 16,384 runs over.
    const script = "for i in $(seq 10000); do echo 1 > f$i; done; rm -r late; mkdir late";
    execFileSync("bash", ["-c", script], { cwd: join(root, "in") });
    await rest(seen);
    await tells(seen, () => file("in/late/one"));
  });
});

test.each([
  ["ENOSPC", "fs.inotify.max_user_watches"],
  ["EMFILE", "fs.inotify.max_user_instances"],
])("a system that watches no more (%s): it ends once, with what to look at", async (code, named) => {
  folderAt("in/a");
  let calls = 0;
  const refusing = ((...args: Parameters<typeof watch>) => {
    calls += 1;
    if (calls === 3) throw Object.assign(new Error(code), { code });
    return watch(...args);
  }) as typeof watch;
  const seen = open("in", { open: refusing });
  await vi.waitUntil(() => seen.ended.length > 0, WAIT);
  file("in/a/one");
  await rest(seen);
  expect([seen.ended, seen.told]).toEqual([[expect.stringContaining(named)], 0]);
});

/** A user namespace has limits of its own, where the system lets everybody make one. */
const LIMIT = "echo 20 > /proc/sys/user/max_inotify_watches";
const canLimit = spawnSync("unshare", ["-Ur", "sh", "-c", LIMIT]).status === 0;

describe.runIf(canLimit).each([
  ["node", `${process.execPath} --input-type=module`],
  ["bun", bunPath()],
])("%s", (_, program) => {
  test("the system's own limit ends it, and gives the others what it had", () => {
    for (let i = 0; i < 30; i++) folderAt(`in/d${i}`);
    const script = `
      import { createLocalWatch } from ${JSON.stringify(new URL("../../src/platform/local-watch.ts", import.meta.url))};
      const watch = createLocalWatch(${JSON.stringify(root)});
      watch("ann", "in", { onChange() {}, onEnd(reason) {
        console.log(reason);
        watch("ann", "in/d0", { onChange() { console.log("watched"); process.exit(0); }, onEnd: console.log });
      } });
      setTimeout(() => {}, 10_000);`;
    const args = ["-Ur", "sh", "-c", `${LIMIT}; exec ${program} -e "$1"`, "sh", script];
    const said = execFileSync("unshare", args, { encoding: "utf8" });
    expect(said.trim().split("\n")).toEqual([expect.stringContaining("max_user_watches"), "watched"]);
  });
});

test("a watcher that fails later ends it too", async () => {
  folderAt("in");
  const made: FSWatcher[] = [];
  const keeping = ((...args: Parameters<typeof watch>) => {
    const watcher = watch(...args);
    made.push(watcher);
    return watcher;
  }) as typeof watch;
  const seen = open("in", { open: keeping });
  await rest(seen);
  made.at(-1)?.emit("error", Object.assign(new Error("no space"), { code: "ENOSPC" }));
  expect(seen.ended).toEqual([expect.stringContaining("max_user_watches")]);
});

test("after any changes of the tree, what happens next is told wherever it happens", async () => {
  const name = fc.constantFrom("a", "b", "in");
  const step = fc.tuple(
    fc.constantFrom("make", "make", "remove", "move", "again", "write"),
    fc.nat(),
    fc.nat(),
    name,
  );
  const below = (at: string): string[] => [
    at,
    ...readdirSync(at, { withFileTypes: true }).flatMap((each) =>
      each.isDirectory() ? below(join(at, each.name)) : [],
    ),
  ];
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(step, fc.boolean()), { minLength: 10, maxLength: 40 }),
      async (steps) => {
        const seen = open("in/a");
        for (const [[kind, from, to, called], pauses] of steps) {
          const all = below(root);
          const at = all[from % all.length] as string;
          try {
            if (kind === "make") mkdirSync(join(at, called));
            else if (kind === "write") writeFileSync(join(at, `${called}.txt`), kind);
            else if (at === root) continue;
            else if (kind === "move") renameSync(at, join(all[to % all.length] as string, called));
            else rmSync(at, { recursive: true });
            if (kind === "again") mkdirSync(at);
          } catch (error) {
            // A name that is taken, or a move into itself.
            expect((error as NodeJS.ErrnoException).code).toMatch(/EEXIST|ENOTEMPTY|EINVAL/);
          }
          if (pauses) await new Promise((resolve) => setTimeout(resolve, 20));
        }
        folderAt("in/a");
        await rest(seen);
        for (const each of below(join(root, "in/a")))
          await tells(seen, () => writeFileSync(join(each, "probe"), "x"));
        seen.close();
        rmSync(join(root, "in"), { recursive: true });
      },
    ),
    { numRuns: 4 },
  );
}, 60_000);
