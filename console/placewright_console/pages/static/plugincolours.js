// The look of a plugin: a colour and a shape, the same on every page. The plugins that are built in have looks of their own; the
// look of any other is drawn from its name. No two looks differ in colour alone.

import { KINDS } from "./nodemap.js";

const LOOKS = {
  NodeResourcesFit: [5, "square"],
  TaintToleration: [1, "square"],
  NodeAffinity: [0, "square"],
  NodeUnschedulable: [3, "square"],
  PodTopologySpread: [4, "square"],
  InterPodAffinity: [6, "square"],
  DynamicResources: [7, "square"],
  VolumeBinding: [0, "diamond"],
  NodePorts: [1, "diamond"],
  NodeName: [3, "diamond"],
  VolumeZone: [4, "diamond"],
  NodeVolumeLimits: [5, "diamond"],
  VolumeRestrictions: [6, "diamond"],
  NodeDeclaredFeatures: [7, "diamond"],
  DomainLimit: [0, "round"],
  NodeStartRate: [1, "round"],
  NodeRejections: [3, "round"],
  GangScheduling: [4, "round"],
};
/** Kinds of plugins that are not built in: all but the green one, which is near to the colour of nodes that fit. */
const OTHERS = KINDS.filter((_, at) => at !== 2);
const SHAPES = ["upright", "level", "round"];

/** The look of a plugin; the name is empty for nodes that no plugin is to blame for. */
export function look(plugin) {
  if (!plugin) return { token: "--kind-none", shape: "square" };
  const known = Object.hasOwn(LOOKS, plugin) ? LOOKS[plugin] : null;
  if (known) return { token: KINDS[known[0]], shape: known[1] };
  let hash = 7;
  for (const letter of plugin) hash = (hash * 31 + letter.codePointAt(0)) % 1000003;
  return { token: OTHERS[hash % OTHERS.length], shape: SHAPES[Math.floor(hash / OTHERS.length) % SHAPES.length] };
}

/** The class of a swatch with this shape. */
export const swatchClass = (shape) => `shape ${shape}`;
