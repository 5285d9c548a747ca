/** What of a server's env and headers is cut out of logs, errors and results (K2), and what is not. */
import { expect, test } from "vitest";
import { secretWords } from "../../src/mcp/secrets.ts";

const wordsOf = (...values: string[]) =>
  secretWords({ env: Object.fromEntries(values.map((value, i) => [`V${i}`, value])), headers: {} });

test.each([
  "/home/anna/Documents/knowledge-base",
  "~/notes/2026",
  "./data/files.v2",
  "C:\\Users\\anna\\Documents",
  "https://gitlab.example.com/api/v4",
  "http://127.0.0.1:11434",
])("where something is, is no secret: %s", (place) => {
  expect(wordsOf(place)).toEqual([]);
});

test.each([
  "sk-0123456789abcdef",
  "0123456789abcdef0123456789abcdef",
  "/wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
  "/9j4AAQSkZJRgABAQAAAQABAAD+",
  "https://hooks.example.com/services/T00000000/B00000000/aSecretOfTheHookWhichIsLong",
  "https://mcp.example.com/1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed",
  "https://anna:secret@example.com/",
  "https://example.com/?token=short",
  "postgres://anna:secret@db/notes",
])("a secret stays one: %s", (secret) => {
  expect(wordsOf(secret)).toEqual([secret]);
});

test("K2: a header is secret in each of its words", () => {
  expect(secretWords({ env: {}, headers: { authorization: "Bearer abcdef0123456789" } })).toEqual([
    "Bearer",
    "abcdef0123456789",
  ]);
});
