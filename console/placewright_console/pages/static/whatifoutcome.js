// What a change would do: the waiting pods that would fit, how full nodes would be, and the placements that would have been others.

import { el, fill, table } from "./element.js";
import { podLink } from "./links.js";
import { reconcile } from "./live.js";
import { reasonText } from "./queuepage.js";
import { Patch } from "./whatifpatch.js";
import { amount, count, moment, percent, plural, span } from "./words.js";

const signed = (number) => (number > 0 ? `+${count(number)}` : number < 0 ? `−${count(-number)}` : "0");
const ONE = new Intl.NumberFormat("en", { maximumFractionDigits: 1, minimumFractionDigits: 1 });
const points = (share) => `${ONE.format(share * 100)} %`;
const difference = (before, after) => {
  const by = (Math.round(after * 1000) - Math.round(before * 1000)) / 10; // of what is shown
  return by === 0 ? "0" : `${by > 0 ? "+" : "−"}${ONE.format(Math.abs(by))}`;
};

export class Outcome {
  /** See `Patch` for the arguments. */
  constructor(form, current, reopen) {
    this.patch = new Patch(form, current, reopen);
    this.facts = el("div", { class: "facts" });
    this.progress = el("p", { class: "muted small", id: "progress" });
    this.summary = el("p", { class: "out", role: "status", id: "summary" });
    this.problems = el("div", { role: "alert", id: "problems" });
    this.parts = Object.fromEntries(
      ["waiting", "placing", "recent"].map((part) => [
        part,
        el("section", { class: "panel stack tight", id: `whatif-${part}`, hidden: true }),
      ]),
    );
    this.node = el(
      "div",
      { class: "whatif-outcome stack" },
      el("section", { class: "panel whatif-facts", "aria-label": "In short" }, this.facts, this.progress, this.problems),
      this.summary,
      el(
        "div",
        { class: "whatif-answers" },
        el("div", { class: "stack" }, this.parts.waiting, this.parts.placing),
        el("div", { class: "stack" }, this.parts.recent, this.patch.node),
      ),
      basis(),
    );
    this.told = {};
  }

  /** A question was asked. The last answer stays in sight until the new one comes. */
  begin() {
    this.node.setAttribute("aria-busy", "true");
    this.node.classList.add("stale");
    this.progress.textContent = "Trying the change…";
  }

  fail(text) {
    this.done(text);
    fill(this.problems, el("p", { class: "wrong" }, text));
  }

  done(text) {
    this.node.removeAttribute("aria-busy");
    this.node.classList.remove("stale");
    this.progress.textContent = text;
  }

  take(line) {
    if (line.part === "preparing") this.progress.textContent = "Copying the cluster…";
    else if (line.part === "problems") this.refuse(line.problems);
    else if (line.part === "patch") {
      fill(this.problems);
      this.patch.show(line);
    } else if (line.part === "basis") this.told = { basis: line };
    else if (line.part === "end") this.end(line);
    else if (line.error) {
      this.told[line.part] = null;
      this.show(line.part, heading(line.part), el("p", { class: "wrong" }, `Cannot be told: ${line.error}`));
    } else if (line.part === "placing" && line.side !== undefined)
      this.progress.textContent = `Placing the waiting pods: ${count(line.tried)} of ${count(line.of)}…`;
    else {
      this.told[line.part] = line;
      this[line.part](line);
      this.writeFacts();
      this.node.classList.remove("stale");
      this.progress.textContent = "Trying the change…";
    }
  }

  refuse(problems) {
    this.done("The operator would refuse this change.");
    reconcile(
      this.problems,
      el(
        "ul",
        { class: "changes" },
        problems.map(([path, found, allowed]) =>
          el("li", {}, path ? el("b", { class: "mono" }, path) : null, `${path ? ": " : ""}found ${found}; allowed ${allowed}`),
        ),
      ),
    );
    this.summary.textContent = `The operator would refuse this change: ${plural(problems.length, "problem")}.`;
    for (const part of Object.values(this.parts)) part.hidden = true;
    this.facts.hidden = true;
    this.patch.clear();
  }

  end(line) {
    const { basis: from } = this.told;
    const why = from.problem
      ? `The profile as it is ${from.problem.replace(/^the profile /, "")}.`
      : from.claims
        ? ""
        : "An older profile has the schedulerName, so no pod waits for this one.";
    const same = from.same ? "Where pods go is the same with and without the change." : "";
    this.done(
      [
        `As of ${moment(from.now)}, found in ${line.seconds < 0.1 ? "less than 0.1" : ONE.format(line.seconds)} s.`,
        line.cut ? "It was cut off before its end." : "",
        same,
        why,
      ]
        .filter(Boolean)
        .join(" "),
    );
    const { waiting, placing, recent } = this.told;
    const said = [
      waiting
        ? `${plural(waiting.comes, "waiting pod")} would fit that ${waiting.comes === 1 ? "does" : "do"} not now, ${count(waiting.goes)} would not fit any more`
        : "",
      placing
        ? `placed in turn, ${count(placing.after.placed)} would get nodes instead of ${count(placing.before.placed)}, and ${plural(placing.after.empty, "node")} would be empty instead of ${count(placing.before.empty)}`
        : "",
      recent ? `${count(recent.others)} of ${plural(recent.tried, "placement")} of the last hour would have been others` : "",
    ];
    this.summary.textContent = `${said.filter(Boolean).join("; ")}.`;
  }

  writeFacts() {
    this.facts.hidden = false;
    const fact = (text, label) => el("div", { class: "fact" }, el("b", {}, text), el("span", {}, label));
    const { waiting, placing, recent } = this.told;
    const still = [
      waiting?.comes,
      waiting?.goes,
      placing?.others,
      placing && placing.after.placed - placing.before.placed,
      placing && placing.after.empty - placing.before.empty,
      recent?.others,
    ].every((each) => !each);
    if (still) return reconcile(this.facts, el("p", { id: "still" }, this.unmoved()));
    reconcile(
      this.facts,
      waiting ? fact(signed(waiting.comes), "more waiting pods would fit") : null,
      waiting?.goes ? fact(`−${count(waiting.goes)}`, "would not fit any more") : null,
      placing
        ? [
            fact(signed(placing.after.placed - placing.before.placed), "more would get nodes in turn"),
            fact(signed(placing.after.empty - placing.before.empty), "more empty nodes"),
          ]
        : null,
      recent ? fact(recent.tried ? percent(recent.others / recent.tried) : "–", "of the last hour elsewhere") : null,
    );
  }

  /** The answer in short where nothing would be another way, as far as it is told yet. */
  unmoved() {
    const { waiting, placing, recent } = this.told;
    const tried = (waiting?.of ?? placing?.of ?? 0) + (recent?.tried ?? 0);
    if (waiting && recent && !tried) return "No pod to try it on: none waits, and none got its node in the last hour.";
    const all = [
      waiting || placing ? plural(waiting?.of ?? placing.of, "waiting pod") : "",
      recent ? plural(recent.tried, "placement") : "",
    ];
    return `No effect on ${all.filter(Boolean).join(" and ")}.`;
  }

  show(part, ...content) {
    this.parts[part].hidden = false;
    reconcile(this.parts[part], ...content);
  }

  waiting(line) {
    const groups = (title, rows, many) =>
      many
        ? [
            el("h3", {}, title),
            el(
              "ul",
              { class: "changes" },
              rows.map((row) => group(row)),
            ),
          ]
        : [];
    const none = line.comes || line.goes ? [] : [el("p", {}, "Each pod that waits would fit, or not fit, as it does now.")];
    this.show(
      "waiting",
      heading("waiting"),
      el(
        "p",
        { class: "muted" },
        `${count(line.tried)} of ${plural(line.of, "pod")} tried: ${count(line.fits[0])} fit now, ${count(line.fits[1])} would; ${count(line.gated[1])} gated.`,
      ),
      ...none,
      ...groups(`${plural(line.comes, "pod")} would fit, by what keeps them now`, line.comesBy, line.comes),
      ...groups(`${plural(line.goes, "pod")} would not fit any more, by what would keep them`, line.goesBy, line.goes),
    );
  }

  placing(line) {
    const { before, after } = line;
    const numbers = [
      { name: "Figure" },
      { name: "Now", number: true },
      { name: "Changed", number: true },
      { name: "Difference", number: true },
    ];
    const rows = [
      ["pods with a node", count(before.placed), count(after.placed), signed(after.placed - before.placed)],
      ["empty nodes", count(before.empty), count(after.empty), signed(after.empty - before.empty)],
    ];
    before.uses.forEach(([resource, requested, allocatable, , deviation], at) => {
      const [, then, , , spread] = after.uses[at];
      rows.push([
        `${resource} requested, of ${amount(resource, allocatable)}`,
        points(requested / allocatable),
        points(then / allocatable),
        difference(requested / allocatable, then / allocatable),
      ]);
      rows.push([`${resource}, deviation over nodes`, points(deviation), points(spread), difference(deviation, spread)]);
    });
    before.fragments.forEach(([device, , , rate], at) =>
      rows.push([`${device} free, but of no use`, points(rate), points(after.fragments[at][3]), difference(rate, after.fragments[at][3])]),
    );
    this.show(
      "placing",
      heading("placing"),
      el(
        "p",
        { class: "muted" },
        `${plural(line.of, "waiting pod")}, one after the other in the order of the queue: ${count(line.others)} would be elsewhere than by the profile as it is.`,
      ),
      table("Use of nodes with these pods placed", numbers, rows),
      named(
        "placing",
        line,
        [
          { name: "Pod", mono: true },
          { name: "By the profile now", mono: true },
          { name: "Changed", mono: true },
        ],
        ([namespace, name, before, after]) => [podLink(namespace, name), before ?? "no node", after ?? "no node"],
      ),
    );
  }

  recent(line) {
    const now = this.told.basis.now;
    if (!line.of)
      return this.show("recent", heading("recent"), el("p", { class: "muted" }, "No pod of this profile got its node in the last hour."));
    const drift = line.drifted
      ? ` For ${count(line.drifted)} of them the profile as it is would choose another node than theirs today, because the cluster has changed since.`
      : "";
    this.show(
      "recent",
      heading("recent"),
      el(
        "p",
        {},
        el("b", {}, `${count(line.others)} of ${count(line.tried)}`),
        ` would be on another node than by the profile as it is${line.nowhere ? `, ${count(line.nowhere)} of them on none` : ""}. ${line.tried < line.of ? `Tried: a sample of ${plural(line.of, "placement")}.` : ""}`,
      ),
      drift ? el("p", { class: "muted small" }, drift.trim()) : null,
      named(
        "recent",
        line,
        [
          { name: "Pod", mono: true },
          { name: "Is on", mono: true },
          { name: "By the profile now", mono: true },
          { name: "Changed", mono: true },
          { name: "Placed", number: true },
        ],
        ([namespace, name, node, before, after, at]) => [
          podLink(namespace, name),
          node,
          before ?? "no node",
          after ?? "no node",
          `${span(now - at)} ago`,
        ],
      ),
    );
  }
}

const HEADINGS = { waiting: "Waiting pods", placing: "If the waiting pods were placed", recent: "Placements of the last hour" };
const heading = (part) => el("h2", {}, HEADINGS[part]);

function group([reasons, many, namespace, names]) {
  const [first, ...more] = reasons;
  const all = many > names.length ? `, and ${plural(many - names.length, "more")}`.replace("mores", "more") : "";
  return el(
    "li",
    {},
    el("b", {}, `${plural(many, "pod")} of ${namespace}`),
    `: ${reasonText(first)}`,
    more.map((each) => el("span", { class: "muted" }, `; ${reasonText(each)}`)),
    el(
      "details",
      { data: { key: JSON.stringify([namespace, first]) } },
      el("summary", {}, "Names"),
      el(
        "p",
        {},
        names.flatMap((name, at) => [at ? ", " : "", podLink(namespace, name)]),
        all,
      ),
    ),
  );
}

function named(key, line, columns, row) {
  if (!line.named.length) return null;
  const title =
    line.others > line.named.length ? `The first ${count(line.named.length)} of ${plural(line.others, "pod")}` : plural(line.others, "pod");
  return el("details", { data: { key } }, el("summary", {}, title), table(title, columns, line.named.map(row)));
}

function basis() {
  const said = [
    "The cluster is a copy, some seconds old at most; nothing here changes the cluster itself.",
    "Waiting pods are placed one after the other without preemption; of groups as many members as they need get nodes, or none. Extenders are not asked.",
    "A pod of the last hour is tried on the cluster as it is now, without itself, and not as it was then. Its volumes and claims keep it where they are.",
    "Among nodes that are equally good, the one of the profile as it is counts, so chance makes no difference.",
  ];
  return el(
    "details",
    { class: "panel small" },
    el("summary", {}, "How this is found, and what it leaves out"),
    el(
      "ul",
      { class: "changes" },
      said.map((line) => el("li", {}, line)),
    ),
  );
}
