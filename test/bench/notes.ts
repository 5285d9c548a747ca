/**
 * `node test/bench/notes.ts [--notes 10000]`: searching and listing many notes over a database file, and how long the
 * event loop is held meanwhile. The words are drawn as in a language: few are everywhere, most are rare.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay, performance } from "node:perf_hooks";
import { parseArgs } from "node:util";
import type { NoteQuery } from "../../src/core/notes.ts";
import { createClient } from "../../src/platform/local-database.ts";
import { openFileDatabase } from "../../src/store/database.ts";
import { migrate } from "../../src/store/migrations.ts";
import { createStore } from "../../src/store/store.ts";
import { MIGRATIONS } from "../store/backends.ts";
import { figure, type Line, table } from "./table.ts";

const { values: args } = parseArgs({ options: { notes: { type: "string", default: "10000" } } });
const NOTES = Number(args.notes);
const ROUNDS = 200;
const WORDS = 300;
const SEARCH_MS = 50;
const LIST_MS = 20;
const HELD_MS = 50;
const OWNER = "ann";
const CATEGORIES = ["General", "Recipes", "Work", "Travel", "Garden"];

/** A row of numbers that is the same each time. */
let state = 42;
function random(): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return state / 2 ** 32;
}

const LETTERS = "etaoinshrdlucmwfgypbvk";
const vocabulary = Array.from({ length: 20_000 }, (_, rank) => {
  let word = "";
  for (let i = 0; i < 3 + Math.log2(rank + 1) / 2; i++)
    word += LETTERS[Math.floor(random() * LETTERS.length)];
  return word;
});
/** Zipf's law, near enough. */
const draw = () => vocabulary[Math.floor(vocabulary.length ** random()) - 1] as string;
const text = (words: number) => Array.from({ length: words }, draw).join(" ");

const folder = mkdtempSync(join(tmpdir(), "dragoman-bench-"));
const database = await openFileDatabase(join(folder, "dragoman.db"), createClient);
await migrate(database, MIGRATIONS);
const store = createStore({
  database,
  log: () => {},
  now: () => new Date(),
  background: (work) => void work,
});

const loop = monitorEventLoopDelay({ resolution: 1 });
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Milliseconds of each of the calls, and the longest time that the loop was held in one of them. */
async function measure(rounds: number, call: (round: number) => Promise<unknown>) {
  const times: number[] = [];
  loop.enable();
  await turn();
  loop.reset();
  for (let round = 0; round < rounds; round++) {
    const start = performance.now();
    await call(round);
    times.push(performance.now() - start);
    await turn();
  }
  const held = loop.max / 1e6;
  loop.disable();
  times.sort((a, b) => a - b);
  const at = (share: number) => times[Math.min(times.length - 1, Math.floor(share * times.length))] as number;
  return { p50: at(0.5), p99: at(0.99), held };
}

const lines: Line[] = [];
let missed = 0;
async function show(
  name: string,
  target: number,
  call: (round: number) => Promise<unknown>,
  rounds = ROUNDS,
) {
  const { p50, p99, held } = await measure(rounds, call);
  const met = p99 < target && held < HELD_MS;
  if (!met) missed += 1;
  lines.push([name, figure(p50, "ms"), figure(p99, "ms"), figure(held, "ms"), met ? "met" : "missed"]);
}

/** Made before the clock runs. */
const drafts = (count: number, words: number) =>
  Array.from({ length: count }, (_, n) => ({
    title: text(5),
    content: `# ${text(4)}\n\n${text(words)}\n`,
    category: CATEGORIES[n % CATEGORIES.length] as string,
  }));
const writing = (notes: ReturnType<typeof drafts>) => (round: number) =>
  store.notes.create(OWNER, notes[round] as (typeof notes)[number]);
await show("write a note", LIST_MS, writing(drafts(NOTES, WORDS)), NOTES);
await show("write a note of 1 MB", SEARCH_MS, writing(drafts(20, 130_000)), 20);

const search = (query: (round: number) => Partial<NoteQuery>) => (round: number) =>
  store.notes.list(OWNER, { limit: 50, ...query(round) });
const rare = () => vocabulary[5_000 + Math.floor(random() * 10_000)] as string;
await show(
  "search: a rare word",
  SEARCH_MS,
  search(() => ({ query: rare() })),
);
await show(
  "search: the commonest word",
  SEARCH_MS,
  search(() => ({ query: vocabulary[0] as string })),
);
await show(
  "search: three drawn words",
  SEARCH_MS,
  search(() => ({ query: text(3) })),
);
await show(
  "search: any of five words",
  SEARCH_MS,
  search(() => ({ query: text(5), anyWord: true })),
);
await show(
  "search: beginnings of two letters",
  SEARCH_MS,
  search(() => ({ query: draw().slice(0, 2) })),
);
await show(
  "search: in a category",
  SEARCH_MS,
  search(() => ({ query: draw(), category: "Work" })),
);
await show(
  "search: no words",
  SEARCH_MS,
  search(() => ({ query: "🎉" })),
);
await show(
  "list: the first page",
  LIST_MS,
  search(() => ({})),
);
await show(
  "list: 200 of them",
  LIST_MS,
  search(() => ({ limit: 200 })),
);
await show(
  "list: a category",
  LIST_MS,
  search(() => ({ category: "Work" })),
);
let cursor: string | undefined;
await show("list: page after page", LIST_MS, async () => {
  const page = await store.notes.list(OWNER, { limit: 50, cursor });
  cursor = page.next ?? undefined;
});
await show("list: the categories", LIST_MS, () => store.notes.categories(OWNER));

process.stdout.write(
  `${table([`${NOTES} notes of ${WORDS} words`, "p50", "p99", "loop held", "target"], lines)}\n` +
    `targets: search p99 ${SEARCH_MS} ms, list ${LIST_MS} ms, the loop held ${HELD_MS} ms\n`,
);
await store.close();
rmSync(folder, { recursive: true, force: true });
process.exitCode = missed === 0 ? 0 : 1;
