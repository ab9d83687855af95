// The page of the queue: waiting pods by the reason that keeps them, oldest first, with filters.

import { el, fill, shown, table } from "./element.js";
import { failure } from "./failure.js";
import { groupLink, mapLink, podLink } from "./links.js";
import { reconcile } from "./live.js";
import { look, swatchClass } from "./plugincolours.js";
import { request } from "./request.js";
import { clock, count, plural, span } from "./words.js";

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
/** Namespaces that a card names; the others are in what it unfolds. */
const SPACES = 3;
/** Pods of a group that the state names, and rows that a question for further ones may name. */
const OLDEST = 20;
const MOST_ROWS = 50;
/** Pages of further pods by the key of their group: what was asked for last, as of when, and what kept it from being answered. */
const pages = new Map();
/** Order of a group's pods, which is the server's. */
const inTurn = (one, other) => one.since - other.since || order(one.name, other.name) || order(one.namespace, other.namespace);
const order = (one, other) => (one < other ? -1 : one > other ? 1 : 0);

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

/** Pods as a table. An operator's queue knows more of them than their age. */
function podTable(caption, label, pods, now) {
  const known = pods.some((pod) => pod.known.length);
  const number = (name) => ({ name, number: true });
  const made = table(
    caption,
    [
      { name: "Pod", mono: true },
      number("Waits"),
      ...(known ? [number("Priority"), number("Attempts"), number("Tried again in")] : []),
      { name: "Map" },
    ],
    pods.map(({ namespace, name, since, known: [priority = 0, attempts = 0, until = 0] }) => [
      podLink(namespace, name),
      span(now - since),
      ...(known ? [count(priority), count(attempts), until > now ? span(until - now) : "–"] : []),
      mapLink(namespace, name),
    ]),
  );
  made.setAttribute("aria-label", shown(label));
  return made;
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

  const own = () => state.about.get("own");
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
    // The kubeconfig's own namespace is first; what a reader may see by name is theirs to act on, and stands before the sums of others.
    const rank = (group) => (group.rows[0].namespace === null ? 2 : group.rows.some((row) => row.namespace === own()) ? 0 : 1);
    return [...found.values()].sort((one, other) => rank(one) - rank(other) || one.oldest - other.oldest || other.count - one.count);
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

  /** Which namespaces are shown before others, in words. */
  function firsts(rows) {
    if (rows.some((row) => row.namespace === own())) return `namespace ${own()} first, `;
    return rows.some((row) => row.namespace === null) ? "your namespaces first, " : "";
  }

  function write() {
    const rows = [...state.queue].map(([id, row]) => ({ id, ...row }));
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
    said.textContent = `${plural(pods, "pod")} in ${plural(seen.length, "group")}, ${firsts(rows)}oldest first${left ? `; ${plural(left, "pod")} not evaluated yet` : ""}`;
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

  /** Ask for the pods after the last one that is shown. */
  async function turn(group, last) {
    const rows = group.rows.filter((row) => row.pods.length).sort((one, other) => one.oldest - other.oldest);
    const asked = rows.slice(0, MOST_ROWS).map((row) => row.id);
    const after = `${last.since}/${last.namespace}/${last.name}`;
    const answer = await request(`api/waiting?rows=${asked.join(",")}&after=${encodeURIComponent(after)}`).catch(() => null);
    if (answer?.ok) {
      const { pods, more } = await answer.json();
      const found = pods.map(([namespace, name, since, ...known]) => ({ namespace, name, since, known }));
      pages.set(group.key, { pods: found, more, at: state.about.get("now"), left: rows.length > MOST_ROWS, told: "" });
    } else pages.set(group.key, { ...pages.get(group.key), told: await failure(answer) });
    if (state) write();
  }

  /** The pods of a group: the oldest, as they are now, or a page of further ones, as of when it was asked for. */
  function podsOf(group, now) {
    const named = group.rows
      .flatMap((row) => row.pods.map(([name, since, ...known]) => ({ namespace: row.namespace, name, since, known })))
      .sort(inTurn)
      .slice(0, OLDEST);
    if (!named.length) return { title: "where", content: [] };
    const page = pages.get(group.key);
    const listed = page?.pods ?? named;
    const all = group.rows.reduce((sum, row) => sum + (row.pods.length ? row.count : 0), 0);
    const more = page?.pods ? page.more : all > named.length;
    const button = (text, press) => el("button", { data: { key: text }, on: { click: press } }, text);
    const first = () => {
      pages.delete(group.key);
      write();
    };
    const caption = page?.pods ? `Later pods, as of ${clock(page.at)} UTC` : more ? "The oldest pods" : "All pods, the oldest first";
    const label = [caption, ...group.reasons.map(reasonText), PLACES[group.place] ?? group.place].join("; ");
    return {
      title: named.length === all ? (all === 1 ? "the pod" : `the ${all} pods`) : `pods, the oldest ${named.length} first`,
      content: [
        listed.length ? podTable(caption, label, listed, now) : el("p", { class: "muted small" }, "No more pods wait for this."),
        page?.left
          ? el("p", { class: "muted small" }, `Of the ${MOST_ROWS} namespaces with the oldest pods; choose a namespace for others.`)
          : null,
        page?.told ? el("p", { class: "small" }, page.told) : null,
        more || page?.pods
          ? el(
              "div",
              { class: "pager" },
              page?.pods ? button("The oldest", first) : null,
              more ? button("Later pods", () => turn(group, listed.at(-1))) : null,
              `${plural(all, "pod")} in all`,
            )
          : null,
      ],
    };
  }

  function item(group, now) {
    const [first, ...more] = group.reasons;
    const bySpace = new Map();
    for (const row of group.rows) bySpace.set(row.namespace, (bySpace.get(row.namespace) ?? 0) + row.count);
    const spaces = [...bySpace]
      .sort(([name, one], [another, other]) => (another === own()) - (name === own()) || other - one)
      .map(([space, many]) => el("span", { class: "tag" }, `${space ?? "other namespaces"}: ${count(many)}`));
    const gangs = group.rows.flatMap((row) => (row.groups ?? []).map(([name, many]) => [row.namespace, name, many]));
    const pods = podsOf(group, now);
    const unfold = el(
      "details",
      {
        open: open.has(group.key),
        on: { toggle: (event) => (event.target.open ? open.add(group.key) : open.delete(group.key)) },
      },
      el("summary", { data: { key: group.key } }, pods.title),
      pods.content,
      el(
        "div",
        { class: "tags" },
        spaces.slice(SPACES),
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
          spaces.slice(0, SPACES),
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
