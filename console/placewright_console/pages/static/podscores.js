// The scores of nodes on a pod's page: of a pod that waits the best nodes now, and of a placed one the decision.

import { el, table } from "./element.js";
import { nodeLink } from "./links.js";
import { KINDS } from "./nodemap.js";
import { count, plural } from "./words.js";

/** The best nodes as bars of the parts that differ; parts that are the same on all of them are told once. */
export function scores(best, ties) {
  const product = (node, plugin) => node.parts[plugin]?.[3] ?? 0;
  const plugins = [...new Set(best.flatMap((node) => Object.keys(node.parts)))].filter((plugin) =>
    best.some((node) => product(node, plugin)),
  );
  const same = (plugin) => best.length > 1 && best.every((node) => product(node, plugin) === product(best[0], plugin));
  const differing = plugins.filter((plugin) => !same(plugin));
  const sum = (node) => differing.reduce((all, plugin) => all + Math.max(0, product(node, plugin)), 0);
  const most = Math.max(1, ...best.map(sum));
  const colour = (plugin) => `var(${KINDS[plugins.indexOf(plugin) % KINDS.length]})`;
  const bars = best.map((node) =>
    el(
      "li",
      {},
      el("span", { class: "mono" }, nodeLink(node.node)),
      el(
        "span",
        { class: "lane", "aria-hidden": "true" },
        differing.map((plugin) =>
          el("i", {
            title: `${plugin}: ${product(node, plugin)}`,
            style: { width: `${(Math.max(0, product(node, plugin)) / most) * 100}%`, background: colour(plugin) },
          }),
        ),
      ),
      el("b", { class: "number" }, count(node.total)),
    ),
  );
  const legend = el(
    "div",
    { class: "legend" },
    differing.map((plugin) => el("span", { class: "key" }, el("i", { class: "swatch", style: { background: colour(plugin) } }), plugin)),
  );
  const equal = plugins.filter(same).map((plugin) => `${plugin} ${count(product(best[0], plugin))}`);
  const rows = best.flatMap((node) => Object.entries(node.parts).map(([plugin, figures]) => [node.node, plugin, ...figures.map(count)]));
  const columns = [
    { name: "Node", mono: true },
    { name: "Plugin" },
    ...["Raw", "Normalised", "Weight", "Product"].map((each) => ({ name: each, number: true })),
  ];
  return [
    ties > 1 ? el("p", { id: "ties" }, `${plural(ties, "node")} tie at ${count(best[0].total)}; chance decides among them.`) : null,
    equal.length ? el("p", { class: "muted small", id: "same" }, `The same on each of these nodes: ${equal.join(", ")}.`) : null,
    el("ol", { class: differing.length ? "scores" : "scores bare" }, bars),
    differing.length ? legend : null,
    el("details", {}, el("summary", {}, "Scores as a table"), table("Scores by node and plugin", columns, rows)),
  ];
}

/** Why a placed pod has its node, as far as it is kept. */
export function decision({ score, runnerUp, plugins, ties, feasible, nodes, best }) {
  const margin = runnerUp === null ? "" : score === runnerUp ? ", as much" : `, ${count(score - runnerUp)} less`;
  const other = best.length > 1 ? ["; ", nodeLink(best[1].node), " came next"] : [];
  return [
    el(
      "p",
      {},
      `Score ${count(score)}; ${runnerUp === null ? "there was no other node" : `the best other node had ${count(runnerUp)}${margin}`}`,
      ...other,
      ".",
    ),
    nodes ? el("p", {}, `${count(feasible)} of ${plural(nodes, "node")} that were examined could hold it.`) : null,
    best.length > 1
      ? scores(best, ties)
      : [
          ties > 1 ? el("p", { id: "ties" }, `Chosen at random among ${plural(ties, "node")} with that total.`) : null,
          table(
            "Products by plugin",
            [{ name: "Plugin" }, { name: "Product", number: true }],
            Object.entries(plugins).map(([plugin, product]) => [plugin, count(product)]),
          ),
          el("p", { class: "muted small" }, "Names and scores of the other nodes are not kept."),
        ],
  ].flat();
}
