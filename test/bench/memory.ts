/**
 * `node test/bench/memory.ts`: how well memories are found, and how much of what goes into a prompt belongs there. 300
 * statements are told to the vault in turn; beside it stands plain bm25 over all of them, as SQLite does it by itself.
 */
import { createClient } from "@libsql/client";
import type { Embedder, MemoryVault } from "../../src/core/memory.ts";
import { Embeddings } from "../../src/knowledge/embeddings.ts";
import { createMemoryVault } from "../../src/knowledge/memory.ts";
import { relevant } from "../../src/knowledge/recall.ts";
import { createEmbedder } from "../../src/providers/embeddings.ts";
import { createFileBackend, openStore } from "../store/backends.ts";
import { startEmbeddingServer } from "./memory-double.ts";
import { OPENINGS, QUESTIONS, STATEMENTS } from "./memory-facts.ts";
import { table } from "./table.ts";

const OWNER = "ann";
const FIRST = 5;

interface Way {
  name: string;
  /** Texts, best first. */
  search(query: string): Promise<string[]>;
  /** Texts that would stand in the prompt. */
  prompt(opening: string): Promise<string[]>;
}

const keyOf = new Map(STATEMENTS.map(({ text, key }) => [text, key]));
/** What is no longer so. */
const outdated = new Set(
  STATEMENTS.filter((statement, at) =>
    STATEMENTS.slice(at + 1).some(({ key, kind }) => key === statement.key && kind === "changed"),
  ).map(({ text }) => text),
);

async function plainBm25(): Promise<Way> {
  const database = createClient({ url: ":memory:" });
  await database.execute("CREATE VIRTUAL TABLE plain USING fts5(text, tokenize = 'porter unicode61')");
  for (const { text } of STATEMENTS)
    await database.execute({ sql: "INSERT INTO plain (text) VALUES (?)", args: [text] });
  const search = async (query: string) => {
    const words = (query.match(/[\p{L}\p{N}]+/gu) ?? []).map((word) => `"${word}"`).join(" OR ");
    const sql = `SELECT text FROM plain WHERE plain MATCH ? ORDER BY bm25(plain) LIMIT ${FIRST}`;
    return (await database.execute({ sql, args: [words] })).rows.map(({ text }) => text as string);
  };
  return { name: "plain bm25", search, prompt: search };
}

async function vaultWay(name: string, embedder?: Embedder) {
  const backend = await createFileBackend();
  const store = await openStore(backend);
  const now = () => store.clock.now;
  const embeddings =
    embedder &&
    new Embeddings({
      embedder,
      vectors: store.memories.vectors,
      now,
      log: () => {},
      background: () => {},
    });
  const vault = createMemoryVault({ rows: store.memories, embeddings, now });
  const merging = await tell(vault, () => {
    store.clock.now = new Date(store.clock.now.getTime() + 3_600_000);
  });
  await embeddings?.catchUp();
  const find = async (query: string, limit: number) => (await vault.search(OWNER, query, { limit })).found;
  const texts = (found: Awaited<ReturnType<typeof find>>) => found.map(({ memory }) => memory.document);
  const way: Way = {
    name,
    search: async (query) => texts(await find(query, FIRST)),
    prompt: async (opening) => texts(relevant(await find(opening, 12))),
  };
  const close = async () => {
    await store.close();
    await backend.close();
  };
  return { way, merging, close };
}

interface Merging {
  changed: number;
  same: number;
  wrong: string[];
}

/** Tells everything in turn, and looks what became of changes, of repetitions and of the rest. */
async function tell(vault: MemoryVault, next: () => void): Promise<Merging> {
  const out: Merging = { changed: 0, same: 0, wrong: [] };
  for (const { key, kind, text } of STATEMENTS) {
    next();
    const { outcome, superseded, memory } = await vault.remember(OWNER, { document: text, origin: "agent" });
    const before = [...superseded, ...(outcome === "strengthened" ? [memory] : [])];
    if (before.some(({ document }) => keyOf.get(document) !== key)) out.wrong.push(text);
    if (kind === "changed" && outcome === "superseded") out.changed++;
    if (kind === "same" && outcome === "strengthened") out.same++;
  }
  return out;
}

async function measure({ name, search, prompt }: Way): Promise<string[]> {
  let found = 0;
  let first = 0;
  let stale = 0;
  for (const [question, ...keys] of QUESTIONS) {
    const texts = await search(question);
    const good = (text: string) => keys.includes(keyOf.get(text) ?? "") && !outdated.has(text);
    if (texts.some(good)) found++;
    if (texts[0] !== undefined && good(texts[0])) first++;
    if (texts.some((text) => outdated.has(text))) stale++;
  }
  let put = 0;
  let right = 0;
  let wanted = 0;
  let covered = 0;
  for (const [opening, ...keys] of OPENINGS) {
    const texts = await prompt(opening);
    const good = texts.filter((text) => keys.includes(keyOf.get(text) ?? "") && !outdated.has(text));
    put += texts.length;
    right += good.length;
    wanted += Math.min(keys.length, FIRST);
    covered += Math.min(new Set(good.map((text) => keyOf.get(text))).size, FIRST);
  }
  const share = (part: number, whole: number) => `${((100 * part) / whole).toFixed(0)} %`;
  const { length } = QUESTIONS;
  return [
    ...[name, share(found, length), share(first, length), share(stale, length)],
    ...[share(right, put), share(covered, wanted), (put / OPENINGS.length).toFixed(1)],
  ];
}

const double = await startEmbeddingServer();
const embedder = createEmbedder({
  ...{ provider: "openai", model: "double", key: "none", baseUrl: `${double.url}/v1`, retries: 0 },
});
const words = await vaultWay("vault, words alone");
const vectors = await vaultWay("vault, with vectors", embedder);
const rows: string[][] = [];
for (const way of [await plainBm25(), words.way, vectors.way]) rows.push(await measure(way));
const head = [
  "",
  "recall at 5",
  "first is right",
  "outdated in 5",
  "prompt precision",
  "prompt recall",
  "in a prompt",
];
process.stdout.write(`${table(head, rows)}
`);
const count = (kind: string) => STATEMENTS.filter((statement) => statement.kind === kind).length;
const { changed, same, wrong } = words.merging;
process.stdout.write(`
${STATEMENTS.length} statements: ${changed} of ${count("changed")} changes recognised without a model, ${same} of ${count("same")} repetitions in other words; ${wrong.length} merged wrongly.
${QUESTIONS.length} questions, ${OPENINGS.length} openings. The embedding model is a deterministic double.
`);
for (const text of wrong) process.stdout.write(`wrong: ${text}\n`);
await Promise.all([words.close(), vectors.close(), double.close()]);
