// Work over all nodes, in slices: between two of them the page answers a person, and what is asked anew replaces what is under way.

/** Milliseconds of a slice: less than a frame. */
const SLICE = 10;
/** Things that a job looks at between two looks at the clock. */
const STEP = 250;

export class Job {
  /** @param {() => Generator} make the work; it yields where others may have their turn */
  constructor(make) {
    this.make = make;
    this.work = null;
    this.again = false;
  }

  /** Begin, and drop what is under way: a person chose something else. */
  start() {
    clearTimeout(this.due);
    this.again = false;
    this.work = this.make();
    this.go();
  }

  /** Begin once what is under way has ended: the data changed, and a job that began anew at each change would never end. */
  follow() {
    if (this.work) this.again = true;
    else this.start();
  }

  go() {
    const until = performance.now() + SLICE;
    while (!this.work.next().done) {
      if (performance.now() < until) continue;
      this.due = setTimeout(() => this.go());
      return;
    }
    this.work = null;
    if (this.again) this.due = setTimeout(() => this.start());
  }

  stop() {
    clearTimeout(this.due);
    this.work = null;
  }
}

/** The items of a list, with a turn for others now and then. */
export function* each(items, do_) {
  let left = STEP;
  for (const item of items) {
    do_(item);
    left -= 1;
    if (left) continue;
    left = STEP;
    yield;
  }
}

/** Return a list in order. */
export function* sorted(items, compare) {
  let runs = [];
  for (let at = 0; at < items.length; at += STEP) {
    runs.push(items.slice(at, at + STEP).sort(compare));
    yield;
  }
  while (runs.length > 1) {
    const merged = [];
    for (let at = 0; at < runs.length; at += 2)
      merged.push(at + 1 < runs.length ? yield* merge(runs[at], runs[at + 1], compare) : runs[at]);
    runs = merged;
  }
  return runs[0] ?? [];
}

function* merge(one, other, compare) {
  const made = [];
  let left = 0,
    right = 0;
  while (left < one.length || right < other.length) {
    const takesLeft = right === other.length || (left < one.length && compare(one[left], other[right]) <= 0);
    made.push(takesLeft ? one[left++] : other[right++]);
    if (made.length % STEP === 0) yield;
  }
  return made;
}
