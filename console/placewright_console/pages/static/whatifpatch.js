// The change to take along: what differs in effect, the patch as YAML and as a kubectl line, and the buttons that write, where they are offered.

import { el, fill, table } from "./element.js";
import { failure, sentence } from "./failure.js";
import { request } from "./request.js";

/** Text as it is, line by line: nothing in it is markup, and its ends of lines stay. */
export function lines(text, id) {
  const nodes = text
    .replace(/\n$/, "")
    .split("\n")
    .flatMap((line) => [el("span", {}, line), document.createTextNode("\n")]);
  return el("pre", { class: "mono code", id, tabindex: "0" }, nodes);
}

/** A line of a shell with a button that copies it. */
export function copyLine(text, label, id) {
  const said = el("span", { class: "small muted", role: "status" });
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      said.textContent = "Copied.";
    } catch {
      getSelection().selectAllChildren(code);
      said.textContent = "Marked; copy it with your keyboard.";
    }
  };
  const code = lines(text, id);
  return el("div", { class: "copy" }, code, el("button", { type: "button", "aria-label": label, on: { click: copy } }, "Copy"), said);
}

const value = (each) => (each === null ? "none" : typeof each === "string" ? each : JSON.stringify(each));

function differences(rows, caption) {
  if (!rows.length) return el("p", { class: "muted" }, "Nothing changes in effect.");
  return table(
    caption,
    [{ name: "What", mono: true }, { name: "Now" }, { name: "Changed" }],
    rows.map(([what, before, after]) => [what, value(before), value(after)]),
  );
}

export class Patch {
  /**
   * @param {{writes: boolean, readOnly: string}} form
   * @param {() => {profile: Object, changes: Object}} current what the form says now.
   * @param {() => void} reopen reads the profiles again.
   */
  constructor(form, current, reopen) {
    this.form = form;
    this.current = current;
    this.reopen = reopen;
    this.node = el("section", { class: "panel stack tight", id: "patch", "aria-label": "The change" });
    this.result = el("div", { role: "status", id: "applied" });
    this.clear();
  }

  clear() {
    fill(this.node, el("h2", {}, "The change"), el("p", { class: "muted" }, "Nothing is changed yet: move a weight, or change a field."));
  }

  show(line) {
    if (!line.yaml) return this.clear();
    const named = this.current().profile.name;
    const button = (text, shadow, id) => el("button", { type: "button", id, on: { click: () => this.confirm(line, shadow) } }, text);
    fill(
      this.node,
      el("h2", {}, "The change"),
      differences(line.differences, "What changes in effect"),
      el("h3", {}, "As a patch"),
      lines(line.yaml, "yaml"),
      line.kubectl
        ? [el("h3", {}, "For a shell"), copyLine(line.kubectl, "Copy the kubectl line", "kubectl")]
        : el(
            "p",
            { class: "muted small" },
            named
              ? "No API server takes the profile's name, so there is no kubectl line."
              : "There is no profile: this is kube-scheduler's default one, so there is no object to patch.",
          ),
      line.shadow
        ? el(
            "details",
            {},
            el("summary", {}, "As a shadow, which tries it beside the live profile and binds nothing"),
            lines(line.shadow, "shadow"),
          )
        : null,
      this.form.writes && named
        ? el("div", { class: "bar" }, line.shadow ? button("Shadow it…", true, "shadow-it") : null, button("Apply…", false, "apply-it"))
        : el("p", { class: "muted small", id: "read-only" }, this.form.readOnly),
      this.result,
    );
  }

  /** Ask once more, with the difference in sight. */
  confirm(line, shadow) {
    const { profile, changes } = this.current();
    const title = shadow ? `Create a shadow of profile ${profile.name}?` : `Change profile ${profile.name}?`;
    const yes = el(
      "button",
      {
        type: "button",
        class: "strong",
        id: "confirm",
        on: {
          click: () => {
            dialog.close();
            this.write(profile, changes, shadow);
          },
        },
      },
      shadow ? "Create the shadow" : "Apply the change",
    );
    const dialog = el(
      "dialog",
      { "aria-labelledby": "confirm-title", class: "stack", on: { close: () => dialog.remove() } },
      el("h2", { id: "confirm-title" }, title),
      el(
        "p",
        {},
        shadow
          ? "It decides the same pods beside the live profile, and binds nothing."
          : "Pods that are decided from then on are placed by the changed profile. It is written with your own rights.",
      ),
      differences(line.differences, "What will change in effect"),
      lines(shadow ? line.shadow : line.yaml),
      el("div", { class: "bar" }, yes, el("button", { type: "button", on: { click: () => dialog.close() } }, "Cancel")),
    );
    document.body.append(dialog);
    dialog.showModal();
  }

  async write(profile, changes, shadow) {
    fill(this.result, el("p", {}, "Writing…"));
    const body = JSON.stringify({ profile: profile.name, uid: profile.uid, generation: profile.generation, changes, shadow });
    const answer = await request("api/apply", { method: "POST", headers: { "Content-Type": "application/json" }, body }).catch(() => null);
    const json = answer?.headers.get("Content-Type")?.startsWith("application/json");
    const told = json ? await answer.json() : { ok: false, said: await failure(answer) };
    fill(
      this.result,
      el("p", { class: told.ok ? "good" : "wrong" }, sentence(told.said)),
      told.ok || answer?.status === 409 ? el("button", { type: "button", on: { click: this.reopen } }, "Read the profiles again") : null,
    );
  }
}
