// The feed: a whole state, then deltas, a line each. A gap or a broken connection begins anew with a whole state.

import { failure } from "./failure.js";
import { request } from "./request.js";

/** The sections of the first pages, which are there even where a server has nothing in them. */
const FIRST = ["about", "nodes", "loads", "queue", "decisions"];

/** Maps, because a key such as `__proto__` is a name like any other. */
function mapped(state) {
  return Object.fromEntries(
    [...new Set([...FIRST, ...Object.keys(state)])].map((name) => [name, new Map(Object.entries(state[name] ?? {}))]),
  );
}

/** Apply a delta to the state in place. */
function apply(state, delta) {
  for (const [name, keys] of Object.entries(delta.gone ?? {})) for (const key of keys) state[name].delete(key);
  for (const [name, rows] of Object.entries(delta.put ?? {})) {
    state[name] ??= new Map();
    for (const [key, row] of Object.entries(rows)) state[name].set(key, row);
  }
}

/** Rows that the console on this machine adds to the state of an operator whose console it hands through. Lists are joined. */
function addLocal(about, local) {
  for (const [key, value] of Object.entries(local))
    about.set(key, Array.isArray(value) ? [...new Set([...(about.get(key) ?? []), ...value])] : value);
}

/** The lines of a response, as they come. */
export async function* linesOf(response, onHeard = () => {}) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let begun = [];
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    onHeard();
    const pieces = value.split("\n");
    begun.push(pieces[0]);
    for (const piece of pieces.slice(1)) {
      const line = begun.join("");
      begun = [piece];
      if (line) yield line;
    }
  }
}

/** Whether another token may help, and what is wrong with the one that was sent (RFC 6750, section 3). */
function challenge(response) {
  const told = response.headers.get("WWW-Authenticate") ?? "";
  return { byToken: /^Bearer/i.test(told), wrong: /\berror=/.test(told) };
}

/**
 * Follow the feed for ever.
 * @param {(state: Object, delta: Object|null) => void} onChange `delta` is null for a whole new state.
 * @param {(status: "live"|"away"|"refused", told: string) => void} onStatus `told` is what the server said of it.
 * @param {(refusal: {status: number, told: string, byToken: boolean, wrong: boolean}) => Promise<void>} onRefused returns when it is worth another try.
 * @param {() => void} onHeard the server sent something, if only a sign of life
 */
export async function follow(onChange, onStatus, onRefused, onHeard) {
  for (let wait = 250; ; wait = Math.min(wait * 2, 5000)) {
    let told = "";
    try {
      const response = await request("api/feed");
      if (!response.ok) told = await failure(response);
      if (response.status === 401 || response.status === 403) {
        onStatus("refused", told);
        await onRefused({ status: response.status, told, ...challenge(response) });
        wait = 125;
        continue;
      }
      if (!response.ok) throw new Error(`status ${response.status}`);
      let state = null;
      let version = 0;
      let local = {};
      for await (const line of linesOf(response, onHeard)) {
        const message = JSON.parse(line);
        if (message.local) {
          local = message.local;
          continue;
        }
        if (message.state) state = mapped(message.state);
        else if (state === null || message.from !== version) break;
        else apply(state, message.delta);
        addLocal(state.about, local);
        version = message.version;
        wait = 250;
        onStatus("live", "");
        onChange(state, message.delta ?? null);
      }
    } catch (problem) {
      console.info("the feed ended:", problem.message);
    }
    onStatus("away", told);
    await new Promise((done) => setTimeout(done, wait));
  }
}
