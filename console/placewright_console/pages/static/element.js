// Elements of the page. Text becomes text nodes, never markup: names come from anybody who may create a pod.

/**
 * Make an element.
 * @param {string} tag
 * @param {Object} [with_] `class`, `on` (listeners by event), `data` (dataset), `style` (custom or plain properties); all else attributes.
 * @param {...(Node|string|number|null|undefined|Array)} children
 */
export function el(tag, with_ = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(with_)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") made.className = value;
    else if (name === "on") for (const [event, heard] of Object.entries(value)) listen(made, event, heard);
    else if (name === "data") Object.assign(made.dataset, value);
    else if (name === "style") for (const [key, set] of Object.entries(value)) made.style.setProperty(key, set);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(
    ...children
      .flat()
      .filter((each) => each !== null && each !== undefined && each !== "")
      .map((each) => (each instanceof Node ? each : shown(each))),
  );
  return made;
}

/** What elements do at events. Kept apart from them, so that an element that stays can do what its successor would. */
const listeners = new WeakMap();

function listen(element, event, heard) {
  const known = listeners.get(element) ?? listeners.set(element, {}).get(element);
  if (!(event in known)) element.addEventListener(event, (happened) => listeners.get(element)[event]?.(happened));
  known[event] = heard;
}

/** Have an element do what another one, which was made to replace it, would do. */
export function takeListeners(element, successor) {
  const next = listeners.get(successor) ?? {};
  for (const event of Object.keys(listeners.get(element) ?? {})) listen(element, event, next[event]);
  for (const [event, heard] of Object.entries(next)) listen(element, event, heard);
}

/** Replace the content of an element by something else. Content that is the same, only newer, is for `reconcile`. */
export function fill(parent, ...children) {
  parent.replaceChildren(...children.flat().filter((each) => each !== null && each !== undefined));
}

/** Text as people may see it: characters that turn the direction of writing or that cannot be seen stand as escapes. */
export function shown(text) {
  return String(text).replace(
    /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g,
    (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** A panel with its title. */
export const section = (title, id, ...content) => el("section", { class: "panel stack tight", id }, el("h2", {}, title), ...content);

/**
 * A table with a caption; a column with `number` is aligned to the right.
 * @param {string} caption
 * @param {{name: string|Node, number?: boolean, mono?: boolean, sort?: string}[]} columns `sort` as aria-sort has it
 * @param {Array[]} rows of cells
 * @param {string[]} [keys] by which rows are known again; the text of the first cell without
 */
export function table(caption, columns, rows, keys) {
  const head = columns.map((column) =>
    el("th", { scope: "col", class: column.number ? "number" : null, "aria-sort": column.sort }, column.name),
  );
  const body = rows.map((row, number) => {
    const cells = row.map((cell, at) => el("td", { class: columns[at].number ? "number" : columns[at].mono ? "mono" : null }, cell));
    return el("tr", { data: { key: keys?.[number] ?? cells[0]?.textContent ?? "" } }, cells);
  });
  return el(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", {}, el("caption", {}, caption), el("thead", {}, el("tr", {}, head)), el("tbody", {}, body)),
  );
}
