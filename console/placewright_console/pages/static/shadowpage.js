// The page of shadows: how often each agrees with its live profile, how much worse each finds the other's nodes, and where they differ.

import { el, fill, shown, table } from "./element.js";
import { nodeLink, podLink } from "./links.js";
import { reconcile } from "./live.js";
import { count, few, plural, tenth } from "./words.js";

const OUTCOMES = [
  ["the same node", "--kind-2"],
  ["another node", "--kind-1"],
  ["the live profile alone found one", "--kind-5"],
  ["the shadow alone found one", "--kind-0"],
  ["neither found one", "--kind-none"],
];
const share = (part, whole) => (whole ? `${tenth((100 * part) / whole)} %` : "–");

export function shadowPage(root) {
  let state = null;
  const list = el("div", { class: "stack", id: "shadows" });
  fill(root, el("h1", { class: "out" }, "Shadows"), list);

  function write() {
    const rows = [...state.shadows].sort(([one], [other]) => (one < other ? -1 : 1));
    reconcile(
      list,
      rows.length
        ? rows.map(([name, row]) => one(name, row))
        : el(
            "section",
            { class: "panel empty" },
            el("h2", {}, "No shadow is at work"),
            el("p", {}, "A SchedulingProfile with mode: Shadow decides beside a live one and binds nothing."),
          ),
    );
  }

  return {
    update(next, delta) {
      state = next;
      if (state.shadows && (!delta || delta.put?.shadows || delta.gone?.shadows)) write();
    },
  };
}

function one(name, row) {
  const fact = (text, label) => el("div", { class: "fact" }, el("b", {}, text), el("span", {}, label));
  const [decided, mean, , percent] = row.regret;
  const lost = [
    row.pods - row.decided > 0 ? `${plural(row.pods - row.decided, "decision")} not made yet or passed over` : "",
    row.restarts ? `begun anew ${plural(row.restarts, "time")}` : "",
    row.errors ? `${plural(row.errors, "error")}${row.lastError ? `, the last: ${row.lastError}` : ""}` : "",
  ].filter(Boolean);
  const made = el(
    "section",
    { class: "panel stack", "aria-label": shown(`Shadow ${name}`) },
    el(
      "div",
      {},
      el("h2", { class: "mono" }, name),
      el(
        "p",
        { class: "muted small" },
        `generation ${count(row.generation)}, beside ${row.beside || "a live profile"}${row.liveGeneration ? `, generation ${count(row.liveGeneration)}` : ""}${row.since ? `, since ${row.since.replace("T", " ").replace("Z", " UTC")}` : ""}`,
      ),
    ),
    el(
      "div",
      { class: "facts" },
      fact(row.agreement === null ? "–" : `${tenth(row.agreement)} %`, "on the same node"),
      fact(decided ? `${few(mean)} points` : "–", `mean regret${decided ? `, ${tenth(percent)} % of its best totals` : ""}`),
      fact(count(row.decided), `of ${plural(row.pods, "decision")} compared`),
      fact(`${tenth(row.timePercent)} %`, "of the time taken"),
    ),
    el(
      "div",
      { class: "parts" },
      outcomes(row),
      el(
        "div",
        { class: "stack tight" },
        resources(row),
        el(
          "div",
          { class: "lines small" },
          [
            row.liveRegret[0]
              ? `By the live totals, its nodes are worse by ${few(row.liveRegret[1])} points on average, at most ${few(row.liveRegret[2])} (${plural(row.liveRegret[0], "decision")}).`
              : "",
            decided
              ? `By its own totals, live nodes are worse by at most ${few(row.regret[2])} points (${plural(decided, "decision")}).`
              : "",
            row.notFeasible ? `${plural(row.notFeasible, "live node")} could not have held the pod in its world.` : "",
            row.pending ? `${plural(row.pending, "pod")} would wait now.` : "",
            ...lost,
          ]
            .filter(Boolean)
            .map((line) => el("p", {}, line)),
        ),
      ),
      examples(row),
    ),
  );
  // Tables of several shadows have equal captions, and a list of landmarks shows no more than their labels.
  for (const each of made.querySelectorAll("[role=region]"))
    each.setAttribute("aria-label", shown(`${each.getAttribute("aria-label")}, ${name}`));
  return made;
}

function outcomes(row) {
  const whole = row.outcomes.reduce((sum, each) => sum + each, 0);
  const bar = el(
    "span",
    { class: "lane", "aria-hidden": "true" },
    row.outcomes.map((each, at) =>
      el("i", { style: { width: `${whole ? (each / whole) * 100 : 0}%`, background: `var(${OUTCOMES[at][1]})` } }),
    ),
  );
  const cells = OUTCOMES.map(([text, token], at) => [
    el("span", { class: "key" }, el("i", { class: "swatch", style: { background: `var(${token})` } }), text),
    count(row.outcomes[at]),
    share(row.outcomes[at], whole),
  ]);
  return el(
    "div",
    { class: "outcomes stack tight" },
    bar,
    table("Decisions of both", [{ name: "Outcome" }, { name: "Decisions", number: true }, { name: "Share", number: true }], cells),
  );
}

function resources(row) {
  if (!row.resources.length) return null;
  const told = ([mean, deviation]) => (mean === null ? "not known" : `${tenth(mean)} ± ${tenth(deviation)} %`);
  /** Nodes that are empty are counted with the use of nodes; without that, 0 would be a number that nobody saw. */
  const known = (side) => row.resources.some(([, ...shares]) => shares[2 * side] !== null);
  const rows = row.resources.map(([name, ...shares]) => [name, told(shares.slice(0, 2)), told(shares.slice(2))]);
  return table(
    "Requested of the nodes, mean ± deviation",
    [
      { name: "Resource", mono: true },
      { name: "With this shadow", number: true },
      { name: "As it is", number: true },
    ],
    [...rows, ["empty nodes", ...row.emptyNodes.map((many, side) => (known(side) ? count(many) : "not known"))]],
  );
}

function examples(row) {
  if (!row.examples.length && !row.hidden) return null;
  const rows = row.examples.map(([namespace, pod, shadow, live, points]) => [
    podLink(namespace, pod),
    live ? nodeLink(live) : "none",
    shadow ? nodeLink(shadow) : "none",
    points === null ? "–" : count(points),
  ]);
  const hidden = row.hidden ? `, and ${plural(row.hidden, "pod")} of other namespaces` : "";
  const list = table(
    `Where they differ, the latest first${hidden}`,
    [
      { name: "Pod", mono: true },
      { name: "Live node", mono: true },
      { name: "Shadow's node", mono: true },
      { name: "Points", number: true },
    ],
    rows,
  );
  list.classList.add("tall");
  return list;
}
