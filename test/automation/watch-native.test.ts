/** Watchdogs on directories of the host, in the service as it is run: what happens is found long before the interval. */
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type Double, startDouble } from "../matrix/double.ts";
import { type Service, startService } from "../service.ts";

const WAIT = { timeout: 20_000, interval: 50 };
/** A week: only what the system tells can be found within the test. */
const INTERVAL = 604_800;
const PROMPT = { debounce_seconds: 0 };

const closing: (() => Promise<unknown>)[] = [];
let workspace: string;
let env: Record<string, string>;
let upstream: Double;
beforeEach(async () => {
  const folder = await mkdtemp(join(tmpdir(), "dragoman-watchdogs-"));
  closing.push(() => rm(folder, { recursive: true, force: true }));
  workspace = join(folder, "workspace");
  mkdirSync(workspace);
  upstream = await startDouble();
  closing.push(() => upstream.stop());
  upstream.script(...Array.from({ length: 50 }, () => ({ content: "seen to" })));
  env = { ...upstream.env, WORKSPACE: workspace, DATA_DIR: join(folder, "data") };
  env.OPENAI_API_KEY = "sk-of-the-operator-1234567890";
});
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function start(runtime: "node" | "bun"): Promise<Service> {
  const service = await startService({ runtime, env });
  closing.push(() => service.stop());
  return service;
}

// biome-ignore lint/suspicious/noExplicitAny: a body is what a test says it is.
async function call({ url }: Service, path: string, method = "GET", body?: object): Promise<any> {
  const init = body && { body: JSON.stringify(body), headers: { "content-type": "application/json" } };
  return (await fetch(url + path, { method, ...init })).json();
}

/**
 * A watchdog on a directory that the system watches by now: what is changed at first may be found by the look that it
 * begins with.
 */
async function watch(service: Service, directory: string, fields: object = {}): Promise<string> {
  const id = await create(service, directory, fields);
  file(`${directory}/first`);
  await ended(service, id, 1);
  return id;
}

async function create(service: Service, directory: string, fields: object = {}): Promise<string> {
  const body = { action: "act", directory, interval_seconds: INTERVAL, ...fields };
  const { watchdog_id: id } = await call(service, "/api/watchdog", "POST", body);
  await vi.waitUntil(async () => (await call(service, `/api/watchdog/${id}`)).last_checked_at !== null, WAIT);
  return id;
}

/** Runs that have ended, the oldest first. */
async function ended(service: Service, id: string, count: number): Promise<{ fate: string }[]> {
  return vi.waitUntil(async () => {
    const { runs } = await call(service, `/api/watchdog/${id}/runs`);
    const over = runs.filter((run: { ended_at: string | null }) => run.ended_at !== null).reverse();
    return over.length >= count && over;
  }, WAIT);
}

/** What the model was told, run by run. */
const findings = () =>
  upstream.histories().map((messages) => {
    const text = messages.map(({ content }) => (typeof content === "string" ? content : "")).join("\n");
    return /Files below .*?(?=\s*<\/outside)/s.exec(text)?.[0] ?? text;
  });
const lastFinding = (directory: string) =>
  findings().findLast((each) => each.startsWith(`Files below ${directory}:`));

/** Whole at once: a look that comes while it is written would find one change more. */
function file(path: string, text = "x"): void {
  const draft = join(workspace, "../draft");
  writeFileSync(draft, text);
  renameSync(draft, join(workspace, path));
}
const folder = (path: string) => void mkdirSync(join(workspace, path), { recursive: true });

describe.each(["node", "bun"] as const)("%s", (runtime) => {
  test("what is made, changed, deleted and renamed is found, also where nothing was before", {
    timeout: 60_000,
  }, async () => {
    const names = ["made", "changed", "deleted", "renamed"];
    for (const name of names) {
      folder(`${name}/deep`);
      file(`${name}/deep/old`);
    }
    const service = await start(runtime);
    const ids = await Promise.all(names.map((directory) => watch(service, directory, PROMPT)));
    const later = await create(service, "later/on", PROMPT);
    file("made/deep/new");
    file("changed/deep/old", "longer than it was");
    rmSync(join(workspace, "deleted/deep"), { recursive: true });
    renameSync(join(workspace, "renamed/deep/old"), join(workspace, "renamed/deep/new"));
    folder("later/on/deep");
    const runs = await Promise.all(ids.map((id) => ended(service, id, 2)));
    expect(runs.flat().map(({ fate }) => fate)).toEqual(Array(8).fill("ran"));
    expect(names.map((name) => lastFinding(name))).toEqual([
      'Files below made:\nmade (1): "deep/new"',
      'Files below changed:\nchanged (1): "deep/old"',
      'Files below deleted:\ndeleted (1): "deep/old"',
      'Files below renamed:\nmade (1): "deep/new"\ndeleted (1): "deep/old"',
    ]);
    for (const [i, name] of ["one", "two"].entries()) {
      file(`later/on/deep/${name}`);
      await ended(service, later, i + 1);
      expect(lastFinding("later/on")).toBe(`Files below later/on:\nmade (1): "deep/${name}"`);
    }
  });

  test("10,000 changes in a burst are one run, with the right list", { timeout: 90_000 }, async () => {
    for (let i = 0; i < 20; i++) folder(`in/d${i}`);
    for (let i = 0; i < 100; i++) file(`in/d0/old${i}`);
    const service = await start(runtime);
    const id = await watch(service, "in", { debounce_seconds: 3 });
    const script = `
      for i in $(seq 9700); do echo 1 > in/d$((i % 20))/f$i; done
      for i in $(seq 0 99); do echo longer > in/d0/old$i; done
      mkdir in/new; for i in $(seq 200); do echo 1 > in/new/f$i; done`;
    execFileSync("bash", ["-c", script], { cwd: workspace });
    await ended(service, id, 2);
    expect(lastFinding("in")).toMatch(/^Files below in:\nmade \(9900\): .*\nchanged \(100\): /);
    // Nothing is left over that would make it fire again.
    const trial = await call(service, `/api/watchdog/${id}/test`, "POST", {});
    expect(trial).toMatchObject({ would_fire: false, reason: "Nothing has changed." });
    expect(await ended(service, id, 2)).toHaveLength(2);
  });

  test.runIf(process.platform === "linux")(
    "paused and deleted ones are not watched",
    {
      timeout: 60_000,
    },
    async () => {
      folder("in/deep");
      folder("other/deep");
      const service = await start(runtime);
      expect(watches()).toBe(0);
      const [paused, deleted] = await Promise.all(
        ["in", "other"].map((each) => watch(service, each, PROMPT)),
      );
      // Each with what is below it, and the workspace twice, for what may become of them.
      await vi.waitUntil(() => watches() >= 5, WAIT);
      await call(service, `/api/watchdog/${paused}`, "PATCH", { status: "paused" });
      await call(service, `/api/watchdog/${deleted}`, "DELETE");
      expect(watches()).toBe(0);
      file("in/while paused");
      await call(service, `/api/watchdog/${paused}`, "PATCH", { status: "active" });
      await ended(service, paused as string, 2);
      file("in/after");
      await ended(service, paused as string, 3);
      expect(findings().slice(-2)).toEqual([
        'Files below in:\nmade (1): "while paused"',
        'Files below in:\nmade (1): "after"',
      ]);
    },
  );
});

test("R3: several processes that watch the same directory have one run for a change, whichever is told", {
  timeout: 90_000,
}, async () => {
  folder("in");
  const first = await start("node");
  const id = await watch(first, "in", PROMPT);
  // These find the watchdog of the other one when they start.
  const others = await Promise.all([start("bun"), start("node")]);
  for (let i = 1; i <= 3; i++) {
    file(`in/file${i}`);
    await ended(first, id, i + 1);
  }
  const runs = await Promise.all([first, ...others].map((each) => ended(each, id, 4)));
  expect(runs.map((each) => each.length)).toEqual([4, 4, 4]);
  expect(findings()).toEqual(
    ["first", "file1", "file2", "file3"].map((name) => `Files below in:\nmade (1): "${name}"`),
  );
  await first.stop();
  file("in/file4");
  await ended(others[0] as Service, id, 5);
  expect(upstream.sent).toHaveLength(5);
});

/** inotify's watches of the service that was started here. */
function watches(): number {
  const own = `DATA_DIR=${env.DATA_DIR}`;
  const pids = readdirSync("/proc").filter(
    (name) => /^\d+$/.test(name) && quietly(`${name}/environ`).includes(own),
  );
  const infos = pids.flatMap((pid) =>
    readdirSync(`/proc/${pid}/fdinfo`).map((fd) => quietly(`${pid}/fdinfo/${fd}`)),
  );
  return infos.join("\n").match(/^inotify /gm)?.length ?? 0;
}

/** What has ended meanwhile, or is another's, says nothing. */
function quietly(path: string): string {
  try {
    return readFileSync(`/proc/${path}`, "utf8");
  } catch {
    return "";
  }
}
