import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Message } from "../../src/core/message.ts";
import { CONTENT_LIMIT, type Images } from "../../src/core/notes.ts";
import type { Tool, ToolContext } from "../../src/core/tool.ts";
import { createImages } from "../../src/knowledge/images.ts";
import { createReadNote } from "../../src/tools/read-note.ts";
import { createSearchNotes } from "../../src/tools/search-notes.ts";
import { createWriteNote } from "../../src/tools/write-note.ts";
import { createHome, createService, json, START, type TestHome, type TestService } from "../http/service.ts";
import { PNG, pictureNamed, pngOfBytes } from "../knowledge/pictures.ts";
import { scriptedModel } from "../scripted-model.ts";
import { type Backend, createFileBackend, openStore, type TestStore } from "../store/backends.ts";
import { refused, said } from "./fixture.ts";

let backend: Backend;
let store: TestStore;
let images: Images;
let tools: Tool[];
beforeEach(async () => {
  backend = await createFileBackend();
  store = await openStore(backend);
  const now = () => store.clock.now;
  images = createImages({ rows: store.images, blobs: [store.imageChunks], now, log: () => {} });
  tools = toolsOf(store, images);
});
afterEach(async () => {
  await store.close();
  await backend.close();
});

function toolsOf({ notes }: Pick<TestStore, "notes">, images: Images): Tool[] {
  return [createSearchNotes(notes), createReadNote(notes, images), createWriteNote(notes)];
}

async function call(name: string, args: unknown, owner = "ann") {
  const tool = tools.find((each) => each.name === name) as Tool;
  const context = { owner, signal: new AbortController().signal } as ToolContext;
  return tool.run(tool.args.parse(args), context);
}

const idIn = (text: string) => /note_\w{32}/.exec(text)?.[0] as string;
const write = (title: string, content: string, category = "General", owner = "ann") =>
  store.notes.create(owner, { title, content, category });

test("P1, E4: reading is allowed and marked as content from outside, writing asks", () => {
  expect(tools.map(({ name, risk, consent, outside }) => [name, risk, consent, outside])).toEqual([
    ["search_notes", "read", undefined, true],
    ["read_note", "read", undefined, true],
    ["write_note", "write", "ask", undefined],
  ]);
});

describe("write_note", () => {
  test("makes a note, and changes one that was read", async () => {
    const id = idIn(said(await call("write_note", { title: "Shopping", content: "- milk\n" })));
    expect(await store.notes.get("ann", id)).toMatchObject({ category: "General", version: 1 });
    const args = { note_id: id, version: 1, content: "- milk\n- eggs\n" };
    expect(said(await call("write_note", args))).toBe(`Changed ${id} (Shopping), now version 2.`);
    expect(await store.notes.get("ann", id)).toMatchObject({
      title: "Shopping",
      content: "- milk\n- eggs\n",
    });
  });

  test("overwrites nothing that it has not read", async () => {
    const { id } = await write("Plan", "one");
    await store.notes.update("ann", id, { content: "of somebody else" });
    expect(refused(await call("write_note", { note_id: id, version: 1, content: "two" }))).toContain(
      "not at version 1 any more",
    );
    expect(refused(await call("write_note", { note_id: id, content: "two" }))).toContain(
      "read the note first",
    );
    expect((await store.notes.get("ann", id)).content).toBe("of somebody else");
  });

  test("says what is missing", async () => {
    expect(refused(await call("write_note", { title: "x" }))).toContain("needs a title and a content");
    const { id } = await write("x", "y");
    expect(refused(await call("write_note", { note_id: id, version: 1 }))).toContain("give a title");
    await expect(call("write_note", { note_id: id, version: 1, content: "z" }, "bob")).rejects.toThrow(
      "There is no note with this id",
    );
    await expect(call("write_note", { title: "x", content: "y".repeat(CONTENT_LIMIT + 1) })).rejects.toThrow(
      "at most 1048576 bytes",
    );
  });
});

describe("search_notes", () => {
  test("shows where the words stand, best first, and lists the newest", async () => {
    const bread = await write("Bread", "Mix rye flour and water.", "Recipes");
    store.clock.now = new Date(START.getTime() + 60_000);
    const trip = await write("Trip", "To the mountains.");
    await write("Secret", "rye of bob", "Recipes", "bob");
    expect(said(await call("search_notes", { query: "rye flour" }))).toBe(
      `1 note:\n- ${bread.id}: Bread [Recipes, 2026-11-20]\n  Mix rye flour and water.`,
    );
    expect(said(await call("search_notes", {}))).toMatch(
      new RegExp(`^2 notes:\n- ${trip.id}.*\n.*\n- ${bread.id}`),
    );
    expect(said(await call("search_notes", { query: "rye mountains" }))).toMatch(
      /^No note has all of these words\. Some of them are in:\n- note_.*\n.*\n- note_/,
    );
    expect(said(await call("search_notes", { query: "zebra" }))).toBe("No note has any of these words.");
    expect(said(await call("search_notes", { query: "rye", category: "Other" }))).toBe(
      "No note has any of these words in the category 'Other'. The categories are: General, Recipes.",
    );
  });
});

describe("read_note", () => {
  test("gives a long note in parts that join to the whole", async () => {
    const content = `${"🎉 words of it\r\n".repeat(6_000)}end`;
    const { id } = await write("Long", content);
    let text = "";
    for (let offset = 0; ; ) {
      const part = said(await call("read_note", { note_id: id, offset }));
      expect(part.isWellFormed()).toBe(true);
      const more = /\n\[more: read on with offset (\d+)\]$/.exec(part);
      text += part.slice(part.indexOf("\n") + 1, more?.index);
      if (!more) break;
      offset = Number(more[1]);
    }
    expect(text).toBe(content);
  });

  test("shows the note's own images, a bounded number of them", async () => {
    const own = await images.add("ann", PNG);
    const gif = await images.add("ann", pictureNamed("gif"));
    const bobs = await images.add("bob", PNG);
    const large = await images.add("ann", pngOfBytes(4 * 1024 * 1024));
    const others = await Promise.all(Array.from({ length: 5 }, () => images.add("ann", PNG)));
    const names = [own, own, gif, bobs, large].map(
      ({ id }) => `![](http://h/api/notes/images/${id}?signature=x)`,
    );
    const { id } = await write("Pictures", names.join("\n"));
    const { content } = await call("read_note", { note_id: id });
    expect(content.map((part) => (part.type === "text" ? part.text.split("\n")[0] : part))).toEqual([
      `[${id}: Pictures (General), version 1]`,
      `[${own.id}: image/png, 7 × 5]`,
      { type: "image", source: { kind: "data", mediaType: "image/png", data: toBase64(PNG) } },
      `[${gif.id}: image/gif, 7 × 5]`,
      {
        type: "image",
        source: { kind: "data", mediaType: "image/gif", data: toBase64(pictureNamed("gif")) },
      },
      "[1 more image: too many or too large to show]",
    ]);
    const many = await write("Many", [own, gif, ...others].map((each) => each.id).join(" "));
    const parts = (await call("read_note", { note_id: many.id })).content;
    expect(parts.filter(({ type }) => type === "image")).toHaveLength(5);
    expect(parts.at(-1)).toMatchObject({ text: "[2 more images: too many or too large to show]" });
  });

  test("of another is not there", async () => {
    const { id } = await write("Secret", "x");
    await expect(call("read_note", { note_id: id }, "bob")).rejects.toThrow("There is no note with this id");
  });
});

const toBase64 = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64");

describe("in a run", () => {
  let home: TestHome;
  let service: TestService;
  beforeAll(async () => {
    home = await createHome();
  });
  afterEach(() => service.close());
  afterAll(() => home.close());

  test("an image in a note reaches the model, as content from outside", async () => {
    const setUp = await createService(home, { model: scriptedModel([]) });
    const form = new FormData();
    form.append("file", new Blob([PNG]), "x.png");
    const { url } = await json(await setUp.request("/api/notes/upload", { method: "POST", body: form }));
    const note = { title: "Roof", content: `It leaks here:\n\n![the roof](${url})` };
    const { note_id } = await json(await setUp.post("/api/notes", note));
    const own = toolsOf(setUp.services.store, setUp.services.images);
    const model = scriptedModel([
      { calls: [{ id: "call_1", name: "read_note", args: { note_id } }] },
      { text: "I see it." },
      { calls: [{ id: "call_2", name: "write_note", args: { note_id, version: 1, title: "x" } }] },
    ]);
    service = await createService(home, { model, tools: own });
    const first = await json(await service.post("/api/chat", { message: "Look at the note on the roof" }));
    expect(first.reply).toBe("I see it.");
    const result = model.requests[1]?.messages.findLast(({ role }) => role === "tool") as Message;
    expect(result.content).toEqual([
      {
        type: "text",
        text: expect.stringMatching(/^<outside_content tool="read_note">\n\[note_[\s\S]*It leaks here/),
      },
      { type: "image", source: { kind: "data", mediaType: "image/png", data: toBase64(PNG) } },
      { type: "text", text: expect.stringContaining("</outside_content>") },
    ]);
    const second = await json(
      await service.post("/api/chat", { message: "Rename it", session_id: first.session_id }),
    );
    expect(second).toMatchObject({ auth_required: true, pending_calls: [{ name: "write_note" }] });
    expect((await setUp.services.store.notes.get("local", note_id)).title).toBe("Roof");
    await setUp.close();
  });
});
