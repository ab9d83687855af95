// Numbers, amounts and times as people read them.

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const ONE = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const TWO = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });
const BYTES = [
  ["TiB", 2 ** 40],
  ["GiB", 2 ** 30],
  ["MiB", 2 ** 20],
  ["KiB", 2 ** 10],
];
const SPANS = [
  ["d", 86400],
  ["h", 3600],
  ["min", 60],
  ["s", 1],
];

export const count = (number) => WHOLE.format(number);
export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;
export const tenth = (number) => ONE.format(number);
export const percent = (share) => (share === null ? "–" : `${WHOLE.format(share * 100)} %`);

/** A capacity of devices, whose unit only its driver knows: as quantities are written, `80Gi` or `100G`. */
function capacity(number) {
  for (const [unit, size] of BYTES)
    if (number && number % 2 ** 20 === 0 && number >= size) return `${ONE.format(number / size)}${unit.slice(0, 2)}`;
  for (const [unit, size] of [
    ["T", 1e12],
    ["G", 1e9],
    ["M", 1e6],
  ])
    if (number >= size) return `${ONE.format(number / size)}${unit}`;
  return count(number);
}

/** An amount of a resource: milli-CPU, bytes or a count. */
export function amount(resource, number) {
  if (resource.startsWith("devices:") && resource.includes("/")) return capacity(number);
  if (resource === "cpu")
    return number % 1000 && Math.abs(number) < 1000
      ? `${WHOLE.format(number)}m`
      : (Math.abs(number) < 100_000 ? TWO : ONE).format(number / 1000);
  if (resource !== "memory" && resource !== "ephemeral-storage" && !resource.startsWith("hugepages-")) return count(number);
  for (const [unit, size] of BYTES) if (Math.abs(number) >= size) return `${ONE.format(number / size)} ${unit}`;
  return `${count(number)} B`;
}

/** A duration with its largest two units. */
export function span(seconds) {
  let left = Math.max(0, Math.round(seconds));
  const parts = [];
  for (const [unit, size] of SPANS) {
    if (left >= size && parts.length < 2) {
      parts.push(`${Math.floor(left / size)} ${unit}`);
      left %= size;
    } else if (parts.length) break;
  }
  return parts.join(" ") || "0 s";
}

/** A moment in UTC, to the second. */
export const moment = (seconds) => `${new Date(seconds * 1000).toISOString().slice(0, 19).replace("T", " ")} UTC`;

/** The time of day in UTC, to the minute or to the second. */
export const clock = (seconds, fine = true) => new Date(seconds * 1000).toISOString().slice(11, fine ? 19 : 16);

/** A latency with two figures: "0.35 ms", "12 ms", "1.5 s", "4.2 min". */
export function latency(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const [size, unit] = seconds < 0.9995 ? [0.001, "ms"] : seconds < 119.5 ? [1, "s"] : seconds < 5970 ? [60, "min"] : [3600, "h"];
  return `${Number((seconds / size).toPrecision(seconds / size >= 100 ? 3 : 2))} ${unit}`;
}

/** A number of things a second, or another number that may be small. */
export const few = (number) =>
  number === null || number === undefined
    ? "–"
    : number >= 100 || Number.isInteger(number)
      ? WHOLE.format(number)
      : String(Number(number.toPrecision(2)));

const COMPACT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
/** A number on an axis, where there is room for few letters: "800", "12K". */
export const onAxis = (number) => (number < 10000 ? few(number) : COMPACT.format(number));
