/** The calls that a run waits with, as a person is asked about them. */
import type { PendingCall } from "../core/event.ts";
import { isCommand, previewsOf } from "../core/preview.ts";
import type { CallRecord } from "../core/run.ts";
import type { WorkingDirectory } from "../core/tool.ts";
import { approvalText, createCode, hashCode } from "./approval-code.ts";

/** A new code for each call, which from here on is the only one that decides it. */
export function giveCodes(calls: CallRecord[]): Promise<string[]> {
  return Promise.all(
    calls.map(async (call) => {
      const code = createCode();
      call.codeHash = await hashCode(code);
      return code;
    }),
  );
}

/** All that would run. `codes`: where codes are given. */
export async function askedOf(
  calls: CallRecord[],
  codes: readonly string[],
  workingDirectory: WorkingDirectory | undefined,
): Promise<PendingCall[]> {
  // What a command does depends on where it starts.
  const directory = calls.some(({ name }) => isCommand(name)) ? await workingDirectory?.read() : undefined;
  const previews = previewsOf(calls, directory ?? "");
  return calls.map((call, index) => ({
    id: call.callId,
    name: call.name,
    args: call.args,
    preview: previews[index] ?? "",
    risk: call.risk,
    expiresAt: call.expiresAt?.toISOString() ?? "",
    code: codes[index],
  }));
}

/** In a chat that has no other way to ask. */
export function wordsFor(asked: readonly PendingCall[]): string {
  const shown = asked.map(({ preview = "", code = "", agent }) => ({
    preview: agent === undefined ? preview : `# ${agent} asks:\n${preview}`,
    code,
  }));
  return approvalText(shown, asked[0]?.expiresAt ?? "");
}
