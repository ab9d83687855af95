// The page of a pod group: its members by state, what it needs, the domains of its topology, what is short, and what is kept for it.

import { askedPage } from "./asking.js";
import { el, section, table } from "./element.js";
import { groupLink, mapLink, nodeLink, podLink } from "./links.js";
import { KINDS } from "./nodemap.js";
import { amount, count, plural, span } from "./words.js";

/** Places of the queue and states on nodes, in the order in which a member goes through them, each with its colour. */
const STATES = ["gated", "unschedulable", "backoff", "active", "in-flight", "assumed", "bound", "running"];
const colourOf = (state) =>
  STATES.includes(state) ? `var(${KINDS[[3, 5, 1, 4, 6, 7, 0, 2][STATES.indexOf(state)]]})` : "var(--kind-none)";

export function groupPage(root, address) {
  return askedPage(root, "group", address, "The queue and the page of a pod have links to groups.", write);
}

function write(found, now) {
  const { facts } = found;
  const first = found.members.find(([, , node]) => !node);
  const kept = Object.entries(facts.kept ?? {});
  const more = [
    found.domains ? domains(found.domains) : null,
    ...facts.shortages.map(shortage),
    kept.length
      ? section(
          "Nodes that are kept for it",
          "kept",
          table(
            "Nodes, each with the members that it is kept for",
            [
              { name: "Node", mono: true },
              { name: "Members", number: true },
            ],
            kept.map(([node, many]) => [nodeLink(node), count(many)]),
          ),
        )
      : null,
  ].filter(Boolean);
  return [
    el(
      "section",
      { class: "panel stack tight" },
      el("h1", { class: "mono" }, `${found.namespace}/${found.name}`),
      el("div", { class: "tags" }, el("span", { class: "tag" }, found.kind)),
      el("p", { id: "headline" }, el("b", {}, `${found.headline}.`)),
      el(
        "div",
        { class: "lines" },
        found.lines.map((line) => el("p", { class: line.startsWith("  ") ? "indent" : "" }, line.trim())),
      ),
      first ? el("p", { class: "links small" }, mapLink(found.namespace, first[0], "what a waiting member would meet, on the map")) : null,
      found.notes.map((note) => el("p", { class: "muted small" }, note)),
    ),
    more.length ? el("div", { class: "stack halves" }, members(found, now), el("div", { class: "stack" }, more)) : members(found, now),
  ];
}

function members(found, now) {
  const all = found.states.reduce((sum, [, many]) => sum + many, 0);
  const bar = el(
    "span",
    { class: "lane", "aria-hidden": "true" },
    found.states.map(([state, many]) =>
      el("i", { title: `${state}: ${many}`, style: { width: `${(many / all) * 100}%`, background: colourOf(state) } }),
    ),
  );
  const legend = el(
    "div",
    { class: "legend" },
    found.states.map(([state, many]) =>
      el("span", { class: "key" }, el("i", { class: "swatch", style: { background: colourOf(state) } }), `${count(many)} ${state}`),
    ),
  );
  const rows = found.members.map(([name, state, node, since]) => [
    podLink(found.namespace, name),
    state,
    node ? nodeLink(node) : "–",
    node || !since ? "–" : span(now - since),
  ]);
  return section(
    plural(all, "member"),
    "members",
    all ? [bar, legend] : el("p", { class: "muted" }, "No member is there."),
    rows.length
      ? table(
          `Members${found.more ? `, and ${plural(found.more, "more")}` : ""}`,
          [{ name: "Pod", mono: true }, { name: "State" }, { name: "Node", mono: true }, { name: "Waits", number: true }],
          rows,
        )
      : null,
  );
}

function domains({ key, members: wanted, found, others = 0 }) {
  const rows = found.map((each) => {
    const fit = Math.min(each.fit ?? 0, wanted);
    const bar = el(
      "span",
      { class: "track", "aria-hidden": "true" },
      el("i", { class: fit < wanted ? "full" : "", style: { width: `${wanted ? (fit / wanted) * 100 : 0}%` } }),
    );
    const free = each.scarce
      ? `${amount(each.scarce.resource, each.scarce.free)} of ${amount(each.scarce.resource, each.scarce.wanted)} ${each.scarce.resource}`
      : "–";
    return [
      each.value,
      each.usable === each.nodes ? count(each.nodes) : `${count(each.usable)} of ${count(each.nodes)}`,
      count(each.placed ?? 0),
      each.scarce ? el("span", {}, bar, ` ${count(fit)} of ${count(wanted)}`) : "–",
      free,
      each.tried ? "yes" : "no",
    ];
  });
  return section(
    `Domains of ${key}`,
    "domains",
    el(
      "p",
      { class: "muted small" },
      wanted
        ? "In the order in which they are tried. A domain whose nodes together have less free than the members want is not tried. Room is counted node by node, on the nodes that a member may use."
        : "No member waits.",
    ),
    table(
      `Domains${others ? `, and ${plural(others, "more")}` : ""}`,
      [
        { name: key, mono: true },
        { name: "Usable", number: true },
        { name: "Placed", number: true },
        { name: "Room for", number: true },
        { name: "Free of wanted", number: true },
        { name: "Tried" },
      ],
      rows,
    ),
  );
}

function shortage(short) {
  const rows = short.holders.map((each) => [
    each.group ? groupLink(each.namespace, each.name) : podLink(each.namespace, each.name),
    each.group ? `group of ${plural(each.pods, "pod")}` : "pod",
    each.amount,
    each.priority,
  ]);
  const free = short.short ? `${short.short} too few` : `in pieces that hold ${short.fit} of the ${short.members}`;
  return section(
    `Short of ${short.resource}`,
    `short-${short.resource}`,
    el(
      "p",
      {},
      `${plural(short.members, "member")} want${short.members === 1 ? "s" : ""} ${short.wanted}; ${short.free} of ${short.total} ${short.free === "1" ? "is" : "are"} free, ${free}.`,
    ),
    rows.length || short.others
      ? table(
          `Held by${short.others ? `, and ${plural(short.others, "other")}` : ""}`,
          [{ name: "Holder", mono: true }, { name: "Kind" }, { name: "Amount", number: true }, { name: "Priority", number: true }],
          rows,
        )
      : null,
  );
}
