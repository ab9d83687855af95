// A form made from the JSON schema of a SchedulingProfile. What a field cannot hold stays as it was: reading the form gives every value back.

import { el, fill, shown } from "./element.js";

const MOST_LINES = 30;
let counted = 0;

/**
 * Make a field.
 * @param {Object} schema of the value.
 * @param {*} value undefined for an absent one.
 * @param {{name: string, path: string, changed: () => void, definitions: Object, label?: string, required?: boolean}} at
 * @returns {{node: Element, read: () => *, problem: () => string}} `read` gives undefined for an absent value.
 */
export function schemaField(schema, value, at) {
  if (schema.enum)
    return choiceField(
      schema,
      value,
      at,
      schema.enum.filter((each) => each !== null),
    );
  switch (schema.type) {
    case "boolean":
      return choiceField(schema, value, at, [true, false]);
    case "integer":
    case "number":
      return numberField(schema, value, at);
    case "string":
      return textField(schema, value, at);
    case "array":
      return optional(schema, value, at, [], schema.items.type === "object" ? itemsField : linesField);
    case "object":
      if (schema.properties) return at.required ? objectField(schema, value ?? {}, at) : optional(schema, value, at, {}, objectField);
      return optional(schema, value, at, {}, schema.additionalProperties?.type ? mapField : jsonField);
    default:
      return jsonField(schema, value, at);
  }
}

/** The names that a schema suggests. */
function suggestions(schema, definitions) {
  const names = (schema.anyOf ?? []).map((each) => each.$ref?.split("/").at(-1)).filter(Boolean);
  return names.flatMap((name) => definitions[name]?.enum ?? []);
}

const inside = (at, key) => `${at.path}${typeof key === "number" ? `[${key}]` : `.${key}`}`;
const words = (name) =>
  name
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .replace(/^./, (first) => first.toUpperCase());
const titled = (at) => at.label ?? words(at.name);

/** A label, the control, and the description as its help. */
function labelled(schema, at, control, ...more) {
  const id = `field-${++counted}`;
  control.id = id;
  const help = schema.description ? el("p", { class: "help", id: `${id}-help` }, schema.description) : null;
  if (help) control.setAttribute("aria-describedby", help.id);
  return el("div", { class: "formfield", data: { path: at.path } }, el("label", { for: id }, titled(at)), control, ...more, help);
}

function choiceField(schema, value, at, values) {
  const text = (each) => (each === true ? "yes" : each === false ? "no" : String(each));
  const none = schema.default === undefined ? "not set" : `not set (${text(schema.default)})`;
  const known = value === undefined || values.includes(value) ? values : [...values, value];
  const select = el(
    "select",
    { on: { change: at.changed } },
    el("option", { value: "" }, none),
    known.map((each, place) => el("option", { value: String(place) }, text(each))),
  );
  select.value = value === undefined ? "" : String(known.indexOf(value));
  return {
    node: labelled(schema, at, select),
    read: () => (select.value === "" ? undefined : known[Number(select.value)]),
    problem: () => "",
  };
}

function numberField(schema, value, at) {
  const whole = schema.type === "integer";
  const input = el("input", {
    type: "number",
    step: whole ? "1" : "any",
    min: schema.minimum,
    max: schema.maximum,
    value,
    placeholder: schema.default,
    autocomplete: "off",
    on: { input: at.changed },
  });
  return {
    node: labelled(schema, at, input),
    read: () => (Number.isNaN(input.valueAsNumber) ? undefined : input.valueAsNumber),
    problem: () => (input.validity.badInput ? `${titled(at)}: not a number` : ""),
  };
}

function textField(schema, value, at) {
  const names = suggestions(schema, at.definitions);
  const list = names.length
    ? el(
        "datalist",
        { id: `names-${++counted}` },
        names.map((name) => el("option", { value: name })),
      )
    : null;
  const input = el("input", {
    type: "text",
    value: value ?? "",
    list: list?.id,
    placeholder: schema.default,
    maxlength: schema.maxLength,
    required: at.required,
    autocomplete: "off",
    spellcheck: "false",
    on: { input: at.changed },
  });
  return {
    node: labelled(schema, at, input, list),
    read: () => (input.value === "" && (value !== "" || !at.required) ? undefined : input.value),
    problem: () => "",
  };
}

/** Text as JSON, for values of a free shape. */
function jsonField(schema, value, at) {
  const said = el("p", { class: "wrong", role: "alert" });
  let last = value;
  let wrong = "";
  const text = JSON.stringify(value, null, 2) ?? "";
  const area = el(
    "textarea",
    {
      rows: String(Math.min(MOST_LINES, Math.max(3, text.split("\n").length))),
      spellcheck: "false",
      autocomplete: "off",
      class: "mono",
      on: { input: parse },
    },
    document.createTextNode(text),
  );
  function parse() {
    try {
      last = area.value.trim() ? JSON.parse(area.value) : undefined;
      wrong = "";
    } catch (problem) {
      wrong = `not JSON: ${problem.message}`;
    }
    area.setAttribute("aria-invalid", String(Boolean(wrong)));
    if (said.textContent !== wrong) said.textContent = shown(wrong);
    at.changed();
  }
  return {
    node: labelled({ ...schema, description: [schema.description, "As JSON."].filter(Boolean).join(" ") }, at, area, said),
    read: () => last,
    problem: () => (wrong ? `${titled(at)}: ${wrong}` : ""),
  };
}

/** A list of texts, one on a line. */
function linesField(schema, value, at) {
  const area = el(
    "textarea",
    {
      rows: String(Math.min(MOST_LINES, Math.max(2, value.length + 1))),
      spellcheck: "false",
      autocomplete: "off",
      on: { input: at.changed },
    },
    document.createTextNode(value.join("\n")),
  );
  return {
    node: labelled({ description: "One on a line." }, { ...at, label: "Values" }, area),
    read: () => area.value.split("\n").filter(Boolean),
    problem: () => "",
  };
}

/** A value that may be absent: a button sets it, and another one removes it. */
function optional(schema, value, at, empty, make) {
  const body = el("div", { class: "formbody" });
  const button = el("button", {
    type: "button",
    on: {
      click: () => {
        set(field ? undefined : structuredClone(empty));
        at.changed();
        button.focus();
      },
    },
  });
  const help = schema.description ? el("p", { class: "help", id: `help-${++counted}` }, schema.description) : null;
  let field = null;
  function set(next) {
    field = next === undefined ? null : make(schema, next, at);
    button.textContent = field ? "Remove" : "Set";
    button.setAttribute("aria-label", `${field ? "Remove" : "Set"} ${titled(at)}`);
    fill(body, field?.node);
  }
  set(value);
  return {
    node: el(
      "div",
      { class: "formgroup", role: "group", "aria-label": titled(at), "aria-describedby": help?.id, data: { path: at.path } },
      el("div", { class: "formhead" }, el("span", { class: "formname" }, titled(at)), button),
      help,
      body,
    ),
    read: () => field?.read(),
    problem: () => field?.problem() ?? "",
  };
}

function objectField(schema, value, at) {
  const fields = Object.entries(schema.properties).map(([name, each]) => {
    const required = (schema.required ?? []).includes(name);
    return [
      name,
      schemaField(each, Object.hasOwn(value, name) ? value[name] : undefined, {
        ...at,
        label: undefined,
        name,
        path: inside(at, name),
        required,
      }),
    ];
  });
  // Fields that the schema does not know, of a newer definition, stay.
  const rest = Object.fromEntries(Object.entries(value).filter(([name]) => !Object.hasOwn(schema.properties, name)));
  return {
    node: el(
      "div",
      { class: "formfields" },
      fields.map(([, field]) => field.node),
    ),
    read: () => ({
      ...Object.fromEntries(fields.map(([name, field]) => [name, field.read()]).filter(([, each]) => each !== undefined)),
      ...rest,
    }),
    problem: () => fields.map(([, field]) => field.problem()).find(Boolean) ?? "",
  };
}

/** Rows that can be added and removed. `make(value, place)` makes one of them. */
function rowsField(values, at, make, adds) {
  const list = el("div", { class: "formrows" });
  let rows = [];
  const append = (value) => {
    const row = make(value, rows.length);
    const remove = el(
      "button",
      {
        type: "button",
        "aria-label": `Remove ${row.title}`,
        on: {
          click: () => {
            rows = rows.filter((each) => each !== row);
            row.line.remove();
            at.changed();
            add.focus();
          },
        },
      },
      "Remove",
    );
    row.line = el("div", { class: "formrow" }, row.node, remove);
    rows.push(row);
    list.append(row.line);
  };
  const add = el(
    "button",
    {
      type: "button",
      on: {
        click: () => {
          append(undefined);
          at.changed();
          list.lastElementChild.querySelector("input, select, textarea, button")?.focus();
        },
      },
    },
    adds,
  );
  values.forEach(append);
  return { node: el("div", {}, list, add), rows: () => rows, problem: () => rows.map((row) => row.problem()).find(Boolean) ?? "" };
}

function itemsField(schema, value, at) {
  const field = rowsField(
    value,
    at,
    (item, place) => {
      const title = `${titled(at)} ${place + 1}`;
      const made = objectField(withArguments(schema.items, item), item ?? {}, {
        ...at,
        label: undefined,
        path: inside(at, place),
        required: true,
      });
      return { ...made, title, node: el("div", { role: "group", "aria-label": title }, made.node) };
    },
    `Add to ${titled(at).toLowerCase()}`,
  );
  return { node: field.node, read: () => field.rows().map((row) => row.read()), problem: field.problem };
}

/** The items' schema, with the names of a known plugin's arguments in the help of `args`. */
function withArguments(schema, item) {
  const known = (schema.allOf ?? []).find((each) => each.if?.properties?.name?.const === item?.name)?.then?.properties?.args;
  if (!known) return schema;
  const names = Object.keys(known.properties ?? {}).filter((name) => name !== "apiVersion" && name !== "kind");
  const description = [known.description, names.length ? `Fields: ${names.join(", ")}.` : "It takes none."].filter(Boolean).join(" ");
  return { ...schema, properties: { ...schema.properties, args: { ...schema.properties.args, description } } };
}

function mapField(schema, value, at) {
  const field = rowsField(
    Object.entries(value),
    at,
    (entry, place) => {
      const [key, each] = entry ?? ["", undefined];
      const title = `${titled(at)} ${place + 1}`;
      const name = textField({}, key, { ...at, label: "Name", path: `${at.path}.${key}`, required: true });
      const made = schemaField({ ...schema.additionalProperties, description: undefined }, each, {
        ...at,
        label: "Value",
        path: `${at.path}.${key}`,
        required: true,
      });
      return {
        title,
        problem: made.problem,
        read: () => [name.read(), made.read()],
        node: el("div", { class: "formpair", role: "group", "aria-label": title }, name.node, made.node),
      };
    },
    `Add to ${titled(at).toLowerCase()}`,
  );
  const entries = () =>
    field
      .rows()
      .map((row) => row.read())
      .filter(([key, each]) => key !== undefined && each !== undefined);
  return { node: field.node, read: () => Object.fromEntries(entries()), problem: field.problem };
}

/** The JSON merge patch (RFC 7386) that turns one value into another. Made of entries, because a field may be called `__proto__`. */
export function mergePatch(before, after) {
  const gone = Object.keys(before)
    .filter((key) => !Object.hasOwn(after, key))
    .map((key) => [key, null]);
  const put = Object.entries(after).map(([key, value]) => {
    const old = Object.hasOwn(before, key) ? before[key] : undefined;
    if (same(old, value)) return null;
    return [key, isObject(old) && isObject(value) ? mergePatch(old, value) : value];
  });
  return Object.fromEntries([...gone, ...put.filter(Boolean)]);
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** Equal as JSON, whatever the order of the fields. */
function same(one, other) {
  if (Array.isArray(one) && Array.isArray(other))
    return one.length === other.length && one.every((each, place) => same(each, other[place]));
  if (isObject(one) && isObject(other))
    return (
      Object.keys(one).length === Object.keys(other).length &&
      Object.keys(one).every((key) => Object.hasOwn(other, key) && same(one[key], other[key]))
    );
  return one === other;
}
