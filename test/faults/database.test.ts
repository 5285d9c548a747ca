/** R8: a database that is gone, locked or full is told in a sentence, nothing is acknowledged that is not stored, and all goes on by itself. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { hasSqld, sqldNote } from "../sqld.ts";
import { DATABASES, type SharedDatabase } from "./database.ts";
import { LIMIT_MS } from "./extent.ts";
import { type Answer, type Body, Service } from "./process.ts";
import { startUpstream, type Upstream } from "./upstream.ts";

const [FILE, SERVER] = DATABASES;
const options = { timeout: LIMIT_MS, concurrent: true };
const ENV = {
  APPROVAL: JSON.stringify({
    default: "auto",
    rules: [{ tool: "run_terminal_command", args: { command: "true asked*" }, decision: "ask" }],
  }),
};

interface Trial {
  database: SharedDatabase;
  upstream: Upstream;
  service: Service;
}

async function trial(
  create: () => Promise<SharedDatabase>,
  use: (trial: Trial) => Promise<void>,
): Promise<void> {
  const database = await create();
  await using upstream = await startUpstream();
  const service = await Service.start(database, upstream, ENV);
  try {
    await use({ database, upstream, service });
    // Whatever happened, no failure was one that the service does not know.
    expect(service.process.stderr()).not.toContain("unhandled failure");
    expect(upstream.refused).toEqual([]);
  } finally {
    await service.kill();
    await database.close();
  }
}

function gate(): { until: Promise<void>; go: () => void } {
  let go = () => {};
  const until = new Promise<void>((resolve) => {
    go = resolve;
  });
  return { until, go };
}

const shell = (tag: string, command: string) => ({
  calls: [{ id: `call_${tag}_long_enough_id`, name: "run_terminal_command", args: { command } }],
});
const touch = (tag: string) => `printf '%s\\n' ${tag} >> effects.log`;
const effects = ({ folder }: SharedDatabase) =>
  readFileSync(join(folder, "workspace", "effects.log"), "utf8")
    .trim()
    .split("\n")
    .sort();

/** 503 or 507, in a sentence, with the time to come back. */
function told(answer: Answer, status: number): void {
  expect([answer.status, answer.body]).toEqual([status, expect.anything()]);
  const { detail, code } = answer.body;
  expect(code).toBe(status === 507 ? "storage_full" : "unavailable");
  expect(detail).toMatch(/^[A-Z].*\.$/);
  if (status === 503) expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
}

/** Sends again for as long as the service says that it cannot. */
async function recovered(send: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    const answer = await send();
    if (answer.status !== 503) return answer;
  }
}

test.skipIf(!hasSqld)(
  `a server that goes in the middle of everything, and comes back${sqldNote}`,
  options,
  () =>
    trial(SERVER!.create, async ({ database, upstream, service }) => {
      const sqld = database.sqld!;
      const talking = gate();
      upstream.play("talk", ({ attempt }) => ({
        ...{ say: "one two three", pieces: 4 },
        ...(attempt === 0 ? { hold: "middle" as const, until: talking.until } : {}),
      }));
      const wait = "; echo begun; until [ -e release ] || [ ! -e effects.log ]; do sleep 0.05; done";
      upstream.play("work", ({ results }) =>
        results.length === 0 ? shell("work", touch("work") + wait) : { say: "worked" },
      );
      upstream.play("park", ({ results }) =>
        results.length === 0 ? shell("park", `true asked; ${touch("park")}`) : { say: "approved" },
      );
      const before = await service.post("/api/chat", { message: "#before" });
      const parked = (await service.post("/api/chat", { message: "#park" })).body;
      const [talk, work] = await Promise.all(
        ["talk", "work"].map((tag) => service.stream("/api/chat", { message: `#${tag}` })),
      );
      await talk!.event((event) => event.type === "content");
      await work!.event((event) => event.type === "tool_progress");
      await sqld.kill();

      const { session_id } = before.body;
      for (const answer of await Promise.all([
        service.post("/api/chat", { message: "#gone" }),
        service.post("/api/chat", { message: "#gone", session_id, stream: true }),
        service.post("/api/chat", { message: "#gone" }, { "idempotency-key": "gone" }),
        service.post("/api/chat/approve", { session_id: parked.session_id, approved: true }),
        service.post(`/api/runs/${parked.run_id}/stop`, {}),
        service.post(`/api/sessions/${session_id}/fork`, {}),
        service.send("PATCH", `/api/sessions/${session_id}`, { title: "other" }),
        service.send("DELETE", `/api/sessions/${session_id}`),
        service.send("DELETE", `/api/messages/${before.body.message_id}`),
        service.send("GET", "/api/sessions"),
        service.send("GET", `/api/sessions/${session_id}/messages`),
        service.send("GET", `/api/runs/${parked.run_id}/events`),
      ]))
        told(answer, 503);
      expect((await service.send("GET", "/readyz")).status).toBe(503);
      expect((await service.send("GET", "/healthz")).status).toBe(200);
      // What needs no database goes on without it.
      const bare = { model: "dragoman/raw@m", messages: [{ role: "user", content: "#bare" }] };
      expect((await service.post("/v1/chat/completions", bare)).status).toBe(200);
      talking.go();
      await service.send("GET", "/healthz");
      await talk!.over;
      expect(talk!.events.at(-1)).toMatchObject({ type: "error", code: "unavailable" });
      writeFileSync(join(database.folder, "workspace", "release"), "");
      await work!.over;
      expect(work!.events.at(-1)).toMatchObject({ type: "error", code: "unavailable" });

      await sqld.start();
      const again = await recovered(() => service.post("/api/chat", { message: "#again", session_id }));
      expect([again.status, again.body.reply]).toEqual([200, "heard #again"]);
      expect((await service.send("GET", "/readyz")).status).toBe(200);
      expect((await service.get(`/api/sessions/${session_id}`)).title).not.toBe("other");
      const run = await service.get(`/api/runs/${parked.run_id}`);
      expect(run).toMatchObject({ status: "paused", pending_calls: parked.pending_calls });
      const approved = await service.post("/api/chat/approve", {
        session_id: parked.session_id,
        approved: true,
      });
      expect([approved.status, approved.body.reply]).toEqual([200, "approved"]);
      for (const reader of [talk!, work!]) {
        const id = reader.response.headers.get("x-session-id");
        const next = await service.post("/api/chat", { message: `#next-${id}`, session_id: id });
        expect([next.status, next.body.reply]).toEqual([200, `heard #next-${id}`]);
        const ended = await service.settled(reader.response.headers.get("x-run-id") ?? "");
        expect(ended).toMatchObject({ status: "failed", error: { code: "unavailable" } });
      }
      expect(effects(database)).toEqual(["park", "work"]);
      const messages: Body = await service.get(
        `/api/sessions/${work!.response.headers.get("x-session-id")}/messages`,
      );
      expect(messages.messages.map(({ role }: Body) => role)).toEqual([
        "user",
        "assistant",
        "tool",
        "user",
        "assistant",
      ]);
      expect(messages.messages[2].content).toContain("Interrupted");
    }),
);

test("a file that another process has locked", options, () =>
  trial(FILE!.create, async ({ database, service }) => {
    const before = await service.post("/api/chat", { message: "#before" });
    const { session_id } = before.body;
    const locker = database.connect();
    const lock = await locker.transaction("write");
    const refused = await Promise.all([
      service.post("/api/chat", { message: "#locked" }),
      service.post("/api/chat", { message: "#locked", session_id }),
      service.send("PATCH", `/api/sessions/${session_id}`, { title: "locked" }),
    ]);
    for (const answer of refused) told(answer, 503);
    // Reading needs no lock.
    expect((await service.get("/api/sessions")).sessions).toHaveLength(1);
    await lock.rollback();
    lock.close();
    locker.close();
    const after = await service.post("/api/chat", { message: "#after", session_id });
    expect([after.status, after.body.reply]).toEqual([200, "heard #after"]);
    const { messages } = await service.get(`/api/sessions/${session_id}/messages`);
    expect(messages.map(({ content }: Body) => content)).toEqual([
      ...["#before", "heard #before", "#after", "heard #after"],
    ]);
    expect(await database.faults()).toEqual([]);
  }),
);

for (const { name, available, create } of DATABASES)
  test.skipIf(!available)(`a disk that is full, under ${name}`, options, () =>
    trial(create, async ({ database, upstream, service }) => {
      const before = await service.post("/api/chat", { message: "#before" });
      const { session_id } = before.body;
      const full = { when: "fail", code: "SQLITE_FULL" } as const;
      service.arm({ ...full, texts: [] });
      for (const answer of await Promise.all([
        service.post("/api/chat", { message: "#full" }),
        service.post("/api/chat", { message: "#full", session_id }),
        service.send("PATCH", `/api/sessions/${session_id}`, { title: "full" }),
        service.post(`/api/sessions/${session_id}/fork`, {}),
      ]))
        told(answer, 507);
      service.disarm();
      // It is full at the end of a turn; between a tool's start and its result; before its start.
      const points: [string, string[]][] = [
        ["end", ["ended_at = ?", "never stored"]],
        ["result", ['\\"done\\"', "call_result"]],
        ["start", ['\\"started\\"', "call_start"]],
      ];
      for (const [tag, texts] of points) {
        upstream.play(tag, ({ results }) =>
          tag === "end" || results.length > 0 ? { say: "never stored" } : shell(tag, touch(tag)),
        );
        service.arm({ ...full, texts });
        const reader = await service.stream("/api/chat", { message: `#${tag}`, session_id });
        await reader.over;
        expect([tag, reader.events.at(-1)]).toMatchObject([tag, { type: "error", code: "storage_full" }]);
        service.disarm();
        const next = await service.post("/api/chat", { message: `#after-${tag}`, session_id });
        expect([next.status, next.body.reply]).toEqual([200, `heard #after-${tag}`]);
      }
      expect(effects(database)).toEqual(["result"]);
      expect(await database.faults()).toEqual([]);
    }),
  );
