// The page of the queue: waiting pods by the reason that keeps them, oldest first, with filters.

import { el, fill, table } from "./element.js";
import { groupLink, mapLink, podLink } from "./links.js";
import { reconcile } from "./live.js";
import { look, swatchClass } from "./plugincolours.js";
import { count, plural, span } from "./words.js";

const PLACES = {
  unschedulable: "unschedulable",
  active: "active",
  backoff: "backoff",
  gated: "gated",
  "in-flight": "in flight",
  suspect: "suspects",
  "given-up": "given up",
  "": "in no sub-queue",
};
const chosen = { place: "*", namespace: "*", profile: "*", plugin: "*" };
const open = new Set();
/** Namespaces that a card names; all of them are in what it unfolds. */
const SPACES = 3;

/** "Insufficient cpu on 40 nodes" */
export function reasonText([plugin, text, least, most]) {
  const said = text || (plugin ? `rejected by ${plugin}` : "for a reason of another namespace");
  if (!most) return said;
  return `${said} on ${least === most ? plural(most, "node") : `${count(least)}–${count(most)} nodes`}`;
}

/** A plugin with its colour, which is the same on the map. */
function pluginTag(plugin, choose) {
  const { token, shape } = look(plugin);
  const click = () => choose(plugin);
  return el(
    "button",
    { class: "tag", title: "Show pods that this plugin rejected from a node", on: { click } },
    el("i", { class: `swatch ${swatchClass(shape)}`, style: { "--colour": `var(${token})` } }),
    plugin,
  );
}

/** What an operator's queue knows of a pod beside its age. */
function queued([priority = 0, attempts = 0, until = 0], now) {
  const said = [
    priority ? `priority ${count(priority)}` : "",
    attempts ? plural(attempts, "attempt") : "",
    until > now ? `tried again in ${span(until - now)}` : "",
  ];
  return said
    .filter(Boolean)
    .map((each) => `, ${each}`)
    .join("");
}

export function queuePage(root) {
  let state = null;
  const facts = el("div", { class: "facts" });
  const filters = el("div", { class: "bar" });
  const list = el("ul", { class: "reasons", id: "reasons" });
  const turns = el("section", { class: "panel stack tight", hidden: true, id: "turns" });
  const said = el("p", { class: "muted small", role: "status" });
  fill(
    root,
    el("h1", { class: "out" }, "Queue"),
    facts,
    el(
      "section",
      { class: "stack", "aria-label": "Waiting pods by reason" },
      el("div", { class: "panel bar" }, filters, said),
      list,
      turns,
    ),
  );

  const visible = (row, but) => Object.entries(chosen).every(([key, value]) => value === "*" || key === but || has(row, key, value));
  const has = (row, key, value) => (key === "plugin" ? row.reasons.some(([plugin]) => plugin === value) : (row[key] ?? "") === value);
  const valuesOf = (row, key) => (key === "plugin" ? row.reasons.map(([plugin]) => plugin).filter(Boolean) : [row[key] ?? ""]);

  /** Rows that differ in namespace and profile alone are one group on the page. */
  function grouped(rows) {
    const found = new Map();
    for (const row of rows) {
      const key = JSON.stringify([row.place, row.reasons.map(([plugin, text]) => [plugin, text]), row.namespace === null]);
      const group =
        found.get(key) ??
        found
          .set(key, { key, place: row.place, reasons: row.reasons.map((each) => [...each]), count: 0, oldest: Infinity, rows: [] })
          .get(key);
      group.count += row.count;
      group.oldest = Math.min(group.oldest, row.oldest);
      group.rows.push(row);
      row.reasons.forEach(([, , least, most], at) => {
        group.reasons[at][2] = Math.min(group.reasons[at][2], least);
        group.reasons[at][3] = Math.max(group.reasons[at][3], most);
      });
    }
    // What a reader may see by name is theirs to act on, and stands before the sums of others.
    const others = (group) => Number(group.rows[0].namespace === null);
    return [...found.values()].sort((one, other) => others(one) - others(other) || one.oldest - other.oldest || other.count - one.count);
  }

  function choice(label, key, names) {
    const rows = [...state.queue.values()].filter((row) => visible(row, key));
    const counts = new Map();
    for (const row of rows) for (const value of new Set(valuesOf(row, key))) counts.set(value, (counts.get(value) ?? 0) + row.count);
    if (chosen[key] !== "*" && !counts.has(chosen[key])) counts.set(chosen[key], 0);
    const options = [...counts]
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([value, many]) => [value, `${names(value)} (${count(many)})`]);
    const select = el(
      "select",
      {
        id: `by-${key}`,
        on: {
          change: (event) => {
            chosen[key] = event.target.value;
            write();
          },
        },
      },
      [["*", "all"], ...options].map(([value, text]) => el("option", { value }, text)),
    );
    select.value = chosen[key];
    return el("label", { class: "field" }, label, select);
  }

  function write() {
    const rows = [...state.queue.values()];
    const now = state.about.get("now");
    const places = new Map();
    for (const row of rows) places.set(row.place, (places.get(row.place) ?? 0) + row.count);
    const fact = (text, label) => el("div", { class: "fact" }, el("b", {}, text), el("span", {}, label));
    reconcile(
      facts,
      fact(count(rows.reduce((sum, row) => sum + row.count, 0)), "waiting"),
      [...places].sort().map(([place, many]) => fact(count(many), PLACES[place] ?? place)),
    );
    // A select that a person has open must not be replaced under the pointer.
    if (!filters.contains(document.activeElement) || document.activeElement.tagName !== "SELECT") {
      reconcile(
        filters,
        choice("Sub-queue", "place", (value) => PLACES[value] ?? value),
        choice("Namespace", "namespace", (value) => value || "others"),
        choice("Profile", "profile", (value) => value || "none"),
        choice("Rejected from a node by", "plugin", (value) => value),
      );
    }
    const seen = grouped(rows.filter((row) => visible(row)));
    const pods = seen.reduce((sum, group) => sum + group.count, 0);
    const left = state.about.get("notEvaluated") ?? 0;
    said.textContent = `${plural(pods, "pod")} in ${plural(seen.length, "group")}, ${rows.some((row) => row.namespace === null) ? "your namespaces first, " : ""}oldest first${left ? `; ${plural(left, "pod")} not evaluated yet` : ""}`;
    reconcile(
      list,
      seen.length
        ? seen.map((group) => item(group, now))
        : el(
            "li",
            { class: "panel empty" },
            el("h2", {}, rows.length ? "No pod matches the filters" : "No pod waits"),
            rows.length ? null : el("p", {}, "Every pod that is known has a node."),
          ),
    );
  }

  /** Show the pods that a plugin keeps from a node. */
  function only(plugin) {
    chosen.plugin = plugin;
    write();
  }

  /** Whose turn it is, in profiles that let tenants take turns. */
  function writeTurns() {
    const rows = [...(state.turns ?? new Map()).values()].sort((one, other) =>
      one[0] === other[0] ? other[1] - one[1] : one[0] < other[0] ? -1 : 1,
    );
    turns.hidden = !rows.length;
    const columns = [
      { name: "Turn", number: true },
      { name: "Tenant", mono: true },
      { name: "Waiting pods", number: true },
      { name: "Weight", number: true },
      { name: "Place" },
    ];
    reconcile(
      turns,
      el("h2", {}, "Turns of tenants"),
      rows.map(([profile, priority, first, all]) =>
        table(
          `${plural(all, "tenant")} of ${profile} at priority ${count(priority)}${all > first.length ? ", the first of them" : ""}`,
          columns,
          first.map(([name, pods, weight, waits], at) => [
            count(at + 1),
            name === null ? "one that you may not see" : name || "without a tenant",
            count(pods),
            count(weight),
            waits ? "waits for a place" : "free",
          ]),
        ),
      ),
    );
  }

  function item(group, now) {
    const [first, ...more] = group.reasons;
    const spaces = [
      ...new Map(
        group.rows.map((row) => [
          row.namespace,
          group.rows.filter((each) => each.namespace === row.namespace).reduce((sum, each) => sum + each.count, 0),
        ]),
      ),
    ];
    const gangs = group.rows.flatMap((row) => (row.groups ?? []).map(([name, many]) => [row.namespace, name, many]));
    const pods = group.rows
      .flatMap((row) => row.pods.map(([name, since, ...known]) => ({ namespace: row.namespace, name, since, known })))
      .sort((one, other) => one.since - other.since)
      .slice(0, 20);
    const unfold = el(
      "details",
      {
        open: open.has(group.key),
        on: { toggle: (event) => (event.target.open ? open.add(group.key) : open.delete(group.key)) },
      },
      el(
        "summary",
        { data: { key: group.key } },
        pods.length ? `the oldest ${pods.length === 1 ? "pod" : `${pods.length} pods`}` : "where",
      ),
      el(
        "ul",
        { class: "lines small" },
        pods.map((pod) =>
          el(
            "li",
            {},
            podLink(pod.namespace, pod.name),
            el("span", { class: "muted" }, ` waits ${span(now - pod.since)}${queued(pod.known, now)}, `),
            mapLink(pod.namespace, pod.name),
          ),
        ),
      ),
      el(
        "div",
        { class: "tags" },
        spaces.map(([space, many]) => el("span", { class: "tag" }, `${space ?? "other namespaces"}: ${count(many)}`)),
        [...new Set(group.rows.map((row) => row.profile))].map((name) =>
          el("span", { class: "tag" }, name ? `profile ${name}` : "no profile"),
        ),
      ),
    );
    return el(
      "li",
      { class: "panel reason", data: { key: group.key } },
      el("span", { class: "count" }, count(group.count), el("small", {}, group.count === 1 ? "pod" : "pods")),
      el(
        "div",
        {},
        el("p", { class: "first" }, first ? reasonText(first) : "further groups"),
        more.map((each) => el("p", { class: "more" }, reasonText(each))),
        el(
          "div",
          { class: "tags" },
          el("span", { class: "tag" }, PLACES[group.place] ?? group.place),
          [...new Set(group.reasons.map(([plugin]) => plugin).filter(Boolean))].map((plugin) => pluginTag(plugin, only)),
          spaces
            .sort(([, one], [, other]) => other - one)
            .slice(0, SPACES)
            .map(([space, many]) => el("span", { class: "tag" }, space === null ? "other namespaces" : `${space}: ${count(many)}`)),
          spaces.length > SPACES ? el("span", { class: "tag" }, plural(spaces.length - SPACES, "more namespace")) : null,
        ),
        gangs.length
          ? el(
              "p",
              { class: "links small" },
              gangs.slice(0, 10).map(([space, name, many]) => groupLink(space, name, `group ${name}: ${plural(many, "pod")}`)),
            )
          : null,
      ),
      el("span", { class: "since" }, `oldest ${span(now - group.oldest)}`),
      unfold,
    );
  }

  return {
    update(next, delta) {
      state = next;
      if (!delta || delta.put?.turns || delta.gone?.turns) writeTurns();
      if (!delta || delta.put?.queue || delta.gone?.queue || delta.put?.about?.notEvaluated !== undefined) write();
    },
  };
}
