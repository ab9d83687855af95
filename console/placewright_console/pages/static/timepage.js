// The page of the last hour: small charts over one axis of time, with marks, one moment for all of them, and a table for each.

import { draw, look, sample, valueAt } from "./chart.js";
import { el, fill, table } from "./element.js";
import { reconcile } from "./live.js";
import { KINDS } from "./nodemap.js";
import { clock, count, few, latency, moment, onAxis, plural, span } from "./words.js";

const PLACES = [
  ["active", "--kind-0"],
  ["backoff", "--kind-1"],
  ["unschedulable", "--kind-5"],
  ["gated", "--kind-7"],
];
const [DECISIONS, BOUND, WAITING, DECIDE50, DECIDE99, BIND50, BIND99] = [0, 1, 2, 3, 4, 5, 6];
const decided = (found) => found[DECISIONS];
const bound = (found) => found[BOUND];
/** Attempts that bound nothing: no node held the pod, or something broke. */
const refused = (found) => found[DECISIONS] - found[BOUND];
const EVERYTHING = ["decisions", "refusals", "bound", "waiting", "places", "deciding", "binding"];
const KIND_NAMES = { generation: "profile", leader: "leader", away: "API server", still: "standstill", begun: "begun" };
const RECENT = 600;
/** Seconds from which on a count is told as a rate. */
const SHORTEST = 1;
const ALL = "*";
/** Lines of profiles that a chart has beside the sum. */
const MOST_LINES = 6;
const called = (name) => name || "other profiles";
const when = (seconds) => el("span", { class: "nowrap" }, moment(seconds).replace(" UTC", ""));
const chosen = { profile: ALL, recent: false };
const open = new Set();

export function timePage(root) {
  let state = null,
    stretches = [],
    drawn = [],
    at = null,
    pinned = false,
    due = 0;
  const facts = el("div", { class: "facts" });
  const filters = el("div", { class: "bar" });
  const slider = el("input", {
    type: "range",
    id: "when",
    min: "0",
    max: "0",
    step: "1",
    on: {
      input: () => point(middle(stretches[Number(slider.value)]), true),
      keydown: (event) => {
        if (event.key === "Escape") point(null, false);
      },
    },
  });
  const reading = el("output", { for: "when", id: "reading", class: "small" });
  const charts = el("div", { class: "charts", id: "charts" });
  const marks = el("section", { class: "panel stack tight", id: "marks" });
  const generations = el("section", { class: "panel stack tight", id: "generations" });
  const watch = new ResizeObserver(() => {
    if (state && charts.clientWidth !== Number(charts.dataset.width)) write();
  });
  fill(
    root,
    el("h1", { class: "out" }, "Time"),
    facts,
    el(
      "div",
      { class: "stack" },
      el(
        "section",
        { class: "panel bar", "aria-label": "What is shown" },
        filters,
        el("label", { class: "field wide" }, "Moment: arrow keys, or point at a chart; Escape lets it go", slider),
        reading,
      ),
      charts,
      generations,
    ),
  );
  watch.observe(charts);

  const figures = () => state.about.get("timeFigures") ?? EVERYTHING;
  const middle = (stretch) => (stretch ? stretch.begin + stretch.length / 2 : null);

  /** The stretches of the section in order of time, with their figures for the chosen profile. */
  function read() {
    const rows = [...state.time]
      .filter(([key]) => key !== "generations")
      .map(([, row]) => row)
      .sort((one, other) => one[0] - other[0]);
    const last = rows.length ? rows.at(-1)[0] + rows.at(-1)[1] : 0;
    stretches = rows.map(([begin, length, all, profiles]) => ({
      begin,
      length,
      end: begin + length,
      profiles,
      figures: chosen.profile === ALL ? all : joined(profiles.filter(([name]) => name === chosen.profile)),
    }));
    if (chosen.recent) stretches = stretches.filter((each) => each.end > last - RECENT);
  }

  /** Two generations of a profile in one stretch are one line; of their latencies, those of the one that bound more. */
  function joined(parts) {
    const most = parts.reduce(
      (best, part) => (part[3] > best[3] ? part : best),
      parts[0] ?? ["", 0, 0, 0, [0, 0, 0, 0], null, null, null, null],
    );
    const sum = (place) => parts.reduce((whole, part) => whole + part[place], 0);
    return [sum(2), sum(3), PLACES.map((_, place) => parts.reduce((whole, part) => whole + part[4][place], 0)), ...most.slice(5)];
  }

  const steps = (value) => stretches.map((each) => [each.begin, each.end, value(each.figures, each)]);
  const rate = (many) => (found, each) => (each.length >= SHORTEST ? many(found) / each.length : null);

  /** The profiles with most decisions first. */
  function profiles() {
    const found = new Map();
    for (const each of stretches)
      for (const [name, , decisions, , waiting] of each.profiles)
        found.set(name, (found.get(name) ?? 0) + decisions + 1e-6 * waiting.reduce((one, other) => one + other, 0));
    return [...found].sort(([, one], [, other]) => other - one).map(([name]) => name);
  }

  function rates(many) {
    const names = chosen.profile === ALL ? profiles() : [];
    if (names.length < 2)
      return [
        { name: chosen.profile === ALL ? "all profiles" : called(chosen.profile), style: look("--kind-0", 0), steps: steps(rate(many)) },
      ];
    const of = (name) =>
      stretches.map((each) => [each.begin, each.end, rate(many)(joined(each.profiles.filter(([one]) => one === name)), each)]);
    const known = [...names].sort();
    return [
      { name: "all profiles", style: look("--ink", 0), steps: steps(rate(many)) },
      ...names.slice(0, MOST_LINES).map((name) => ({
        name: called(name),
        style: look(KINDS[known.indexOf(name) % KINDS.length], 1 + known.indexOf(name)),
        steps: of(name),
      })),
    ];
  }

  function waiting() {
    if (!figures().includes("places"))
      return [{ name: "waiting pods", style: look("--kind-0", 0), steps: steps((found) => found[WAITING][0]) }];
    return PLACES.map(([name, token], place) => ({ name, style: look(token, place), steps: steps((found) => found[WAITING][place]) }));
  }

  const quantiles = (median, high) => [
    { name: "99th percentile", style: look("--kind-5", 1), steps: steps((found) => found[high]) },
    { name: "median", style: look("--kind-0", 0), steps: steps((found) => found[median]) },
  ];

  function wanted() {
    const all = [
      { key: "decisions", title: "Decisions a second", lines: () => rates(decided), format: few },
      {
        key: "refusals",
        title: figures().includes("decisions") ? "Attempts that bound nothing, a second" : "Refusals that pods tell of, a second",
        lines: () => rates(refused),
        format: few,
      },
      { key: "bound", title: "Bound pods a second", lines: () => rates(bound), format: few },
      { key: "waiting", title: figures().includes("places") ? "Waiting pods by sub-queue" : "Waiting pods", lines: waiting, format: few },
      { key: "deciding", title: "Time to decide", lines: () => quantiles(DECIDE50, DECIDE99), format: latency, log: true },
      {
        key: "binding",
        title: figures().includes("decisions") ? "Time from ready to bound" : "Time from creation to node",
        lines: () => quantiles(BIND50, BIND99),
        format: latency,
        log: true,
      },
    ];
    return all.filter((each) => figures().includes(each.key)).map((each) => ({ ...each, lines: each.lines() }));
  }

  function write() {
    read();
    writeFacts();
    writeFilters();
    writeCharts();
    writeMarks();
    writeGenerations();
    point(at !== null && stretches.length && at >= stretches[0].begin && at <= stretches.at(-1).end ? at : null, pinned);
  }

  function writeCharts() {
    charts.dataset.width = charts.clientWidth;
    const known = [...state.marks.values()];
    const before = new Map(drawn.map((chart) => [chart.key, chart]));
    drawn = wanted().map((chart) => Object.assign(before.get(chart.key) ?? framed(chart), chart));
    if (drawn.length !== before.size || drawn.some((chart) => !before.has(chart.key))) {
      fill(
        charts,
        drawn.map((chart) => chart.figure),
        marks,
      );
    }
    for (const chart of drawn) {
      if (chart.list.open) list(chart);
      const from = stretches[0]?.begin ?? 0,
        to = stretches.at(-1)?.end ?? 1;
      chart.view = draw({
        ...chart,
        said: said(chart),
        from,
        to,
        marks: known,
        width: Math.max(240, chart.holder.clientWidth),
        log: Boolean(chart.log),
        onAxis: chart.log ? latency : onAxis,
      });
      fill(chart.holder, chart.view.root);
    }
  }

  /** The frame of a chart, which stays while what is drawn in it changes. */
  function framed({ key, title }) {
    const frame = { legend: el("ul", { class: "legend" }), rows: el("div") };
    const pointing = {
      pointermove: (event) => pinned || point(place(frame, event), false),
      pointerleave: () => pinned || point(null, false),
      click: (event) => {
        point(place(frame, event), true);
        slider.focus({ preventScroll: true });
      },
    };
    const toggle = () => {
      if (frame.list.open) {
        open.add(key);
        list(frame);
      } else open.delete(key);
    };
    frame.holder = el("div", { class: "drawing", on: pointing });
    frame.list = el(
      "details",
      { id: `table-${key}`, open: open.has(key), on: { toggle } },
      el("summary", { id: `open-${key}` }, "as a table", el("span", { class: "out" }, `: ${title}`)),
      frame.rows,
    );
    frame.figure = el(
      "figure",
      { class: "panel stack tight", id: `chart-${key}` },
      el("figcaption", {}, el("h2", {}, title)),
      frame.legend,
      frame.holder,
      frame.list,
    );
    return frame;
  }

  function place(chart, event) {
    const found = chart.view.timeAt(event.clientX - chart.view.root.getBoundingClientRect().left);
    const near = stretches.find((each) => found < each.end) ?? stretches.at(-1);
    return near ? Math.min(Math.max(found, near.begin), near.end) : null;
  }

  /** A chart in words: each line's last value and its highest. */
  function said(chart) {
    return chart.lines
      .map((line) => {
        const values = line.steps.map(([, , value]) => value).filter((value) => value !== null);
        return values.length
          ? `${line.name}: ${chart.format(values.at(-1))} now, at most ${chart.format(Math.max(...values))}`
          : `${line.name}: no figures`;
      })
      .join("; ");
  }

  function list(chart) {
    const rows = [...stretches]
      .reverse()
      .map((each, row) => [
        clock(each.begin),
        span(each.length),
        ...chart.lines.map((line) => chart.format(line.steps[stretches.length - 1 - row][2])),
      ]);
    const made = table(
      `${chart.title}, the latest first`,
      [{ name: "From, UTC" }, { name: "For", number: true }, ...chart.lines.map((line) => ({ name: line.name, number: true }))],
      rows,
    );
    made.classList.add("tall");
    reconcile(chart.rows, made);
  }

  /** Show a moment in all charts. */
  function point(next, keep) {
    at = next;
    pinned = keep && next !== null;
    for (const chart of drawn) {
      chart.view.point(at);
      reconcile(
        chart.legend,
        chart.lines.map((line) =>
          el(
            "li",
            { class: "key" },
            sample(line.style),
            line.name,
            el("b", {}, chart.format(valueAt(line.steps, at ?? stretches.at(-1)?.end ?? 0))),
          ),
        ),
      );
    }
    const index = at === null ? stretches.length - 1 : stretches.findIndex((each) => at <= each.end);
    slider.max = String(Math.max(0, stretches.length - 1));
    slider.value = String(Math.max(0, index));
    const each = stretches[index];
    const text = each ? `${moment(each.begin)}, ${span(each.length)} long` : "nothing yet";
    slider.setAttribute(
      "aria-valuetext",
      each
        ? `${text}: ${drawn.map((chart) => `${chart.title}: ${chart.lines.map((line) => `${line.name} ${chart.format(valueAt(line.steps, middle(each)))}`).join(", ")}`).join("; ")}`
        : text,
    );
    reading.textContent = at === null && each ? `latest: ${text}` : text;
  }

  function writeFacts() {
    const last = stretches.at(-1);
    const minute = last ? stretches.filter((each) => each.end > last.end - 60) : [];
    const seconds = minute.reduce((sum, each) => sum + each.length, 0);
    const fact = (text, label) => el("div", { class: "fact" }, el("b", {}, text), el("span", {}, label));
    // A rate of less than a second would be a number that nobody saw: 8 pods in 0.07 s are not 114 a second.
    const mean = (index) => (seconds >= SHORTEST ? minute.reduce((sum, each) => sum + each.figures[index], 0) / seconds : null);
    const latest = [...stretches].reverse().find((each) => each.figures[BIND50] !== null)?.figures;
    reconcile(
      facts,
      figures().includes("decisions") ? fact(few(mean(DECISIONS)), "decisions a second, last minute") : null,
      fact(few(mean(BOUND)), "bound pods a second, last minute"),
      fact(last ? count(Math.round(last.figures[WAITING].reduce((sum, each) => sum + each, 0))) : "–", "waiting pods"),
      figures().includes("deciding") ? fact(latency(latest?.[DECIDE99]), "time to decide, 99th percentile") : null,
      fact(latency(latest?.[BIND99]), `time to ${figures().includes("decisions") ? "be bound" : "a node"}, 99th percentile`),
    );
  }

  function writeFilters() {
    if (filters.contains(document.activeElement)) return;
    const names = [
      ...new Set([...state.time].flatMap(([key, row]) => (key === "generations" ? row : row[3]).map(([name]) => name))),
    ].sort();
    if (chosen.profile !== ALL && !names.includes(chosen.profile)) chosen.profile = ALL;
    const field = (label, id, options, value, set) => {
      const select = el(
        "select",
        {
          id,
          on: {
            change: (event) => {
              set(event.target.value);
              write();
            },
          },
        },
        options.map(([key, text]) => el("option", { value: key }, text)),
      );
      select.value = value;
      return el("label", { class: "field" }, label, select);
    };
    reconcile(
      filters,
      field("Profile", "by-profile", [[ALL, "all"], ...names.map((name) => [name, called(name)])], chosen.profile, (value) => {
        chosen.profile = value;
      }),
      field(
        "Time",
        "by-time",
        [
          ["all", "all there is"],
          ["recent", "the last 10 minutes"],
        ],
        chosen.recent ? "recent" : "all",
        (value) => {
          chosen.recent = value === "recent";
        },
      ),
    );
  }

  function writeMarks() {
    const rows = [...state.marks.values()]
      .sort((one, other) => other.at - one.at)
      .map((mark) => [when(mark.at), KIND_NAMES[mark.kind] ?? mark.kind, mark.text]);
    reconcile(
      marks,
      el("h2", {}, "Marks"),
      rows.length
        ? table(`${plural(rows.length, "mark")}, the latest first`, [{ name: "When, UTC" }, { name: "What" }, { name: "Told" }], rows)
        : el("p", { class: "muted small" }, "No profile, leader or API server has changed in this time."),
    );
    marks.lastElementChild.classList.add("tall");
  }

  function writeGenerations() {
    const all = state.time.get("generations") ?? [],
      whole = figures().includes("decisions");
    const number = (name) => ({ name, number: true });
    const rows = [...all]
      .sort((one, other) => (one[0] === other[0] ? other[1] - one[1] : one[0] < other[0] ? -1 : 1))
      .map(([name, generation, since, until, decisions, bound, , decide50, decide99, bind50, bind99]) => [
        called(name),
        name ? count(generation) : "–",
        when(since),
        span(until - since),
        ...(whole ? [count(decisions)] : []),
        count(bound),
        few(until - since >= SHORTEST ? bound / (until - since) : null),
        ...(whole ? [latency(decide50), latency(decide99)] : []),
        latency(bind50),
        latency(bind99),
      ]);
    reconcile(
      generations,
      el("h2", {}, "Profiles and their generations"),
      rows.length
        ? table(
            "Sums over the time above",
            [
              { name: "Profile", mono: true },
              number("Generation"),
              { name: "Counted from, UTC" },
              number("For"),
              ...(whole ? [number("Decisions")] : []),
              number("Bound"),
              number("Bound a second"),
              ...(whole ? [number("To decide, median"), number("99th")] : []),
              number(whole ? "To bound, median" : "To a node, median"),
              number("99th"),
            ],
            rows,
          )
        : el("p", { class: "muted small" }, "Nothing was counted yet."),
    );
  }

  return {
    update(next, delta) {
      state = next;
      if (!state.time) return;
      // A chart under the pointer is not replaced many times a second.
      if (!delta) write();
      else if (["time", "marks"].some((name) => delta.put?.[name] || delta.gone?.[name]))
        due ||= setTimeout(() => {
          due = 0;
          write();
        }, 250);
    },
    leave() {
      watch.disconnect();
      clearTimeout(due);
    },
  };
}
