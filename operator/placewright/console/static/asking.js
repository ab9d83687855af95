// A page that is asked for, and asked for again while the state changes: at most once in a few seconds, however often that is.

import { request } from "./request.js";

const REST = 3000;

/**
 * Ask for a page and keep it fresh.
 * @param {string} path of the request
 * @param {(found: Object) => void} onFound
 * @param {(text: string) => void} onMissing
 * @returns {{stale: () => void, leave: () => void}} `stale` says that the answer may be another by now.
 */
export function asking(path, onFound, onMissing) {
  let here = true, last = "", due = 0, asked = -Infinity;

  async function ask() {
    due = 0;
    asked = performance.now();
    const answer = await request(path).catch(() => null);
    if (!here || !answer) return;
    const text = await answer.text();
    // A page that says the same stays as it is, with the focus and what a person has opened.
    if (!here || text === last) return;
    last = text;
    if (answer.ok) onFound(JSON.parse(text));
    else onMissing(text);
  }

  ask();
  return {
    stale() { due ||= setTimeout(ask, Math.max(0, asked + REST - performance.now())); },
    leave() { here = false; clearTimeout(due); },
  };
}
