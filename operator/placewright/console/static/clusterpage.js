// The page of the cluster: the map of nodes, what a pointer or the keyboard finds there, and the same as tables.

import { failure } from "./failure.js";
import { request } from "./request.js";
import { el, fill, shown, table } from "./element.js";
import { nodeLink, podLink } from "./links.js";
import { reconcile } from "./live.js";
import { FULL, KINDS, LOADS, NodeMap } from "./nodemap.js";
import { look, swatchClass } from "./plugincolours.js";
import { Job, each, sorted } from "./slices.js";
import { FIT, LACKS, VerdictLayer } from "./verdictlayer.js";
import { amount, clock, count, percent, plural, span } from "./words.js";

const ROWS = 100;
const ALL = "";
const NAMES = { cpu: "CPU", memory: "memory", pods: "pods" };
const PUBLISHED = "devices:";
/** A device of ResourceSlices is called by its driver, a shared capacity of devices by both. */
function called(resource) {
  if (!resource.startsWith(PUBLISHED)) return NAMES[resource] ?? resource;
  const [driver, ...capacity] = resource.slice(PUBLISHED.length).split("/");
  return capacity.length ? `${capacity.join("/")} of ${driver}` : `devices of ${driver}`;
}
/** Devices are taken, by claims; all else is requested. */
const used = (resource) => (resource.startsWith(PUBLISHED) ? "taken" : "requested");
/** What a person chose, kept while the console is open in this tab. */
const chosen = { group: null, resource: "cpu", colour: "room", order: null, pod: "", result: "", sort: "", down: true };
/** Lines of each list beside the map while no node is chosen, and rows of the latest decisions. */
const FEW = 6;
const LATEST = 12;
/** Waiting pods that the map offers to ask about; the queue and the page of a pod have links for all others. */
const OFFERED = 40;
/** From so many nodes on, boxes are too small to be found by name, and stand by load. */
const CROWD = 20000;

const field = (label, options, value, onChange) => {
  const select = el(
    "select",
    { on: { change: (event) => onChange(event.target.value) } },
    options.map(([key, text]) => el("option", { value: key }, text)),
  );
  select.value = value;
  return el("label", { class: "field", data: { key: label } }, label, select);
};

export function clusterPage(root, _, params) {
  let state = null;
  let opening = params.get("node");
  let named = null;
  let asked = 0;
  let page = 0;
  let due = 0;
  let shownGroups = [];
  let summing = 0;
  let totals = [];
  let fullest = [];
  let listed = [];
  let idle = true;
  const base = el("canvas", { "aria-hidden": "true" });
  const over = el("canvas", {
    class: "over",
    tabindex: "0",
    role: "application",
    "aria-label": "Map of nodes. Arrow keys go from node to node, Enter keeps one, Escape lets it go. The tables below say the same.",
    id: "map",
  });
  const heard = el("p", { class: "out", "aria-live": "polite", id: "heard" });
  const facts = el("div", { class: "facts" });
  const choices = el("div", { class: "bar" });
  const legend = el("div", { class: "legend", role: "group", "aria-label": "Legend" });
  const side = el("aside", { class: "panel side", "aria-label": "Node", id: "node" });
  const latest = el("section", { class: "panel", hidden: true, id: "latest" });
  const groupTable = el("div", { id: "groups" });
  const nodeTable = el("div");
  const nodesOpen = el("details", { id: "nodes" }, el("summary", {}, "All nodes as a table"), nodeTable);
  nodesOpen.addEventListener("toggle", () => state && adding.start());
  const verdict = el("div", { class: "stack tight", hidden: true, id: "verdicts" });
  const nearest = el("div");
  const map = new NodeMap(base, over, box, point);
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

  const about = (key) => state.about.get(key) ?? [];
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
    totals = all;
    fullest = most;
    listed = chosen.sort && nodesOpen.open ? yield* sorted(map.names, byColumn()) : map.names;
    writeIdle();
    map.retitle(shownGroups.map((group) => group.title));
    writeGroups();
    writeFacts();
    writeNodes();
  }

  /** The order of the table of nodes: by name, or by the share of a resource. */
  function byColumn() {
    const at = about("resources").indexOf(chosen.sort),
      sign = chosen.down ? -1 : 1,
      order = new Intl.Collator("en", { numeric: true }).compare;
    const share = (name) => (state.loads.get(name)?.[0][at] ?? 0) / (state.nodes.get(name)?.[1][at] || Infinity);
    return (one, other) => sign * ((at < 0 ? 0 : share(one) - share(other)) || order(one, other));
  }

  /** Beside the map while no node is chosen: where to look first. */
  function writeIdle() {
    if (!idle) return;
    const rows = [...state.queue.values()].filter((row) => row.pods.length).sort((one, other) => one.oldest - other.oldest);
    const waits = rows.slice(0, FEW).map((row) => [podLink(row.namespace, row.pods[0][0]), span(about("now") - row.oldest)]);
    reconcile(
      side,
      el("h2", {}, "No node chosen"),
      el("p", { class: "muted small" }, "Point at a box, or go there with the arrow keys. A click or Enter keeps the node here."),
      fullest.length
        ? table(
            `Fullest nodes, ${called(chosen.resource)} ${used(chosen.resource)}`,
            [
              { name: "Node", mono: true },
              { name: "Share", number: true },
            ],
            fullest.map(([name, share]) => [nodeLink(name), percent(share)]),
          )
        : null,
      waits.length
        ? table(
            "Longest waits, one pod of each reason",
            [
              { name: "Pod", mono: true },
              { name: "Waits", number: true },
            ],
            waits,
          )
        : null,
    );
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
    shownGroups = yield* groups();
    const height = Math.max(innerWidth < 640 ? 760 : 260, innerHeight - (judging() ? 400 : 300));
    painting.stop();
    yield* map.show(shownGroups, height);
    yield* sum();
    if (opening === null || !state.nodes.size) return;
    if (map.at.has(opening)) map.choose(opening);
    else {
      idle = false;
      fill(side, el("h2", { class: "mono" }, opening), el("p", {}, "There is no node of this name: it may have gone since."));
    }
    opening = null;
  }

  /** Draw the same boxes as they look now. */
  function repaint() {
    if (building.work) building.follow();
    else if (state) painting.start();
  }

  // --- what a waiting pod would meet ---------------------------------------------------------------------------------------------

  const judging = () => chosen.colour === "verdict" && chosen.pod !== "";

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
    if (named !== null && state.nodes.has(named)) say(named);
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

  function writeFacts() {
    const fact = (text, label) => el("div", { class: "fact" }, el("b", {}, text), el("span", {}, label));
    const resources = about("resources").map((name, at) => {
      const [offered, asks] = totals[at] ?? [0, 0];
      return offered ? fact(percent(asks / offered), `of ${amount(name, offered)} ${called(name)} ${used(name)}`) : null;
    });
    const waiting = [...state.queue.values()].reduce((sum, row) => sum + row.count, 0);
    reconcile(
      facts,
      fact(count(state.nodes.size), state.nodes.size === 1 ? "node" : "nodes"),
      fact(count(waiting), waiting === 1 ? "pod waits" : "pods wait"),
      ...resources.slice(0, 6),
    );
  }

  function writeGroups() {
    const rows = shownGroups.map((group) => [
      group.value,
      count(group.names.length),
      amount(chosen.resource, group.offered),
      amount(chosen.resource, group.asks),
      percent(group.offered ? group.asks / group.offered : null),
      ...(judging() ? [count(group.fits)] : []),
    ]);
    reconcile(
      groupTable,
      table(
        `Groups of nodes, ${called(chosen.resource)}`,
        [
          { name: chosen.group || "Group", mono: true },
          { name: "Nodes", number: true },
          { name: "Offered", number: true },
          { name: "Requested", number: true },
          { name: "Share", number: true },
          ...(judging() ? [{ name: "Can hold the pod", number: true }] : []),
        ],
        rows,
      ),
    );
  }

  function writeNodes() {
    if (!nodesOpen.open || !state) return;
    const names = listed;
    const pages = Math.max(1, Math.ceil(names.length / ROWS));
    page = Math.min(page, pages - 1);
    const resources = about("resources");
    const rows = names.slice(page * ROWS, page * ROWS + ROWS).map((name) => {
      const [, offered, cordoned] = state.nodes.get(name) ?? [[], [], false],
        [asks] = state.loads.get(name) ?? [[]];
      const link = el(
        "button",
        {
          class: "plain mono",
          data: { key: name },
          on: {
            click: () => {
              map.choose(name);
              side.scrollIntoView({ block: "nearest" });
            },
          },
        },
        name,
      );
      return [
        link,
        ...(judging() ? [layer.of(name).text] : []),
        ...resources.map((each, at) => (offered[at] ? `${amount(each, asks[at] ?? 0)} of ${amount(each, offered[at])}` : "–")),
        cordoned ? "cordoned" : "",
      ];
    });
    const turn = (text, to) =>
      el(
        "button",
        {
          disabled: to < 0 || to >= pages,
          on: {
            click: () => {
              page = to;
              writeNodes();
            },
          },
        },
        text,
      );
    const head = (text, key) => ({
      sort: chosen.sort === key ? (chosen.down ? "descending" : "ascending") : null,
      name: el("button", { class: "plain", on: { click: () => order(key) } }, text),
    });
    const order = (key) => {
      chosen.down = chosen.sort === key ? !chosen.down : key !== "name";
      chosen.sort = key;
      page = 0;
      adding.start();
    };
    reconcile(
      nodeTable,
      table(
        "Nodes, requested of offered",
        [
          { ...head("Node", "name"), mono: true },
          ...(judging() ? [{ name: "What the pod would meet" }] : []),
          ...resources.map((each) => ({ ...head(called(each), each), number: true })),
          { name: "State" },
        ],
        rows,
      ),
      el("div", { class: "pager" }, turn("Back", page - 1), turn("Next", page + 1), `page ${page + 1} of ${pages}`),
    );
  }

  function writeLatest() {
    const known = [...state.decisions]
      .filter(([key]) => key !== "hidden")
      .sort(([one], [other]) => other - one)
      .map(([, row]) => row);
    const hidden = state.decisions.get("hidden") ?? 0;
    latest.hidden = !known.length && !hidden;
    // A pod that is refused again and again is one row: the others would be gone before they were seen.
    const found = new Map();
    for (const row of known) {
      const [namespace, name, node, , , result = "placed", , , , reason = ""] = row;
      if (chosen.result && (result === "placed") !== (chosen.result === "placed")) continue;
      const key = JSON.stringify([namespace, name, node, result, reason]);
      if (found.has(key)) found.get(key).times += 1;
      else found.set(key, { row, times: 1 });
    }
    const kept = [...found].slice(0, LATEST);
    const now = about("now");
    const show = (value) => {
      chosen.result = value;
      writeLatest();
    };
    const results = [
      ["", "all"],
      ["placed", "placed"],
      ["other", "not placed"],
    ];
    reconcile(
      latest,
      el("div", { class: "find" }, field("Decisions", results, chosen.result, show)),
      table(
        `Latest decisions${hidden ? `, and ${plural(hidden, "decision")} about pods of other namespaces` : ""}`,
        [
          { name: "Pod", mono: true },
          { name: "Result" },
          { name: "Node", mono: true },
          { name: "Profile" },
          { name: "Times", number: true },
          { name: "Ago", number: true },
        ],
        kept.map(([, { row, times }]) => {
          const [namespace, name, node, profile, at, result, , victims, more, reason] = row;
          const told = `${outcome(result, victims, more)}${reason ? `: ${reason}` : ""}`;
          return [podLink(namespace, name), told, node ? nodeLink(node) : "", profile, count(times), span(now - at)];
        }),
        kept.map(([key]) => key),
      ),
    );
  }

  // --- one node -----------------------------------------------------------------------------------------------------------------

  function point(name, kept) {
    if (name === null) {
      named = null;
      return;
    }
    named = name;
    say(name);
    clearTimeout(due);
    // A pointer that passes over hundreds of boxes asks for the last one.
    due = setTimeout(() => ask(name), kept ? 0 : 80);
  }

  /** Say in words what the box of a node shows. */
  function say(name) {
    const { share, verdict } = box(name);
    const load =
      share === null ? `offers no ${called(chosen.resource)}` : `${percent(share)} of ${called(chosen.resource)} ${used(chosen.resource)}`;
    heard.textContent = `${shown(name)}: ${verdict ? `${verdict.text}; ` : ""}${load}`;
    const told = side.querySelector("#meets");
    if (told) told.textContent = verdict ? `${shown(chosen.pod)}: ${verdict.text}` : "";
  }

  async function ask(name) {
    const number = ++asked;
    idle = false;
    const answer = await request(`api/node?name=${encodeURIComponent(name)}`).catch(() => null);
    if (number !== asked) return;
    if (answer?.ok) writeNode(await answer.json());
    else fill(side, el("h2", { class: "mono" }, name), el("p", { class: "muted" }, await failure(answer)));
  }

  function writeNode(found) {
    const [, offered] = state.nodes.get(found.name) ?? [[], []],
      [asks] = state.loads.get(found.name) ?? [[]];
    const meters = about("resources")
      .map((name, at) => (offered[at] ? meter(name, asks[at] ?? 0, offered[at]) : null))
      .filter(Boolean);
    const tags = (pod) =>
      [
        pod.assumed ? "assumed" : "",
        pod.leaving ? "leaving" : "",
        ...Object.entries(pod.others).map(([name, many]) => `${count(many)} ${name}`),
      ].filter(Boolean);
    const rows = found.pods.map((pod) => [
      el(
        "span",
        {},
        podLink(pod.namespace, pod.name),
        el(
          "span",
          { class: "tags" },
          tags(pod).map((text) => el("span", { class: "tag" }, text)),
        ),
      ),
      amount("cpu", pod.cpu),
      amount("memory", pod.memory),
    ]);
    const more = [
      found.more ? `${plural(found.more, "more pod")}` : "",
      found.hidden ? `${plural(found.hidden, "pod")} of other namespaces` : "",
      found.nominated.length || found.nominatedHidden
        ? `nominated: ${[...found.nominated, ...(found.nominatedHidden ? [plural(found.nominatedHidden, "pod")] : [])].join(", ")}`
        : "",
    ].filter(Boolean);
    fill(
      side,
      el(
        "div",
        { class: "stack tight" },
        el("h2", { class: "mono" }, found.name),
        el(
          "div",
          { class: "tags" },
          found.cordoned ? el("span", { class: "tag strong" }, "cordoned") : null,
          found.taints.map((taint) => el("span", { class: "tag strong" }, taint)),
        ),
        judging() ? el("p", { id: "meets" }, `${chosen.pod}: ${layer.of(found.name).text}`) : null,
        meters,
        rows.length
          ? table(
              plural(rows.length + found.more + found.hidden, "pod"),
              [
                { name: "Pod", mono: true },
                { name: "CPU", number: true },
                { name: "Memory", number: true },
              ],
              rows,
            )
          : el("p", { class: "muted small" }, "no pods"),
        more.map((line) => el("p", { class: "muted small" }, line)),
        el(
          "details",
          {},
          el("summary", {}, plural(Object.keys(found.labels).length, "label")),
          el(
            "div",
            { class: "tags" },
            Object.entries(found.labels).map(([key, value]) => el("span", { class: "tag" }, `${key}=${value}`)),
          ),
        ),
      ),
    );
  }

  return {
    update(next, delta) {
      state = next;
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
        if (named !== null && put.loads[named]) ask(named);
      }
      if (!delta || put.nodes || gone.nodes || put.queue || gone.queue) {
        writeFacts();
        writeIdle();
      }
      if (!delta || put.decisions || gone.decisions) writeLatest();
    },
    leave() {
      layer.leave();
      for (const job of [building, painting, adding]) job.stop();
      watch.disconnect();
      clearTimeout(due);
      clearTimeout(summing);
      scheme.removeEventListener("change", repaint);
    },
  };
}

/** A decision in words: `preempting: evicts shop/web-1 and 2 more`. */
function outcome(result = "placed", victims = [], more = 0) {
  const others = more ? plural(more, victims.length ? "more pod" : "pod") : "";
  return victims.length || more ? `${result}: evicts ${[victims.join(", "), others].filter(Boolean).join(" and ")}` : result;
}

function meter(name, asks, offered) {
  const share = asks / offered;
  return el(
    "div",
    { class: "meter" },
    el("span", {}, called(name)),
    el(
      "span",
      { class: "track" },
      el("i", { class: share > 1 ? "full over" : share >= FULL ? "full" : "", style: { width: `${Math.min(share, 1) * 100}%` } }),
    ),
    el("span", { class: "number" }, `${amount(name, asks)} of ${amount(name, offered)}`),
  );
}
