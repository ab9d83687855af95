// The page of a comparison of profiles: the content of the report, drawn from the same numbers (placewright_lab/report).

import { svg } from "./chart.js";
import { el, fill, table } from "./element.js";
import { count, plural } from "./words.js";

const number = (name) => ({ name, number: true });
const gauge = (part) =>
  svg(
    "svg",
    { class: "gauge", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { class: "rest", width: 100, height: 10 }),
    svg("rect", { class: "fill", width: Math.max(0, Math.min(1, part || 0)) * 100, height: 10 }),
  );
const sample = (name) =>
  svg("svg", { class: "sample", viewBox: "0 0 26 8", "aria-hidden": "true" }, svg("path", { class: name, d: "M1 4H25" }));
const section = (id, title, ...content) =>
  el("section", { class: "panel stack tight", "aria-labelledby": id }, el("h2", { id }, title), ...content);

export function comparisonPage(root) {
  let known = null;
  return {
    update(state) {
      const report = state.comparison?.get("report");
      if (!report || report === known) return;
      known = report;
      write(root, report);
    },
  };
}

function write(root, it) {
  const [first] = it.profiles;
  const several = it.profiles.length > 1;
  fill(
    root,
    el("h1", {}, several ? "Scheduling profiles compared" : "A scheduling profile, simulated"),
    el(
      "p",
      {},
      `${it.profiles.join(", ")} on `,
      el("span", { class: "mono" }, it.source),
      ".",
      several ? ` Differences are to the first profile, ${first}; those of shares are percentage points.` : "",
    ),
    it.seeds.length > 1
      ? el(
          "p",
          {},
          `Simulated with seeds ${it.seeds[0]} to ${it.seeds.at(-1)}: figures are means ± standard deviation. A difference within the spread may be chance. Everything but the figures is of seed ${it.seeds[0]}.`,
        )
      : null,
    el(
      "ul",
      { class: "cards" },
      it.cards.map((each) =>
        el(
          "li",
          { class: "panel" },
          el("h2", {}, each.profile),
          el("strong", {}, `${count(each.placed)} placed`),
          `${count(each.pending)} pending of ${count(each.pods)}; ${count(each.emptyNodes)} of ${count(each.nodes)} nodes empty; seed ${each.seed}`,
        ),
      ),
    ),
    leading(it),
    el(
      "div",
      { class: "report" },
      figures(it),
      el("div", { class: "stack" }, use(it), time(it)),
      el("div", { class: "stack" }, pending(it), scores(it), it.changes.length ? moves(it) : null),
    ),
  );
}

/** The figures that most comparisons are made for: by group and label. */
const LEADING = [
  ["Pods", "placed"],
  ["Pods", "pending"],
  ["Nodes", "left empty"],
  ["cpu asked for", "of all of it"],
];

function leading(it) {
  const rows = LEADING.flatMap(([name, label]) => {
    const row = it.groups.find((group) => group.name === name)?.rows.find((each) => each.label === label);
    return row ? [{ ...row, label: `${name}: ${label}` }] : [];
  });
  return rows.length ? section("leading", "In short", figureTable(it, `The main figures, ${it.moment}`, [{ rows }])) : null;
}

function figures(it) {
  const all = it.groups.reduce((sum, group) => sum + group.rows.length, 0);
  const whole = figureTable(it, `Figures of each profile; nodes as they stand ${it.moment}`, it.groups);
  const folded = el("details", { id: "all-figures" }, el("summary", {}, `All ${plural(all, "figure")}`), whole);
  const part = section("figures", "Figures", folded);
  part.classList.add("first");
  return part;
}

function figureTable(it, caption, groups) {
  const found = table(caption, [{ name: "Figure" }, ...it.profiles.map(number)], []);
  const body = found.querySelector("tbody");
  body.replaceWith(
    ...groups.map((group) =>
      el(
        "tbody",
        {},
        group.name && el("tr", {}, el("th", { scope: "rowgroup", colspan: it.profiles.length + 1 }, group.name)),
        group.rows.map((row) =>
          el(
            "tr",
            {},
            el("th", { scope: "row" }, row.label),
            row.texts.map((text, at) =>
              el(
                "td",
                { class: "number" },
                text,
                row.differences[at] ? el("small", {}, row.differences[at], row.withinSpread[at] ? ", within the spread" : "") : null,
              ),
            ),
          ),
        ),
      ),
    ),
  );
  return found;
}

const plot = (it, title, summary, ...content) =>
  svg("svg", { class: "plot", viewBox: `0 0 ${it.width} ${it.height}`, role: "img", "aria-label": `${title}. ${summary}` }, content);
const ticks = (it, marks) => marks.map(([x, text, anchor]) => svg("text", { x, y: it.height - 6, "text-anchor": anchor }, text));

function use(it) {
  const histogram = (resource, panel) =>
    el(
      "figure",
      {},
      el("figcaption", {}, panel.profile),
      plot(
        it,
        `${resource}: nodes by share asked for, ${panel.profile}`,
        panel.summary,
        panel.bars
          .filter(([, , , height]) => height)
          .flatMap(([x, y, width, height, label]) => [
            svg("rect", { class: "fill", x, y, width, height }),
            svg("text", { x: x + width / 2, y: y - 4, "text-anchor": "middle" }, label),
          ]),
        svg("path", { class: "axis", d: `M10 ${it.height - 21.5}H${it.width - 10}` }),
        ticks(it, panel.ticks),
      ),
    );
  return section(
    "use",
    "Use of nodes",
    it.distributions.length
      ? el("p", {}, `How many nodes have how much of what they offer asked for, ${it.moment}. All profiles of a resource share one scale.`)
      : el("p", {}, "There are no nodes."),
    it.distributions.flatMap((one) => [
      el("h3", {}, one.resource),
      el(
        "div",
        { class: "panels" },
        one.panels.map((panel) => histogram(one.resource, panel)),
      ),
    ]),
  );
}

function time(it) {
  if (!it.courses.length)
    return section(
      "time",
      "Over time",
      el(
        "p",
        {},
        "Everything happens in one moment: pods are all there at the beginning and nothing leaves, and decisions take no virtual time.",
      ),
    );
  const course = (one) =>
    el(
      "figure",
      {},
      el("figcaption", {}, one.profile),
      plot(
        it,
        `Pods placed and waiting over time, ${one.profile}`,
        one.summary,
        svg("path", { class: "axis", d: `M10 ${it.height - 21.5}H${it.width - 10}M10 18V${it.height - 21.5}` }),
        svg("text", { x: 10, y: 12 }, `${count(one.top)} pods`),
        svg("path", { class: "placed", d: one.placed }),
        svg("path", { class: "waiting", d: one.waiting }),
        ticks(it, one.ticks),
      ),
      el("p", { class: "muted small" }, one.summary),
    );
  return section(
    "time",
    "Over time",
    el(
      "p",
      {},
      "Pods placed so far ",
      sample("placed"),
      " (whole line) and pods that wait ",
      sample("waiting"),
      " (dashed line), over virtual time. All profiles share one scale.",
    ),
    el("div", { class: "panels" }, it.courses.map(course)),
  );
}

function pending(it) {
  if (!it.reasons.length) return section("pending", "Pending, and why", el("p", {}, "No pod waits."));
  const rows = it.reasons.map((each) => [
    each.what,
    ...each.counts.map((pods) => el("div", {}, count(pods), gauge(pods / it.mostPending))),
  ]);
  return section(
    "pending",
    "Pending, and why",
    table("Pods that wait at the end, by what stands in their way", [{ name: "Reason" }, ...it.profiles.map(number)], rows),
    it.moreReasons ? el("p", {}, `And ${count(it.moreReasons)} more reasons.`) : null,
    it.messages.map((each) =>
      el(
        "details",
        {},
        el("summary", {}, `${each.profile}: messages in full`),
        el(
          "ul",
          {},
          each.messages.map((message) => el("li", {}, `${plural(message.pods, "pod")}, for example: `, el("q", {}, message.text))),
        ),
      ),
    ),
  );
}

function scores(it) {
  if (!it.scores.length) return section("scores", "What the scores are made of", el("p", {}, "Nothing was scored."));
  const rows = it.scores.map((each) => [each.plugin, ...each.texts.map((text, at) => el("div", {}, text, gauge(each.parts[at])))]);
  return section(
    "scores",
    "What the scores are made of",
    table("Each plugin's part in the scores of the nodes that were chosen", [{ name: "Plugin" }, ...it.profiles.map(number)], rows),
  );
}

function moves(it) {
  const pods = (list) =>
    el(
      "details",
      {},
      el("summary", {}, `${list.title}: ${count(list.count)}`),
      table(
        `${list.title}${list.count > list.rows.length ? `, the first ${count(list.rows.length)}` : ""}`,
        list.columns.map((name) => ({ name, mono: true })),
        list.rows,
      ),
    );
  return section(
    "pods",
    "Pods that move",
    it.changes.flatMap((change) => [
      el("h3", {}, `${change.profile}, against ${it.profiles[0]}`),
      el("p", {}, change.summary),
      ...change.lists.map(pods),
    ]),
  );
}
