/** Puts streamed tool calls together, however a server numbers, names and cuts them. */
import type { ModelEvent } from "../core/event.ts";
import { createId } from "../core/id.ts";
import { AppError } from "../errors.ts";

export interface WireCallDelta {
  index?: unknown;
  id?: unknown;
  type?: unknown;
  function?: unknown;
  custom?: unknown;
}

interface Slot {
  id: string;
  name: string;
  /** Argument text that came before the call could be opened. */
  held: string;
  freeform: boolean;
  /** The number of the part; -1 until it opens. */
  part: number;
}

export class CallAssembler {
  readonly #provider: string;
  readonly #nextPart: () => number;
  readonly #slots: Slot[] = [];
  readonly #byIndex = new Map<number, Slot>();
  readonly #ids = new Set<string>();

  constructor(provider: string, nextPart: () => number) {
    this.#provider = provider;
    this.#nextPart = nextPart;
  }

  push(delta: WireCallDelta, out: ModelEvent[]): void {
    const custom = typeof delta.custom === "object" && delta.custom !== null;
    const body = ((custom ? delta.custom : delta.function) ?? {}) as {
      name?: unknown;
      arguments?: unknown;
      input?: unknown;
    };
    const id = typeof delta.id === "string" ? delta.id : "";
    const name = typeof body.name === "string" ? body.name : "";
    const slot = this.#slot(delta.index, id, name);
    if (custom) slot.freeform = true;
    if (slot.id === "") slot.id = id;
    if (slot.name === "") slot.name = name;
    const args = argumentText(custom ? body.input : body.arguments);
    if (slot.part === -1) {
      slot.held += args;
      // A call whose id is late can wait for it no longer than until its arguments begin.
      if (slot.name !== "" && (slot.id !== "" || slot.held !== "")) this.#open(slot, out);
    } else if (args !== "") out.push({ type: "part-delta", index: slot.part, delta: args });
  }

  /** Closes every call; returns how many there were. Throws AppError for a call that never got a name. */
  end(out: ModelEvent[]): number {
    for (const slot of this.#slots) {
      if (slot.part === -1) {
        if (slot.name === "")
          throw new AppError(
            "upstream_unreachable",
            `The upstream (${this.#provider}) sent a tool call without a name. Send the request again.`,
          );
        this.#open(slot, out);
      }
    }
    for (const slot of this.#slots) out.push({ type: "part-close", index: slot.part });
    return this.#slots.length;
  }

  #slot(index: unknown, id: string, name: string): Slot {
    if (typeof index === "number") {
      const known = this.#byIndex.get(index);
      // Some servers number every call 0: a name under another id then begins the next one.
      if (known && !(name !== "" && id !== "" && known.id !== "" && id !== known.id)) return known;
      const slot = this.#add();
      this.#byIndex.set(index, slot);
      return slot;
    }
    const last = this.#slots.at(-1);
    if (id !== "")
      return this.#slots.find((slot) => slot.id === id) ?? (last && !last.id && !name ? last : this.#add());
    return last && name === "" ? last : this.#add();
  }

  #add(): Slot {
    const slot: Slot = { id: "", name: "", held: "", freeform: false, part: -1 };
    this.#slots.push(slot);
    return slot;
  }

  #open(slot: Slot, out: ModelEvent[]): void {
    if (slot.id === "" || this.#ids.has(slot.id)) slot.id = createId("call");
    this.#ids.add(slot.id);
    slot.part = this.#nextPart();
    const part: Extract<ModelEvent, { type: "part-open" }>["part"] = {
      kind: "call",
      id: slot.id,
      name: slot.name,
    };
    if (slot.freeform) part.freeform = true;
    out.push({ type: "part-open", index: slot.part, part });
    if (slot.held !== "") out.push({ type: "part-delta", index: slot.part, delta: slot.held });
    slot.held = "";
  }
}

/** JSON text as it should be; some servers send the object that it stands for. */
function argumentText(value: unknown): string {
  if (typeof value === "string") return value;
  return typeof value === "object" && value !== null ? JSON.stringify(value) : "";
}
