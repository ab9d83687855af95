// The what-if page: a profile's weights as sliders, its other fields as a form, and beside them what a change would do.

import { el, fill, shown } from "./element.js";
import { failure } from "./failure.js";
import { linesOf } from "./feed.js";
import { request } from "./request.js";
import { mergePatch, schemaField } from "./schemaform.js";
import { Outcome } from "./whatifoutcome.js";
import { copyLine } from "./whatifpatch.js";

/** Fields that decide where a pod goes, and fields of which this page says nothing: they cannot be changed, or the sliders have them. */
const DECIDING = ["preset", "plugins", "pluginConfig", "percentageOfNodesToScore"];
const LEFT_OUT = ["weights", "schedulerName", "mode", "shadows", "shadow"];
/** Milliseconds after a change until it is asked about: a slider that is dragged changes many times. */
const PAUSE = 120;
const SLIDER = 10;
/** Tells the tabs of one browser apart. */
const TAB = crypto.randomUUID();
/** What a person chose, kept while the console is open in this tab: by profile, the moved weights and the spec as changed. */
const kept = { profile: null, drafts: new Map() };

export function whatIfPage(root) {
  const title = el("h1", {}, "What if");
  let known = null;
  let here = true;

  function notOffered() {
    fill(
      root,
      el(
        "section",
        { class: "panel empty" },
        title,
        el("p", {}, "A change of a profile is tried on a copy of the cluster, in a process of its own, so it is tried on your machine:"),
        copyLine("placewright console", "Copy the command"),
        el("p", { class: "small" }, "It shows these pages for the cluster of your kubeconfig, with this one."),
      ),
    );
  }

  async function open() {
    fill(root, el("section", { class: "panel empty" }, title, el("p", { role: "status" }, "Reading the profiles…")));
    const answer = await request("api/whatif").catch(() => null);
    if (!here) return;
    if (!answer?.ok)
      return fill(
        root,
        el(
          "section",
          { class: "panel empty" },
          title,
          el("p", { role: "alert" }, await failure(answer)),
          el("button", { on: { click: open } }, "Try again"),
        ),
      );
    tryOut(await answer.json());
  }

  function tryOut(form) {
    known = new Trial(form, title, open);
    fill(root, known.node);
  }

  return {
    update(state) {
      const offered = (state.about.get("can") ?? []).includes("whatif");
      if (known === null) {
        known = offered;
        if (offered) open();
        else notOffered();
      }
    },
    leave() {
      here = false;
      known?.leave?.();
    },
  };
}

/** One profile of the form, and the questions about it. */
class Trial {
  constructor(form, title, reopen) {
    this.form = form;
    this.asked = null;
    this.due = 0;
    this.outcome = new Outcome(form, () => ({ profile: this.profile, changes: this.changes() }), reopen);
    this.controls = el("div", { class: "stack whatif-controls" });
    const names = form.profiles.map((each) => each.name);
    const busiest = form.profiles.reduce((most, each) => (each.pods > most.pods ? each : most), form.profiles[0]);
    this.profile = form.profiles[names.indexOf(kept.profile)] ?? busiest;
    const choose = el(
      "select",
      {
        id: "whatif-profile",
        on: {
          change: () => {
            this.profile = form.profiles[Number(choose.value)];
            this.show();
          },
        },
      },
      form.profiles.map((each, place) => el("option", { value: String(place) }, each.name || "the default profile")),
    );
    choose.value = String(form.profiles.indexOf(this.profile));
    const anew = el(
      "button",
      {
        type: "button",
        id: "whatif-reset",
        on: {
          click: () => {
            kept.drafts.delete(this.key());
            this.show();
            choose.focus();
          },
        },
      },
      "Undo all changes",
    );
    this.node = el(
      "div",
      { class: "whatif" },
      el(
        "div",
        { class: "whatif-form stack" },
        el("section", { class: "panel whatif-head" }, title, el("label", { class: "field" }, "Profile", choose), anew),
        this.controls,
      ),
      this.outcome.node,
    );
    this.show();
  }

  key() {
    return JSON.stringify([this.profile.name, this.profile.uid, this.profile.generation]);
  }

  /** The form of the chosen profile, with what was changed before. */
  show() {
    kept.profile = this.profile.name;
    const draft = kept.drafts.get(this.key()) ?? { weights: {}, spec: this.profile.spec };
    const { properties } = this.form.schema;
    const part = (names) =>
      schemaField({ ...this.form.schema, description: undefined, properties: pick(properties, names) }, pick(draft.spec, names), {
        name: "spec",
        path: "spec",
        required: true,
        changed: () => this.changed(),
        definitions: this.form.definitions,
      });
    const others = Object.keys(properties).filter((name) => !DECIDING.includes(name) && !LEFT_OUT.includes(name));
    this.moved = new Map(Object.entries(draft.weights));
    this.parts = [part(DECIDING), part(others)];
    this.shownNames = [...DECIDING, ...others];
    this.sliders = el("div", { class: "sliders" });
    this.weights = this.profile.weights;
    // One scale for all weights, which stays while they are moved; a larger weight is typed as a number.
    this.most = Math.max(SLIDER, 2 * Math.max(0, ...Object.values(this.weights)));
    this.writeSliders();
    fill(
      this.controls,
      el(
        "section",
        { class: "panel stack tight", "aria-label": "Weights" },
        el("h2", {}, "Weights"),
        el("p", { class: "help" }, "How much a plugin's score counts beside the others. 0: it does not score, and still rejects nodes."),
        this.sliders,
      ),
      el(
        "section",
        { class: "panel stack tight", "aria-label": "Plugins and arguments" },
        el("h2", {}, "Plugins and arguments"),
        this.parts[0].node,
      ),
      el(
        "section",
        { class: "panel" },
        el("details", { id: "whatif-others" }, el("summary", {}, "Fields that do not decide where a pod goes"), this.parts[1].node),
      ),
    );
    this.ask();
  }

  writeSliders() {
    const names = Object.keys({ ...this.weights, ...Object.fromEntries(this.moved) });
    fill(
      this.sliders,
      names.length ? names.map((name) => this.slider(name)) : el("p", { class: "muted small" }, "No plugin of this profile scores."),
    );
  }

  slider(name) {
    const id = `weight-${name}`;
    const before = this.weights[name] ?? 0;
    const start = this.moved.get(name) ?? before;
    const { maximum = 100000, description } = this.form.schema.properties.weights.properties?.[name] ?? {};
    const range = el("input", { type: "range", id, min: 0, max: this.most, step: 1, value: start });
    const number = el("input", {
      type: "number",
      min: 0,
      max: maximum,
      step: 1,
      value: start,
      "aria-label": `Weight of ${shown(name)} as a number`,
    });
    const back = el(
      "button",
      {
        type: "button",
        class: "back",
        "aria-label": `Undo the weight of ${shown(name)}`,
        on: {
          click: () => {
            set(before);
            range.focus();
          },
        },
      },
      "Undo",
    );
    const row = el(
      "div",
      { class: "slider", data: { path: `spec.weights.${name}` } },
      el("label", { for: id, title: description }, breakable(name)),
      range,
      number,
      back,
    );
    const mark = () => {
      row.classList.toggle("moved", this.moved.has(name));
      back.disabled = !this.moved.has(name);
      back.title = `${before} in the profile`;
    };
    const set = (value) => {
      if (value === before) this.moved.delete(name);
      else this.moved.set(name, value);
      range.value = number.value = value;
      mark();
      this.changed();
    };
    range.addEventListener("input", () => set(range.valueAsNumber));
    number.addEventListener("input", () => {
      if (number.checkValidity() && number.value !== "") set(number.valueAsNumber);
    });
    mark();
    return row;
  }

  /** The spec as it is in the form. */
  spec() {
    const untouched = Object.entries(this.profile.spec).filter(([name]) => !this.shownNames.includes(name));
    const spec = { ...Object.fromEntries(untouched), ...this.parts[0].read(), ...this.parts[1].read() };
    return this.moved.size ? { ...spec, weights: { ...spec.weights, ...Object.fromEntries(this.moved) } } : spec;
  }

  changes() {
    return mergePatch(this.profile.spec, this.spec());
  }

  changed() {
    kept.drafts.set(this.key(), { weights: Object.fromEntries(this.moved), spec: this.spec() });
    clearTimeout(this.due);
    this.due = setTimeout(() => this.ask(), PAUSE);
  }

  async ask() {
    clearTimeout(this.due);
    this.asked?.abort();
    const wrong = this.parts.map((part) => part.problem()).find(Boolean);
    if (wrong) return this.outcome.take({ part: "problems", problems: [["", wrong, "what the field's help says"]] });
    const mine = (this.asked = new AbortController());
    this.outcome.begin();
    try {
      const body = JSON.stringify({ profile: this.profile.name, changes: this.changes(), page: TAB });
      const answer = await request("api/whatif", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body,
        signal: mine.signal,
      });
      if (!answer.ok) return this.outcome.fail(await failure(answer));
      let last = "";
      for await (const line of linesOf(answer)) {
        if (mine.signal.aborted) return;
        const told = JSON.parse(line);
        last = told.part;
        this.take(told);
      }
      if (last !== "end" && last !== "problems" && !mine.signal.aborted) this.outcome.fail("The answer broke off before its end.");
    } catch (problem) {
      if (!mine.signal.aborted) this.outcome.fail(await failure(problem));
    }
  }

  take(line) {
    this.outcome.take(line);
    if (line.part === "problems") this.mark(line.problems.map(([path]) => path));
    if (line.part === "patch") this.mark([]);
    if (line.part === "patch" && line.weights) this.reweigh(line.weights);
  }

  /** Another preset, or another list of plugins, has other weights; the ones that a person moved stay. */
  reweigh(weights) {
    const unmoved = (all) => Object.entries(all).filter(([name]) => !this.moved.has(name));
    const before = Object.fromEntries(unmoved(this.weights)),
      after = Object.fromEntries(unmoved(weights));
    if (!Object.keys(mergePatch(before, after)).length || this.sliders.contains(document.activeElement)) return;
    const stays = Object.entries(this.weights).filter(([name]) => this.moved.has(name) || Object.hasOwn(after, name));
    this.weights = { ...Object.fromEntries(stays), ...after };
    this.writeSliders();
  }

  /** Show at which fields the problems are: the field itself, or the nearest one around it. */
  mark(paths) {
    const fields = [...this.controls.querySelectorAll("[data-path]")];
    const wrong = new Set(
      paths
        .filter(Boolean)
        .map(
          (path) =>
            fields
              .filter((each) => path.startsWith(each.dataset.path))
              .sort((one, other) => other.dataset.path.length - one.dataset.path.length)[0],
        ),
    );
    for (const each of fields) each.classList.toggle("has-problem", wrong.has(each));
  }

  leave() {
    clearTimeout(this.due);
    this.asked?.abort();
  }
}

/** A name that may be broken between its words. */
const breakable = (name) =>
  shown(name)
    .split(/(?<=[a-z])(?=[A-Z])/)
    .flatMap((word) => [word, el("wbr")]);

const pick = (value, names) => Object.fromEntries(Object.entries(value).filter(([name]) => names.includes(name)));
