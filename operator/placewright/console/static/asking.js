// A page that is asked for, and asked for again while the state changes: at most once in a few seconds, however often that is.

import { el, fill } from "./element.js";
import { request } from "./request.js";

const REST = 5000;
const nameOf = (element) =>
  `${element.tagName} ${element.getAttribute("href") ?? element.getAttribute("aria-label") ?? element.textContent}`;

/**
 * Ask for a page and keep it fresh.
 * @param {HTMLElement} root of the page; the focus stays where it was when the page is written anew
 * @param {string} path of the request
 * @param {(found: Object) => void} onFound
 * @param {(text: string) => void} onMissing
 * @returns {{stale: () => void, leave: () => void}} `stale` says that the answer may be another by now.
 */
function asking(root, path, onFound, onMissing) {
  let here = true,
    last = "",
    due = 0,
    asked = -Infinity;

  async function ask() {
    due = 0;
    asked = performance.now();
    const answer = await request(path).catch(() => null);
    if (!here || !answer) return;
    const text = await answer.text();
    // A page that says the same stays as it is.
    if (!here || text === last) return;
    last = text;
    const held = root.contains(document.activeElement) ? nameOf(document.activeElement) : "";
    if (answer.ok) onFound(JSON.parse(text));
    else onMissing(text);
    if (held) [...root.querySelectorAll("a, summary, [tabindex]")].find((each) => nameOf(each) === held)?.focus({ preventScroll: true });
  }

  ask();
  return {
    stale() {
      due ||= setTimeout(ask, Math.max(0, asked + REST - performance.now()));
    },
    leave() {
      here = false;
      clearTimeout(due);
    },
  };
}

/**
 * The page of one object of a namespace, asked for and kept fresh.
 * @param {HTMLElement} root
 * @param {string} kind of the object, as the request has it
 * @param {string[]} address namespace and name; none for the page that says where to find one
 * @param {string} hint for a person who named none
 * @param {(found: Object, now: number) => Node[]} write makes the content
 */
export function askedPage(root, kind, [namespace, name], hint, write) {
  let state = null;
  const body = el("div", { class: "stack", id: kind });
  const alone = (head, text) => fill(body, el("section", { class: "panel empty" }, head, el("p", {}, text)));
  const written = (found) => fill(body, write(found, state?.about.get("now") ?? Date.now() / 1000));
  const missing = (text) => alone(el("h1", { class: "mono" }, `${namespace}/${name}`), text);
  fill(root, body);
  const page =
    name === undefined ? null : asking(body, `api/${kind}?${kind}=${encodeURIComponent(`${namespace}/${name}`)}`, written, missing);
  if (!page) alone(el("h1", {}, `Which ${kind}?`), hint);
  return {
    update(next) {
      if (state) page?.stale();
      state = next;
    },
    leave() {
      page?.leave();
    },
  };
}
