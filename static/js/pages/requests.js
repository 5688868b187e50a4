// @ts-check
// The ledger: rows by pages, live rows that never move what is read, one row in full.

import { get, isAbort, refused, url } from "../lib/api.js";
import { showDetail } from "../lib/detail.js";
import { add, all, announce, byId, fill, icon, typing } from "../lib/dom.js";
import { showEmpty } from "../lib/empty.js";
import { apiQuery, filterQuery, href, inRange, pageQuery } from "../lib/filters.js";
import { counted, integer } from "../lib/format.js";
import { Ledger } from "../lib/ledger.js";
import { coalesced, Live } from "../lib/live.js";
import * as shell from "../lib/shell.js";
import { ledgerRow } from "../lib/table.js";
import { Toolbar } from "../lib/toolbar.js";

const PAGE = 100;
const MOST = 1000;
const ledger = new Ledger();
const main = byId("main");
const body = byId("rows");
const dialog = byId("detail", HTMLDialogElement);
const wide = matchMedia("(width >= 90rem)");
let current = new AbortController();
/** @type {string | null} */
let shown = null; // the view that the page shows, so that new data of the same view does not blink
let extending = false;

const toolbar = new Toolbar(() => void load());

/** @param {any} row */
function line(row) {
  if (row.session) toolbar.learn(row.session_key, row.session);
  return ledgerRow(row, href("/requests", { ...toolbar.view, turn: row.turn_id }));
}

/**
 * Fetch the first page of the view.
 * @param {boolean} [anew] also when the page shows this view already
 */
async function load(anew = false) {
  current.abort();
  current = new AbortController();
  const { signal } = current;
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
    toolbar.resolved(page.range);
    fill(body, ...ledger.rows.map(line));
    markOpen();
    if (same && focused) focusRow(focused);
    const holdsNone = ledger.count === 0 && (await get("/api/summary", undefined, signal)).ledger.empty;
    const empty = showEmpty(holdsNone, ledger.count, toolbar);
    byId("board").hidden = empty && !view.turn;
    showCounts();
    shell.showFault(null);
    shell.justUpdated();
    const turned = key !== shown;
    shown = key;
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
  if (extending || !ledger.cursor || !ledger.range) return;
  extending = true;
  const { signal } = current;
  byId("load-more", HTMLButtonElement).disabled = true;
  try {
    const query = apiQuery({ ...toolbar.view, ...ledger.range });
    query.set("limit", String(PAGE));
    query.set("cursor", ledger.cursor);
    const page = await get("/api/requests", query, signal);
    add(body, ...ledger.extend(page).map(line));
    markOpen();
    showCounts();
    shell.showFault(null);
  } catch (fault) {
    if (!isAbort(fault)) shell.showFault(fault);
  }
  extending = false;
  byId("load-more", HTMLButtonElement).disabled = false;
}

/** Whether letting rows in would move what somebody reads. */
function reading() {
  return scrollY > 40 || dialog.open || body.contains(document.activeElement) || body.matches(":hover") || !getSelection()?.isCollapsed || !byId("facets").hidden;
}

function admit() {
  const added = ledger.admit();
  for (const row of added.reverse()) { // oldest first: the row below is then on the page already
    const element = line(row);
    element.classList.add("fresh");
    const next = ledger.rows[ledger.rows.indexOf(row) + 1];
    body.insertBefore(element, next ? rowElement(next.turn_id) : null);
  }
  if (ledger.count) {
    byId("board").hidden = false;
    showEmpty(false, ledger.count, toolbar);
  }
  showCounts();
}

function showCounts() {
  const { count, rows, cursor, waiting, range } = ledger;
  byId("row-count").textContent = `${integer(rows.length)} of ${counted(count, "row")} shown`;
  byId("more-words").textContent = cursor ? "" : count ? "That is all of this view." : "";
  byId("load-more").hidden = !cursor;
  byId("new-rows").hidden = !waiting.size;
  if (waiting.size) fill(byId("show-new"), icon("arrow-up"), `${integer(waiting.size)} new ${waiting.size === 1 ? "row" : "rows"}`);
  // the export ends where this page's knowledge ends, so that it holds exactly these rows
  const until = toolbar.view.to === "now" ? after(ledger.asOf, range?.to) : range?.to;
  const query = apiQuery({ ...toolbar.view, from: range?.from ?? toolbar.view.from, to: until ?? toolbar.view.to });
  query.delete("tz");
  byId("export").setAttribute("href", url("/api/requests.csv", query));
  byId("export-words").textContent = `Export ${counted(count, "row")} (CSV)`;
  byId("export").title = `All ${counted(count, "row")} of this view, filters applied, every column, times in UTC`;
}

/**
 * The later of two instants.
 * @param {string} a
 * @param {string | undefined} b
 */
function after(a, b) {
  return b && b > a ? b : a;
}

// --- rows and the open one ------------------------------------------------------------------

/** @param {string} turn @returns {HTMLElement | null} */
function rowElement(turn) {
  return all("tr[data-turn]", body).find((row) => row.dataset.turn === turn) ?? null;
}

/** @param {string} turn */
function focusRow(turn) {
  const link = rowElement(turn)?.querySelector(".row-link");
  if (link instanceof HTMLElement) link.focus();
}

function markOpen() {
  for (const row of all("tr[aria-current]", body)) row.removeAttribute("aria-current");
  if (dialog.open && dialog.dataset.turn) rowElement(dialog.dataset.turn)?.setAttribute("aria-current", "true");
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
  byId("board").hidden = false;
  if (!dialog.open) {
    if (wide.matches) dialog.show();
    else dialog.showModal();
  }
  dialog.scrollTop = 0;
  markOpen();
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

body.addEventListener("click", (event) => {
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
function move(step) {
  const links = all(".row-link", body);
  const turn = document.activeElement?.closest("tr[data-turn]")?.getAttribute("data-turn") ?? (dialog.open ? dialog.dataset.turn : null);
  const at = links.findIndex((link) => link.closest("tr")?.dataset.turn === turn);
  const next = links[at < 0 ? 0 : at + step];
  if (!next) return;
  const to = next.closest("tr")?.dataset.turn ?? "";
  if (dialog.open) openTurn(to);
  else next.focus();
  next.closest("tr")?.scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey) return;
  if (event.key === "Escape" && dialog.open) {
    event.preventDefault();
    return closeTurn();
  }
  if (typing()) return;
  const act = { j: () => move(1), k: () => move(-1), r: () => void load(true), "/": () => byId("q").focus() }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

// --- live -----------------------------------------------------------------------------------

const settle = coalesced(async () => {
  if (!ledger.waiting.size) return;
  // a page that is left open for days does not grow without end
  if (!reading()) return ledger.rows.length > MOST ? again() : admit();
  showCounts();
  announce(`${counted(ledger.waiting.size, "new row")}.`);
});
const again = coalesced(async () => {
  current.abort();
  current = new AbortController();
  if (reading()) return fetchBehind();
  if (shown !== null) await fetchFirst(shown, current.signal);
});

/** Messages were lost while somebody reads: what was missed waits like any other new row. */
async function fetchBehind() {
  const query = apiQuery(toolbar.view);
  query.set("limit", String(PAGE));
  const page = await get("/api/requests", query, current.signal).catch(() => null);
  if (!page) return;
  const newest = ledger.rows[0]?.started_at ?? "";
  take(page.rows.filter((/** @type {any} */ row) => row.started_at >= newest), page.as_of);
}

/**
 * @param {any[]} rows
 * @param {string} asOf
 */
function take(rows, asOf) {
  for (const row of ledger.hear(rows, asOf)) rowElement(row.turn_id)?.replaceWith(line(row));
  markOpen();
  shell.justUpdated();
  settle();
}

const live = new Live({
  rows: (rows, asOf) => {
    const from = ledger.range?.from ?? "";
    const fitting = rows.filter((row) => inRange(toolbar.view, row, from));
    if (fitting.length) take(fitting, asOf);
  },
  reset: () => shown !== null && again(),
  state: shell.showLive,
});

byId("show-new").addEventListener("click", () => {
  scrollTo({ top: 0 });
  admit();
});
byId("load-more").addEventListener("click", () => void extend());
new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && void extend(), { rootMargin: "600px" }).observe(byId("more"));

shell.wireView(toolbar, live, () => void load(true), () => {
  shown = null;
  void load();
});
void load();
