// The page of a pod: the decision as a funnel by plugin, the best nodes with their scores, and what would have to change.

import { failure } from "./failure.js";
import { request } from "./request.js";
import { el, fill, section, table } from "./element.js";
import { claimLink, groupLink, mapLink, nodeLink, podLink } from "./links.js";
import { reconcile } from "./live.js";
import { decision, scores } from "./podscores.js";
import { amount, clock, count, latency, moment, plural, span } from "./words.js";

/** Pods of a namespace that the page without a pod names. */
const MOST_NAMED = 20;
const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

export function podPage(root, [namespace, name]) {
  let here = true;
  let shownAt = null;
  let state = null;
  const body = el("div", { class: "stack", id: "pod" });
  const input = el("input", {
    type: "search",
    id: "find",
    name: "pod",
    placeholder: "namespace/name",
    autocomplete: "off",
    spellcheck: "false",
    value: name ? `${namespace}/${name}` : "",
  });
  const form = el(
    "form",
    {
      class: "find",
      on: {
        submit: (event) => {
          event.preventDefault();
          go(input.value.trim());
        },
      },
    },
    el("label", { class: "field" }, "Pod", input),
    el("button", { type: "submit" }, "Explain"),
  );
  fill(root, el("div", { class: "stack" }, form, body));
  if (name) ask();

  function go(text) {
    const at = text.indexOf("/");
    const [space, pod] = at < 0 ? ["default", text] : [text.slice(0, at), text.slice(at + 1)];
    if (pod) location.hash = `#/pod/${encodeURIComponent(space)}/${encodeURIComponent(pod)}`;
  }

  function suggest() {
    const spaces = new Map();
    for (const { namespace, count: many, pods } of state.queue.values()) {
      if (namespace === null) continue;
      const space = spaces.get(namespace) ?? spaces.set(namespace, { many: 0, pods: [] }).get(namespace);
      space.many += many;
      space.pods.push(...pods);
    }
    const now = state.about.get("now") ?? Date.now() / 1000;
    const waiting = ([namespace, { many, pods }]) => {
      const oldest = pods.sort(([, one], [, other]) => one - other).slice(0, MOST_NAMED);
      return el(
        "section",
        { class: "panel stack tight", data: { key: namespace } },
        el("h2", {}, namespace, " ", el("span", { class: "muted small" }, `${plural(many, "pod")} ${many === 1 ? "waits" : "wait"}`)),
        table(
          `Pods of ${namespace} that wait${many > oldest.length ? `, the oldest ${count(oldest.length)}` : ""}`,
          [
            { name: "Pod", mono: true },
            { name: "Waits", number: true },
          ],
          oldest.map(([pod, since]) => [podLink(namespace, pod, pod), span(now - since)]),
        ),
      );
    };
    const sorted = [...spaces].sort(([one], [other]) => (one < other ? -1 : 1));
    reconcile(
      body,
      el(
        "section",
        { class: "panel empty" },
        el("h1", {}, "Which pod?"),
        el("p", {}, sorted.length ? "Choose one that waits, or name any pod." : "No pod waits. Name any pod to see where it is."),
      ),
      el("div", { class: "podspaces", id: "waiting-pods" }, sorted.map(waiting)),
    );
  }

  async function ask() {
    const answer = await request(`api/pod?pod=${encodeURIComponent(`${namespace}/${name}`)}`).catch(() => null);
    if (!here) return;
    if (answer?.ok) write(await answer.json());
    else if (!body.firstChild || answer?.status === 404)
      fill(
        body,
        el("section", { class: "panel empty" }, el("h1", { class: "mono" }, `${namespace}/${name}`), el("p", {}, await failure(answer))),
      );
  }

  function write(found) {
    reconcile(
      body,
      el(
        "section",
        { class: "panel stack tight" },
        el("h1", { class: "mono" }, `${found.namespace}/${found.name}`),
        el(
          "div",
          { class: "lines" },
          [found.profile, ...found.lines]
            .filter(Boolean)
            .map((line) => el("p", { class: line.startsWith("  ") ? "indent" : "" }, withNode(line.trim(), found.node))),
        ),
        found.notes.map((note) => el("p", { class: "muted small" }, note)),
        found.node && !found.decision && !found.notes.length
          ? el("p", { class: "muted small" }, "Why it has this node is not kept here.")
          : null,
        found.asks ? asks(found.asks, state?.about.get("now") ?? Date.now() / 1000) : null,
        company(found),
        found.verdict ? el("h2", { id: "verdict" }, found.verdict) : null,
        found.beyond ? el("p", { id: "beyond" }, el("b", {}, sentence(found.beyond))) : null,
        found.message ? el("p", { class: "mono muted" }, found.message) : null,
      ),
      el(
        "div",
        { class: "stack halves" },
        found.funnel.length ? section("From all nodes to those that can hold it", "funnel", funnel(found.funnel)) : null,
        found.changes.length
          ? section(
              "What would have to change, the least first",
              "changes",
              el(
                "ol",
                { class: "changes" },
                found.changes.map((line) => el("li", {}, line)),
              ),
            )
          : null,
        found.best.length
          ? section(`Best ${plural(found.best.length, "node")} now, by score`, "scores", scores(found.best, found.ties))
          : null,
        found.decision ? section("Why this node", "decision", decision(found.decision)) : null,
        found.attempts?.length ? section(whichAttempts(found.attempts), "attempts", attempts(found.attempts)) : null,
      ),
    );
  }

  return {
    update(next, delta) {
      state = next;
      // An operator's explanation costs it an evaluation, so it is asked for again where a decision was about this pod.
      if (name && Object.values(delta?.put?.decisions ?? {}).some((row) => row[0] === namespace && row[1] === name)) ask();
      if (!name) {
        if (shownAt === null) suggest();
        shownAt = 0;
        return;
      }
      const applied = (state.about.get("changes") ?? [0])[0];
      if (shownAt !== null && shownAt !== applied) ask();
      shownAt = applied;
    },
    leave() {
      here = false;
    },
  };
}

export function funnel(steps) {
  const all = steps[0].left + steps[0].rejected;
  const lane = (left, lost) =>
    el(
      "span",
      { class: "lane", "aria-hidden": "true" },
      el("i", { class: "left", style: { width: `${(left / all) * 100}%` } }),
      el("i", { class: "lost", style: { width: `${(lost / all) * 100}%` } }),
    );
  const line = (who, left, lost, why, last) =>
    el(
      "li",
      { class: last ? "end" : "" },
      el("span", { class: "who" }, who),
      lane(left, lost),
      el("span", { class: "number" }, count(left)),
      why,
    );
  return el(
    "ol",
    { class: "funnel" },
    line("all nodes", all, 0, null),
    steps.map((step, at) =>
      line(
        step.plugin || "without a plugin",
        step.left,
        step.rejected,
        el(
          "div",
          { class: "why" },
          step.reasons.map((each) =>
            el(
              "p",
              {},
              `−${count(each.nodes)}: ${each.reason}`,
              el("span", {}, each.examples.length ? ` (such as ${each.examples.slice(0, 2).join(", ")})` : ""),
            ),
          ),
        ),
        at === steps.length - 1,
      ),
    ),
  );
}

/** The line that says where a pod is, with a link to its node. */
function withNode(line, node) {
  const start = `on node ${node}`;
  return node && line.startsWith(start) ? [start.slice(0, -node.length), nodeLink(node), line.slice(start.length)] : line;
}

/** The pod's own wishes and marks. */
function asks({ requests, priority, created, owner, labels }, now) {
  const fact = (name, ...told) => el("div", {}, el("dt", {}, name), el("dd", {}, ...told));
  const tags = (all) =>
    el(
      "span",
      { class: "tags" },
      all.map((text) => el("span", { class: "tag" }, text)),
    );
  const amounts = Object.entries(requests).map(([name, many]) => `${amount(name, many)} ${name}`);
  const marks = Object.entries(labels).map(([key, value]) => `${key}=${value}`);
  return el(
    "dl",
    { class: "asks", id: "asks" },
    fact("Asks for", amounts.length ? tags(amounts) : "nothing"),
    fact("Priority", count(priority)),
    created ? fact("Age", span(now - Date.parse(created) / 1000)) : null,
    owner ? fact("Owner", `${owner[0]} ${owner[1]}`) : null,
    marks.length ? fact("Labels", tags(marks)) : null,
  );
}

/** Which attempts are kept, of how many. */
function whichAttempts(tried) {
  const all = Math.max(tried[0].number, tried.length);
  if (all === 1) return "The only attempt";
  return tried.length === 1 ? `The last of ${count(all)} attempts` : `The last ${count(tried.length)} of ${count(all)} attempts`;
}

/** Links to what the pod waits with and for. */
function company(found) {
  const links = [
    found.group ? groupLink(...found.group, `group ${found.group[1]}`) : null,
    ...(found.claims ?? []).map((claim) => claimLink(...claim, `claim ${claim[1]}`)),
    found.verdict ? mapLink(found.namespace, found.name, "each node's verdict on the map") : null,
  ].filter(Boolean);
  return links.length ? el("p", { class: "links small", id: "company" }, links) : null;
}

/** When the attempts were, from the first that is kept to the last, and what came of each. */
function attempts(tried) {
  const first = tried.at(-1).at,
    whole = tried[0].at - first;
  const dots =
    tried.length > 1 && whole > 0
      ? el(
          "div",
          { class: "attempts", "aria-hidden": "true" },
          tried.map((each) => el("i", { class: each.result, style: { left: `${((each.at - first) / whole) * 100}%` } })),
        )
      : null;
  const why = (each) =>
    each.node
      ? `${each.node}, score ${count(each.score)}`
      : each.refusals.length
        ? each.refusals.map(([plugin, reason, nodes]) => `${reason || plugin} on ${plural(nodes, "node")}`).join("; ")
        : each.message;
  const rows = tried.map((each) => [
    count(each.number),
    clock(each.at),
    latency(each.seconds),
    each.result + (each.nominated && !each.node ? `, room is made on ${each.nominated}` : ""),
    why(each),
  ]);
  const columns = [
    { name: "Attempt", number: true },
    { name: "Ended, UTC" },
    { name: "Took", number: true },
    { name: "Result" },
    { name: "Node, or why there is none" },
  ];
  return [
    dots,
    el(
      "p",
      { class: "muted small" },
      `The last ended at ${moment(tried[0].at)}${whole >= 1 ? `, ${span(whole)} after the first of these` : ""}.`,
    ),
    table("Attempts, the latest first", columns, rows),
  ];
}
