// @ts-check
// The ledger: rows by pages, live rows that never move what is read, one row in full.

import { get, isAbort, refused } from "../lib/api.js";
import { showAgainst } from "../lib/difference.js";
import { all, announce, byId, fill, h, icon } from "../lib/dom.js";
import { showEmpty } from "../lib/empty.js";
import { apiQuery, filterQuery, href, inRange, pageQuery } from "../lib/filters.js";
import { counted, integer } from "../lib/format.js";
import { asking, onKeys } from "../lib/keys.js";
import { coalesced, Live } from "../lib/live.js";
import { whenNear } from "../lib/near.js";
import { ColumnChoice } from "../lib/requests/column-choice.js";
import { headOf, ledgerRow, widthOf } from "../lib/requests/columns.js";
import { showDetail } from "../lib/requests/detail.js";
import { showExports, wireExports } from "../lib/requests/exporting.js";
import { Ledger } from "../lib/requests/ledger.js";
import { Rows } from "../lib/requests/rows.js";
import { firstView, wireViews } from "../lib/requests/saved-views.js";
import * as shell from "../lib/shell.js";
import { Toolbar } from "../lib/toolbar.js";

const PAGE = 100;
const MOST = 1000; // rows that live ones are added to
const LOADED = 100_000; // rows that a page holds at most
const ledger = new Ledger();
const main = byId("main");
const table = byId("ledger", HTMLTableElement);
const box = byId("ledger-box");
const dialog = byId("detail", HTMLDialogElement);
const wide = matchMedia("(width >= 90rem)");
const cards = matchMedia("(width < 58rem)");
let current = new AbortController();
/** @type {string | null} */
let shown = null; // the view that the page shows, so that new data of the same view does not blink
let extending = false;
let hole = false; // more rows were missed than wait: they come with the first page
/** @type {Element | null} */
let scroller = null; // what scrolls, if not the page
const lookForEnd = whenNear(byId("more"), 1500, () => void extend());

const first = location.search ? null : firstView(location.pathname);
if (first) history.replaceState(null, "", first);
const rows = new Rows(table, line);
const columns = new ColumnChoice(() => {
  toolbar.keepOwn(columns.text ? { columns: columns.text } : {});
  layOut();
});
const toolbar = new Toolbar(() => void load());

/** @param {any} row */
function line(row) {
  if (row.session) toolbar.learn(row.session_key, row.session);
  const element = ledgerRow(row, href("/requests", { ...toolbar.view, turn: row.turn_id }), columns.columns);
  if (dialog.open && dialog.dataset.turn === row.turn_id) element.setAttribute("aria-current", "true");
  return element;
}

/** Take the columns that the address names, or those that are remembered. */
function takeColumns() {
  const before = columns.text;
  columns.take(toolbar.view.own?.columns);
  toolbar.keepOwn(columns.text ? { columns: columns.text } : {});
  if (columns.text !== before || !table.tHead?.rows.length) layOut();
  if (columns.unknown.length) shell.showRefusal({ message: `There is no column ${columns.unknown.join(", ")}.`, hint: "The address names it; the others are shown." });
}

/** Head, widths and what scrolls. A choice of one's own may be wider than the page: the table then scrolls by itself. */
function layOut() {
  const chosen = columns.columns;
  fill(byId("ledger-head"), headOf(chosen));
  const scrolls = columns.own && !cards.matches;
  box.classList.toggle("chosen", columns.own);
  box.classList.toggle("compact", columns.compact);
  table.style.minWidth = scrolls ? `${widthOf(chosen)}rem` : "";
  scroller = scrolls ? box : null;
  rows.scrolledBy(scroller);
  rows.redraw();
  lookForEnd(scroller);
}

/**
 * Fetch the first page of the view.
 * @param {boolean} [anew] also when the page shows this view already
 */
async function load(anew = false) {
  current.abort();
  current = new AbortController();
  const { signal } = current;
  takeColumns();
  const view = toolbar.view;
  const key = pageQuery({ ...view, turn: null }).toString();
  shell.keepView(view);
  if (key === shown && !anew) { // only the open row is another one
    if (view.turn !== (dialog.open ? dialog.dataset.turn : null)) void showTurn(view.turn);
    if (dialog.open || view.turn) return;
  }
  await fetchFirst(key, signal);
}

/**
 * @param {string} key
 * @param {AbortSignal} signal
 */
async function fetchFirst(key, signal) {
  const view = toolbar.view;
  live.listen(filterQuery(view));
  if (key !== shown) main.setAttribute("aria-busy", "true");
  try {
    const query = apiQuery(view);
    query.set("limit", String(PAGE));
    const page = await get("/api/requests", query, signal);
    const same = key === shown;
    const focused = document.activeElement?.closest("tr[data-turn]")?.getAttribute("data-turn");
    ledger.begin(page);
    hole = false;
    toolbar.resolved(page.range);
    rows.reset(ledger.rows);
    if (same && focused) focusRow(focused);
    const holdsNone = ledger.count === 0 && (await get("/api/summary", undefined, signal)).ledger.empty;
    const empty = showEmpty(holdsNone, ledger.count, toolbar);
    byId("board").hidden = empty && !view.turn;
    showCounts();
    shell.showFault(null);
    shell.justUpdated();
    const turned = key !== shown;
    shown = key;
    lookForEnd(scroller);
    if (turned) await showTurn(view.turn);
  } catch (fault) {
    if (isAbort(fault) || signal.aborted) return;
    shell.showFault(fault);
    if (refused(fault)) live.rest();
    if (!ledger.range) byId("board").hidden = true; // nothing was ever fetched: no frame to keep
  }
  main.setAttribute("aria-busy", "false");
}

/** Fetch the next page of the same snapshot. */
async function extend() {
  if (extending || !ledger.cursor || !ledger.range || ledger.rows.length >= LOADED) return;
  extending = true;
  const { signal } = current;
  byId("load-more", HTMLButtonElement).disabled = true;
  try {
    const query = apiQuery({ ...toolbar.view, ...ledger.range });
    query.set("limit", String(PAGE));
    query.set("cursor", ledger.cursor);
    const page = await get("/api/requests", query, signal);
    rows.append(ledger.extend(page));
    showCounts();
    shell.showFault(null);
    lookForEnd(scroller);
  } catch (fault) {
    if (!isAbort(fault)) shell.showFault(fault);
  }
  extending = false;
  byId("load-more", HTMLButtonElement).disabled = false;
}

/** Whether the first rows are out of sight. */
function isDown() {
  return scrollY > 40 || box.scrollTop > 40;
}

/** Whether letting rows in would move what somebody reads. */
function reading() {
  return isDown() || document.querySelector("dialog[open]") !== null || table.contains(document.activeElement) || table.matches(":hover") || !getSelection()?.isCollapsed || !byId("facets").hidden;
}

function admit() {
  const added = ledger.admit();
  for (const row of added.reverse()) { // oldest first: the row below is then on the page already
    rows.insert(row, ledger.rows[ledger.rows.indexOf(row) + 1])?.classList.add("fresh");
  }
  if (ledger.count) {
    byId("board").hidden = false;
    showEmpty(false, ledger.count, toolbar);
  }
  showCounts();
}

function showCounts() {
  const { count, rows: loaded, cursor, waiting } = ledger;
  const full = loaded.length >= LOADED;
  byId("row-count").textContent = `${integer(loaded.length)} of ${counted(count, "row")} shown`;
  byId("more-words").textContent = cursor
    ? full ? "That is all that one page holds. Narrow the range to see further, or export the rows." : ""
    : count ? "That is all of this view." : "";
  byId("load-more").hidden = !cursor || full;
  table.setAttribute("aria-rowcount", String(count + 1));
  byId("new-rows").hidden = !waiting.size;
  if (waiting.size) fill(byId("show-new"), icon("arrow-up"), `${hole ? "more than " : ""}${integer(waiting.size)} new ${waiting.size === 1 ? "row" : "rows"}`);
  showExports(ledger, toolbar.view);
}

// --- rows and the open one ------------------------------------------------------------------

/** @param {string} turn */
function focusRow(turn) {
  const link = rows.show(turn)?.querySelector(".row-link");
  if (link instanceof HTMLElement) link.focus();
}

function markOpen() {
  for (const row of all("tr[aria-current]", table)) row.removeAttribute("aria-current");
  if (dialog.open && dialog.dataset.turn) rows.element(dialog.dataset.turn)?.setAttribute("aria-current", "true");
}

/**
 * Show a row in full, or none; the address has changed already.
 * @param {string | null} turn
 */
async function showTurn(turn) {
  if (!turn) {
    if (dialog.open) dialog.close();
    return;
  }
  let row = ledger.row(turn);
  try {
    row ??= (await get(`/api/requests/${encodeURIComponent(turn)}`)).row;
  } catch (fault) {
    return shell.showFault(fault);
  }
  dialog.dataset.turn = turn;
  showDetail(byId("detail-title"), byId("detail-body"), row, toolbar.view);
  void showBefore(row);
  byId("board").hidden = false;
  if (!dialog.open) {
    if (wide.matches) dialog.show();
    else dialog.showModal();
  }
  dialog.scrollTop = 0;
  markOpen();
}

/** The turn that it goes on from takes another look into the ledger: its place is kept free. @param {any} row */
async function showBefore(row) {
  const host = h("section", { class: "difference waits" }, h("h3", {}, "Against the turn before it"));
  const body = byId("detail-body");
  body.insertBefore(host, body.children[1] ?? null);
  try {
    const told = await get(`/api/sessions/${encodeURIComponent(row.session_key)}/turns/${encodeURIComponent(row.turn_id)}`);
    showAgainst(host, told, openTurn);
  } catch {
    host.append(h("p", { class: "muted" }, "It could not be looked up."));
  }
  host.classList.remove("waits");
}

/** @param {string} turn */
function openTurn(turn) {
  toolbar.openTurn(turn);
  void showTurn(turn).then(() => byId("detail-title").focus({ preventScroll: true }));
}

function closeTurn() {
  const turn = dialog.dataset.turn;
  toolbar.openTurn(null);
  dialog.close();
  if (turn) focusRow(turn);
}

table.addEventListener("click", (event) => {
  const target = /** @type {Element} */ (event.target);
  const row = target.closest("tr[data-turn]");
  const click = /** @type {MouseEvent} */ (event);
  if (!row || click.metaKey || click.ctrlKey || click.shiftKey || target.closest("button") || !getSelection()?.isCollapsed) return;
  event.preventDefault();
  openTurn(row.getAttribute("data-turn") ?? "");
});
byId("detail-close").addEventListener("click", closeTurn);
dialog.addEventListener("cancel", (event) => {
  event.preventDefault();
  closeTurn();
});
dialog.addEventListener("click", (event) => event.target === dialog && dialog.matches(":modal") && closeTurn());
dialog.addEventListener("close", markOpen);

/** @param {1 | -1} step */
async function move(step) {
  const turn = (dialog.open ? dialog.dataset.turn : null) ?? document.activeElement?.closest("tr[data-turn]")?.getAttribute("data-turn");
  const at = ledger.rows.findIndex((row) => row.turn_id === turn);
  const to = at < 0 ? firstInSight() : at + step;
  if (to >= ledger.rows.length) await extend();
  const next = ledger.rows[to]?.turn_id;
  if (!next) return;
  if (dialog.open) openTurn(next);
  else focusRow(next);
  rows.show(next)?.scrollIntoView({ block: "nearest" });
}

/** Where walking begins. */
function firstInSight() {
  const row = all("tr[data-turn]", table).find((one) => one.getBoundingClientRect().bottom > 120);
  return Math.max(0, ledger.rows.findIndex((one) => one.turn_id === row?.dataset.turn));
}

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.defaultPrevented || !dialog.open || asking()) return;
  event.preventDefault();
  closeTurn();
});
onKeys({ j: () => void move(1), k: () => void move(-1), r: () => (isDown() ? again() : void load(true)) });

// --- live -----------------------------------------------------------------------------------

const settle = coalesced(async () => {
  if (!ledger.waiting.size) return;
  // a page that is left open for days does not grow without end
  if (!reading()) return ledger.rows.length > MOST || hole ? again() : admit();
  showCounts();
  announce(`${counted(ledger.waiting.size, "new row")}.`);
});
const again = coalesced(async () => {
  current.abort();
  current = new AbortController();
  if (reading()) return fetchBehind();
  if (shown !== null) await fetchFirst(shown, current.signal);
});

/** While somebody reads, what was missed waits like any other new row. */
async function fetchBehind() {
  const query = apiQuery(toolbar.view);
  query.set("limit", String(PAGE));
  const page = await get("/api/requests", query, current.signal).catch(() => null);
  if (!page) return;
  const newest = ledger.rows[0]?.started_at ?? "";
  hole ||= page.next_cursor !== null && page.rows[page.rows.length - 1].started_at > newest;
  take(page.rows.filter((/** @type {any} */ row) => row.started_at >= newest), page.as_of);
}

/**
 * @param {any[]} written
 * @param {string} asOf
 */
function take(written, asOf) {
  for (const row of ledger.hear(written, asOf)) rows.replace(row);
  shell.justUpdated();
  settle();
}

const live = new Live({
  rows: (written, asOf) => {
    const from = ledger.range?.from ?? "";
    const fitting = written.filter((row) => inRange(toolbar.view, row, from));
    if (fitting.length) take(fitting, asOf);
  },
  reset: () => shown !== null && again(),
  state: shell.showLive,
});

byId("show-new").addEventListener("click", () => {
  scrollTo({ top: 0 });
  box.scrollTop = 0;
  if (hole) void load(true);
  else admit();
});
byId("load-more").addEventListener("click", () => void extend());
cards.addEventListener("change", layOut);

wireExports(() => toolbar.view);
shell.wireRefusal();
const views = wireViews(
  () => {
    const query = pageQuery({ ...toolbar.view, turn: null });
    query.set("columns", columns.lasting);
    return query;
  },
  () => byId("range-words").textContent ?? "",
);
if (!views.readable) shell.showRefusal({ message: "Your saved views cannot be read.", hint: "What this browser kept of them is left out. Saving a view replaces it." });
shell.wireView(toolbar, live, () => void load(true), () => {
  shown = null;
  void load();
}, () => (shown === null ? void load() : again()));
void load();
