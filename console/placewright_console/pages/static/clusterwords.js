// What the map says, in words: figures of the cluster, the panel of a node, tables of groups and nodes, and the latest decisions.

import { failure } from "./failure.js";
import { request } from "./request.js";
import { el, fill, shown, table } from "./element.js";
import { nodeLink, podLink } from "./links.js";
import { reconcile } from "./live.js";
import { FULL } from "./nodemap.js";
import { latestChanges } from "./recentchanges.js";
import { sorted } from "./slices.js";
import { amount, count, percent, plural, span } from "./words.js";

const ROWS = 100;
/** Lines of each list beside the map while no node is chosen, and rows of the latest decisions. */
export const FEW = 6;
const LATEST = 12;
const NAMES = { cpu: "CPU", memory: "memory", pods: "pods" };
const PUBLISHED = "devices:";

/** A device of ResourceSlices is called by its driver, a shared capacity of devices by both. */
export function called(resource) {
  if (!resource.startsWith(PUBLISHED)) return NAMES[resource] ?? resource;
  const [driver, ...capacity] = resource.slice(PUBLISHED.length).split("/");
  return capacity.length ? `${capacity.join("/")} of ${driver}` : `devices of ${driver}`;
}

/** Devices are taken, by claims; all else is requested. */
export const used = (resource) => (resource.startsWith(PUBLISHED) ? "taken" : "requested");

/** What a person chose, kept while the console is open in this tab. */
export const chosen = { group: null, resource: "cpu", colour: "room", area: "", order: null, pod: "", result: "", sort: "", down: true };
/** The decisions that stay while a person looks at them, the number of the newest one since, and how many came; null without a pause. */
let paused = null;

/** A choice with its label. */
export const field = (label, options, value, onChange) => {
  const select = el(
    "select",
    { on: { change: (event) => onChange(event.target.value) } },
    options.map(([key, text]) => el("option", { value: key }, text)),
  );
  select.value = value;
  return el("label", { class: "field", data: { key: label } }, label, select);
};

/**
 * Make the words of a map.
 * @param {Object} view the state and what the page made of it: `state`, `groups`, `totals`, `fullest`, `about`, `box`, `judging`, `layer`
 * @param {(name: string) => void} choose a node on the map
 * @param {() => void} redo the sums, and write what has them
 */
export function clusterWords(view, choose, redo) {
  const { about, box, judging } = view;
  let named = null;
  let asked = 0;
  let page = 0;
  let due = 0;
  let listed = [];
  let idle = true;
  const heard = el("p", { class: "out", "aria-live": "polite", id: "heard" });
  const facts = el("div", { class: "facts" });
  const side = el("aside", { class: "panel side", "aria-label": "Node", id: "node" });
  const latest = el("section", { class: "panel stack tight", hidden: true, id: "latest" });
  const groupTable = el("div", { id: "groups" });
  const nodeTable = el("div");
  const nodesOpen = el("details", { id: "nodes" }, el("summary", {}, "All nodes as a table"), nodeTable);
  nodesOpen.addEventListener("toggle", () => view.state && redo());

  /** Write what has the sums of all nodes. */
  function* writeSums(names) {
    listed = chosen.sort && nodesOpen.open ? yield* sorted(names, byColumn()) : names;
    writeIdle();
    writeGroups();
    writeFacts();
    writeNodes();
  }

  /** Say that a node that was asked for is not there. */
  function miss(name) {
    idle = false;
    fill(side, el("h2", { class: "mono" }, name), el("p", {}, "There is no node of this name: it may have gone since."));
  }

  /** Say anew what changed about the node that is shown. */
  const again = () => {
    if (named !== null && view.state.nodes.has(named)) say(named);
  };

  /** The order of the table of nodes: by name, or by the share of a resource. */
  function byColumn() {
    const at = about("resources").indexOf(chosen.sort),
      sign = chosen.down ? -1 : 1,
      order = new Intl.Collator("en", { numeric: true }).compare;
    const share = (name) => (view.state.loads.get(name)?.[0][at] ?? 0) / (view.state.nodes.get(name)?.[1][at] || Infinity);
    return (one, other) => sign * ((at < 0 ? 0 : share(one) - share(other)) || order(one, other));
  }

  /** Beside the map while no node is chosen: where to look first. */
  function writeIdle() {
    if (!idle) return;
    const rows = [...view.state.queue.values()].filter((row) => row.pods.length).sort((one, other) => one.oldest - other.oldest);
    const waits = rows.slice(0, FEW).map((row) => [podLink(row.namespace, row.pods[0][0]), span(about("now") - row.oldest)]);
    const changes = latestChanges(view.state, FEW).map(([at, what]) => [el("span", {}, what), span(about("now") - at)]);
    reconcile(
      side,
      el("h2", {}, "No node chosen"),
      el("p", { class: "muted small" }, "Point at a box, or go there with the arrow keys. A click or Enter keeps the node here."),
      view.fullest.length
        ? table(
            `Fullest nodes, ${called(chosen.resource)} ${used(chosen.resource)}`,
            [
              { name: "Node", mono: true },
              { name: "Share", number: true },
            ],
            view.fullest.map(([name, share]) => [nodeLink(name), percent(share)]),
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
      changes.length ? table("Recent changes", [{ name: "What" }, { name: "Ago", number: true }], changes) : null,
    );
  }

  function writeFacts() {
    const fact = (text, label) => el("div", { class: "fact" }, el("b", {}, text), el("span", {}, label));
    const resources = about("resources").map((name, at) => {
      const [offered, asks] = view.totals[at] ?? [0, 0];
      return offered ? fact(percent(asks / offered), `of ${amount(name, offered)} ${called(name)} ${used(name)}`) : null;
    });
    const waiting = [...view.state.queue.values()].reduce((sum, row) => sum + row.count, 0);
    reconcile(
      facts,
      fact(count(view.state.nodes.size), view.state.nodes.size === 1 ? "node" : "nodes"),
      fact(count(waiting), waiting === 1 ? "pod waits" : "pods wait"),
      ...resources.slice(0, 6),
    );
  }

  function writeGroups() {
    const rows = view.groups.map((group) => [
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
    if (!nodesOpen.open || !view.state) return;
    const names = listed;
    const pages = Math.max(1, Math.ceil(names.length / ROWS));
    page = Math.min(page, pages - 1);
    const resources = about("resources");
    const rows = names.slice(page * ROWS, page * ROWS + ROWS).map((name) => {
      const [, offered, cordoned] = view.state.nodes.get(name) ?? [[], [], false],
        [asks] = view.state.loads.get(name) ?? [[]];
      const link = el(
        "button",
        {
          class: "plain mono",
          data: { key: name },
          on: {
            click: () => {
              choose(name);
              side.scrollIntoView({ block: "nearest" });
            },
          },
        },
        name,
      );
      return [
        link,
        ...(judging() ? [view.layer.of(name).text] : []),
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
      redo();
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
    const numbered = [...view.state.decisions].filter(([key]) => key !== "hidden").sort(([one], [other]) => other - one);
    const latestOnes = { known: numbered.map(([, row]) => row), hidden: view.state.decisions.get("hidden") ?? 0, now: about("now") };
    const newest = Number(numbered[0]?.[0] ?? 0);
    if (paused) {
      // Another replica counts from the beginning.
      const seen = newest < paused.newest ? 0 : paused.newest;
      paused.came += numbered.filter(([key]) => key > seen).length;
      paused.newest = newest;
    }
    const { known, hidden, now } = paused ?? latestOnes;
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
    const pause = () => {
      paused = paused ? null : { ...latestOnes, newest, came: 0 };
      writeLatest();
    };
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
      el(
        "div",
        { class: "find" },
        field("Decisions", results, chosen.result, show),
        el("button", { id: "pause", "aria-pressed": String(paused !== null), on: { click: pause } }, "Pause"),
        paused ? el("p", { class: "muted small", id: "came" }, `Paused; ${plural(paused.came, "new decision")} to come.`) : null,
      ),
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
    const [, offered] = view.state.nodes.get(found.name) ?? [[], []],
      [asks] = view.state.loads.get(found.name) ?? [[]];
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
        judging() ? el("p", { id: "meets" }, `${chosen.pod}: ${view.layer.of(found.name).text}`) : null,
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
    parts: { heard, facts, side, latest, groupTable, nodesOpen },
    point,
    miss,
    again,
    writeSums,
    writeFacts,
    writeIdle,
    writeLatest,
    /** Ask anew for the node that is shown, where its load changed. */
    loaded: (loads) => named !== null && loads[named] && ask(named),
    leave: () => clearTimeout(due),
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
