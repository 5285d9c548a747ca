/**
 * Who is at the other end of a connection: refuses the agent's own commands, which could otherwise approve their calls
 * over the loopback (P4). Asked once a connection, and only after a first command has been started.
 *
 * It stops every process that a command has started, directly or not, whatever it speaks HTTP with, in the background or
 * after its command has ended, over the loopback or another address of this machine; and a client of this machine that
 * sends and is gone before it could be looked at.
 *
 * It does not stop:
 * - what a command has others do: a proxy or a tunnel of the user's, a container engine, cron, systemd, a browser that
 *   is remote-controlled. The process at the other end is theirs;
 * - a command that runs as root, raises the limit that marks it, clears its environment and leaves its session;
 * - a program made for hiding a descriptor: in a thread's own table, in io_uring, or by handing it on again and again;
 * - anything where Linux's /proc is missing or does not show what is needed: there every request passes, since most
 *   people who run this on their machine would otherwise be locked out of it.
 * Whoever needs more runs the service as another user or in a container of its own, with ACCESS_TOKENS, or with
 * TERMINAL=sandbox or TERMINAL=virtual.
 */
import { readFile } from "node:fs/promises";
import { endianness, networkInterfaces } from "node:os";
import { type AgentProcesses, type CommandMark, createAgentFinder } from "./local-commands.ts";

/** States of a socket in the kernel's table, in hexadecimal as it writes them. */
const ESTABLISHED = "01";
const LISTENING = "0A";
/** The inode of a socket that no process holds. */
const NO_INODE = "0";
/** How the table writes an IPv4 address inside an IPv6 one. */
const MAPPED = "0000000000000000FFFF0000";

export interface Peers {
  /**
   * Whether the connection from this address to this port of ours is the agent's; undefined while the agent has run no
   * command, when nobody needs to ask. Without an address the connection is gone already. Never throws.
   */
  startedByAgent:
    | ((address: string | undefined, port: number, localPort: number) => Promise<boolean>)
    | undefined;
}

export function createPeers(mark: CommandMark): Peers {
  if (process.platform !== "linux" || endianness() !== "LE") return { startedByAgent: undefined };
  const check = createCheck(mark);
  return {
    get startedByAgent() {
      return mark.used ? check : undefined;
    },
  };
}

function createCheck(mark: CommandMark): NonNullable<Peers["startedByAgent"]> {
  const agents = shared(createAgentFinder(mark));
  const sockets = shared(readSockets);

  async function judge(client: string, localPort: string): Promise<boolean> {
    // In this order: who is gone by the second look has not been missed by the first.
    const found = await agents();
    const ends = (await sockets()).find(client, localPort);
    if (ends === "unknown") return false;
    if (ends === "gone") return true;
    for (const end of ends) if (await isHeldByAgent(end, found)) return true;
    return false;
  }

  return async (address, port, localPort) => {
    if (address === undefined) return true;
    const host = toHex(address);
    try {
      if (host === null || !isOwn(host)) return false;
      return await judge(`${host}:${portHex(port)}`, portHex(localPort));
    } catch {
      return false;
    }
  };
}

async function isHeldByAgent({ inode, user }: End, agents: AgentProcesses): Promise<boolean> {
  if (agents.sockets.has(inode)) return true;
  return agents.hiddenUsers.has(user) && !(await agents.otherSockets()).has(inode);
}

/** The client's end of a connection. */
interface End {
  inode: string;
  user: number;
}

interface SocketTable {
  /**
   * Ends at this address of connections to our port: there may be several when we listen on several addresses. `unknown`
   * where the table does not show our connections, or the other end is not in it though it is alive.
   */
  find(client: string, localPort: string): End[] | "gone" | "unknown";
}

interface Row {
  local: string;
  remote: string;
  state: string;
  user: number;
  inode: string;
}

async function readSockets(): Promise<SocketTable> {
  const texts = await Promise.all([
    readFile("/proc/net/tcp", "latin1"),
    readFile("/proc/net/tcp6", "latin1").catch(() => ""),
  ]);
  const lines = texts.flatMap((text) => text.split("\n").slice(1));
  let clients: Map<string, Client> | null | undefined;
  return {
    find(client, localPort) {
      if (clients === undefined) clients = clientsOf(lines, localPort);
      if (clients === null) return "unknown";
      const found = clients.get(client);
      if (found && found.ends.length > 0) return found.ends;
      return found?.alive && !found.left ? "unknown" : "gone";
    },
  };
}

/** What the table says about one address that has connections to our port. */
interface Client {
  ends: End[];
  /** Our end is open. */
  alive: boolean;
  /** Its end is in the table, and nobody holds it. */
  left: boolean;
}

/** null where the table does not even show that we listen. */
function clientsOf(lines: string[], localPort: string): Map<string, Client> | null {
  const port = `:${localPort}`;
  const clients = new Map<string, Client>();
  const clientAt = (address: string): Client => {
    let client = clients.get(address);
    if (!client) {
      client = { ends: [], alive: false, left: false };
      clients.set(address, client);
    }
    return client;
  };
  let listens = false;
  for (const line of lines) {
    if (!line.includes(`${port} `)) continue;
    const row = rowOf(line);
    if (row.local.endsWith(port)) {
      if (row.state === LISTENING) listens ||= row.inode !== NO_INODE;
      else if (row.state === ESTABLISHED) clientAt(row.remote).alive = true;
    }
    if (!row.remote.endsWith(port)) continue;
    if (row.inode === NO_INODE) clientAt(row.local).left = true;
    else clientAt(row.local).ends.push(row);
  }
  return listens ? clients : null;
}

function rowOf(line: string): Row {
  const [, local = "", remote = "", state = "", , , , user, , inode = NO_INODE] = line.trim().split(/ +/);
  return { local: unmapped(local), remote: unmapped(remote), state, user: Number(user), inode };
}

function unmapped(address: string): string {
  return address.startsWith(MAPPED) ? address.slice(MAPPED.length) : address;
}

function portHex(port: number): string {
  return port.toString(16).toUpperCase().padStart(4, "0");
}

/** Loopback, or another address that this machine has itself. */
function isOwn(host: string): boolean {
  if (host.length === 8 ? host.endsWith("7F") : host === LOOPBACK_6) return true;
  for (const addresses of Object.values(networkInterfaces()))
    for (const { address } of addresses ?? []) if (toHex(address) === host) return true;
  return false;
}

const LOOPBACK_6 = "00000000000000000000000001000000";

/** An address as the table writes it: words of 32 bits with their bytes reversed. null for what is none. */
export function toHex(address: string): string | null {
  const bytes = address.includes(":") ? bytesOf6(address) : bytesOf4(address);
  if (bytes === null) return null;
  let out = "";
  for (let word = 0; word < bytes.length; word += 4)
    for (let i = 3; i >= 0; i--) out += (bytes[word + i] as number).toString(16).padStart(2, "0");
  return unmapped(out.toUpperCase());
}

function bytesOf4(address: string): number[] | null {
  const bytes = address.split(".").map(Number);
  return bytes.length === 4 && bytes.every((byte) => byte >= 0 && byte <= 255) ? bytes : null;
}

function bytesOf6(address: string): number[] | null {
  let text = address.split("%")[0] as string;
  const dotted = text.slice(text.lastIndexOf(":") + 1);
  if (dotted.includes(".")) {
    const last = bytesOf4(dotted);
    if (last === null) return null;
    const [a, b, c, d] = last as [number, number, number, number];
    text = `${text.slice(0, -dotted.length)}${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
  }
  const [head = "", tail] = text.split("::");
  const groups = (part: string) =>
    part === "" ? [] : part.split(":").map((group) => Number.parseInt(group, 16));
  const before = groups(head);
  const after = tail === undefined ? [] : groups(tail);
  const gap = 8 - before.length - after.length;
  if (gap < 0 || (tail === undefined && gap !== 0)) return null;
  const all = [...before, ...Array<number>(gap).fill(0), ...after];
  return all.every((group) => group >= 0 && group <= 0xffff) ? all.flatMap((g) => [g >> 8, g & 0xff]) : null;
}

/** Those who ask while work is under way share the next one, which begins after all of them have asked. */
function shared<T>(work: () => Promise<T>): () => Promise<T> {
  let running: Promise<unknown> = Promise.resolve();
  let next: Promise<T> | null = null;
  return () => {
    next ??= running.then(() => {
      next = null;
      const result = work();
      running = result.catch(() => {});
      return result;
    });
    return next;
  };
}
