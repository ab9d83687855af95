// The page of the cluster: the map of nodes, what its boxes are grouped, filled and coloured by, and what a waiting pod would meet on them.

import { FEW, called, chosen, clusterWords, field, used } from "./clusterwords.js";
import { el, fill, shown, table } from "./element.js";
import { nodeLink, podLink } from "./links.js";
import { reconcile } from "./live.js";
import { FULL, KINDS, LOADS, NodeMap } from "./nodemap.js";
import { look, swatchClass } from "./plugincolours.js";
import { Job, each, sorted } from "./slices.js";
import { FIT, LACKS, VerdictLayer } from "./verdictlayer.js";
import { amount, clock, count, percent, plural } from "./words.js";

const ALL = "";
/** Waiting pods that the map offers to ask about; the queue and the page of a pod have links for all others. */
const OFFERED = 40;
/** From so many nodes on, boxes are too small to be found by name, and stand by load. */
const CROWD = 20000;

export function clusterPage(root, _, params) {
  let state = null;
  let opening = params.get("node");
  let shownGroups = [];
  let summing = 0;
  const base = el("canvas", { "aria-hidden": "true" });
  const over = el("canvas", {
    class: "over",
    tabindex: "0",
    role: "application",
    "aria-label": "Map of nodes. Arrow keys go from node to node, Enter keeps one, Escape lets it go. The tables below say the same.",
    id: "map",
  });
  const choices = el("div", { class: "bar" });
  const legend = el("div", { class: "legend", role: "group", "aria-label": "Legend" });
  const verdict = el("div", { class: "stack tight", hidden: true, id: "verdicts" });
  const nearest = el("div");
  const map = new NodeMap(base, over, box, (name, kept) => words.point(name, kept));
  const building = new Job(build);
  const painting = new Job(function* () {
    yield* map.draw();
    yield* sum();
  });
  const adding = new Job(sum);
  const layer = new VerdictLayer(
    () => {
      if (state) judged();
    },
    () => about("now"),
  );
  const about = (key) => state.about.get(key) ?? [];
  /** What the words are about: the state, and what is made of it here. */
  const view = { state, groups: [], totals: [], fullest: [], about, box, judging, layer };
  const words = clusterWords(
    view,
    (name) => map.choose(name),
    () => adding.start(),
  );
  const { heard, facts, side, latest, groupTable, nodesOpen } = words.parts;
  const none = el("p", { class: "empty", hidden: true }, "No nodes: no pod can be placed.");
  const watch = new ResizeObserver(() => {
    if (state && base.parentElement.clientWidth !== map.width) building.start();
  });
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", repaint);

  fill(
    root,
    el("h1", { class: "out" }, "Cluster"),
    facts,
    el(
      "div",
      { class: "cluster" },
      el(
        "section",
        { class: "panel", "aria-label": "Map of nodes" },
        choices,
        verdict,
        el("div", { class: "map" }, base, over),
        none,
        heard,
        legend,
        nearest,
      ),
      side,
      el("div", { class: "stack more" }, latest, el("section", { class: "panel stack tight" }, groupTable, nodesOpen)),
    ),
  );
  watch.observe(base.parentElement);

  if (params.get("pod")) Object.assign(chosen, { colour: "verdict", pod: params.get("pod") });

  const place = () => Math.max(0, about("resources").indexOf(chosen.resource));

  const ordered = () => chosen.order ?? (state.nodes.size >= CROWD ? "load" : "name");

  /** A node as the map draws it. */
  function box(name) {
    const [, offered, cordoned] = state.nodes.get(name) ?? [[], [], false]; // the map is drawn in slices, and a node may go meanwhile
    const [asks, profiles] = state.loads.get(name) ?? [[], []];
    const at = place();
    const share = offered[at] > 0 ? (asks[at] ?? 0) / offered[at] : null;
    return { share, cordoned, kinds: chosen.colour === "profile" ? profiles : null, verdict: judging() ? layer.of(name) : null };
  }

  function* groups() {
    const labels = about("labels");
    if (chosen.group === null || (chosen.group !== ALL && !labels.includes(chosen.group))) chosen.group = labels[0] ?? null; // a cluster that begins without nodes has no labels yet
    const at = labels.indexOf(chosen.group),
      resource = place();
    const found = new Map(),
      shares = new Map();
    yield* each(state.nodes, ([name, [values, offered]]) => {
      const value = at < 0 ? "all nodes" : (values[at] ?? "(without the label)");
      if (!found.has(value)) found.set(value, []);
      found.get(value).push(name);
      shares.set(name, (state.loads.get(name)?.[0][resource] ?? 0) / (offered[resource] || Infinity));
    });
    const order = new Intl.Collator("en", { numeric: true }).compare;
    const byLoad = (one, other) => shares.get(other) - shares.get(one) || (one < other ? -1 : 1);
    const made = [];
    for (const [value, names] of [...found].sort(([one], [other]) => order(one, other)))
      made.push({ value, names: yield* sorted(names, ordered() === "load" ? byLoad : order) });
    return made;
  }

  /** Sum up the groups and the cluster, and write what has the sums. Sorting and grouping need not be done again for them. */
  function* sum() {
    const at = place();
    const all = about("resources").map(() => [0, 0]);
    const most = [];
    for (const group of shownGroups) {
      let offered = 0,
        asks = 0,
        fits = 0;
      yield* each(group.names, (name) => {
        const has = state.nodes.get(name)?.[1] ?? [],
          load = state.loads.get(name)?.[0] ?? [];
        offered += has[at] ?? 0;
        asks += load[at] ?? 0;
        if (judging() && layer.of(name).fits) fits += 1;
        const share = has[at] > 0 ? (load[at] ?? 0) / has[at] : 0;
        if (share > (most.length < FEW ? 0 : most.at(-1)[1])) {
          most.push([name, share]);
          most.sort(([, one], [, other]) => other - one).splice(FEW);
        }
        all.forEach((sums, resource) => {
          sums[0] += has[resource] ?? 0;
          sums[1] += load[resource] ?? 0;
        });
      });
      const title = `${shown(group.value)} · ${plural(group.names.length, "node")} · ${percent(offered ? asks / offered : null)}`;
      Object.assign(group, { offered, asks, fits, title });
    }
    Object.assign(view, { totals: all, fullest: most });
    map.retitle(shownGroups.map((group) => group.title));
    yield* words.writeSums(map.names);
  }

  /** Sums are over all nodes, so they are made at most once a second, however often loads change. */
  function sumSoon() {
    summing ||= setTimeout(() => {
      summing = 0;
      if (!building.work) adding.follow();
    }, 1000);
  }

  function* build() {
    none.hidden = state.nodes.size > 0;
    base.parentElement.hidden = legend.hidden = !none.hidden;
    shownGroups = view.groups = yield* groups();
    const height = Math.max(innerWidth < 640 ? 760 : 260, innerHeight - (judging() ? 400 : 300));
    painting.stop();
    const at = place();
    yield* map.show(shownGroups, height, chosen.area ? (name) => state.nodes.get(name)?.[1][at] ?? 0 : null);
    yield* sum();
    if (opening === null || !state.nodes.size) return;
    if (map.at.has(opening)) map.choose(opening);
    else words.miss(opening);
    opening = null;
  }

  /** Draw the same boxes as they look now. */
  function repaint() {
    if (building.work) building.follow();
    else if (state) painting.start();
  }

  // --- what a waiting pod would meet ---------------------------------------------------------------------------------------------

  function judging() {
    return chosen.colour === "verdict" && chosen.pod !== "";
  }

  /** The address names the pod, so that it can be handed on. */
  function choosePod(pod) {
    chosen.pod = pod;
    const address = judging() ? `#/cluster?pod=${encodeURIComponent(pod)}` : "#/cluster";
    if (location.hash !== address) history.replaceState(null, "", address);
    layer.choose(judging() ? pod : "", () => state.nodes.keys());
    writeChoices();
    judged();
  }

  function judged() {
    writeVerdict();
    writeNearest();
    writeLegend();
    repaint();
    words.again();
  }

  function writeVerdict() {
    verdict.hidden = chosen.colour !== "verdict";
    if (verdict.hidden) return;
    if (!chosen.pod) {
      fill(
        verdict,
        el("p", { class: "muted small" }, "Choose a waiting pod, or follow a link to the map from the queue or from the page of a pod."),
      );
      return;
    }
    const [space, ...name] = chosen.pod.split("/");
    const { answer } = layer;
    const said = layer.told || `${count(layer.fitting)} of ${plural(answer.nodes, "node")} can hold it`;
    const rows = (answer?.verdicts ?? [])
      .filter(([, , nodes], at) => nodes || !at)
      .map(([plugin, reason, nodes], at) => [at ? plugin || "without a plugin" : "fits", reason, count(nodes)]);
    reconcile(
      verdict,
      el(
        "p",
        {},
        podLink(space, name.join("/")),
        `: ${said}`,
        layer.at ? el("span", { class: "muted" }, `, as of ${clock(layer.at)} UTC`) : null,
        " ",
        el("button", { on: { click: () => layer.ask(() => state.nodes.keys()) } }, "Ask again"),
      ),
      answer?.unasked?.length ? el("p", { class: "muted small" }, `Extenders are not asked: ${answer.unasked.join(", ")}.`) : null,
      rows.length
        ? el(
            "details",
            {},
            el("summary", {}, "Verdicts as a table"),
            table(`What ${chosen.pod} would meet`, [{ name: "Plugin" }, { name: "Reason" }, { name: "Nodes", number: true }], rows),
          )
        : null,
    );
  }

  /** Below the map, so that it stays where it is: what the numbers on it mean if no node can hold the pod. */
  function writeNearest() {
    const { answer } = layer;
    reconcile(
      nearest,
      judging() && answer?.nearest.length && !layer.fitting
        ? el(
            "section",
            { id: "nearest" },
            table(
              "Nodes that lack least, by number on the map",
              [{ name: "Number", number: true }, { name: "Node", mono: true }, { name: "Lacks" }],
              answer.nearest.map(([name, missing], at) => [
                count(at + 1),
                nodeLink(name),
                Object.entries(missing)
                  .map(([resource, many]) => `${amount(resource, many)} ${called(resource)}`)
                  .join(", ") || "too many pods",
              ]),
            ),
          )
        : null,
    );
  }

  /** The oldest waiting pods, one of each reason first, and the one that is shown. */
  function offered() {
    const rows = [...state.queue.values()].sort((one, other) => one.oldest - other.oldest);
    const pods = [0, 1, 2].flatMap((at) => rows.map((row) => row.pods[at] && `${row.namespace}/${row.pods[at][0]}`)).filter(Boolean);
    return [...new Set([chosen.pod, ...pods])].filter(Boolean).slice(0, OFFERED);
  }

  function writeChoices() {
    const labels = about("labels"),
      resources = about("resources");
    if (!resources.includes(chosen.resource)) chosen.resource = "cpu";
    const set = (key) => (value) => {
      chosen[key] = value;
      writeChoices();
      writeLegend();
      building.start();
    };
    reconcile(
      choices,
      field("Group by", [[ALL, "nothing"], ...labels.map((key) => [key, shown(key)])], chosen.group ?? labels[0] ?? ALL, set("group")),
      field(
        "Fill by",
        resources.map((name) => [name, called(name)]),
        chosen.resource,
        set("resource"),
      ),
      field(
        "Colour by",
        [
          ["room", "free room"],
          ["profile", "profile"],
          ["verdict", "what a pod would meet"],
        ],
        chosen.colour,
        (value) => {
          chosen.colour = value;
          choosePod(chosen.pod);
          building.start();
        },
      ),
      chosen.colour === "verdict"
        ? field("Waiting pod", [["", "choose a pod"], ...offered().map((pod) => [pod, shown(pod)])], chosen.pod, choosePod)
        : null,
      field(
        "Area by",
        [
          ["", "nothing: equal boxes"],
          ["capacity", `offered ${called(chosen.resource)}`],
        ],
        chosen.area,
        set("area"),
      ),
      field(
        "Order by",
        [
          ["name", "name"],
          ["load", "load"],
        ],
        ordered(),
        set("order"),
      ),
    );
  }

  function writeLegend() {
    const key = (token, text, extra = "") =>
      el("span", { class: "key" }, el("i", { class: `swatch ${extra}`, style: token ? { background: `var(${token})` } : {} }), text);
    if (chosen.colour === "verdict") {
      writeVerdictLegend(key);
      return;
    }
    const steps = LOADS.map((token, at) => key(token, `${at * 20}–${at === 4 ? FULL * 100 : at * 20 + 20} %`));
    const profiles = about("profiles").map((name, at) => key(KINDS[at % KINDS.length], name));
    reconcile(
      legend,
      el(
        "span",
        {},
        chosen.colour === "room"
          ? `${called(chosen.resource)} ${used(chosen.resource)}:`
          : `level: ${called(chosen.resource)} ${used(chosen.resource)}; colour: profile of the pods:`,
      ),
      chosen.colour === "room"
        ? [...steps, key("--load-full", `full (from ${FULL * 100} %)`)]
        : [...profiles, key("--kind-none", "other schedulers")],
      key(null, "more than offered", "over"),
      key(null, `offers no ${called(chosen.resource)}`, "hollow"),
      key(null, "cordoned", "cordoned"),
    );
  }

  function writeVerdictLegend(key) {
    const nodes = new Map();
    (layer.answer?.verdicts ?? []).slice(1).forEach(([plugin, , many]) => nodes.set(plugin, (nodes.get(plugin) ?? 0) + many));
    const plugins = [...nodes].flatMap(([plugin, many]) => {
      const { token, shape } = look(plugin);
      const sample = (text, opacity) =>
        el(
          "span",
          { class: "key" },
          el("i", { class: `swatch ${swatchClass(shape)}`, style: { "--colour": `var(${token})`, opacity } }),
          text,
        );
      const lacks = plugin === FIT ? (layer.answer.lacks ?? []) : [];
      const levels = lacks.map((nodes, level) => nodes && sample(`${LACKS[level][0]}: ${count(nodes)}`, LACKS[level][1]));
      return [sample(`${plugin || "without a plugin"}: ${count(many)}`, 1), ...levels.filter(Boolean)];
    });
    reconcile(
      legend,
      el("span", {}, "rejected first by:"),
      plugins,
      layer.fitting ? [key("--fit-best", "the best ten that fit"), key("--fit", `fits: ${count(layer.fitting)}`)] : "fits: 0",
      key("--cell", "not evaluated"),
      key(null, "cordoned", "cordoned"),
    );
  }

  return {
    update(next, delta) {
      state = view.state = next;
      const put = delta?.put ?? {},
        gone = delta?.gone ?? {};
      if (!delta || put.about?.labels || put.about?.resources || put.about?.profiles) {
        writeChoices();
        writeLegend();
      }
      if (!delta && judging()) choosePod(chosen.pod);
      if (!delta || put.nodes || gone.nodes || put.about?.resources) building.follow();
      else if (put.loads) {
        map.change(Object.keys(put.loads));
        sumSoon();
        words.loaded(put.loads);
      }
      if (!delta || put.nodes || gone.nodes || put.queue || gone.queue || put.marks) {
        words.writeFacts();
        words.writeIdle();
      }
      if (!delta || put.decisions || gone.decisions) words.writeLatest();
    },
    leave() {
      layer.leave();
      for (const job of [building, painting, adding]) job.stop();
      watch.disconnect();
      words.leave();
      clearTimeout(summing);
      scheme.removeEventListener("change", repaint);
    },
  };
}
