// Content that goes on changing under a person's eyes. Elements stay, and only what differs in them is written, so that the focus, a
// selection, what is unfolded and what is scrolled stay with them. Rows that a person points at, and text that a person has selected, wait.

import { shown, takeListeners } from "./element.js";
import { plural } from "./words.js";

/** What moves when rows come and go. */
const ROWS = "tbody, ul, ol";
/** The attribute that is a person's, and not the page's. */
const UNFOLDED = "open";
/** Newer content of elements that are held, and how often it was replaced. */
const waiting = new Map();
let pointed = null;
let pressed = false;

/** Write the content of an element anew. Children are known again by their `data-key` or id, others by their place among their like. */
export function reconcile(parent, ...children) {
  sync(
    parent,
    children
      .flat(3)
      .filter((each) => each !== null && each !== undefined && each !== "")
      .map((each) => (each instanceof Node ? each : document.createTextNode(shown(each)))),
  );
}

function isHeld(element) {
  const selection = getSelection();
  if (pressed || (!selection.isCollapsed && selection.containsNode(element, true))) return true;
  return pointed !== null && element.matches(ROWS) && element.contains(pointed);
}

function sync(parent, next) {
  if (!parent.hasChildNodes() || !isHeld(parent)) {
    waiting.delete(parent);
    write(parent, next);
  } else waiting.set(parent, { next, many: (waiting.get(parent)?.many ?? 0) + 1 });
  tell();
}

function write(parent, next) {
  const focused = parent.contains(document.activeElement) ? document.activeElement : null;
  const known = keyed(parent.childNodes);
  const kept = [...keyed(next)].map(([key, made]) => {
    const old = known.get(key);
    if (!old) return made;
    known.delete(key);
    patch(old, made);
    return old;
  });
  for (const gone of known.values()) gone.remove();
  let at = parent.firstChild;
  for (const each of kept) {
    if (each === at) at = at.nextSibling;
    else parent.insertBefore(each, at);
  }
  // A row that moved has lost the focus on its way.
  if (focused?.isConnected && document.activeElement !== focused) focused.focus({ preventScroll: true });
}

/** Nodes by what they are known by; of equal ones, the first, the second and so on. */
function keyed(nodes) {
  const found = new Map();
  const seen = new Map();
  for (const each of nodes) {
    const name = `${each.nodeName} ${each.dataset?.key ?? each.id ?? ""}`;
    const number = (seen.get(name) ?? 0) + 1;
    seen.set(name, number);
    found.set(`${number} ${name}`, each);
  }
  return found;
}

function patch(old, made) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== made.data) old.data = made.data;
    return;
  }
  for (const { name } of [...old.attributes]) if (name !== UNFOLDED && !made.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of made.attributes) {
    if (name === UNFOLDED || old.getAttribute(name) === value) continue;
    // The policy of the pages lets scripts set properties of a style, and not its text as an attribute.
    if (name === "style") old.style.cssText = made.style.cssText;
    else old.setAttribute(name, value);
  }
  takeListeners(old, made);
  sync(old, [...made.childNodes]);
  if (old.nodeName === "SELECT") old.value = made.value;
}

/** Write what waits and is held no more. */
function release() {
  for (const [parent, { next }] of waiting) {
    if (!parent.isConnected) waiting.delete(parent);
    else if (!isHeld(parent)) sync(parent, next);
  }
  tell();
}

/** Say that something is held: a page that stands still without a word would look like a quiet cluster. */
function tell() {
  const held = [...waiting].filter(([parent]) => parent.isConnected).map(([, { many }]) => many);
  const mark = document.getElementById("held");
  mark.hidden = !held.length;
  const text = held.length ? `Held while you point or select · ${plural(Math.max(...held), "update")} to come` : "";
  if (mark.textContent !== text) mark.textContent = text;
}

function point(event) {
  const lifted = event.pointerType === "touch" && event.type !== "pointerdown" && !event.buttons;
  pointed = lifted || event.type === "pointerleave" ? null : event.target;
  if (!event.buttons) pressed = false;
  release();
}

// Nothing moves between the press and the click that it becomes.
addEventListener("pointerdown", (event) => (pressed = !event.target.closest("select")), true); // a list of options takes the pointer away
for (const end of ["pointerup", "pointercancel", "dragend"])
  addEventListener(end, (event) => setTimeout(() => { pressed = false; point(event); }), true); // prettier-ignore
document.addEventListener("pointerover", point);
document.documentElement.addEventListener("pointerleave", point);
document.addEventListener("selectionchange", release);
