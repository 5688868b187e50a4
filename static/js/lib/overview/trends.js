// @ts-check
// Under a key figure: how it stands against the time before, as an arrow and in words.

import { byId, fill, h } from "../dom.js";
import { compact, dollars, integer, milliseconds, percent, UNKNOWN } from "../format.js";
import { moment } from "../time.js";

/** @typedef {{now: number | null, before: number | null, change: number | null, direction: "up" | "down" | "level" | null, better: boolean | null, lack: string | null}} Trend */
/** @typedef {{range: {from: string, to: string}, gap: string | null, trends: Record<string, Trend> | null}} Previous */

const THIN = "\u202f";
/** Figure of the page: name of the trend, how its values are written, whether it changes by points. */
const FIGURES = /** @type {Record<string, [string, (value: number | null) => string, boolean]>} */ ({
  incremental: ["incremental_rate", percent, true],
  mismatch: ["mismatch_rate", percent, true],
  break: ["break_rate", percent, true],
  cached: ["cached_ratio", percent, true],
  "non-cached": ["non_cached", compact, false],
  cost: ["cost_usd", (value) => dollars(value === null ? null : String(value)), false],
  ttft: ["ttft_median_ms", milliseconds, false],
  generation: ["generation", integer, false],
});
const GAPS = /** @type {Record<string, string>} */ ({
  open: "No trend: this range is not over.",
  not_yet: "No trend: the ledger does not hold the whole period before.",
  deleted: "No trend: rows of the period before were deleted as too old.",
});
const LACKS = /** @type {Record<string, string>} */ ({
  few: "No trend: one of the two periods has fewer than 30 turns to tell of.",
  unknown: "No trend: of one of the two periods too many turns are unknown.",
});
const ARROWS = { up: "▲", down: "▼", level: "≈" };

/** @param {Previous} previous */
export function showTrends({ range, gap, trends }) {
  for (const [figure, [name, written, points]] of Object.entries(FIGURES)) {
    const trend = trends?.[name];
    const why = gap ? GAPS[gap] : trend?.lack ? LACKS[trend.lack] : null;
    const host = byId(`trend-${figure}`);
    if (!trend?.direction || why) fill(host, nothing(why ?? "No trend."));
    else fill(host, told(trend, written, points, `${moment(range.from)} to ${moment(range.to)}`));
  }
}

/** @param {string} why */
function nothing(why) {
  return h("span", { class: "trend unknown", title: why }, UNKNOWN, h("span", { class: "visually-hidden" }, ` ${why}`));
}

/**
 * @param {Trend} trend
 * @param {(value: number | null) => string} written
 * @param {boolean} points
 * @param {string} when
 */
function told(trend, written, points, when) {
  const direction = trend.direction ?? "level";
  const valued = trend.better === null ? null : trend.better ? "better" : "worse";
  const much = direction === "level" ? "about the same" : `${direction} ${amount(trend, points)}`.trim();
  return h("span", { class: `trend ${valued ?? ""}`, title: `${written(trend.before)} in the period before, ${when}`, "data-direction": direction },
    h("span", { "aria-hidden": "true" }, ARROWS[direction]), ` ${much}${valued ? `, ${valued}` : ""}`,
    h("span", { class: "visually-hidden" }, `; ${written(trend.before)} in the period before`));
}

/** @param {Trend} trend @param {boolean} points */
function amount({ change, direction }, points) {
  if (change === null) return "from nothing";
  const size = Math.abs(change);
  if (points) return `${(size * 100).toFixed(1)}${THIN}pts`;
  // from double on people say how many times
  return direction === "up" && size >= 1 ? `to ${(size + 1).toFixed(1)} ×` : `${Math.max(1, Math.round(size * 100))}${THIN}%`;
}
