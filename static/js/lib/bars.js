// @ts-check
// Counts over time as bars: a small drawing beside a row, and a larger one with its data.

import { fill, h, s } from "./dom.js";
import { byUnit, counted, integer } from "./format.js";
import { moment } from "./time.js";

/** @typedef {{from: string, to: string, count: number}} Bar */

/**
 * Buckets with their ends: each ends where the next begins.
 * @param {string[]} starts
 * @param {number[]} counts
 * @param {string} end
 * @returns {Bar[]}
 */
export function bars(starts, counts, end) {
  return starts.map((from, at) => ({ from, to: starts[at + 1] ?? end, count: counts[at] ?? 0 }));
}

/** @param {Bar[]} list @param {number} most @param {(bar: Bar) => void} [pick] @param {[number, number]} [onset] */
function rects(list, most, pick, onset = [-1, -1]) {
  return list.map((bar, at) => {
    const height = bar.count ? Math.max(2, (bar.count / most) * 100) : 0;
    const rect = s("rect", { x: at + 0.1, y: 100 - height, width: 0.8, height, class: at >= onset[0] && at < onset[1] ? "bar-fill in-onset" : "bar-fill" });
    if (!pick) return rect;
    // the whole column answers to the pointer: a bar of one break is two pixels high
    const column = s("rect", { x: at, y: 0, width: 1, height: 100, class: "bar-column", click: () => bar.count && pick(bar) },
      s("title", {}, `${moment(bar.from)} to ${moment(bar.to)}: ${counted(bar.count, "break")}`));
    return s("g", { class: bar.count ? "bar-pick" : "" }, rect, column);
  });
}

/** @param {Bar[]} list */
export function spark(list) {
  const most = Math.max(1, ...list.map((bar) => bar.count));
  return s("svg", { class: "spark", viewBox: `0 0 ${list.length} 100`, preserveAspectRatio: "none", "aria-hidden": "true" },
    ...rects(list, most));
}

/**
 * @param {HTMLElement} host
 * @param {Bar[]} list
 * @param {{from: string, to: string | null} | null} onset
 * @param {(bar: Bar) => void} pick
 */
export function barChart(host, list, onset, pick) {
  const most = Math.max(1, ...list.map((bar) => bar.count));
  const start = onset ? list.findIndex((bar) => bar.from === onset.from) : -1;
  const end = onset?.to ? list.findIndex((bar) => bar.from === onset.to) : list.length;
  const band = start >= 0 && s("rect", { x: start, y: 0, width: Math.max(1, end - start), height: 100, class: "bar-onset" });
  fill(host,
    h("div", { class: "bar-top muted", "aria-hidden": "true" }, integer(most)),
    s("svg", { class: "bar-chart", viewBox: `0 0 ${list.length} 100`, preserveAspectRatio: "none", "aria-hidden": "true" }, band, ...rects(list, most, pick, start < 0 ? undefined : [start, end])),
    h("div", { class: "bar-axis muted", "aria-hidden": "true" },
      ...[0, Math.floor(list.length / 2)].map((at) => h("span", {}, moment(list[at].from))), h("span", {}, moment(list[list.length - 1].to))));
}

/**
 * The data behind the chart; buckets without a break are left out and said to be.
 * @param {HTMLElement} host
 * @param {Bar[]} list
 * @param {(bar: Bar) => string} link
 */
export function barTable(host, list, link) {
  const full = list.filter((bar) => bar.count);
  fill(host, h("table", { class: "data" },
    h("caption", { class: "visually-hidden" }, "Breaks by time"),
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "From"), h("th", { scope: "col" }, "To"), h("th", { scope: "col", class: "number" }, "Breaks"))),
    h("tbody", {}, ...full.map((bar) => h("tr", {},
      h("th", { scope: "row" }, byUnit(bar.from, "time", moment)), h("td", {}, byUnit(bar.to, "time", moment)),
      h("td", { class: "number" }, h("a", { href: link(bar), "aria-label": `${counted(bar.count, "break")} from ${moment(bar.from)}` }, integer(bar.count))))))));
}
