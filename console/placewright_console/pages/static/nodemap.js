// The map of nodes on a canvas: a box for each node, in groups. Only boxes that changed are drawn again; what moves is on a second canvas.

import { shown } from "./element.js";
import { each } from "./slices.js";
import { percent } from "./words.js";

const GAP = 14;
const HEADING = 18;
const LARGEST = 112;
/** Pixels of a box from which on it has its name and its share in words. */
const WORDY = 64;
const SMALLEST = 2;
/** Pixels of the smallest box where boxes have different sizes and there is room: it can still be seen and hit. */
const LEAST = 6;
const FLASH = 700;
/** The share from which on a node is called full. */
export const FULL = 0.97;

/** The part of a box that a pattern fills: left, top, width and height as shares of the side. */
const PARTS = { square: [0.2, 0.2, 0.6, 0.6], level: [0, 0.3, 1, 0.4], upright: [0.3, 0, 0.4, 1] };

/** Pixels between boxes of this size. */
const gapOf = (size) => (size >= 24 ? 4 : size >= 10 ? 2 : size >= 5 ? 1 : 0);

/** A token of the design as the canvas takes it. */
const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export const LOADS = ["--load-0", "--load-1", "--load-2", "--load-3", "--load-4"];
export const KINDS = ["--kind-0", "--kind-1", "--kind-2", "--kind-3", "--kind-4", "--kind-5", "--kind-6", "--kind-7"];

/** The token of a share of 0 to 1: five steps, and one for a node that is full. */
export function loadToken(share) {
  return share >= FULL ? "--load-full" : LOADS[Math.max(0, Math.min(LOADS.length - 1, Math.floor(share * LOADS.length)))];
}

export class NodeMap {
  /**
   * @param {HTMLCanvasElement} base the boxes
   * @param {HTMLCanvasElement} over the focus, and changes that fade; takes pointer and keyboard
   * @param {(name: string) => {share: number|null, kinds: [number, number][]|null, cordoned: boolean, verdict: Object|null}} look how a node looks now
   * @param {(name: string|null, chosen: boolean) => void} onPoint
   */
  constructor(base, over, look, onPoint) {
    this.base = base;
    this.over = over;
    this.look = look;
    this.onPoint = onPoint;
    this.names = [];
    this.at = new Map();
    this.groups = [];
    this.focus = -1;
    this.pinned = -1;
    this.flashes = new Map();
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
    over.addEventListener("pointermove", (event) => this.point(this.find(event), false));
    over.addEventListener("pointerleave", () => this.point(this.pinned, false));
    over.addEventListener("click", (event) => this.point(this.find(event), true));
    over.addEventListener("keydown", (event) => this.key(event));
  }

  /**
   * Take new groups of nodes and draw all of them, in slices.
   * @param {{title: string, names: string[]}[]} groups
   * @param {number} height that the map may have
   * @param {((name: string) => number)|null} weigh what the area of a box stands for; null for boxes of one size
   */
  *show(groups, height, weigh) {
    const names = groups.flatMap((group) => group.names),
      at = new Map();
    yield* each(names, (name) => at.set(name, at.size));
    const held = this.names[this.pinned];
    Object.assign(this, { groups: groups.map(({ title, names }) => ({ title, names })), names, at });
    this.pinned = this.focus = this.at.get(held) ?? -1;
    this.flashes.clear();
    yield* this.weigh(weigh);
    this.lay(height);
    yield* this.draw();
  }

  /** Find the side of each box as a share of the largest one's. */
  *weigh(weigh) {
    this.shares = null;
    if (!weigh) return;
    const weights = [];
    let most = 0;
    yield* each(this.names, (name) => {
      weights.push(weigh(name));
      most = Math.max(most, weights.at(-1));
    });
    this.shares = weights.map((weight) => (most ? Math.sqrt(weight / most) : 1));
    this.left = new Float32Array(weights.length);
    this.top = new Float32Array(weights.length);
  }

  /** Draw nodes whose load changed. */
  change(names) {
    this.read();
    const now = performance.now();
    for (const name of names) {
      const index = this.at.get(name);
      if (index === undefined) continue;
      this.box(index);
      if (!this.still.matches && names.length <= 500) this.flashes.set(index, now);
    }
    this.animate();
  }

  /** Write other headings over the groups. */
  retitle(titles) {
    this.read();
    const context = this.base.getContext("2d");
    this.groups.forEach((group, at) => {
      if (group.title === titles[at]) return;
      group.title = titles[at];
      context.clearRect(group.x, group.y, group.wide, HEADING - 2);
      this.heading(context, group);
    });
  }

  heading(context, group) {
    context.font = `600 12px ${token("--font")}`;
    context.fillStyle = this.colours["--muted"];
    context.fillText(shortened(context, group.title, group.wide), group.x, group.y + 12);
  }

  // --- layout: the largest boxes with which all groups fit the height ---------------------------------------------------------

  lay(height) {
    const width = this.base.parentElement.clientWidth;
    const whole = this.shares?.reduce((sum, share) => sum + share * share, 0);
    // Boxes with more area than the map has need not be tried.
    let size = whole ? Math.min(2 * LARGEST, Math.ceil(Math.sqrt((width * height) / whole))) : LARGEST;
    while (size > SMALLEST && this.place(width, size) > height) size -= size > 16 ? 2 : 1;
    this.size = size;
    const tall = Math.ceil(this.place(width, size));
    const ratio = Math.min(devicePixelRatio || 1, 2);
    for (const canvas of [this.base, this.over]) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(tall * ratio);
      canvas.style.height = `${tall}px`;
      canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
    }
    this.width = width;
    this.tall = tall;
  }

  /** Place the groups in rows from left to right; returns the height that they take. */
  place(width, size) {
    let x = 0,
      y = 0,
      row = 0,
      first = 0;
    const most = Math.max(1, Math.floor(width / size)),
      groups = this.groups.length;
    // A few groups share the width; many stand in rows, each about as wide as high.
    const beside = groups <= 6 && width / groups > 200,
      free = width - GAP * (groups - 1);
    const boxesOf = (begin, end) => {
      if (!this.shares) return end - begin;
      let whole = 0;
      for (let at = begin; at < end; at++) whole += this.shares[at] ** 2;
      return whole;
    };
    const all = beside && boxesOf(0, this.names.length);
    const share = (boxes) => (width < 560 ? most : beside ? Math.floor((free * (0.5 / groups + (0.5 * boxes) / all)) / size) : 0);
    for (const group of this.groups) {
      const last = first + group.names.length,
        boxes = boxesOf(first, last);
      const least = Math.min(most, Math.ceil(140 / size));
      const columns = Math.min(most, Math.max(least, share(boxes) || Math.ceil(Math.sqrt(boxes * 1.8))));
      const wide = columns * size,
        high = HEADING + (this.shares ? this.flow(first, last, wide, size) : Math.ceil(boxes / columns) * size) + GAP;
      if (x > 0 && x + wide > width) {
        x = 0;
        y += row;
        row = 0;
      }
      Object.assign(group, { x, y, columns, wide, high, first });
      first = last;
      x += wide + GAP;
      row = Math.max(row, high);
    }
    return y + row;
  }

  /** Place boxes of different sizes in rows, small ones above each other; returns the height that they take. */
  flow(first, last, wide, size) {
    let left = 0,
      top = 0,
      row = 0,
      column = 0,
      filled = 0;
    for (let at = first; at < last; at++) {
      const side = this.side(at, size);
      if (side > column || filled + side > row) {
        left += column;
        if (left + side > wide) {
          top += row;
          left = row = 0;
        }
        column = side;
        filled = 0;
        row = Math.max(row, side);
      }
      this.left[at] = left;
      this.top[at] = top + filled;
      filled += side;
    }
    return top + row;
  }

  /** Pixels from a box to the next one. */
  side(index, size = this.size) {
    if (!this.shares) return size;
    const least = Math.max(SMALLEST, Math.min(LEAST, size / 4));
    return Math.round(Math.max(least, size * this.shares[index]));
  }

  where(index, known) {
    const group = known ?? this.groups.find((each) => index < each.first + each.names.length);
    const within = index - group.first,
      size = this.size;
    const left = this.shares ? this.left[index] : (within % group.columns) * size,
      top = this.shares ? this.top[index] : Math.floor(within / group.columns) * size;
    return [group.x + left, group.y + HEADING + top];
  }

  find(event) {
    const bounds = this.over.getBoundingClientRect();
    const x = event.clientX - bounds.left,
      y = event.clientY - bounds.top;
    for (const group of this.groups) {
      if (this.shares) {
        const at = this.hit(group, x - group.x, y - group.y - HEADING);
        if (at >= 0) return at;
        continue;
      }
      const column = Math.floor((x - group.x) / this.size),
        row = Math.floor((y - group.y - HEADING) / this.size);
      if (column < 0 || column >= group.columns || row < 0) continue;
      const within = row * group.columns + column;
      if (within < group.names.length) return group.first + within;
    }
    return -1;
  }

  /** The box of a group at a place in it, where boxes have different sizes. */
  hit(group, x, y) {
    for (let at = group.first; at < group.first + group.names.length; at++) {
      const right = x - this.left[at],
        low = y - this.top[at];
      if (Math.min(right, low) >= 0 && Math.max(right, low) < this.side(at)) return at;
    }
    return -1;
  }

  // --- drawing ------------------------------------------------------------------------------------------------------------------

  read() {
    this.colours = Object.fromEntries(
      [
        ...LOADS,
        ...KINDS,
        "--load-full",
        "--kind-none",
        "--fit",
        "--fit-best",
        "--cell",
        "--cell-line",
        "--surface",
        "--ink",
        "--muted",
        "--focus",
      ].map((name) => [name, token(name)]),
    );
  }

  /** Draw all boxes, in slices. What stands there from before is overwritten box by box. */
  *draw() {
    this.read();
    const context = this.base.getContext("2d");
    this.drawOver();
    for (const group of this.groups) {
      context.clearRect(group.x, group.y, group.wide, HEADING - 2);
      this.heading(context, group);
      let at = group.first;
      yield* each(group.names, () => this.box(at++, group));
    }
  }

  box(index, group) {
    const [x, y] = this.where(index, group);
    const context = this.base.getContext("2d"),
      size = this.side(index);
    context.clearRect(x, y, size, size);
    this.paint(context, this.names[index], x, y, size - gapOf(size));
  }

  paint(context, name, x, y, side) {
    const box = this.look(name);
    if (box.verdict) {
      this.judged(context, box, x, y, side);
      if (box.cordoned) this.cordon(context, x, y, side);
      return;
    }
    if (box.share === null) {
      context.strokeStyle = this.colours["--cell-line"];
      context.lineWidth = 1;
      if (side > 3) context.strokeRect(x + 0.5, y + 0.5, side - 1, side - 1);
      return;
    }
    // Boxes too small for a level show it by colour alone.
    const tall = side < 6 ? side : Math.round(Math.min(box.share, 1) * side);
    context.fillStyle = this.colours["--cell"];
    context.fillRect(x, y, side, side);
    if (box.kinds) {
      const all = box.kinds.reduce((sum, [, pods]) => sum + pods, 0) || 1;
      let left = x;
      for (const [kind, pods] of box.kinds) {
        const wide = (pods / all) * side;
        context.fillStyle = this.colours[kind < 0 ? "--kind-none" : KINDS[kind % KINDS.length]];
        // Where a level has no room, the colour is as strong as the load, so that a map of small boxes has as much of it as one of large.
        if (side < 6) context.globalAlpha = Math.min(box.share, 1);
        context.fillRect(left, y + side - tall, wide, tall);
        context.globalAlpha = 1;
        left += wide;
      }
    } else if (box.share > 0) {
      context.fillStyle = this.colours[loadToken(box.share)];
      context.fillRect(x, y + side - tall, side, tall);
    }
    if (box.share > 1) {
      // More is requested than there is: a line across, so that it does not look like a node that is merely full.
      context.fillStyle = this.colours["--ink"];
      context.fillRect(x, y + side * 0.55, side, Math.max(1, side * 0.15));
    }
    if (box.cordoned) this.cordon(context, x, y, side);
    if (side >= WORDY) this.label(context, name, box.share, x, y, side);
  }

  /** The name and the share in a box that has room for them, on a ground that every colour of a fill leaves readable. */
  label(context, name, share, x, y, side) {
    context.globalAlpha = 0.85;
    context.fillStyle = this.colours["--surface"];
    context.fillRect(x + 3, y + 3, side - 6, 34);
    context.globalAlpha = 1;
    context.fillStyle = this.colours["--ink"];
    context.font = `11px ${token("--font")}`;
    context.fillText(shortened(context, shown(name), side - 12), x + 6, y + 16);
    context.fillText(percent(share), x + 6, y + 31);
  }

  cordon(context, x, y, side) {
    if (side < 5) return;
    context.strokeStyle = this.colours["--ink"];
    context.lineWidth = side >= 12 ? 1.5 : 1;
    context.beginPath();
    context.moveTo(x, y + side);
    context.lineTo(x + side, y);
    context.stroke();
  }

  /** A box by what a pod would meet: whole where the pod fits, a part of it in the plugin's colour where it does not. */
  judged(context, box, x, y, side) {
    const { token: name, shape, rank, strength = 1 } = box.verdict;
    context.fillStyle = this.colours["--cell"];
    context.fillRect(x, y, side, side);
    context.fillStyle = this.colours[name];
    context.globalAlpha = strength;
    if (shape === "whole" || side < 6) context.fillRect(x, y, side, side);
    else if (PARTS[shape]) {
      const [left, top, wide, tall] = PARTS[shape];
      context.fillRect(x + left * side, y + top * side, wide * side, tall * side);
    } else {
      const middle = side / 2,
        reach = side * (shape === "diamond" ? 0.46 : 0.36);
      context.beginPath();
      if (shape === "round") context.arc(x + middle, y + middle, reach, 0, Math.PI * 2);
      else
        for (const [right, low] of [
          [0, -1],
          [1, 0],
          [0, 1],
          [-1, 0],
        ])
          context.lineTo(x + middle + right * reach, y + middle + low * reach);
      context.fill();
    }
    context.globalAlpha = 1;
    if (rank && side >= 13) {
      context.fillStyle = this.colours["--surface"];
      context.font = `700 ${Math.min(16, side * 0.6)}px ${token("--font")}`;
      context.textAlign = "center";
      context.textBaseline = "middle";
      context.fillText(String(rank), x + side / 2, y + side / 2 + 1);
      context.textAlign = "start";
      context.textBaseline = "alphabetic";
    }
  }

  drawOver() {
    const context = this.over.getContext("2d");
    context.clearRect(0, 0, this.width, this.tall);
    const now = performance.now();
    for (const [index, since] of this.flashes) {
      const left = 1 - (now - since) / FLASH;
      if (left <= 0) {
        this.flashes.delete(index);
        continue;
      }
      this.ring(context, index, this.colours["--focus"], 2, left);
    }
    if (this.pinned >= 0) this.ring(context, this.pinned, this.colours["--ink"], 2, 1);
    if (this.focus >= 0 && this.focus !== this.pinned) this.ring(context, this.focus, this.colours["--focus"], 2, 1);
  }

  ring(context, index, colour, wide, strength) {
    const [x, y] = this.where(index),
      size = this.side(index),
      side = size - gapOf(size);
    context.globalAlpha = strength;
    context.strokeStyle = colour;
    context.lineWidth = wide;
    context.strokeRect(x - 1, y - 1, side + 2, side + 2);
    context.globalAlpha = 1;
  }

  animate() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.drawOver();
      if (this.flashes.size) this.animate();
    });
  }

  // --- pointer and keyboard -----------------------------------------------------------------------------------------------------

  point(index, chosen) {
    if (chosen) this.pinned = index;
    if (index !== this.focus || chosen) {
      this.focus = index;
      this.animate();
      this.onPoint(this.names[index] ?? null, chosen);
    }
  }

  /** Choose a node by name, as from the table. */
  choose(name) {
    const index = this.at.get(name);
    if (index !== undefined) this.point(index, true);
  }

  /** The box so many rows below another one; above, if `rows` is negative. Of several, the nearest. */
  below(here, rows) {
    const down = Math.sign(rows);
    for (let left = Math.abs(rows); left; left--) {
      const [x, y] = this.where(here),
        side = this.side(here);
      let least = Infinity,
        found = here;
      for (const group of this.groups)
        for (let at = group.first; at < group.first + group.names.length; at++) {
          const [left, top] = this.where(at, group),
            other = this.side(at);
          const high = down > 0 ? top - y - side : y - top - other;
          const far = high + 2 * Math.abs(left + other / 2 - x - side / 2);
          if (high < 0 || far >= least) continue;
          least = far;
          found = at;
        }
      here = found;
    }
    return here;
  }

  key(event) {
    const last = this.names.length - 1;
    if (last < 0) return;
    const here = this.focus < 0 ? 0 : this.focus;
    const go = {
      ArrowRight: () => here + 1,
      ArrowLeft: () => here - 1,
      ArrowDown: () => this.below(here, 1),
      ArrowUp: () => this.below(here, -1),
      Home: () => 0,
      End: () => last,
      PageDown: () => this.below(here, 5),
      PageUp: () => this.below(here, -5),
      Enter: () => here,
      " ": () => here,
      Escape: () => -1,
    }[event.key];
    if (!go) return;
    const to = go();
    event.preventDefault();
    const chosen = ["Enter", " ", "Escape"].includes(event.key);
    this.point(this.focus < 0 && !chosen ? 0 : event.key === "Escape" ? -1 : Math.max(0, Math.min(last, to)), chosen);
  }
}

function shortened(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let kept = text;
  while (kept.length > 1 && context.measureText(`${kept}…`).width > width) kept = kept.slice(0, -1);
  return `${kept}…`;
}
