// The page of a pod: the decision as a funnel by plugin, the best nodes with their scores, and what would have to change.

import { failure } from "./failure.js";
import { request } from "./request.js";
import { el, fill, section, table } from "./element.js";
import { KINDS } from "./nodemap.js";
import { claimLink, groupLink, mapLink, podLink } from "./links.js";
import { reconcile } from "./live.js";
import { clock, count, latency, moment, plural, span } from "./words.js";

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
    const rows = [...state.queue.values()].sort((one, other) => one.oldest - other.oldest).slice(0, 12);
    const links = rows.flatMap((row) => row.pods.slice(0, 1).map(([pod]) => el("li", {}, podLink(row.namespace, pod))));
    fill(
      body,
      el(
        "section",
        { class: "panel empty" },
        el("h1", {}, "Which pod?"),
        el("p", {}, "Its name explains where it is, or why it waits."),
        links.length ? el("ul", { class: "choices" }, links) : null,
      ),
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
            .map((line) => el("p", { class: line.startsWith("  ") ? "indent" : "" }, line.trim())),
        ),
        found.notes.map((note) => el("p", { class: "muted small" }, note)),
        company(found),
        found.verdict ? el("h2", { id: "verdict" }, found.verdict) : null,
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
        found.best.length ? section(`Best ${plural(found.best.length, "node")} now, by score`, "scores", scores(found.best)) : null,
        found.decision ? section("The decision", "decision", decision(found.decision)) : null,
        found.attempts?.length
          ? section(
              found.attempts.length === 1 ? "The last attempt" : `The last ${plural(found.attempts.length, "attempt")}`,
              "attempts",
              attempts(found.attempts),
            )
          : null,
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

function scores(best) {
  const plugins = [...new Set(best.flatMap((node) => Object.keys(node.parts)))].filter((plugin) =>
    best.some((node) => node.parts[plugin]?.[3]),
  );
  const most = Math.max(1, ...best.map((node) => node.total));
  const colour = (plugin) => `var(${KINDS[plugins.indexOf(plugin) % KINDS.length]})`;
  const bars = best.map((node) =>
    el(
      "li",
      {},
      el("span", { class: "mono" }, node.node),
      el(
        "span",
        { class: "lane", "aria-hidden": "true" },
        plugins.map((plugin) =>
          el("i", {
            title: `${plugin}: ${node.parts[plugin]?.[3] ?? 0}`,
            style: { width: `${((node.parts[plugin]?.[3] ?? 0) / most) * 100}%`, background: colour(plugin) },
          }),
        ),
      ),
      el("b", { class: "number" }, count(node.total)),
    ),
  );
  const legend = el(
    "div",
    { class: "legend" },
    plugins.map((plugin) => el("span", { class: "key" }, el("i", { class: "swatch", style: { background: colour(plugin) } }), plugin)),
  );
  const rows = best.flatMap((node) => Object.entries(node.parts).map(([plugin, figures]) => [node.node, plugin, ...figures.map(count)]));
  const columns = [
    { name: "Node", mono: true },
    { name: "Plugin" },
    ...["Raw", "Normalised", "Weight", "Product"].map((each) => ({ name: each, number: true })),
  ];
  return [
    el("ol", { class: "scores" }, bars),
    legend,
    el("details", {}, el("summary", {}, "Scores as a table"), table("Scores by node and plugin", columns, rows)),
  ];
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

function decision({ score, runnerUp, plugins }) {
  return [
    el("p", {}, `score ${count(score)}; ${runnerUp === null ? "there was no other node" : `the best other node had ${count(runnerUp)}`}`),
    table(
      "Products by plugin",
      [{ name: "Plugin" }, { name: "Product", number: true }],
      Object.entries(plugins).map(([plugin, product]) => [plugin, count(product)]),
    ),
  ];
}
