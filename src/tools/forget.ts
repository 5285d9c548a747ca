/** `forget`: deletes one memory, once the user has agreed to it. */
import * as z from "zod";
import type { MemoryVault } from "../core/memory.ts";
import { defineTool, type Tool } from "../core/tool.ts";
import { AppError } from "../errors.ts";
import { answer, refusal } from "./result.ts";

export function createForget(vault: MemoryVault): Tool {
  return defineTool({
    name: "forget",
    description:
      "Deletes a memory and its history for good, when the user wants that something is no longer known. To correct a " +
      "memory use remember with replaces.",
    args: z.strictObject({
      id: z.string().min(1).max(64).describe("Id of the memory, as recall gives it."),
      memory: z.string().min(1).describe("Its text word for word, so that the user sees what will be gone."),
    }),
    needs: [],
    risk: "write",
    consent: "ask",
    async run({ id, memory }, { owner }) {
      let text: string;
      try {
        text = (await vault.get(owner, id)).document;
      } catch (error) {
        if (!(error instanceof AppError) || error.code !== "not_found") throw error;
        return refusal(`There is no memory ${id}. Use recall to find its id.`);
      }
      // What a person has agreed to is this text.
      if (flat(text) !== flat(memory))
        return refusal(`Not forgotten: ${id} says something else. It says: ${text.replace(/\s+/g, " ")}`);
      await vault.delete(owner, id);
      return answer(`Forgotten: ${text.replace(/\s+/g, " ")}`);
    },
  });
}

function flat(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}
