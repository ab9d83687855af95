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
    else if (name === "on") for (const [event, heard] of Object.entries(value)) made.addEventListener(event, heard);
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

/** Replace the content of an element. A person who is in it with the focus stays at the same link or key, and what was unfolded or scrolled stays so. */
export function fill(parent, ...children) {
  const held = parent.contains(document.activeElement) && document.activeElement !== parent ? document.activeElement : null;
  const unfolded = new Set([...parent.querySelectorAll("details[open] > summary")].map((each) => each.textContent));
  const scrolled = new Map(
    [...parent.querySelectorAll(".scroll")]
      .filter((each) => each.scrollTop || each.scrollLeft)
      .map((each) => [each.getAttribute("aria-label"), [each.scrollLeft, each.scrollTop]]),
  );
  parent.replaceChildren(...children.flat().filter((each) => each !== null && each !== undefined));
  for (const each of unfolded.size ? parent.querySelectorAll("details > summary") : [])
    if (unfolded.has(each.textContent)) each.parentElement.open = true;
  for (const each of scrolled.size ? parent.querySelectorAll(".scroll") : [])
    if (scrolled.has(each.getAttribute("aria-label"))) each.scrollTo(...scrolled.get(each.getAttribute("aria-label")));
  if (!held || parent.contains(held)) return;
  const name = held.dataset.key ? "data-key" : held.hasAttribute("href") ? "href" : held.id ? "id" : "aria-label";
  if (held.getAttribute(name)) parent.querySelector(`[${name}="${CSS.escape(held.getAttribute(name))}"]`)?.focus({ preventScroll: true });
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

/** A table with a caption; a column with `number` is aligned to the right. */
export function table(caption, columns, rows) {
  const head = columns.map((column) => el("th", { scope: "col", class: column.number ? "number" : null }, column.name));
  const body = rows.map((row) =>
    el(
      "tr",
      {},
      row.map((cell, at) => el("td", { class: columns[at].number ? "number" : columns[at].mono ? "mono" : null }, cell)),
    ),
  );
  return el(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", {}, el("caption", {}, caption), el("thead", {}, el("tr", {}, head)), el("tbody", {}, body)),
  );
}
