// @ts-check
// Breaks: what broke, how often and since when, what it costs, and who says so.

import { get, isAbort, refused } from "../lib/api.js";
import { costLine, drawCosts } from "../lib/breaks/costs.js";
import { drawList } from "../lib/breaks/list.js";
import { drawDrift, drawResets } from "../lib/breaks/resets.js";
import { drawWitnesses } from "../lib/breaks/witnesses.js";
import { newestWords, OPEN } from "../lib/breaks/words.js";
import { all, byId, fill, h } from "../lib/dom.js";
import { showEmpty } from "../lib/empty.js";
import { apiQuery, filterQuery, inRange, pageQuery } from "../lib/filters.js";
import { counted, integer } from "../lib/format.js";
import { selecting } from "../lib/keyed.js";
import { coalesced, Live, loading } from "../lib/live.js";
import { serverSays, wireAges } from "../lib/server-time.js";
import * as shell from "../lib/shell.js";
import { Toolbar } from "../lib/toolbar.js";
import { walkByKeys } from "../lib/walk.js";

const COSTS_PAUSE = 15_000; // they read every row of the view
const main = byId("main");
const list = byId("list");
const sort = byId("sort", HTMLSelectElement);
let current = new AbortController();
let costs = new AbortController();
/** @type {string | null} */
let shown = null; // the view that the page shows, so that new data of the same view does not blink
let since = "";
/** @type {string[]} */
let order = [];

const { load, refresh } = loading(fetchAll);
const toolbar = new Toolbar(() => void load());

const own = () => ({ state: toolbar.view.own?.state ?? "open", sort: toolbar.view.own?.sort ?? "missed" });

/** The page's own query string, what is its own included. */
function key() {
  return `${pageQuery({ ...toolbar.view, turn: null })}&${JSON.stringify(own())}`;
}

async function fetchAll() {
  current.abort();
  current = new AbortController();
  const { signal } = current;
  const { view } = toolbar;
  const wanted = key();
  shell.keepView(view);
  live.listen(filterQuery(view));
  showOwn();
  if (wanted !== shown) main.setAttribute("aria-busy", "true");
  try {
    const query = apiQuery(view);
    const { state, sort: by } = own();
    for (const one of state === "open" ? OPEN : state === "all" ? [] : [state]) query.append("state", one);
    query.set("sort", by);
    const told = await get("/api/breaks", query, signal);
    serverSays(told.as_of);
    since = told.range.from;
    toolbar.resolved(told.range);
    // only where there are no breaks does it matter whether there are turns
    const summary = told.turns ? null : await get("/api/summary", apiQuery(view), signal);
    const empty = showEmpty(Boolean(summary?.ledger.empty), told.turns || summary.turns.total, toolbar);
    byId("board").hidden = empty;
    if (wanted === shown && reading()) told.groups.sort(asShown);
    order = told.groups.map((/** @type {any} */ group) => group.id);
    showCounts(told);
    if (!selecting(list)) drawList(list, told, view, () => void load());
    shell.showFault(null);
    shell.justUpdated();
    const another = wanted !== shown;
    shown = wanted;
    if (another) costs.abort();
    if (another) costs = new AbortController();
    if (another && !empty) void fetchCosts(costs.signal);
    if (!another && !empty) moreCosts();
  } catch (fault) {
    if (isAbort(fault) || signal.aborted) return;
    shell.showFault(fault);
    if (refused(fault)) live.rest();
    if (shown === null) byId("board").hidden = true; // nothing was ever fetched: no frame to keep
  }
  main.setAttribute("aria-busy", "false");
}

/** While somebody reads, what is there stays where it is and what is new comes last. @param {any} a @param {any} b */
function asShown(a, b) {
  const at = (/** @type {any} */ group) => (order.includes(group.id) ? order.indexOf(group.id) : order.length);
  return at(a) - at(b);
}

function reading() {
  return scrollY > 40 || list.contains(document.activeElement) || list.matches(":hover") || selecting(list) || !byId("facets").hidden;
}

function showOwn() {
  const { state, sort: by } = own();
  for (const input of /** @type {HTMLInputElement[]} */ (all("#states input"))) input.checked = input.value === state;
  sort.value = by;
}

/** @param {any} told */
function showCounts(told) {
  const numbers = /** @type {Record<string, number>} */ ({ ...told.states });
  numbers.open = OPEN.reduce((sum, state) => sum + told.states[state], 0);
  numbers.all = Object.values(told.states).reduce((sum, number) => sum + number, 0);
  for (const badge of all("#states [data-count]")) badge.textContent = integer(numbers[badge.dataset.count ?? ""]);
  const rest = told.count > told.groups.length ? `; the first ${integer(told.groups.length)} are shown` : "";
  byId("list-line").textContent = `${counted(told.turns, "break")} of ${counted(numbers.all, "cause")} in this view${rest}. First and last seen, “ever” and the state are of the whole ledger.`;
}

// --- what it costs --------------------------------------------------------------------------

const PARTS = /** @type {const} */ ([["causes", "costs"], ["resets", "resets"], ["witnesses", "witnesses"], ["drift", "drift"]]);

/** One after the other: each reads the rows of the view, or its newest ones. @param {AbortSignal} signal */
async function fetchCosts(signal) {
  const { view } = toolbar;
  for (const [path, id] of PARTS) {
    const host = byId(id);
    try {
      const told = await get(`/api/${path}`, apiQuery(view), signal);
      if (selecting(host)) continue;
      const newest = newestWords(told);
      const inside = newest ? { ...view, from: told.range.from, to: told.range.to } : view;
      if (path === "causes") {
        fill(byId("costs-line"), ...costLine(told, inside));
        drawCosts(host, told, inside);
      }
      if (path === "resets") drawResets(host, told, inside);
      if (path === "witnesses") drawWitnesses(host, told, inside);
      if (path === "drift") drawDrift(host, told, inside);
      if (newest) host.prepend(h("p", { class: "muted" }, newest));
      host.className = "";
    } catch (fault) {
      if (isAbort(fault) || signal.aborted) return;
      fill(host, h("p", { class: "card part muted" }, `This could not be fetched: ${/** @type {Error} */ (fault).message}`));
    }
  }
}
const moreCosts = coalesced(() => fetchCosts(costs.signal), COSTS_PAUSE);

// --- choosing, keys, live -------------------------------------------------------------------

/** @param {Record<string, string>} chosen what is the default is left out of the address */
function choose(chosen) {
  const next = { ...own(), ...chosen };
  /** @type {Record<string, string>} */
  const kept = {};
  if (next.state !== "open") kept.state = next.state;
  if (next.sort !== "missed") kept.sort = next.sort;
  toolbar.go({ ...toolbar.view, own: kept });
}

for (const input of /** @type {HTMLInputElement[]} */ (all("#states input"))) input.addEventListener("change", () => choose({ state: input.value }));
sort.addEventListener("change", () => choose({ sort: sort.value }));

walkByKeys(list, "tr", () => void load());

const live = new Live({
  rows: (rows) => {
    if (since && rows.some((row) => inRange(toolbar.view, row, since))) refresh();
  },
  reset: refresh,
  state: shell.showLive,
});

shell.wireView(toolbar, live, () => void load(), () => {
  shown = null;
  void load();
});
wireAges();
shell.wireRefusal();
void load();
