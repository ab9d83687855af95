// What a waiting pod would meet on each node, asked of the server: when a person asks, and now and then while the map shows it.

import { failure } from "./failure.js";
import { request } from "./request.js";
import { look } from "./plugincolours.js";

/** Milliseconds between two questions that nobody asked for. */
const REST = 20000;
const BEST = 10;
/** What a node without room lacks of a request, by level, and how strong its colour is: the nearest stand out. */
export const LACKS = [
  ["lacks up to 10 % of a request", 1],
  ["lacks up to 25 % of a request", 0.7],
  ["lacks up to 50 % of a request", 0.45],
  ["lacks over 50 % of a request", 0.25],
  ["offers none of it", 0.16],
];
export const FIT = "NodeResourcesFit";
const NOT_ASKED = { token: "--cell", shape: "whole", text: "not evaluated yet" };

export class VerdictLayer {
  /**
   * @param {() => void} onChange there is another answer
   * @param {() => number} now seconds since 1970 where the state is: beside a recording, the recording's
   */
  constructor(onChange, now) {
    this.onChange = onChange;
    this.now = now;
    this.pod = "";
    this.told = "";
    this.answer = null;
    this.at = null;
    this.number = 0;
    this.due = 0;
  }

  /** Ask about another pod, `NAMESPACE/NAME`; the empty name ends it. */
  choose(pod, nodes) {
    this.pod = pod;
    this.answer = null;
    this.told = pod ? "asking…" : "";
    this.number += 1;
    if (pod) this.ask(nodes);
    else clearTimeout(this.due);
  }

  /** @param {() => Iterable<string>} nodes the names of the nodes that the map has */
  async ask(nodes) {
    clearTimeout(this.due);
    const number = ++this.number;
    // Nodes that come later are in no answer to this question.
    const known = new Set(nodes());
    const answer = await request(`api/verdicts?pod=${encodeURIComponent(this.pod)}`).catch(() => null);
    if (number !== this.number) return;
    if (!answer?.ok) {
      this.told = await failure(answer);
      if (answer?.status === 404) this.answer = null;
    } else this.take(await answer.json(), known);
    this.onChange();
    this.due = setTimeout(() => (document.visibilityState === "visible" ? this.ask(nodes) : this.wait(nodes)), REST);
  }

  wait(nodes) {
    document.addEventListener("visibilitychange", () => this.pod && this.ask(nodes), { once: true });
  }

  take(told, known) {
    const answer = { lacks: [], lacking: {}, nearest: [], ...told }; // an operator that is older than these pages does not tell them
    const places = new Map();
    for (const [place, names] of Object.entries(answer.named)) for (const name of names) places.set(name, Number(place));
    const ranks = new Map(answer.best.map(([name, score], at) => [name, [at + 1, score]]));
    const lacking = new Map();
    for (const [level, names] of Object.entries(answer.lacking)) for (const name of names) lacking.set(name, Number(level));
    const most = answer.lacks.indexOf(Math.max(...answer.lacks));
    const near = new Map(answer.nearest.map(([name], at) => [name, at + 1]));
    this.answer = { ...answer, places, ranks, known, lacking, most, near };
    this.at = this.now();
    this.told = answer.told;
  }

  /** Nodes that fit. */
  get fitting() {
    return this.answer?.verdicts[0]?.[2] ?? 0;
  }

  /** The verdict about a node: how it looks, and the same in words. */
  of(name) {
    if (!this.answer || this.answer.told) return NOT_ASKED;
    const place = this.answer.places.get(name) ?? (this.answer.known.has(name) ? this.answer.rest : -1);
    if (place < 0) return NOT_ASKED;
    if (place > 0) {
      const [plugin, reason] = this.answer.verdicts[place];
      const { token, shape } = look(plugin);
      const text = plugin ? `rejected by ${plugin}: ${reason}` : `rejected: ${reason}`;
      if (plugin !== FIT || !this.answer.lacks.length) return { token, shape, text };
      const near = this.fitting ? 0 : (this.answer.near.get(name) ?? 0);
      const [lacks, strength] = LACKS[this.answer.lacking.get(name) ?? this.answer.most];
      return {
        token,
        shape: near ? "whole" : shape,
        rank: near,
        strength: near ? 1 : strength,
        text: `${text}; ${lacks}${near ? `, nearest miss ${near}` : ""}`,
      };
    }
    const [rank, score] = this.answer.ranks.get(name) ?? [0, 0];
    const best = rank > 0 && rank <= BEST;
    return {
      token: best ? "--fit-best" : "--fit",
      shape: "whole",
      rank: best ? rank : 0,
      fits: true,
      text: rank ? `fits, rank ${rank} of ${this.fitting} with score ${score}` : "fits",
    };
  }

  leave() {
    this.pod = "";
    this.number += 1;
    clearTimeout(this.due);
  }
}
