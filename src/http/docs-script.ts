/**
 * What draws `/docs` in a browser out of `/openapi.json`. Whatever the document says goes in as text, never as markup.
 * Plain JavaScript, since nothing compiles it on its way.
 */
import { DOCS_SCHEMA_SCRIPT } from "./docs-schema-script.ts";

const PAGE = String.raw`
const VERBS = ["get", "post", "put", "patch", "delete"];

function section(title, ...content) {
  return content.flat().some(Boolean) && [el("h4", {}, title), content];
}

/** JSON with its parts told apart by colour; other text as it is. */
function coloured(text) {
  const out = [];
  const token = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null|-?\d[\d.eE+-]*)\b/g;
  let last = 0;
  for (const match of text.matchAll(token)) {
    const [all, quoted, colon] = match;
    out.push(text.slice(last, match.index));
    out.push(el("span", { class: colon ? "k" : quoted ? "s" : "n" }, quoted || all), colon || "");
    last = match.index + all.length;
  }
  return [...out, text.slice(last)];
}

async function copy(event, text) {
  const button = event.currentTarget;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed";
  }
  setTimeout(() => (button.textContent = "Copy"), 1500);
}

/** A box of examples: [{name, text, json}]. onPick hears which one is shown. */
function sample(title, entries, onPick) {
  if (entries.length === 0) return "";
  const pre = el("pre", { tabindex: "0" });
  let shown = entries[0];
  const tabs = entries.map((entry) => el("button", { type: "button", click: () => pick(entry) }, entry.name));
  function pick(entry) {
    shown = entry;
    pre.replaceChildren(...(entry.json ? coloured(entry.text) : [entry.text]));
    tabs.forEach((tab, at) => tab.setAttribute("aria-pressed", entries[at] === entry));
    if (onPick) onPick(entry);
  }
  pick(shown);
  return el(
    "div",
    { class: "sample" },
    el("header", {}, el("b", {}, title), el("button", { type: "button", click: (event) => copy(event, shown.text) }, "Copy")),
    entries.length > 1 && el("div", { class: "tabs" }, tabs),
    pre,
  );
}

const quoted = (text) => "'" + text.replaceAll("'", "'\\''") + "'";

/** Whose key a request would carry. */
function credential(operation) {
  const schemes = (operation.security || []).flatMap(Object.keys);
  if (schemes.includes("apiKey")) return '-H "x-api-key: $ANTHROPIC_API_KEY"';
  if (schemes.includes("providerKey")) return '-H "Authorization: Bearer $OPENAI_API_KEY"';
  const local = /^(localhost|127\.|\[::1\])/.test(location.hostname);
  return schemes.length > 0 && !local ? '-H "Authorization: Bearer $ACCESS_TOKEN"' : "";
}

function curl(verb, path, operation, body) {
  const given = Object.fromEntries((operation.parameters || []).map((each) => [each.name, resolve(each.schema).examples]));
  const address = path.replaceAll(/\{(\w+)\}/g, (all, name) => (given[name] ? given[name][0] : all));
  const replies = resolve(operation.responses[200]).content || {};
  const streams = replies["text/event-stream"] && (body ? body.stream : !replies["application/json"]);
  const parts = [
    "curl " + (streams ? "-N " : "") + (verb === "get" || body ? "" : "-X " + verb.toUpperCase() + " ") + location.origin + address,
    body && verb !== "post" && "-X " + verb.toUpperCase(),
    credential(operation),
    body && "-H 'Content-Type: application/json'",
    body && "-d " + quoted(JSON.stringify(body, null, 2)),
    upload(operation),
  ];
  return parts.filter(Boolean).join(" \\\n  ");
}

function upload(operation) {
  const [type, content] = Object.entries((operation.requestBody || {}).content || {})[0] || [];
  if (type === "multipart/form-data") return Object.keys(content.schema.properties).map((name) => "-F " + name + "=@" + name).join(" ");
  return type && type !== "application/json" && "-H 'Content-Type: " + type + "' --data-binary @file";
}

function requestSamples(verb, path, operation) {
  const content = operation.requestBody && operation.requestBody.content["application/json"];
  const examples = Object.values((content && content.examples) || {});
  if (examples.length === 0) return [{ name: "Request", text: curl(verb, path, operation) }];
  return examples.map(({ summary, value }) => ({ name: summary, text: curl(verb, path, operation, value) }));
}

function replySamples(operation) {
  return Object.entries(operation.responses).flatMap(([status, reference]) =>
    reference.$ref
      ? []
      : Object.entries(resolve(reference).content || {}).flatMap(([type, { examples }]) =>
          Object.values(examples || {}).map(({ summary, value }) => {
            const text = type === "text/event-stream" ? value.trimEnd() : JSON.stringify(value, null, 2);
            return { name: summary + (status === "200" ? "" : " (" + status + ")"), text, json: true };
          }),
        ),
  );
}

function replySchemas(responses) {
  const all = Object.values(responses)
    .filter((each) => !each.$ref)
    .flatMap((each) => Object.entries(each.content || {}))
    .map(([type, { schema }]) =>
      schema.contentSchema
        ? folded("Events of the stream: " + nameOf(schema.contentSchema), () => fields(schema.contentSchema))
        : hasFields(schema)
          ? folded(type + ": " + (nameOf(schema) || kindOf(schema)), () => fields(schema))
          : el("div", { class: "kind" }, type),
    );
  return all.length > 0 && el("div", { class: "reply" }, all);
}

function statuses(responses, errors) {
  return Object.entries(responses)
    .filter(([, each]) => Boolean(each.$ref) === errors)
    .map(([status, each]) =>
      el("div", { class: "status" }, el("b", { class: status < 400 ? "ok" : "bad" }, status === "default" ? "…" : status), el("span", { class: "text" }, prose(resolve(each).description))),
    );
}

function errorShape(responses) {
  const first = Object.values(responses).find((each) => each.$ref);
  const content = first && Object.entries(resolve(first).content)[0];
  if (!content) return "";
  const text = JSON.stringify(content[1].example, null, 2);
  const shape = folded(content[0] + ": " + nameOf(content[1].schema), () => fields(content[1].schema));
  return [el("div", { class: "reply" }, shape), sample("Error", [{ name: "Error", text, json: true }])];
}

function drawOperation(verb, path, operation) {
  const id = operation.operationId;
  const parameters = (place) =>
    (operation.parameters || []).filter((each) => each.in === place).map((each) => field(each.name, each.schema, each.required, each.description));
  const body = operation.requestBody && (operation.requestBody.content["application/json"] || {}).schema;
  const errors = statuses(operation.responses, true);
  return el(
    "article",
    { class: "operation", id },
    el(
      "div",
      {},
      el("h3", {}, el("a", { href: "#" + id }, operation.summary)),
      el("div", { class: "address" }, el("span", { class: "verb " + verb }, verb), path),
      el("div", { class: "prose" }, paragraphs(operation.description)),
      section("Path", parameters("path")),
      section("Query", parameters("query")),
      section("Headers", parameters("header")),
      body && section("Body", fields(body)),
      section("Response", statuses(operation.responses, false), replySchemas(operation.responses)),
      errors.length > 0 && section("Errors", folded(errors.length + " statuses", () => [errors, errorShape(operation.responses)])),
    ),
    el("div", { class: "samples" }, sample("Request", requestSamples(verb, path, operation)), sample("Response", replySamples(operation))),
  );
}

function drawAccess() {
  const schemes = Object.values(spec.components.securitySchemes);
  return el(
    "section",
    { class: "intro auth", id: "access" },
    section(
      "Credentials",
      schemes.map((each) =>
        el("div", { class: "field" }, el("div", { class: "name" }, el("b", {}, each.name || "Authorization: Bearer")), el("div", { class: "text" }, prose(each.description))),
      ),
    ),
  );
}

function draw() {
  const operations = Object.entries(spec.paths).flatMap(([path, item]) =>
    VERBS.filter((verb) => item[verb]).map((verb) => ({ verb, path, operation: item[verb] })),
  );
  const groups = spec.tags.map((tag) => ({ tag, all: operations.filter(({ operation }) => operation.tags[0] === tag.name) }));
  document.querySelector("nav").replaceChildren(
    ...groups.map(({ tag, all }) =>
      el(
        "div",
        {},
        el("h2", {}, tag.name),
        all.map(({ verb, path, operation }) =>
          el("a", { href: "#" + operation.operationId, "data-words": (path + " " + operation.summary).toLowerCase() }, operation.summary, el("span", { class: "verb " + verb }, verb === "delete" ? "del" : verb)),
        ),
      ),
    ),
  );
  document.querySelector("main").replaceChildren(
    el("section", { class: "intro prose" }, el("h1", {}, spec.info.title), paragraphs(spec.info.description)),
    drawAccess(),
    ...groups.map(({ tag, all }) =>
      el("section", { class: "tag" }, el("h2", {}, tag.name), el("p", {}, prose(tag.description)), all.map(({ verb, path, operation }) => drawOperation(verb, path, operation))),
    ),
  );
}

/** The side follows the reader. */
function follow() {
  const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
  const observer = new IntersectionObserver(
    (entries) => {
      const entry = entries.find((each) => each.isIntersecting);
      if (!entry) return;
      for (const [id, link] of links) link.classList.toggle("here", id === entry.target.id);
    },
    { rootMargin: "-10% 0px -80% 0px" },
  );
  for (const article of document.querySelectorAll(".operation")) observer.observe(article);
}

function listen() {
  const side = document.getElementById("side");
  const menu = document.getElementById("menu");
  const show = (open) => {
    side.classList.toggle("open", open);
    menu.setAttribute("aria-expanded", open);
  };
  menu.addEventListener("click", () => show(!side.classList.contains("open")));
  document.querySelector("nav").addEventListener("click", (event) => event.target.closest("a") && show(false));
  document.getElementById("filter").addEventListener("input", (event) => {
    const words = event.target.value.toLowerCase().split(/\s+/);
    for (const group of document.querySelectorAll("nav > div")) {
      for (const link of group.querySelectorAll("a")) link.hidden = !words.every((word) => link.dataset.words.includes(word));
      group.hidden = !group.querySelector("a:not([hidden])");
    }
  });
}

async function start() {
  try {
    const answer = await fetch("openapi.json");
    if (!answer.ok) throw new Error("GET /openapi.json answers with status " + answer.status + ".");
    spec = await answer.json();
    draw();
    listen();
    follow();
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (target) target.scrollIntoView();
  } catch (error) {
    document.querySelector("main").replaceChildren(el("p", { class: "error" }, "The page could not be drawn. " + error.message));
  }
}
start();
`;

export const DOCS_SCRIPT = `"use strict";${DOCS_SCHEMA_SCRIPT}${PAGE}`;
