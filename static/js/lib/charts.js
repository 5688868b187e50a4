// @ts-check
// The only file that touches Plotly. Set-up, data and theme are three steps: the server's figures carry no colours
// of the page; what a trace is comes as `meta.role`, and the colours in force are laid over it here.

import { loadScript } from "./dom.js";
import { MODE_BY_NAME } from "./modes.js";
import { colour, onTheme } from "./theme.js";
import { zoneTicks } from "./ticks.js";

/** @typedef {{slug: string, title: string, summary: string, empty: boolean, range: {from: string, to: string}, figure: {data: any[], layout: any}, table: {columns: {key: string, title: string, unit: string}[], rows: any[][]}}} Payload */
/** @typedef {{role: string, slug: string, x: any, y: any, custom: any, index: number}} Point */

const SERIES = /** @type {Record<string, string>} */ ({
  ws_incremental: "series-1", ws_full: "series-2", http_full: "series-3", http_incremental: "series-4",
  cached: "series-5", cache_write: "series-6", non_cached: "series-7", unknown: "series-8",
  value: "series-1", bound: "series-2", threshold: "bad", recover: "ok",
  rate: "series-1", spike: "bad", sessions: "series-1", sessions_single: "series-8",
});
/** A rate of something bad is not drawn in the colour of what is good. */
const BY_CHART = /** @type {Record<string, string>} */ ({ "mismatch-rate/rate": "series-7" });

const CONFIG = Object.freeze({
  displaylogo: false,
  showTips: false,
  showSendToCloud: false, // Plotly's default is a button that uploads the chart
  responsive: false, // it does not follow the container; a ResizeObserver below does
  doubleClick: "reset",
  modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "zoomIn2d", "zoomOut2d", "pan2d"],
});

/** Below this many pixels a chart has room for fewer ticks. */
const NARROW = 480;

/** @type {Promise<any> | null} */
let library = null;

/** Load Plotly, once; a page that holds it has no address of it. @param {string} [url] @returns {Promise<any>} */
export function plotly(url) {
  library ??= (url ? loadScript(url) : Promise.resolve()).then(() => /** @type {any} */ (window).Plotly);
  return library;
}

/** @type {Set<Chart>} */
const drawn = new Set();
onTheme(() => {
  for (const chart of drawn) chart.repaint();
});

export class Chart {
  /** @type {Payload | null} */ #payload = null;
  #revision = "";
  #plotted = false;
  /** @type {any} */ #lib = null;
  #host;
  #on;

  /**
   * @param {HTMLElement} host
   * @param {{pick: (point: Point) => void, zoom: (range: {from: string, to: string} | null) => void}} on
   */
  constructor(host, on) {
    this.#host = host;
    this.#on = on;
    let width = 0; // not asked for here: a page that is being built would be laid out for it
    new ResizeObserver(() => {
      const before = width;
      width = host.clientWidth || before;
      if (!this.#plotted || width === before) return;
      if (width < NARROW !== before < NARROW) void this.repaint(); // another number of ticks fits
      else this.#lib.Plots.resize(host);
    }).observe(host);
  }

  /**
   * Draw, or redraw in place. The zoom survives as long as `revision` stays the same.
   * @param {any} lib what `plotly()` gave
   * @param {Payload} payload
   * @param {string} revision
   */
  async draw(lib, payload, revision) {
    this.#lib = lib;
    this.#payload = payload;
    this.#revision = revision;
    if (payload.empty) return this.clear();
    const first = !this.#plotted;
    await this.repaint();
    if (first) this.#listen();
  }

  clear() {
    if (this.#plotted) this.#lib.purge(this.#host);
    this.#plotted = false;
    drawn.delete(this);
    this.#on.zoom(null);
  }

  async repaint() {
    const payload = this.#payload;
    if (!payload || !this.#lib) return;
    const { data, layout } = themed(payload, this.#host.clientWidth < NARROW);
    layout.uirevision = `${payload.slug}?${this.#revision}`;
    if (!this.#plotted) await this.#lib.newPlot(this.#host, data, layout, CONFIG);
    else await this.#lib.react(this.#host, data, layout, CONFIG);
    this.#plotted = true;
    drawn.add(this);
  }

  #listen() {
    const host = /** @type {any} */ (this.#host);
    host.on("plotly_click", (/** @type {any} */ event) => {
      const point = event.points[0];
      if (!point || !this.#payload) return;
      this.#on.pick({
        role: point.data.meta?.role ?? "", slug: this.#payload.slug, x: point.x, y: point.y,
        custom: point.customdata, index: point.pointIndex ?? point.pointNumber,
      });
    });
    host.on("plotly_hover", () => this.#host.classList.add("pickable"));
    host.on("plotly_unhover", () => this.#host.classList.remove("pickable"));
    host.on("plotly_relayout", (/** @type {any} */ change) => this.#zoomed(change));
  }

  /** @param {any} change */
  #zoomed(change) {
    const payload = this.#payload;
    if (!payload || payload.figure.layout.xaxis?.type !== "date") return;
    if (change["xaxis.autorange"] || (change["xaxis.range"] && !change["xaxis.range[0]"])) {
      const { tickvals, ticktext } = payload.figure.layout.xaxis;
      void this.#lib.relayout(this.#host, { "xaxis.tickvals": tickvals, "xaxis.ticktext": ticktext });
      return this.#on.zoom(null);
    }
    if (!change["xaxis.range[0]"]) return;
    const [from, to] = [utc(change["xaxis.range[0]"]), utc(change["xaxis.range[1]"])];
    // the server's ticks are spaced for the whole range; inside a zoom there would be too few
    const ticks = zoneTicks(from, to);
    void this.#lib.relayout(this.#host, { "xaxis.tickvals": ticks.values, "xaxis.ticktext": ticks.labels });
    this.#on.zoom({ from: from.toISOString(), to: to.toISOString() });
  }
}

/** Plotly's dates are UTC without saying so. @param {string} text */
export function utc(text) {
  return new Date(`${String(text).replace(" ", "T").replace(/Z$/, "")}Z`);
}

/**
 * The server's figure with the colours and type of the page laid over it; the figure itself stays as it is.
 * @param {Payload} payload
 * @param {boolean} narrow
 * @returns {{data: any[], layout: any}}
 */
function themed(payload, narrow) {
  const { data, layout } = structuredClone(payload.figure);
  const root = getComputedStyle(document.body);
  const [ink, muted, grid, surface] = ["ink", "muted", "grid", "surface"].map(colour);
  for (const trace of data) paint(trace, payload.slug, surface, narrow);
  paintGroups(data);
  for (const shape of layout.shapes ?? []) {
    if (shape.name === "incomplete") Object.assign(shape, { fillcolor: muted, opacity: 0.1, layer: "below", line: { width: 0 } });
    if (shape.name === "fired") Object.assign(shape, { fillcolor: colour("bad"), opacity: 0.13 });
    if (shape.name?.startsWith("alert_")) shape.line = { ...shape.line, color: alertTone(shape.name) };
    if (shape.name === "average") shape.line = { ...shape.line, color: muted, width: 1, dash: "dot" };
  }
  if (narrow && layout.annotations) layout.annotations = lastWords(layout.annotations);
  for (const note of layout.annotations ?? []) {
    note.font = { ...note.font, color: muted, size: 11 };
    if (note.name?.startsWith("alert_")) Object.assign(note, { font: { ...note.font, color: alertTone(note.name) }, bgcolor: surface, borderpad: 1 });
  }
  for (const name of Object.keys(layout).filter((key) => /^[xy]axis\d*$/.test(key))) {
    layout[name] = {
      zeroline: false, ticks: "", automargin: true, fixedrange: name.startsWith("y"), ...layout[name],
      gridcolor: grid, linecolor: grid, tickfont: { color: muted, size: 11.5 },
      title: { ...title(layout[name].title), font: { color: muted, size: 11.5 }, standoff: 8 },
    };
    if (name.startsWith("x")) layout[name].showgrid ??= false;
    if (name === "xaxis" && narrow) thin(layout.xaxis);
  }
  const coarse = matchMedia("(pointer: coarse)").matches;
  return {
    data,
    layout: {
      hovermode: "closest", bargap: 0.18, separators: ".\u202f", ...layout,
      autosize: true,
      dragmode: coarse ? false : "zoom", // a finger on a chart scrolls the page
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: root.fontFamily, color: ink, size: 12 },
      margin: { l: 8, r: 8, t: 8, b: 8, ...layout.margin },
      legend: { orientation: "h", x: 0, xanchor: "left", y: 1.02, yanchor: "bottom", ...layout.legend, font: { color: ink, size: 12 }, bgcolor: "rgba(0,0,0,0)" },
      hoverlabel: { bgcolor: colour("raised"), bordercolor: colour("line-strong"), font: { family: root.fontFamily, color: ink, size: 12 }, align: "left" },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: muted, activecolor: colour("accent") },
    },
  };
}

/** Where there is no room, only the newest word of alerts at each height. @param {any[]} notes */
function lastWords(notes) {
  return notes.filter((note, at) => !note.name?.startsWith("alert_") || !notes.slice(at + 1).some((later) => later.name?.startsWith("alert_") && later.y === note.y));
}

/** @param {string} name */
function alertTone(name) {
  return colour({ alert_fired: "bad", alert_resolved: "ok" }[name] ?? "muted");
}

/**
 * Keep about four of the ticks, evenly.
 * @param {any} axis
 */
function thin(axis) {
  if (axis.type !== "date" || !axis.tickvals) return;
  const every = Math.ceil(axis.tickvals.length / 4);
  for (const key of ["tickvals", "ticktext"]) axis[key] = axis[key].filter((/** @type {any} */ _, /** @type {number} */ at) => at % every === 0);
  axis.tickangle = 0;
}

/** @param {unknown} given */
function title(given) {
  return typeof given === "string" ? { text: given } : (given ?? {});
}

/**
 * @param {any} trace
 * @param {string} slug
 * @param {string} surface
 * @param {boolean} narrow
 */
function paint(trace, slug, surface, narrow) {
  const role = trace.meta?.role ?? "unknown";
  const tone = colour(BY_CHART[`${slug}/${role}`] ?? SERIES[role] ?? "series-8");
  // the name belongs into the label: Plotly's own place beside it has no ground to be read on
  trace.hovertemplate = trace.hovertemplate?.replace(/^(.*)<extra>(.+)<\/extra>$/s, "<b>$2</b><br>$1<extra></extra>");
  if (trace.type === "bar") {
    trace.marker = { ...trace.marker, color: tone, line: { width: narrow ? 0 : 1, color: surface, ...trace.marker?.line } };
    if (trace.error_y) trace.error_y.color = colour("ink");
    if (slug === "ttft") paintByMode(trace, role);
    return;
  }
  const drawsLine = (trace.mode ?? "lines").includes("lines");
  trace.connectgaps = false;
  if (drawsLine) trace.line = { width: 2, ...trace.line, color: tone };
  trace.marker = { size: 5, ...trace.marker, color: tone, line: { width: drawsLine ? 0 : 1.5, color: surface } };
  if (trace.meta?.stat === "p95") {
    // one entry per mode in the legend; its dashed companion goes with it
    Object.assign(trace, { showlegend: false, opacity: 0.55 });
    trace.line.width = 1.25;
    trace.marker.size = 3;
  }
  if (trace.meta?.stat === "median") trace.name = trace.name.replace(/, median$/, "");
  if (trace.fill && trace.fill !== "none") trace.fillcolor = faded(tone);
}

/**
 * Bars that stand for modes have the modes' colours; median and p95 are told apart by strength and word.
 * @param {any} trace
 * @param {string} role
 */
function paintByMode(trace, role) {
  trace.marker.color = trace.x.map((/** @type {string} */ name) => colour(SERIES[MODE_BY_NAME[name]] ?? "series-8"));
  trace.marker.opacity = { p95: 0.5, p99: 0.25 }[role] ?? 1;
  Object.assign(trace, { showlegend: false, texttemplate: `${role}<br>%{y:,.0f} ms`, textposition: "outside", cliponaxis: false });
}

/**
 * Lines of one role that stand for groups are told apart by colour.
 * @param {any[]} data
 */
function paintGroups(data) {
  data.filter((trace) => trace.meta?.group).forEach((trace, at) => {
    const tone = colour(`series-${(at % 8) + 1}`);
    trace.line.color = tone;
    trace.marker.color = tone;
  });
}

/** @param {string} rgb */
function faded(rgb) {
  const [r, g, b] = rgb.match(/[\d.]+/g) ?? [];
  return `rgba(${r},${g},${b},0.12)`;
}
