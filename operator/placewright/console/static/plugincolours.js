// The look of a plugin: a colour and a pattern, the same on every page. The plugins that are built in have looks of their own; the
// look of any other is drawn from its name. No two looks differ in colour alone.

import { KINDS } from "./nodemap.js";

const LOOKS = {
  NodeResourcesFit: [5, "plain"], TaintToleration: [1, "plain"], NodeAffinity: [0, "plain"], NodeUnschedulable: [3, "plain"],
  PodTopologySpread: [4, "plain"], InterPodAffinity: [6, "plain"], DynamicResources: [7, "plain"], VolumeBinding: [0, "rising"],
  NodePorts: [1, "rising"], NodeName: [3, "rising"], VolumeZone: [4, "rising"], NodeVolumeLimits: [5, "rising"],
  VolumeRestrictions: [6, "rising"], NodeDeclaredFeatures: [7, "rising"], DomainLimit: [0, "dotted"], NodeStartRate: [1, "dotted"],
  NodeRejections: [3, "dotted"], GangScheduling: [4, "dotted"],
};
/** Kinds of plugins that are not built in: all but the green one, which is near to the colour of nodes that fit. */
const OTHERS = KINDS.filter((_, at) => at !== 2);
const PATTERNS = ["falling", "level", "dotted"];

/** The look of a plugin; the name is empty for nodes that no plugin is to blame for. */
export function look(plugin) {
  if (!plugin) return { token: "--kind-none", pattern: "plain" };
  const known = Object.hasOwn(LOOKS, plugin) ? LOOKS[plugin] : null;
  if (known) return { token: KINDS[known[0]], pattern: known[1] };
  let hash = 7;
  for (const letter of plugin) hash = (hash * 31 + letter.codePointAt(0)) % 1000003;
  return { token: OTHERS[hash % OTHERS.length], pattern: PATTERNS[Math.floor(hash / OTHERS.length) % PATTERNS.length] };
}

/** The class of a swatch with this pattern. */
export const swatchClass = (pattern) => `shape ${pattern}`;
