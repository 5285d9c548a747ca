/** The service as a process of its own, on a free port and in a folder of its own. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bunPath } from "../runtimes.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

export type LocalRuntime = "node" | "bun";

export interface ServiceProcess {
  child: ChildProcess;
  folder: string;
  /** Where it listens, once it does. Rejects with what it said when it ends instead. */
  url: Promise<string>;
  stderr(): string;
  exited: Promise<number | null>;
}

export function newFolder(): string {
  return mkdtempSync(join(tmpdir(), "dragoman-"));
}

export function startProcess(
  runtime: LocalRuntime,
  env: Record<string, string> = {},
  folder = newFolder(),
): ServiceProcess {
  const command = runtime === "node" ? process.execPath : bunPath();
  const child = spawn(command, [join(ROOT, `src/entry/${runtime}.ts`)], {
    cwd: folder,
    env: { PATH: process.env.PATH, HOME: folder, PORT: "0", ...env },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let text = "";
  const exited = once(child, "close").then(([code]) => code as number | null);
  const url = new Promise<string>((resolve, reject) => {
    child.stderr?.setEncoding("utf8").on("data", (piece: string) => {
      text += piece;
      const match = /listens +(http:\S+)\n/.exec(text);
      if (match) resolve(match[1] as string);
    });
    exited.then((code) => reject(new Error(`ended with ${code}: ${text}`)));
  });
  url.catch(() => {});
  return { child, folder, url, stderr: () => text, exited };
}

export async function stop({ child, exited }: ServiceProcess): Promise<number | null> {
  child.kill("SIGTERM");
  return await exited;
}

/** Bytes as they are, without a client that would tidy them up. Resolves with all that comes back until the end. */
export async function sendRaw(url: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let answer = "";
  socket.setEncoding("utf8").on("data", (piece: string) => {
    answer += piece;
  });
  socket.on("error", () => {});
  socket.write(bytes);
  await once(socket, "close");
  return answer;
}
