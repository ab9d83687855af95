// Line charts over time, drawn by hand in SVG: values as steps, marks as lines with labels, and one moment that all charts of a page show.

import { shown } from "./element.js";
import { clock } from "./words.js";

const NS = "http://www.w3.org/2000/svg";
const LEFT = 54,
  RIGHT = 12,
  TOP = 24,
  BOTTOM = 22;
/** Pixels of a letter, about, and letters of a mark's label. */
const LETTER = 6.6,
  LONGEST = 18;
const HEIGHT = 200;
/** Marks up to which each has a line through the chart. */
const MOST_LINES = 12;

/** An element of SVG. Colours are tokens, which only style properties take. */
export function svg(tag, { class: name, style, ...attributes } = {}, ...children) {
  const made = document.createElementNS(NS, tag);
  if (name) made.setAttribute("class", name);
  for (const [key, value] of Object.entries(style ?? {})) made.style.setProperty(key, value);
  for (const [key, value] of Object.entries(attributes)) if (value !== null && value !== undefined) made.setAttribute(key, value);
  made.append(
    ...children
      .flat(3)
      .filter((each) => each !== null && each !== undefined)
      .map((each) => (each instanceof Node ? each : shown(each))),
  );
  return made;
}

const DASHES = ["", "7 4", "2 3", "9 3 2 3", "4 2", "1 4", "12 3", "6 2 1 2"];

/** The look of a line: colour and dashes, so that no line is told by colour alone. */
export const look = (token, number) => ({ stroke: `var(${token})`, "stroke-dasharray": DASHES[number % DASHES.length] });

/** A short piece of a line, for a legend. */
export const sample = (style) =>
  svg("svg", { class: "sample", viewBox: "0 0 26 8", "aria-hidden": "true" }, svg("path", { class: "line", style, d: "M1 4H25" }));

/** A round number that is not less than a number: 1, 2 or 5 times a power of ten. */
function round(number) {
  const power = 10 ** Math.floor(Math.log10(number));
  return [1, 2, 5, 10].find((each) => each * power >= number * (1 - 1e-9)) * power;
}

function linear(values) {
  const most = values.length ? Math.max(...values) : 0;
  const step = most > 0 ? round(most / 4) : 0.25;
  const top = Math.max(step, step * Math.ceil(most / step - 1e-9));
  return { ticks: Array.from({ length: Math.round(top / step) + 1 }, (_, at) => at * step), part: (value) => value / top };
}

/** Latencies differ by factors, so that their axis has powers of ten, and from a minute on what people call them. */
const LATENCIES = [1e-5, 1e-4, 0.001, 0.01, 0.1, 1, 10, 60, 600, 3600, 21600, 86400];

function logarithmic(values) {
  const some = values.filter((each) => each > 0);
  const least = some.length ? Math.min(...some) : 0.001,
    most = some.length ? Math.max(...some) : 1;
  const first = Math.max(
      0,
      LATENCIES.findLastIndex((each) => each <= least),
    ),
    found = LATENCIES.findIndex((each, at) => each >= most && at > first);
  const last = found < 0 ? LATENCIES.length - 1 : found,
    every = Math.ceil((last - first) / 5);
  const low = Math.log10(LATENCIES[first]),
    high = Math.log10(LATENCIES[last]);
  const ticks = LATENCIES.slice(first, last + 1).filter((_, at) => (last - first - at) % every === 0);
  return { ticks, part: (value) => Math.min(1, Math.max(0, (Math.log10(Math.max(value, LATENCIES[first])) - low) / (high - low))) };
}

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];

/**
 * Draw a chart.
 * @param {{title: string, said: string, lines: {name: string, style: Object, steps: [number, number, number|null][]}[], from: number, to: number,
 *   log: boolean, onAxis: (value: number) => string, marks: Object[], width: number}} chart times in seconds since 1970
 * @returns {{root: SVGElement, point: (at: number|null) => void, timeAt: (x: number) => number}}
 */
export function draw({ title, said, lines, from, to, log, onAxis, marks, width }) {
  const inner = Math.max(40, width - LEFT - RIGHT),
    floor = HEIGHT - BOTTOM,
    tall = floor - TOP;
  const values = lines.flatMap((line) => line.steps.map(([, , value]) => value).filter((value) => value !== null));
  const scale = (log ? logarithmic : linear)(values);
  const span = Math.max(to - from, 1);
  const x = (at) => LEFT + (inner * (Math.min(Math.max(at, from), to) - from)) / span;
  const y = (value) => floor - tall * scale.part(value);
  const short = (number) => Math.round(number * 10) / 10;

  const grid = scale.ticks.flatMap((tick) => [
    svg("path", { class: "grid", d: `M${LEFT} ${short(y(tick)) + 0.5}H${LEFT + inner}` }),
    svg("text", { x: LEFT - 6, y: short(y(tick)) + 4, "text-anchor": "end" }, onAxis(tick)),
  ]);
  const step = STEPS.find((each) => (span / each) * 76 <= inner) ?? 86400;
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
    if (x(at) > LEFT + inner - 16 || x(at) < LEFT + 14) continue;
    grid.push(
      svg("path", { class: "tick", d: `M${short(x(at))} ${floor}v4` }),
      svg("text", { x: short(x(at)), y: HEIGHT - 4, "text-anchor": "middle" }, clock(at, step < 60)),
    );
  }
  const paths = lines.map((line) =>
    svg("path", {
      class: "line",
      style: line.style,
      d: stepped(
        line.steps.filter(([, end]) => end > from),
        x,
        y,
        short,
      ),
    }),
  );
  const dots = lines.map((line) => svg("circle", { r: 3.5, style: { fill: line.style.stroke } }));
  const hair = svg("g", { class: "hair", visibility: "hidden" }, svg("path", { d: `M0 ${TOP - 4}V${floor}` }), dots);
  const root = svg(
    "svg",
    {
      class: "chart",
      viewBox: `0 0 ${width} ${HEIGHT}`,
      width,
      height: HEIGHT,
      role: "img",
      "aria-label": `${shown(title)}. ${shown(said)}`,
    },
    bands(marks, from, to, x, floor),
    grid,
    paths,
    flags(marks, from, to, x, floor, LEFT + inner),
    values.length
      ? null
      : svg("text", { class: "none", x: LEFT + inner / 2, y: TOP + tall / 2, "text-anchor": "middle" }, "no figures in this time"),
    hair,
  );
  return {
    root,
    timeAt: (px) => from + (span * (px - LEFT)) / inner,
    point(at) {
      const outside = at === null || at < from || at > to;
      hair.setAttribute("visibility", outside ? "hidden" : "visible");
      if (outside) return;
      hair.firstChild.setAttribute("transform", `translate(${short(x(at))} 0)`);
      lines.forEach((line, number) => {
        const value = valueAt(line.steps, at);
        dots[number].setAttribute("visibility", value === null ? "hidden" : "inherit");
        if (value !== null) {
          dots[number].setAttribute("cx", short(x(at)));
          dots[number].setAttribute("cy", short(y(value)));
        }
      });
    },
  };
}

/** The value of the step that a moment is in; the last one's where the moment is its end. */
export function valueAt(steps, at) {
  for (let index = steps.length - 1; index >= 0; index -= 1) {
    const [begin, end, value] = steps[index];
    if (begin <= at) return at <= end + 0.05 ? value : null;
  }
  return null;
}

/** A value holds over its stretch. Where figures are missing, the line has a gap. */
function stepped(steps, x, y, short) {
  let path = "",
    reached = null;
  for (const [begin, end, value] of steps) {
    if (value === null) {
      reached = null;
      continue;
    }
    path += reached !== null && begin - reached < 0.5 ? `V${short(y(value))}` : `M${short(x(begin))} ${short(y(value))}`;
    path += `H${short(x(end))}`;
    reached = end;
  }
  return path;
}

const inside = (mark, from, to) => (mark.open ? to : (mark.until ?? mark.at)) >= from && mark.at <= to;

function bands(marks, from, to, x, floor) {
  return marks
    .filter((mark) => inside(mark, from, to) && (mark.open || mark.until !== undefined))
    .map((mark) => {
      const begin = x(mark.at),
        end = x(mark.open ? to : mark.until);
      return svg("rect", { class: `band ${mark.kind}`, x: begin, y: TOP - 8, width: Math.max(end - begin, 2), height: floor - TOP + 8 });
    });
}

/** Lines with labels, as far as there is room; each line has its sentence as a title, and the page has a table of all. */
function flags(marks, from, to, x, floor, right) {
  let free = LEFT;
  const shownMarks = marks.filter((mark) => inside(mark, from, to));
  // Lines of very many marks would be a pattern over the figures.
  const end = shownMarks.length > MOST_LINES ? TOP : floor;
  return shownMarks
    .sort((one, other) => one.at - other.at)
    .map((mark) => {
      const label = mark.label.length > LONGEST ? `${mark.label.slice(0, LONGEST - 1)}…` : mark.label;
      const at = Math.round(x(mark.at)) + 0.5,
        long = label.length * LETTER,
        begin = Math.min(at - 3, right - long);
      const room = begin >= free;
      if (room) free = begin + long + 8;
      return svg(
        "g",
        { class: `flag ${mark.kind}` },
        svg("title", {}, mark.text),
        svg("path", { d: `M${at} ${TOP - 8}V${end}` }),
        room
          ? svg("text", { x: Math.max(begin, LEFT), y: TOP - 12 }, label)
          : svg("path", { class: "head", d: `M${at - 4} ${TOP - 8}h8l-4 6z` }),
      );
    });
}
