// @ts-check
// The overview: finds what the template holds and wires the parts; figures first, charts after.

import { get, isAbort, refused } from "../lib/api.js";
import { Chart, plotly, utc } from "../lib/charts.js";
import { all, byId } from "../lib/dom.js";
import { pickedRow, rowsBehind } from "../lib/drill.js";
import { showEmpty } from "../lib/empty.js";
import { apiQuery, filterQuery, inRange, pageQuery } from "../lib/filters.js";
import { first } from "../lib/first.js";
import { regrouped } from "../lib/format.js";
import { Live, loading } from "../lib/live.js";
import { showFigures } from "../lib/overview/figures.js";
import { showFunnel } from "../lib/overview/funnel.js";
import { beginInShort, showInShort } from "../lib/overview/in-short.js";
import { causesFailed, showCauses } from "../lib/overview/top-causes.js";
import { showTrends } from "../lib/overview/trends.js";
import * as shell from "../lib/shell.js";
import { dataTable } from "../lib/table.js";
import { moment } from "../lib/time.js";
import { Toolbar } from "../lib/toolbar.js";

/** @typedef {import("../lib/charts.js").Payload} Payload */

const main = byId("main");
/** @type {AbortController} */
let current = new AbortController();
/** @type {string | null} */
let shown = null; // the view that the page shows, so that new data of the same view does not blink
let since = "";

/** One chart with its caption, its table and its zoom button. */
class Panel {
  /** @type {Payload | null} */ payload = null;
  #near = false; // to what the reader sees
  /** @type {(() => Promise<void>) | null} */ #due = null;
  /** @param {HTMLElement} figure */
  constructor(figure) {
    this.figure = figure;
    this.slug = figure.dataset.slug ?? "";
    this.summary = /** @type {HTMLElement} */ (figure.querySelector("[data-summary]"));
    this.plot = /** @type {HTMLElement} */ (figure.querySelector(".plot"));
    this.nothing = /** @type {HTMLElement} */ (figure.querySelector(".nothing"));
    this.details = /** @type {HTMLDetailsElement} */ (figure.querySelector("details"));
    this.zoom = /** @type {HTMLButtonElement} */ (figure.querySelector(".use-range"));
    this.details.addEventListener("toggle", () => this.#showTable());
    this.chart = new Chart(this.plot, { pick: (point) => this.#pick(point), zoom: (range) => this.#zoomed(range) });
    /** @type {{from: string, to: string} | null} */
    this.range = null;
    this.zoom.addEventListener("click", () => this.range && toolbar.go({ ...toolbar.view, ...this.range }));
    new IntersectionObserver((entries) => {
      this.#near = entries.at(-1)?.isIntersecting ?? false;
      if (this.#near) void this.#draw();
    }, { rootMargin: "50% 0px" }).observe(figure);
    addEventListener("beforeprint", () => void this.#draw());
  }

  /** @param {Payload} payload */
  tell(payload) {
    this.payload = payload;
    this.summary.textContent = regrouped(payload.summary);
    this.nothing.hidden = !payload.empty;
    this.plot.hidden = payload.empty;
    this.#showTable();
  }

  /** @param {unknown} fault */
  failed(fault) {
    this.summary.textContent = `This chart could not be fetched: ${/** @type {Error} */ (fault).message}`;
  }

  /** The chart cannot be drawn: what it would show stands in its table. */
  fallBack() {
    this.plot.hidden = true;
    this.details.open = true;
  }

  /**
   * Draw what was told, at once or when the reader comes near: eight charts hold up a slow machine for seconds.
   * @param {any} lib
   * @param {string} revision
   */
  async show(lib, revision) {
    const payload = /** @type {Payload} */ (this.payload);
    this.#due = () => this.chart.draw(lib, payload, revision);
    if (this.#near || payload.empty) await this.#draw();
  }

  async #draw() {
    const due = this.#due;
    this.#due = null;
    await due?.();
  }

  #showTable() {
    const host = this.details.querySelector(".data-table");
    if (!this.details.open || !this.payload || !(host instanceof HTMLElement)) return;
    const { payload } = this;
    dataTable(host, payload, (row) => rowsBehind(toolbar.view, payload, row));
  }

  /** @param {import("../lib/charts.js").Point} point */
  #pick(point) {
    if (!this.payload) return;
    const row = pickedRow(this.payload, point, utc(point.x));
    const target = row && rowsBehind(toolbar.view, this.payload, row, point.role);
    if (target) location.assign(target);
  }

  /** @param {{from: string, to: string} | null} range */
  #zoomed(range) {
    this.range = range;
    this.zoom.hidden = !range;
    if (range) this.zoom.title = `${moment(range.from)} to ${moment(range.to)}`;
  }
}

const { load, refresh } = loading(fetchAll);
const toolbar = new Toolbar(() => void load());
const panels = all("figure[data-slug]").map((figure) => new Panel(figure));

/**
 * Says so where the view reaches into time whose rows were deleted.
 * @param {{range: {from: string}, ledger: {rows_from: string | null}}} summary
 */
function showKept({ range, ledger }) {
  const line = byId("kept");
  line.hidden = ledger.rows_from === null || range.from >= ledger.rows_from;
  if (ledger.rows_from !== null) {
    line.textContent = `Turns before ${moment(ledger.rows_from)} were deleted as too old. Their figures are kept, but not for every filter.`;
  }
}

/** Fetch the whole page; a newer call makes this one stale. */
async function fetchAll() {
  current.abort();
  current = new AbortController();
  const { signal } = current;
  const view = toolbar.view;
  const key = pageQuery(view).toString();
  shell.keepView(view);
  live.listen(filterQuery(view));
  if (key !== shown) main.setAttribute("aria-busy", "true");
  try {
    const query = apiQuery(view);
    const summary = await first("/api/summary", query, signal);
    since = summary.range.from;
    toolbar.resolved(summary.range);
    showKept(summary);
    const empty = showEmpty(summary.ledger.empty, summary.turns.total, toolbar);
    byId("board").hidden = empty;
    showFigures(summary, view);
    showTrends(summary.previous);
    showFunnel(summary.funnel, view);
    if (key !== shown) beginInShort(summary);
    shell.showFault(null);
    if (!empty) {
      await painted(); // figures first, alone: eight charts at the same time would hold them up
      signal.throwIfAborted();
      const charts = panels.map((panel) => get(`/api/charts/${panel.slug}`, query, signal));
      for (const chart of charts) chart.catch(() => undefined);
      const causes = showCauses(view, signal).then((told) => showInShort(summary, told, view, signal)).catch((fault) => isAbort(fault) || causesFailed(fault));
      await draw(charts, key);
      await causes;
    }
    if (signal.aborted) return;
    shown = key;
    shell.justUpdated();
  } catch (fault) {
    if (isAbort(fault) || signal.aborted) return;
    shell.showFault(fault);
    if (refused(fault)) live.rest();
    if (shown === null) byId("board").hidden = true; // nothing was ever fetched: no frame to keep
  }
  main.setAttribute("aria-busy", "false");
}

/**
 * @param {Promise<Payload>[]} charts
 * @param {string} key
 */
async function draw(charts, key) {
  const told = await Promise.all(panels.map(async (panel, at) => {
    try {
      panel.tell(await charts[at]);
      return panel;
    } catch (fault) {
      if (isAbort(fault)) throw fault;
      panel.failed(fault);
      return null;
    }
  }));
  main.setAttribute("aria-busy", "false");
  await painted();
  const lib = await plotly(document.body.dataset.plotly ?? "").catch(() => null);
  for (const panel of told) {
    if (!panel?.payload) continue;
    if (!lib) panel.fallBack();
    else await panel.show(lib, key);
    await painted(); // one chart per frame keeps the page answering
  }
}

/** Resolves when what was changed so far is on the screen. */
function painted() {
  if (document.hidden) return Promise.resolve();
  return new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
}

const live = new Live({
  rows: (rows) => {
    if (!since || rows.some((row) => inRange(toolbar.view, row, since))) refresh();
  },
  reset: refresh,
  state: shell.showLive,
});

shell.wireView(toolbar, live, () => void load(), () => {
  shown = null;
  void load();
});
// a relative range moves on even when nothing is written
setInterval(() => !live.paused && toolbar.view.from.startsWith("now") && refresh(), 60_000);
void load();
