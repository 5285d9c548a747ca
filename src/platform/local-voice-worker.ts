/** The thread of the embedded voice: see local-voice.ts. */
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { parentPort } from "node:worker_threads";
import type { VoiceOrder } from "../core/speech.ts";
import type { VoiceReport } from "./local-voice.ts";

/** The part of Emscripten's module that is used here. */
interface Program {
  FS: { writeFile(path: string, text: string): void; readFile(path: string): Uint8Array };
}
interface ProgramOptions {
  arguments: string[];
  preRun: ((program: Program) => void)[];
  print(line: string): void;
  printErr(line: string): void;
  quit(status: number, thrown: unknown): void;
  instantiateWasm(imports: WebAssembly.Imports, ready: (instance: WebAssembly.Instance) => void): object;
}
type CreateProgram = (options: ProgramOptions) => Promise<Program>;

const IN = "/in.txt";
const OUT = "/out.wav";
/** The header that the program writes. Bytes. */
const HEADER = 44;
const RATE_AT = 24;
const NO_VOICE = /voice does not exist/i;

/** Compiled once; every text has an instance of its own, for the program runs once and ends. */
const engine = load();
engine.catch(() => {});

async function load(): Promise<{ create: CreateProgram; code: WebAssembly.Module }> {
  const url = import.meta.resolve("espeak-ng");
  const path = fileURLToPath(url).replace(/\.js$/, ".wasm");
  const [program, code] = await Promise.all([
    import(url),
    readFile(path).then((bytes) => WebAssembly.compile(bytes)),
  ]);
  return { create: (program as { default: CreateProgram }).default, code };
}

async function run(args: string[], text: string): Promise<{ program: Program; output: string[] }> {
  const { create, code } = await engine;
  const output: string[] = [];
  const program = await create({
    arguments: args,
    preRun: [({ FS }) => FS.writeFile(IN, text)],
    print: (line) => output.push(line),
    printErr: (line) => output.push(line),
    quit(_, thrown) {
      throw thrown;
    },
    instantiateWasm(imports, ready) {
      WebAssembly.instantiate(code, imports).then(ready);
      return {};
    },
  });
  return { program, output };
}

async function speak({ text, voice, wordsPerMinute }: VoiceOrder): Promise<VoiceReport> {
  // The text comes in a file, so that none of it is taken for an option.
  const args = ["-v", voice, "-s", String(wordsPerMinute), "-b", "1", "-w", OUT, "-f", IN];
  const { program, output } = await run(args, text);
  if (output.some((line) => NO_VOICE.test(line))) return { problem: "voice", voices: await voices() };
  const wav = program.FS.readFile(OUT);
  const rate = new DataView(wav.buffer, wav.byteOffset, wav.length).getUint32(RATE_AT, true);
  return { samples: wav.slice(HEADER), rate };
}

/** A table with a line for each voice: its rank, its language, and more. */
async function voices(): Promise<string[]> {
  const { output } = await run(["--voices"], "");
  return output.flatMap((line) => /^\s*\d+\s+(\S+)/.exec(line)?.[1] ?? []);
}

parentPort?.on("message", async (order: VoiceOrder) => {
  const report = await speak(order).catch((error: unknown): VoiceReport => {
    const { code } = error as { code?: unknown };
    const missing = code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND" || code === "ENOENT";
    return missing ? { problem: "missing" } : { problem: "failed", reason: String(error) };
  });
  parentPort?.postMessage(report);
});
