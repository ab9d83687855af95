// What changed lately: nodes that came, went or were cordoned, found by holding each state of the feed against the one before, and the marks.

import { nodeLink } from "./links.js";
import { plural } from "./words.js";

/** Changes of nodes that are kept, and names in each: a change of a thousand nodes at once is one line. */
const KEPT = 20;
const NAMED = 3;
const UNSEEN = undefined;
let kept = [];
/** Whether each node is cordoned, by name; null before the first state. */
let known = null;
/** Deltas were passed over, so that all nodes are to be looked at. */
let behind = false;

/** What happened to a node, by whether it was cordoned and is: neither is known of a node that is not there. */
function verb(before, now) {
  if (before === UNSEEN) return "came";
  if (now === UNSEEN) return "went";
  return now ? "cordoned" : "uncordoned";
}

/** Look at a state and the delta that led to it, which is null for a whole one. */
export function lookForChanges({ about, nodes }, delta) {
  // A server that still reads its objects has fewer nodes than the cluster.
  if (about.has("opening") || about.has("failed")) behind = true;
  else if (known === null) known = new Map([...nodes].map(([name, row]) => [name, row[2]]));
  else compare(nodes, delta, about.get("now"));
}

function compare(nodes, delta, at) {
  const whole = behind || !delta;
  const names = whole
    ? new Set([...known.keys(), ...nodes.keys()])
    : [...Object.keys(delta.put?.nodes ?? {}), ...(delta.gone?.nodes ?? [])];
  behind = false;
  const found = new Map();
  for (const name of names) {
    const before = known.get(name),
      now = nodes.get(name)?.[2];
    if (before === now) continue;
    const what = verb(before, now);
    if (!found.has(what)) found.set(what, []);
    found.get(what).push(name);
    if (now === UNSEEN) known.delete(name);
    else known.set(name, now);
  }
  const made = [...found].map(([what, names]) => ({ at, what, named: names.sort().slice(0, NAMED), more: names.length - NAMED }));
  kept = [...made, ...kept].slice(0, KEPT);
}

/** What was seen goes with the right to see it. */
export function forgetChanges() {
  kept = [];
  known = null;
}

/** The latest changes, the newest first: when each was, and what, as content of an element. */
export function latestChanges(state, most) {
  const marks = [...(state.marks ?? new Map()).values()].map(({ at, text }) => [at, [text]]);
  const ofNodes = kept.map(({ at, what, named, more }) => [
    at,
    [
      named.length > 1 ? "nodes " : "node ",
      ...named.flatMap((name, place) => [place ? ", " : "", state.nodes.has(name) ? nodeLink(name) : name]),
      more > 0 ? ` and ${plural(more, "other")} ` : " ",
      what === "came" || what === "went" ? what : `${named.length > 1 ? "were" : "was"} ${what}`,
    ],
  ]);
  return [...ofNodes, ...marks].sort(([one], [other]) => other - one).slice(0, most);
}
