// @ts-check
// One group of breaks, in the view of the toolbar.

import { ApiError, get, isAbort, refused } from "../lib/api.js";
import { barChart, bars, barTable } from "../lib/bars.js";
import { drawClients, drawExamples, drawOnset, drawSessions, drawWhat } from "../lib/breaks/parts.js";
import { breakApi, breakRows } from "../lib/breaks/words.js";
import { byId } from "../lib/dom.js";
import { apiQuery, filterQuery, href, inRange, pageQuery } from "../lib/filters.js";
import { counted, integer, regrouped } from "../lib/format.js";
import { selecting } from "../lib/keyed.js";
import { Live, loading } from "../lib/live.js";
import { serverSays, wireAges } from "../lib/server-time.js";
import * as shell from "../lib/shell.js";
import { Toolbar } from "../lib/toolbar.js";
import { walkByKeys } from "../lib/walk.js";

const PAGE = 10;
const group = document.body.dataset.group ?? "";
const path = breakApi(group);
const main = byId("main");
let current = new AbortController();
/** @type {string | null} */
let shown = null;
let since = "";
/** @type {any[]} */
let rows = [];
/** @type {string | null} */
let cursor = null;
/** @type {{from: string, to: string} | null} */
let range = null;

const { load, refresh } = loading(fetchAll);
const toolbar = new Toolbar(() => void load());

async function fetchAll() {
  current.abort();
  current = new AbortController();
  const { signal } = current;
  const { view } = toolbar;
  const wanted = pageQuery({ ...view, turn: null }).toString();
  shell.keepView(view);
  byId("to-breaks").setAttribute("href", href("/breaks", view));
  live.listen(filterQuery(view));
  if (wanted !== shown) main.setAttribute("aria-busy", "true");
  try {
    const query = apiQuery(view);
    query.set("limit", String(PAGE));
    const told = await get(path, query, signal);
    serverSays(told.as_of);
    since = told.range.from;
    toolbar.resolved(told.range);
    for (const one of told.by_session) if (one.session) toolbar.learn(one.session_key, one.session);
    byId("board").hidden = false;
    show(told, wanted === shown);
    shown = wanted;
    shell.showFault(null);
    shell.justUpdated();
  } catch (fault) {
    if (isAbort(fault) || signal.aborted) return;
    shell.showFault(fault);
    const gone = fault instanceof ApiError && fault.status === 404;
    if (refused(fault) || gone) live.rest();
    if (shown === null) byId("board").hidden = true;
  }
  main.setAttribute("aria-busy", "false");
}

/** @param {any} told @param {boolean} again the view is the same */
function show(told, again) {
  const { view } = toolbar;
  byId("title").textContent = regrouped(told.group.sentence);
  document.title = `${told.group.sentence} · Warmline`;
  const draw = (/** @type {string} */ id, /** @type {(host: HTMLElement) => void} */ work) => {
    const host = byId(id);
    if (!selecting(host)) work(host);
  };
  draw("what", (host) => drawWhat(host, told.group, view, () => void load()));
  const list = bars(told.buckets, told.group.counts, told.range.to);
  const link = (/** @type {import("../lib/bars.js").Bar} */ bar) => breakRows(told.group, view, bar);
  byId("chart-line").textContent = `${counted(told.group.turns, "break")} in this view.${told.onset ? " The shaded part is where it became frequent." : ""} A bar leads to its rows.`;
  draw("chart", (host) => barChart(host, list, told.onset, (bar) => location.assign(link(bar))));
  draw("chart-table", (host) => barTable(host, list, link));
  draw("onset", (host) => drawOnset(host, told));
  draw("sessions", (host) => drawSessions(host, told, view));
  draw("clients", (host) => drawClients(host, told.group, view));
  if (again && rows.length > PAGE) return; // older ones were asked for: they stay
  [rows, cursor, range] = [told.rows, told.next_cursor, told.range];
  draw("examples", (host) => drawExamples(host, rows));
  showMore(told.group.turns);
}

/** @param {number} turns */
function showMore(turns) {
  byId("examples-line").textContent = rows.length ? `The newest ${integer(rows.length)} of ${integer(turns)} in this view, with the difference in words.` : "";
  byId("more").hidden = !cursor;
}

async function more() {
  if (!cursor || !range) return;
  byId("more", HTMLButtonElement).disabled = true;
  try {
    const query = apiQuery({ ...toolbar.view, ...range });
    query.set("limit", String(PAGE));
    query.set("cursor", cursor);
    const told = await get(path, query, current.signal);
    rows = [...rows, ...told.rows];
    cursor = told.next_cursor;
    drawExamples(byId("examples"), rows);
    showMore(told.group.turns);
  } catch (fault) {
    if (!isAbort(fault)) shell.showFault(fault);
  }
  byId("more", HTMLButtonElement).disabled = false;
}

const live = new Live({
  rows: (heard) => {
    if (since && heard.some((row) => inRange(toolbar.view, row, since))) refresh();
  },
  reset: refresh,
  state: shell.showLive,
});

walkByKeys(byId("examples"), "li", () => void load());

byId("more").addEventListener("click", () => void more());
shell.wireView(toolbar, live, () => void load(), () => {
  shown = null;
  void load();
});
wireAges();
shell.wireRefusal();
void load();
