// The page of a ResourceClaim: its requests, its devices, the pods that use it or wait for it, and why no device fits.

import { askedPage } from "./asking.js";
import { el, section, table } from "./element.js";
import { mapLink, nodeLink, podLink } from "./links.js";
import { funnel } from "./podpage.js";
import { count, plural, span } from "./words.js";

export function claimPage(root, address) {
  return askedPage(root, "claim", address, "The page of a pod has links to its claims.", write);
}

function write(found, now) {
  const tags = [
    found.extended ? "for a pod's extended resources" : "",
    found.writing ? "devices chosen, not written yet" : "",
    found.deleting ? "being deleted" : "",
  ].filter(Boolean);
  return [
    el(
      "section",
      { class: "panel stack tight" },
      el("h1", { class: "mono" }, `${found.namespace}/${found.name}`),
      tags.length
        ? el(
            "div",
            { class: "tags" },
            tags.map((tag) => el("span", { class: "tag" }, tag)),
          )
        : null,
      el("p", {}, found.line),
    ),
    el(
      "div",
      { class: "stack halves" },
      el("div", { class: "stack" }, requests(found), found.devices.length || found.why ? pods(found, now) : null),
      el(
        "div",
        { class: "stack" },
        found.devices.length ? devices(found.devices) : null,
        found.why ? why(found) : null,
        found.devices.length || found.why ? null : pods(found, now),
      ),
    ),
  ];
}

function wish(way) {
  const more = [
    way.admin ? "access for administrators" : "",
    way.tolerations ? plural(way.tolerations, "toleration") : "",
    ...Object.entries(way.capacity).map(([key, amount]) => `${amount} of ${key}`),
  ].filter(Boolean);
  return el(
    "div",
    { class: "lines" },
    el("p", {}, `${way.count ? count(way.count) : "all"} of class `, el("span", { class: "mono" }, way.class)),
    more.map((text) => el("p", { class: "muted small" }, text)),
    way.selectors.map((text) => el("p", { class: "mono muted" }, text)),
  );
}

function requests(found) {
  const rows = found.requests.map((each) => [
    each.name,
    each.ways.length
      ? el(
          "div",
          { class: "stack tight" },
          each.ways.map((way, at) => el("div", {}, at ? el("p", { class: "muted small" }, "or else") : null, wish(way))),
        )
      : "a request of a form that is not known here",
  ]);
  return section(
    "What it asks for",
    "requests",
    rows.length ? table("Requests", [{ name: "Request", mono: true }, { name: "Devices" }], rows) : el("p", { class: "muted" }, "Nothing."),
    found.constraints.map((text) => el("p", { class: "small" }, text)),
  );
}

function devices(all) {
  const rows = all.map((each) => {
    const share = Object.entries(each.consumed).map(([key, [part, whole]]) => el("p", {}, `${part}${whole ? ` of ${whole}` : ""} ${key}`));
    const notes = [
      each.share ? `share ${each.share}` : "",
      each.admin ? "access for administrators" : "",
      each.published ? "" : "no slice has it now",
      ...each.conditions,
    ].filter(Boolean);
    return [
      el(
        "div",
        {},
        each.device,
        notes.map((text) => el("p", { class: "muted small" }, text)),
      ),
      each.pool,
      each.driver,
      each.node ? nodeLink(each.node) : "of several nodes",
      share.length ? el("div", {}, share) : "whole",
      each.request,
    ];
  });
  return section(
    plural(all.length, "device"),
    "devices",
    table(
      "Allocated devices",
      [
        { name: "Device", mono: true },
        { name: "Pool", mono: true },
        { name: "Driver", mono: true },
        { name: "Node", mono: true },
        { name: "Share" },
        { name: "Request", mono: true },
      ],
      rows,
    ),
  );
}

function pods(found, now) {
  const rows = [
    ...found.users.map((each) => [
      each.kind === "pod" ? podLink(found.namespace, each.name) : `${each.kind} ${each.name}`,
      "uses it",
      each.node ? nodeLink(each.node) : "–",
    ]),
    ...found.waiting.map(([name, place, since]) => [
      podLink(found.namespace, name),
      `waits ${span(now - since)}`,
      place || "in no sub-queue",
    ]),
  ];
  return section(
    "Its pods",
    "pods",
    rows.length
      ? table(
          `Pods${found.more ? `, and ${plural(found.more, "more that waits", "more that wait")}` : ""}`,
          [{ name: "Pod", mono: true }, { name: "State" }, { name: "Node or sub-queue", mono: true }],
          rows,
        )
      : el("p", { class: "muted" }, "No pod uses it, and none waits for it."),
  );
}

function why(found) {
  const { free } = found.why;
  const groups = (free?.groups ?? []).map((each) => [
    count(each.nodes),
    each.free < 0 ? (each.enough ? "enough" : "too few") : `${count(each.free)}, ${each.enough ? "enough" : "too few"}`,
    each.reason ?? "",
    (each.examples ?? []).slice(0, 2).join(", "),
  ]);
  return section(
    found.devices.length ? "What the pod that waits would meet" : "Why it has no devices",
    "why",
    el(
      "p",
      {},
      "Of the pod that waits longest, ",
      podLink(found.namespace, found.why.pod),
      ": ",
      found.why.verdict,
      "; ",
      mapLink(found.namespace, found.why.pod),
      ".",
    ),
    found.why.funnel.length ? funnel(found.why.funnel) : null,
    groups.length
      ? table(
          free.deviceClass ? `Free devices of class ${free.deviceClass}; ${count(free.wanted)} wanted` : "Free devices by node",
          [
            { name: "Nodes", number: true },
            { name: "Free on each", number: true },
            { name: "Rejected before" },
            { name: "Such as", mono: true },
          ],
          groups,
        )
      : null,
  );
}
