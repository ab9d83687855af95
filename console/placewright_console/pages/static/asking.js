// A page that is asked for, and asked for again while the state changes: at most once in a few seconds, however often that is.

import { el, fill } from "./element.js";
import { failure } from "./failure.js";
import { reconcile } from "./live.js";
import { request } from "./request.js";

const REST = 5000;

/**
 * Ask for a page and keep it fresh.
 * @param {string} path of the request
 * @param {(found: Object) => void} onFound
 * @param {(text: string) => void} onMissing
 * @returns {{stale: () => void, leave: () => void}} `stale` says that the answer may be another by now.
 */
function asking(path, onFound, onMissing) {
  let here = true,
    last = "",
    due = 0,
    asked = -Infinity;

  async function ask() {
    due = 0;
    asked = performance.now();
    const answer = await request(path).catch(() => null);
    const text = answer?.ok ? await answer.text() : await failure(answer);
    // A page that says the same stays as it is, and what was seen stays while nobody answers: the head of the page says so.
    if (!here || text === last || (last && !answer?.ok && answer?.status !== 404)) return;
    last = text;
    if (answer?.ok) onFound(JSON.parse(text));
    else onMissing(text);
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
  const written = (found) => reconcile(body, write(found, state?.about.get("now") ?? Date.now() / 1000));
  const missing = (text) => alone(el("h1", { class: "mono" }, `${namespace}/${name}`), text);
  fill(root, body);
  const page = name === undefined ? null : asking(`api/${kind}?${kind}=${encodeURIComponent(`${namespace}/${name}`)}`, written, missing);
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
