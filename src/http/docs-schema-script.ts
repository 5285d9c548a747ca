/** The part of the script of `/docs` that draws schemas: a row for each field, its fields in turn when they are opened. */
export const DOCS_SCHEMA_SCRIPT = String.raw`
let spec;

/** el("a", {href: "#x", class: "y"}, "text", node): falsy children are left out. */
function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.flat(Infinity).filter((child) => child));
  return node;
}

/** Text whose words in backticks are code. */
function prose(text) {
  return (text || "").split("\x60").map((piece, at) => (at % 2 ? el("code", {}, piece) : piece));
}

function paragraphs(text) {
  return (text || "").split("\n\n").map((piece) => el("p", {}, prose(piece)));
}

function resolve(thing) {
  let at = thing;
  while (at && at.$ref) at = at.$ref.slice(2).split("/").reduce((inner, key) => inner[key], spec);
  return at || {};
}

const nameOf = (schema) => (schema.$ref || "").split("/").pop();
/** The alternatives, those of unnamed alternatives among them. */
function choicesOf(schema) {
  const own = schema.oneOf || schema.anyOf || [];
  return own.flatMap((choice) => (choicesOf(choice).length > 0 ? choicesOf(choice) : [choice]));
}
const isNull = (schema) => schema.type === "null";

/** What kind of value it is, in a few words. */
function kindOf(schema) {
  const { type, items, format } = resolve(schema);
  const choices = choicesOf(resolve(schema));
  if (choices.length > 0) {
    const kinds = [...new Set(choices.map(kindOf))];
    return kinds.length > 4 ? "one of " + choices.length : kinds.join(" | ");
  }
  if (items) return "array of " + kindOf(items);
  if (schema.$ref && type === "object") return nameOf(schema);
  if (Array.isArray(type)) return type.join(" | ");
  return format ? type + " (" + format + ")" : type || "any";
}

/** The schema behind arrays and null: the one that has fields, if any. */
function core(schema) {
  let at = resolve(schema);
  for (;;) {
    const choices = choicesOf(at).filter((choice) => !isNull(choice));
    if (at.items) at = resolve(at.items);
    else if (choices.length === 1) at = resolve(choices[0]);
    else return at;
  }
}

/** Whether there is more to show of it than its kind. Schemas may hold themselves: a few steps are enough to tell. */
function hasFields(schema, steps = 4) {
  const inner = core(schema);
  return Boolean(inner.properties) || (steps > 0 && choicesOf(inner).some((choice) => hasFields(choice, steps - 1)));
}

/** Drawn when it is opened for the first time, so that schemas may hold themselves. */
function folded(title, draw, open) {
  const inside = el("div", { class: "inside" });
  const fill = () => inside.firstChild || inside.append(...[draw()].flat(Infinity));
  const details = el("details", { toggle: fill }, el("summary", {}, title), inside);
  if (open) {
    fill();
    details.open = true;
  }
  return details;
}

function values(schema) {
  const { const: only, enum: some, minimum, maximum, minLength, maxLength, maxItems } = resolve(schema);
  const list = some || (only === undefined ? [] : [only]);
  const limits = [
    minimum !== undefined && "at least " + minimum,
    maximum !== undefined && "at most " + maximum,
    minLength > 1 && "at least " + minLength + " characters",
    maxLength !== undefined && "at most " + maxLength.toLocaleString("en") + " characters",
    maxItems !== undefined && "at most " + maxItems.toLocaleString("en") + " entries",
  ].filter(Boolean);
  if (list.length === 0 && limits.length === 0) return "";
  const codes = list.map((value) => el("code", {}, JSON.stringify(value)));
  return el("div", { class: "values" }, codes.flatMap((code) => [code, " "]), limits.join(", "));
}

function field(name, schema, required, description) {
  const inner = core(schema);
  const nested = hasFields(schema);
  const text = description || schema.description || (!nested && resolve(schema).description);
  return el(
    "div",
    { class: "field" },
    el(
      "div",
      { class: "name" },
      el("b", {}, name),
      kindOf(schema) !== name && el("span", { class: "kind" }, kindOf(schema)),
      required && el("span", { class: "must" }, "required"),
    ),
    text && el("div", { class: "text" }, prose(text)),
    values(inner),
    nested && folded(inner.properties ? "Fields" : "Forms", () => fields(inner)),
  );
}

/** All fields of an object, or the forms that a value may have. */
function fields(schema) {
  const inner = core(schema);
  const forms = choicesOf(inner).filter((choice) => !isNull(choice));
  if (forms.length > 0) return forms.map(form);
  const must = inner.required || [];
  const rows = Object.entries(inner.properties || {}).map(([name, each]) => field(name, each, must.includes(name)));
  if (rows.length > 0) return rows;
  return el("p", { class: "kind" }, kindOf(schema), " ", prose(inner.description));
}

function form(schema) {
  const inner = core(schema);
  const tag = Object.entries(inner.properties || {}).find(([, each]) => each.const !== undefined || each.enum || each.pattern);
  const words = tag && [tag[1].const || tag[1].enum || "any other " + tag[0]].flat();
  const title = words ? words.join(" | ") : kindOf(schema);
  if (!inner.properties && choicesOf(inner).length === 0) return field(title, inner, false);
  return el("div", { class: "field" }, folded(title, () => fields(inner)), el("div", { class: "text" }, prose(inner.description)));
}
`;
