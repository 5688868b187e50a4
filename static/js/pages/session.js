// @ts-check
// One session: its figures, its turns in lanes, and a turn against the one before it.

import { get, isAbort, refused, url } from "../lib/api.js";
import { showTurn } from "../lib/difference.js";
import { all, announce, byId, fill, h, icon, typing } from "../lib/dom.js";
import { apiQuery, changed, filterQuery, href, inRange, pageQuery } from "../lib/filters.js";
import { counted, integer } from "../lib/format.js";
import { asking, onKeys } from "../lib/keys.js";
import { coalesced, Live } from "../lib/live.js";
import { showCauses } from "../lib/sessions/causes.js";
import { offerReset, wireReset } from "../lib/sessions/epoch-reset.js";
import { figuresLine, lifeWords, showFigures, showRelated, showWho } from "../lib/sessions/head.js";
import { laneTable, turnWords } from "../lib/sessions/lane-table.js";
import { LaneView } from "../lib/sessions/lane-view.js";
import { Turns } from "../lib/sessions/lanes.js";
import { legend } from "../lib/sessions/strip.js";
import * as shell from "../lib/shell.js";
import { Toolbar } from "../lib/toolbar.js";

const MOST = 10_000; // turns that are fetched by themselves, and so many more when asked for
const KEY = document.body.dataset.session ?? "";
const API = `/api/sessions/${encodeURIComponent(KEY)}`;
const main = byId("main");
const dialog = byId("detail", HTMLDialogElement);
const scroller = byId("lanes");
const table = byId("lane-table", HTMLDetailsElement);
const wide = matchMedia("(width >= 90rem)");
const turns = new Turns();
const lanes = new LaneView(scroller, byId("lane-room"), byId("lane-canvas", HTMLCanvasElement));
let current = new AbortController();
/** @type {string | null} */
let shown = null; // the view that the page shows, so that new data of the same view does not blink
/** @type {{from: string, to: string} | null} */
let range = null;
let most = MOST;

const toolbar = new Toolbar(() => void load());
/** @param {string} key */
const sessionLink = (key) => href(`/sessions/${encodeURIComponent(key)}`, { ...toolbar.view, turn: null });
/** @param {string} turn */
const turnLink = (turn) => href(location.pathname, { ...toolbar.view, turn });

async function load() {
  const { view } = toolbar;
  const key = pageQuery({ ...view, turn: null }).toString();
  shell.keepView(view);
  if (key === shown && view.turn !== (dialog.open ? dialog.dataset.turn : null)) return openTurn(view.turn, false);
  await fetchAll(key);
}

/** @param {string} key */
async function fetchAll(key) {
  current.abort();
  current = new AbortController();
  const { signal } = current;
  const { view } = toolbar;
  const own = filterQuery(changed(view, { session: [KEY] }));
  live.listen(own);
  const another = key !== shown;
  if (another) main.setAttribute("aria-busy", "true");
  try {
    const [told, page] = await Promise.all([get(API, apiQuery(view), signal), get(`${API}/turns`, apiQuery(view), signal)]);
    range = page.range;
    toolbar.resolved(page.range);
    if (another) {
      turns.clear();
      most = MOST;
    }
    turns.begin(page);
    showHead(told);
    showLanes();
    shell.showFault(null);
    shell.justUpdated();
    shown = key;
    if (another) {
      void markAlerts(signal);
      void fetchCauses(told.figures, signal);
      if (view.turn) void openTurn(view.turn, false);
      void fetchEarlier(signal);
    }
  } catch (fault) {
    if (isAbort(fault) || signal.aborted) return;
    shell.showFault(fault);
    if (refused(fault)) live.rest();
    if (shown === null) byId("board").hidden = true;
  }
  main.setAttribute("aria-busy", "false");
}

/** What does not fit into one answer, page by page. @param {AbortSignal} signal */
async function fetchEarlier(signal) {
  while (turns.cursor && turns.list.length < most) {
    const query = apiQuery({ ...toolbar.view, ...range });
    query.set("cursor", turns.cursor);
    const page = await get(`${API}/turns`, query, signal).catch(() => null);
    if (!page || signal.aborted || !turns.extend(page)) break;
    showLanes();
  }
}

/** What else is known of why it broke; the page stands without. @param {any} figures @param {AbortSignal} signal */
async function fetchCauses(figures, signal) {
  const view = changed(toolbar.view, { session: [KEY] });
  const [drift, resets] = await Promise.all(["/api/drift", "/api/resets"].map((path) => get(path, apiQuery(view), signal).catch(() => null)));
  if (drift && resets) showCauses(drift, resets, figures, { turn: turnLink, breaks: href("/breaks", view) });
}

/** @param {any} told */
function showHead(told) {
  const { session, figures } = told;
  const { view } = toolbar;
  toolbar.learn(KEY, session.session ?? KEY);
  document.title = `${session.session ?? "Session"} · Warmline`;
  showWho(session, sessionLink);
  offerReset(session);
  showFigures(byId("figures"), told);
  byId("figures-line").textContent = figuresLine(told);
  byId("session-life").textContent = lifeWords(session);
  byId("related").hidden = !session.sub_agents.length;
  showRelated(byId("related-list"), session, sessionLink);
  const rows = changed(view, { session: [KEY] });
  byId("to-rows").setAttribute("href", href("/requests", rows));
  const query = apiQuery({ ...rows, from: told.range.from, to: told.range.to });
  query.delete("tz");
  byId("export").setAttribute("href", url("/api/requests.csv", query));
  byId("export-words").textContent = `Export ${counted(figures.turns, "row")} (CSV)`;
  showNothing(session, figures.turns);
}

/** @param {any} session @param {number} count */
function showNothing(session, count) {
  const empty = byId("empty");
  empty.hidden = count > 0;
  byId("board").hidden = count === 0;
  if (count) return;
  const to = new Date(Date.parse(session.last_seen) + 1).toISOString();
  fill(empty, icon("rate_limited"), h("h2", {}, "No turn of this session in this view"), h("p", {}, lifeWords(session)),
    h("div", { class: "actions" }, h("button", { type: "button", class: "button", click: () => toolbar.go({ ...changed(toolbar.view, {}), values: new Map(), from: session.first_seen, to }) }, "Show all of it")));
}

function showLanes() {
  lanes.show(turns);
  byId("lane-earlier").hidden = !turns.cursor || turns.list.length < most;
  byId("lane-count").textContent = turns.cursor ? `the last ${integer(turns.list.length)} of this range` : counted(turns.list.length, "turn");
  if (table.open) laneTable(byId("lane-rows"), turns.list, turnLink);
  describe();
}

/** Alerts that fired or ended in the range, but for those of another session. @param {AbortSignal} signal */
async function markAlerts(signal) {
  const told = await get("/api/alerts/events", new URLSearchParams({ limit: "200" }), signal).catch(() => null);
  if (!told || !range) return;
  const { from, to } = range;
  const events = told.events.filter((/** @type {any} */ one) => {
    const of = one.group.session ?? one.group.session_key;
    return one.at >= from && one.at < to && (of === undefined || of === KEY || of === toolbar.label(KEY)) && (one.after === "firing" || one.before === "firing");
  });
  lanes.mark(events.map((/** @type {any} */ one) => ({ at: Date.parse(one.at), kind: one.after === "firing" ? "alert" : "alert_end" })).reverse());
}

// --- the turn that is pointed at, and the open one --------------------------------------------

/** @param {number} [place] */
function describe(place = lanes.selected) {
  const turn = turns.list[place];
  byId("lane-line").textContent = turn ? turnWords(turn, place, turns.list.length) : "Point at a turn, or move with the arrow keys.";
}

/** @param {number} place */
function select(place) {
  if (!turns.list[place]) return;
  lanes.select(place);
  describe();
  announce(byId("lane-line").textContent ?? "");
}

/**
 * @param {string | null} turn
 * @param {boolean} [address] whether the address is to change
 */
async function openTurn(turn, address = true) {
  if (!turn) return close(address);
  if (address) toolbar.openTurn(turn);
  try {
    const told = await get(`${API}/turns/${encodeURIComponent(turn)}`);
    dialog.dataset.turn = turn;
    showTurn(byId("detail-title"), byId("detail-body"), told, toolbar.view, (id) => void openTurn(id));
  } catch (fault) {
    return shell.showFault(fault);
  }
  if (!dialog.open) {
    if (wide.matches) dialog.show();
    else dialog.showModal();
  }
  dialog.scrollTop = 0;
  const place = turns.place(turn);
  lanes.select(place);
  describe();
  byId("detail-title").focus({ preventScroll: true });
}

/** @param {boolean} [address] */
function close(address = true) {
  if (!dialog.open) return;
  if (address) toolbar.openTurn(null);
  dialog.close();
  scroller.focus({ preventScroll: true });
}

/** The turn before or after the open one, of whatever chain. @param {1 | -1} step */
function walk(step) {
  const at = turns.place(dialog.dataset.turn ?? "");
  const next = at < 0 ? undefined : turns.list[at + step];
  if (next) void openTurn(next.id);
}

/** The nearest turn of another lane. @param {number} from @param {1 | -1} step */
function across(from, step) {
  const lane = (turns.list[from]?.lane ?? 0) + step;
  for (let far = 0; far < turns.list.length; far += 1) {
    if (turns.list[from - far]?.lane === lane) return from - far;
    if (turns.list[from + far]?.lane === lane) return from + far;
  }
  return from;
}

scroller.addEventListener("keydown", (event) => {
  if (event.metaKey || event.ctrlKey || event.altKey) return;
  const last = turns.list.length - 1;
  const from = lanes.selected < 0 ? last + 1 : lanes.selected;
  const steps = /** @type {Record<string, () => number>} */ ({
    ArrowLeft: () => Math.max(0, from - 1), ArrowRight: () => Math.min(last, from + 1), Home: () => 0, End: () => last,
    ArrowUp: () => across(Math.min(from, last), -1), ArrowDown: () => across(Math.min(from, last), 1),
  });
  if (event.key === "Enter" && turns.list[lanes.selected]) void openTurn(turns.list[lanes.selected].id);
  else if (steps[event.key]) select(steps[event.key]());
  else return;
  event.preventDefault();
});
scroller.addEventListener("mousemove", (event) => {
  const place = lanes.hit(event);
  scroller.classList.toggle("pointed", place >= 0);
  describe(place >= 0 ? place : lanes.selected);
});
scroller.addEventListener("mouseleave", () => describe());
scroller.addEventListener("click", (event) => {
  const place = lanes.hit(event);
  if (place >= 0) void openTurn(turns.list[place].id);
});
for (const id of ["lane-rows", "causes-list"]) byId(id).addEventListener("click", (event) => {
  const link = /** @type {Element} */ (event.target).closest("a[data-turn]");
  const click = /** @type {MouseEvent} */ (event);
  if (!link || click.metaKey || click.ctrlKey || click.shiftKey) return;
  event.preventDefault();
  void openTurn(link.getAttribute("data-turn"));
});
table.addEventListener("toggle", () => table.open && laneTable(byId("lane-rows"), turns.list, turnLink));
byId("detail-close").addEventListener("click", () => close());
dialog.addEventListener("cancel", (event) => {
  event.preventDefault();
  close();
});
dialog.addEventListener("click", (event) => event.target === dialog && dialog.matches(":modal") && close());

// --- the axis ---------------------------------------------------------------------------------

function showZoom() {
  const { least, most } = lanes.ends();
  byId("lane-out", HTMLButtonElement).disabled = least;
  byId("lane-in", HTMLButtonElement).disabled = most;
}

for (const input of /** @type {HTMLInputElement[]} */ (all("input[name=axis]"))) {
  input.addEventListener("change", () => {
    lanes.along(input.value === "time" ? "time" : "turn");
    showZoom();
  });
}
for (const [id, step] of /** @type {[string, 1 | -1][]} */ ([["lane-out", -1], ["lane-in", 1]])) {
  byId(id).addEventListener("click", () => {
    lanes.zoom(step);
    showZoom();
  });
}

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey || !dialog.open || asking()) return;
  const chooses = event.target instanceof HTMLInputElement; // radio buttons have the arrows for themselves
  if (event.key === "Escape") {
    event.preventDefault();
    close();
  } else if ((event.key === "ArrowLeft" || event.key === "ArrowRight") && !typing() && !chooses) {
    event.preventDefault();
    walk(event.key === "ArrowLeft" ? -1 : 1);
  }
});
onKeys({ r: () => void fetchAll(shown ?? "") });

// --- live -------------------------------------------------------------------------------------

const again = coalesced(async () => {
  if (shown !== null) await fetchAll(shown);
});
const live = new Live({
  rows: (rows) => rows.some((row) => inRange(toolbar.view, row, range?.from ?? "")) && again(),
  reset: () => shown !== null && again(),
  state: shell.showLive,
});

const sign = (/** @type {string} */ kind, /** @type {string} */ mark, /** @type {string} */ words) => h("li", {}, h("span", { class: `sign ${kind}`, "aria-hidden": "true" }, mark), words);
legend(byId("legend"),
  sign("chain", "│", "a chain begins"), sign("connection", "▂", "another connection"), sign("ended", "⇄", "why the former one could not be used"), sign("gap", "⁚", "pause after which the cache may be gone"), sign("gap", "⁞", "after which it is gone"),
  sign("reset", "↺", "epoch reset"), sign("alert", "▼", "alert fired"), sign("alert-end", "▼", "alert ended"));
byId("lane-earlier").addEventListener("click", () => {
  most += MOST;
  void fetchEarlier(current.signal);
});
wireReset(API, () => turns.list.findLast((turn) => turn.input !== null)?.input ?? null);
shell.wireRefusal();
showZoom();
shell.wireView(toolbar, live, () => void fetchAll(shown ?? ""), () => {
  shown = null;
  void load();
});
void load();
