// Links to the pages of a pod, a group, a claim and a node on the map. Names are escaped: any of them may hold any character.

import { el, shown } from "./element.js";

const address = (page, namespace, name) => `#/${page}/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;

export const podLink = (namespace, name, text = `${namespace}/${name}`) => el("a", { href: address("pod", namespace, name) }, text);
export const groupLink = (namespace, name, text = `${namespace}/${name}`) => el("a", { href: address("group", namespace, name) }, text);
export const claimLink = (namespace, name, text = `${namespace}/${name}`) => el("a", { href: address("claim", namespace, name) }, text);
export const nodeLink = (name) => el("a", { href: `#/cluster?node=${encodeURIComponent(name)}` }, name);
/** To the map, coloured by what a waiting pod would meet. */
export const mapLink = (namespace, name, text = "") =>
  el(
    "a",
    {
      href: `#/cluster?pod=${encodeURIComponent(`${namespace}/${name}`)}`,
      "aria-label": text ? null : shown(`${namespace}/${name} on the map`),
    },
    text || "map",
  );
