/**
 * The system's sandbox for commands, through `@anthropic-ai/sandbox-runtime`: bubblewrap on Linux, Seatbelt on macOS.
 * Commands write in the workspace and in the temporary folders, cannot read the service's secrets and the usual ones of
 * the user, have processes of their own (on Linux they do not see the service's), and no network but the domains that
 * the operator names, through a proxy in this process that refuses every address of this machine.
 */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { SandboxRuntimeConfig } from "@anthropic-ai/sandbox-runtime";
import { quoted } from "./local-shell-end.ts";
import type { Sandbox } from "./local-terminal.ts";

export interface SandboxOptions {
  /** The workspace's real path. */
  root: string;
  /** Files and folders that commands neither read nor write. */
  secrets: readonly string[];
  /** Files that commands read and do not write. */
  fixed: readonly string[];
  /** Domains that they may reach, with or without a wildcard and a port. */
  domains: readonly string[];
}

/** Where programs keep the user's keys and sessions, below the home directory. */
const HOME_SECRETS = [
  ...[".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", ".claude", ".codex"],
  ...[".netrc", ".npmrc", ".pypirc", ".git-credentials", ".pgpass", ".my.cnf", ".vault-token"],
  ...[".config/gcloud", ".config/gh", ".config/git/credentials", ".config/rclone", ".config/op"],
  ...[".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml"],
  ...[".local/share/keyrings", ".mozilla", ".config/google-chrome", ".config/chromium", ".bash_history"],
  ...[".zsh_history", "Library/Keychains", "Library/Cookies", "Library/Application Support/Google/Chrome"],
];
/** Milliseconds that the trial at the start may take. */
const TRIAL_MS = 10_000;
const OTHERWISE = "Or set TERMINAL to host, virtual or off.";

type Runtime = typeof import("@anthropic-ai/sandbox-runtime").SandboxManager;

/** Throws an Error with a sentence that says what this system lacks. There is one sandbox in a process. */
export async function createSandbox(options: SandboxOptions): Promise<Sandbox> {
  const runtime = await load();
  checkSystem(runtime);
  try {
    await runtime.initialize(configOf(options));
  } catch (error) {
    throw new Error(`TERMINAL=sandbox cannot be had: ${messageOf(error)}. ${OTHERWISE}`, { cause: error });
  }
  const wrap = (script: string, shell: string) => {
    // What the proxy reports it under, in place of the command's text.
    const commandId = randomBytes(16).toString("base64url");
    // The package names a folder of its own, which nobody has made.
    const home = `export TMPDIR=${quoted(tmpdir())}; ${script}`;
    return runtime.wrapWithSandbox(home, shell, undefined, undefined, { commandId });
  };
  const release = () => runtime.cleanupAfterCommand();
  try {
    await tryOut(await wrap("true", "/bin/sh"));
  } finally {
    release();
  }
  return { description: describe(options.domains), wrap, release };
}

function describe(domains: readonly string[]): string {
  const network =
    domains.length === 0
      ? "has no network"
      : `reaches these domains and no others: ${domains.join(", ")}, through the proxy that its environment names`;
  return `They run in a sandbox that writes only in the workspace and in temporary folders and ${network}.`;
}

async function load(): Promise<Runtime> {
  try {
    return (await import("@anthropic-ai/sandbox-runtime")).SandboxManager;
  } catch (error) {
    throw new Error(
      `TERMINAL=sandbox needs the package @anthropic-ai/sandbox-runtime, which cannot be loaded: run npm ci. ${OTHERWISE}`,
      { cause: error },
    );
  }
}

function checkSystem(runtime: Runtime): void {
  if (!runtime.isSupportedPlatform()) throw new Error(`TERMINAL=sandbox needs Linux or macOS. ${OTHERWISE}`);
  const { errors, warnings } = runtime.checkDependencies();
  // Without it a command could reach other programs' sockets: a container engine's, a desktop's.
  const lacking = [...errors, ...warnings.filter((warning) => warning.includes("unix socket"))];
  if (lacking.length === 0) return;
  throw new Error(
    `TERMINAL=sandbox lacks something on this system (${lacking.join("; ")}): on Debian and Ubuntu apt-get install bubblewrap socat ripgrep, on Fedora dnf install bubblewrap socat ripgrep, on macOS brew install ripgrep. ${OTHERWISE}`,
  );
}

function configOf({ root, secrets, fixed, domains }: SandboxOptions): SandboxRuntimeConfig {
  const literal = (path: string) => ({ path, literal: true as const });
  const home = homedir();
  return {
    network: { allowedDomains: [...domains], deniedDomains: [], strictAllowlist: true },
    filesystem: {
      denyRead: [...secrets, ...HOME_SECRETS.map((name) => join(home, name))].map(literal),
      allowWrite: [...new Set([root, tmpdir(), "/tmp"])].map(literal),
      denyWrite: [...secrets, ...fixed].map(literal),
    },
  };
}

/** The programs are there, but the system may still forbid what they do. */
async function tryOut(wrapped: string): Promise<void> {
  try {
    await promisify(execFile)("/bin/sh", ["-c", wrapped], { timeout: TRIAL_MS });
  } catch (error) {
    const { stderr } = error as { stderr?: string };
    const reason = stderr?.trim().split("\n").at(-1) || messageOf(error);
    throw new Error(
      `TERMINAL=sandbox does not work on this system (${reason}). It needs user namespaces: sysctl -w kernel.unprivileged_userns_clone=1, on Ubuntu also kernel.apparmor_restrict_unprivileged_userns=0; in a container the engine has to permit them. ${OTHERWISE}`,
      { cause: error },
    );
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
