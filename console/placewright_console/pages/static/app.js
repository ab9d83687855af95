// The console: lets the browser in, follows the feed, and shows the page that the address names.

import { el, fill, shown } from "./element.js";
import { failure } from "./failure.js";
import { follow } from "./feed.js";
import { enterWith } from "./request.js";
import { askForToken } from "./tokenform.js";
import { claimPage } from "./claimpage.js";
import { clusterPage } from "./clusterpage.js";
import { comparisonPage } from "./comparisonpage.js";
import { groupPage } from "./grouppage.js";
import { reconcile } from "./live.js";
import { podPage } from "./podpage.js";
import { queuePage } from "./queuepage.js";
import { forgetChanges, lookForChanges } from "./recentchanges.js";
import { shadowPage } from "./shadowpage.js";
import { timePage } from "./timepage.js";
import { whatIfPage } from "./whatifpage.js";
import { count, moment, percent } from "./words.js";

const PAGES = {
  cluster: clusterPage,
  queue: queuePage,
  pod: podPage,
  group: groupPage,
  claim: claimPage,
  time: timePage,
  shadows: shadowPage,
  whatif: whatIfPage,
  comparison: comparisonPage,
};
/** The place in the navigation of pages that are not in it. */
const WITHIN = { group: "queue", claim: "queue" };
const main = document.getElementById("page");
let state = null;
let current = null;
let shownPage = "cluster";
let isOffered = true;
let closed = false;
/** Instead of the name of a page, where an address names none. */
const NOWHERE = "";
const isAwaited = () => state !== null && (state.about.has("opening") || state.about.has("failed"));

/** The one-time secret is taken out of the address at once. */
async function enter() {
  if (!location.hash.startsWith("#secret=")) return true;
  const secret = location.hash.slice("#secret=".length);
  history.replaceState(null, "", "#/cluster");
  const answer = await enterWith(secret);
  if (!answer.ok) stop("This address does not open the console", await failure(answer));
  return answer.ok;
}

function close() {
  current?.leave?.();
  current = state = null;
  forgetChanges();
  closed = true;
  for (const each of ["source", "moment", "notes"]) document.getElementById(each).replaceChildren();
  document.getElementById("waiting").hidden = true;
}

function stop(title, text) {
  close();
  document.title = `${title} · Placewright console`;
  fill(main, el("div", { class: "panel empty" }, el("h1", {}, title), el("p", {}, text)));
}

/** The parts of the address after the page's name; none where somebody wrote what cannot be decoded. */
function decoded(parts) {
  try {
    return parts.map(decodeURIComponent);
  } catch {
    return [];
  }
}

/** What was seen goes from the page with the right to see it. */
async function refused({ status, told, byToken, wrong }) {
  if (!byToken) {
    stop(
      "The console is closed to this browser",
      "Open the address that placewright console printed. It works once, in one browser; start the command again for another.",
    );
    return new Promise(() => {});
  }
  close();
  await askForToken(main, wrong ? told : "", status === 403);
  closed = false;
  fill(main);
  route();
}

/** A file that is still being read, or that cannot be: how far it is, instead of a page. */
function awaited(about) {
  const failed = about.get("failed"),
    [read, all] = about.get("opening") ?? [0, 1];
  if (!document.getElementById("opening")) {
    current?.leave?.();
    current = null;
    fill(
      main,
      el(
        "div",
        { class: "panel empty", id: "opening" },
        el("h1", {}, `Reading ${about.get("source")}`),
        el("progress", { max: 1, "aria-label": "Objects read" }),
        el("p", {}),
      ),
    );
  }
  const panel = document.getElementById("opening"),
    bar = panel.querySelector("progress");
  if (bar) bar.value = read / (all || 1);
  if (failed) fill(panel, el("h1", {}, `${about.get("source")} cannot be opened`), el("p", {}, failed));
  else panel.querySelector("p").textContent = `${percent(read / (all || 1))} of ${count(all)} objects`;
}

function route() {
  if (closed || isAwaited()) return;
  const [path, query = ""] = location.hash.replace(/^#\//, "").split("?");
  const [name = "cluster", ...parts] = path.split("/").filter(Boolean);
  const known = Object.hasOwn(PAGES, name) ? name : NOWHERE;
  const rest = decoded(parts);
  const link = document.getElementById(`to-${WITHIN[known] ?? known}`);
  const title = rest.join("/") || (known === NOWHERE ? "No such page" : link.firstChild.data.trim());
  document.title = `${shown(title)} · Placewright console`;
  for (const each of Object.keys(PAGES)) {
    const link = document.getElementById(`to-${each}`);
    if (!link) continue;
    if (each === (WITHIN[known] ?? known)) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  current?.leave?.();
  if (!state) return hold("");
  shownPage = known;
  isOffered = offered(known);
  current = known === NOWHERE ? nowhere(name) : isOffered ? PAGES[known](main, rest, new URLSearchParams(query)) : notOffered();
  if (state) current.update(state, null);
}

/** Whether the server has a page; all of them before the first state. */
function offered(name) {
  const needs = document.getElementById(`to-${name}`)?.dataset.needs;
  return !state || !needs || (state.about.get("can") ?? []).includes(needs);
}

/** Until the first state is there: that it is on its way, or what keeps it. */
function hold(told) {
  current = null;
  fill(
    main,
    el(
      "div",
      { class: "panel empty" },
      el("h1", {}, told ? "Not connected yet" : "Connecting"),
      el("p", {}, told ? "The page tries again by itself." : "The state of the cluster is on its way."),
    ),
  );
}

/** A wrong address says so: another page in its place would be taken for the one that was asked for. */
function nowhere(name) {
  const text = `The address names a page "${name}", and the console has none of this name.`;
  fill(
    main,
    el(
      "div",
      { class: "panel empty" },
      el("h1", {}, "There is no such page"),
      el("p", {}, text),
      el("a", { href: "#/cluster" }, "To the cluster"),
    ),
  );
  return { update() {} };
}

function notOffered() {
  fill(
    main,
    el(
      "div",
      { class: "panel empty" },
      el("h1", {}, "There is no such page here"),
      el("p", {}, "What this console shows has no figures for it."),
    ),
  );
  return { update() {} };
}

/** A person who followed a link goes on at the beginning of the page that it led to, and not at the top of the document. */
function go() {
  const within = main.contains(document.activeElement);
  route();
  scrollTo(0, 0);
  if (within || document.activeElement === document.body) main.focus({ preventScroll: true });
}

function changed(next, delta) {
  state = next;
  lookForChanges(state, delta);
  const about = state.about;
  const source = document.getElementById("source");
  source.replaceChildren(shown(about.get("source") ?? ""));
  source.title = about.has("replica") ? `told by replica ${shown(about.get("replica"))}` : "";
  const [applied, all] = about.get("changes") ?? [0, 0];
  const played = all ? ` · ${count(applied)} of ${count(all)} changes` : "";
  document.getElementById("moment").textContent = about.get("now") ? moment(about.get("now")) + played : "";
  const waiting = [...state.queue.values()].reduce((sum, row) => sum + row.count, 0);
  const badge = document.getElementById("waiting");
  badge.hidden = !waiting;
  reconcile(badge, count(waiting), el("span", { class: "out" }, waiting === 1 ? " waiting pod" : " waiting pods"));
  if (!delta || delta.put?.about?.notes) {
    const notes = document.getElementById("notes"),
      told = about.get("notes") ?? [];
    notes.hidden = !told.length;
    reconcile(
      notes,
      told.map((note) => el("p", { class: "note" }, note)),
    );
  }
  if (!delta || delta.put?.about?.can) offer(about);
  if (isAwaited()) awaited(about);
  else if (current && isOffered === offered(shownPage)) current.update(state, delta);
  else route();
  tell();
}

/** Pages beyond the first ones are in the navigation where the server offers them. A comparison has a page of its own and no cluster. */
function offer(about) {
  const can = about.get("can") ?? [],
    alone = about.get("kind") === "comparison";
  for (const link of document.querySelectorAll("nav a")) link.hidden = link.dataset.needs ? !can.includes(link.dataset.needs) : alone;
  if (alone && !location.hash.startsWith("#/comparison")) location.replace("#/comparison");
}

/** Seconds without a word after which what is seen is called old. Counted while this page is at work, so a busy tab accuses nobody. */
const SILENT = 3;
/** How the connection stands, as the feed says, and when anything was heard last. */
let standing = "live";
let why = "";
let heardAt = Date.now();
let silence = 0;

function heard() {
  heardAt = Date.now();
  if (silence >= SILENT) setTimeout(tell);
  silence = 0;
}

function status(now, told) {
  if (now === standing && told === why) return;
  if (now === "away" && standing !== "away") silence = 0;
  standing = now;
  why = told;
  tell();
}

/** Say whether what is seen is of now; where it is not, since when and why, and dim it. */
function tell() {
  const over = state && state.about.get("kind") !== "operator" && isPlayed(state.about);
  // A console that answers may itself be without news, as where the API server has stopped.
  const stale = standing === "live" && silence < SILENT ? state?.about.get("stale") : null;
  const old = Boolean(stale) || (standing === "away" ? Boolean(why) || silence > 0 : standing === "live" && silence >= SILENT);
  const since = moment(stale ? stale[0] : heardAt / 1000).slice(11);
  const cause = stale?.[1] ?? (why || (standing === "away" ? "The console does not answer." : "The console is connected, and silent."));
  const text = !old ? "" : state ? `Nothing new since ${since}. ${cause} This is how things stood then.` : cause;
  const notice = document.getElementById("told");
  if (notice.textContent !== text) {
    reconcile(notice, text ? el("p", { class: "note" }, text) : null);
    if (!state && !closed) hold(text);
  }
  main.classList.toggle("old", old && state !== null);
  const dot = document.getElementById("connection");
  dot.classList.toggle("away", standing !== "live" || old);
  dot.classList.toggle("over", over && standing === "live");
  const words = { live: over ? "the recording has ended" : "connected", away: "not connected, trying again", refused: "not admitted" };
  if (dot.textContent !== words[standing]) dot.textContent = words[standing];
}

/** Whether all changes of a recording were played. */
function isPlayed(about) {
  const [applied, all] = about.get("changes") ?? [0, 0];
  return all > 0 && applied === all;
}

if (await enter()) {
  addEventListener("hashchange", go);
  // The address names the page, so a link within the page must not change it.
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
  route();
  follow(changed, status, refused, heard);
  setInterval(() => {
    silence += 1;
    tell();
  }, 1000);
}
