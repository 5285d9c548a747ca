/**
 * `node test/bench/memory-scale.ts [--memories 100000]`: a large vault on the file of one service. How long searching and
 * listing take, and for how long the event loop is held at once, while writing and deleting too.
 */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { parseArgs } from "node:util";
import { createMemoryVault } from "../../src/knowledge/memory.ts";
import { createFileBackend, openStore } from "../store/backends.ts";
import { figure, table } from "./table.ts";

const { values: args } = parseArgs({ options: { memories: { type: "string", default: "100000" } } });
const MEMORIES = Number(args.memories);
const BATCH = 25;
const ROUNDS = 300;
const OWNER = "ann";

/** As words are spread in language: few are in most sentences, most are in few. */
const WORDS = Array.from({ length: 20_000 }, (_, at) => `word${at.toString(36)}`);
let seed = 7;
function random(): number {
  seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
  return seed / 2 ** 32;
}
const word = () => WORDS[Math.floor(random() ** 4 * WORDS.length)] as string;
const sentence = (length: number) => Array.from({ length }, word).join(" ");
const SUBJECTS = ["The user", "The user's team", "Anna", "The billing service", "The user's daughter"];

const backend = await createFileBackend();
const store = await openStore(backend);
const now = () => new Date(Date.UTC(2026, 10, 20) + written * 1000);
const vault = createMemoryVault({ rows: store.memories, now });
const lines: string[][] = [];
let written = 0;

/** Longest and usual times of what is done again and again, and how long the event loop was held meanwhile. */
async function measure(
  name: string,
  rounds: number,
  work: (round: number) => Promise<unknown>,
): Promise<void> {
  const held = monitorEventLoopDelay({ resolution: 1 });
  const times: number[] = [];
  held.enable();
  for (let round = 0; round < rounds; round++) {
    const begun = performance.now();
    await work(round);
    times.push(performance.now() - begun);
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
  held.disable();
  times.sort((a, b) => a - b);
  const at = (share: number) => figure(times[Math.min(rounds - 1, Math.floor(rounds * share))] ?? 0, "ms");
  lines.push([name, at(0.5), at(0.99), figure(held.max / 1e6, "ms")]);
}

const begun = performance.now();
await measure(`writing, ${BATCH} at once`, MEMORIES / BATCH, async () => {
  const drafts = Array.from({ length: BATCH }, (_, at) => {
    const document = `${SUBJECTS[at % SUBJECTS.length]} ${sentence(6 + Math.floor(random() * 8))} at${written + at}`;
    return { document, origin: "agent" as const, importance: random(), category: `kind${at % 7}` };
  });
  await vault.rememberAll(OWNER, drafts);
  written += BATCH;
});
const seconds = (performance.now() - begun) / 1000;

const search =
  (query: () => string, more: object = {}) =>
  () =>
    vault.search(OWNER, query(), { limit: 20, ...more });
await measure(
  "searching three words",
  ROUNDS,
  search(() => sentence(3)),
);
await measure(
  "searching eight words",
  ROUNDS,
  search(() => sentence(8)),
);
await measure(
  "searching the commonest word",
  ROUNDS,
  search(() => "word0"),
);
await measure(
  "searching the five commonest",
  ROUNDS,
  search(() => WORDS.slice(0, 5).join(" ")),
);
await measure(
  "searching while typing",
  ROUNDS,
  search(() => `${word()} w`, { prefix: true }),
);
await measure(
  "searching in a category",
  ROUNDS,
  search(() => sentence(3), { category: "kind3" }),
);
await measure(
  "searching marks",
  ROUNDS / 10,
  search(() => "?!"),
);
let cursor: string | undefined;
await measure("listing a page of 50", ROUNDS, async () => {
  cursor = (await vault.list(OWNER, { limit: 50, cursor })).next ?? undefined;
});
await measure("listing a category", ROUNDS, () => vault.list(OWNER, { limit: 50, category: "kind5" }));
await measure("the most important", ROUNDS, () => store.memories.important(OWNER, 0.8, 10));
await measure("writing one", ROUNDS, (at) =>
  vault.remember(OWNER, { document: `${sentence(9)} one${at}`, origin: "user" }),
);
await measure("exporting all", 1, async () => {
  for await (const _ of vault.dump(OWNER)) await new Promise((resolve) => setTimeout(resolve, 0));
});
await measure("deleting all", 1, () => vault.clear(OWNER));

process.stdout.write(`${MEMORIES} memories of one owner, ${figure(MEMORIES / seconds)} written a second\n\n`);
process.stdout.write(`${table(["", "median", "99th percentile", "loop held at most"], lines)}\n`);
await store.close();
await backend.close();
