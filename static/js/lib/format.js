// @ts-check
// Numbers and words for people. Unknown is shown as "–", never as 0.

import { h } from "./dom.js";

export const UNKNOWN = "–";
const THIN = "\u202f";

/**
 * 1284 → "1 284" (narrow no-break space).
 * @param {number | null | undefined} value
 */
export function integer(value) {
  if (value === null || value === undefined) return UNKNOWN;
  const digits = String(Math.abs(Math.round(value)));
  const grouped = digits.replace(/\B(?=(\d{3})+$)/g, THIN);
  return (value < 0 ? "−" : "") + grouped;
}

/**
 * 48200000 → "48.2 M": three digits and a unit.
 * @param {number | null | undefined} value
 */
export function compact(value) {
  if (value === null || value === undefined) return UNKNOWN;
  const steps = /** @type {const} */ ([[1e9, "G"], [1e6, "M"], [1e3, "k"]]);
  for (const [size, unit] of steps) {
    // 999 950 would round to "1000 k": go up a unit before that happens
    if (Math.abs(value) >= size * 0.9995) return `${three(value / size)}${THIN}${unit}`;
  }
  return integer(value);
}

/** @param {number} value */
function three(value) {
  const size = Math.abs(value);
  return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

/**
 * 0.9167 → "91.7 %". Never rounded to a bare 0 % or 100 % that is not exact.
 * @param {number | null | undefined} ratio
 */
export function percent(ratio) {
  if (ratio === null || ratio === undefined) return UNKNOWN;
  const value = ratio * 100;
  if (value === 0 || value === 100) return `${value}${THIN}%`;
  if (value > 0 && value < 0.05) return `<${THIN}0.1${THIN}%`;
  if (value < 100 && value > 99.95) return `>${THIN}99.9${THIN}%`;
  return `${value.toFixed(1)}${THIN}%`;
}

/**
 * "1234.5" → "$1 234.50"; below a dollar two digits that are not 0: "$0.0018".
 * @param {string | null | undefined} usd
 */
export function dollars(usd) {
  if (usd === null || usd === undefined) return UNKNOWN;
  const value = Number(usd);
  if (value > 0 && value < 0.995) return `$${value.toFixed(Math.min(9, 1 - Math.floor(Math.log10(value))))}`;
  const [whole, cents] = value.toFixed(2).split(".");
  return `$${integer(Number(whole))}.${cents}`;
}

/**
 * Milliseconds: "412 ms", "4.1 s", "2 min 5 s".
 * @param {number | null | undefined} ms
 */
export function milliseconds(ms) {
  if (ms === null || ms === undefined) return UNKNOWN;
  if (ms < 999.5) return `${Math.round(ms)}${THIN}ms`;
  const seconds = ms / 1000;
  if (seconds < 9.95) return `${seconds.toFixed(2)}${THIN}s`;
  if (seconds < 59.5) return `${seconds.toFixed(1)}${THIN}s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)}${THIN}min ${whole % 60}${THIN}s`;
  return `${Math.floor(whole / 3600)}${THIN}h ${Math.floor((whole % 3600) / 60)}${THIN}min`;
}

/**
 * @param {number | null | undefined} bytes
 */
export function bytes(bytes) {
  if (bytes === null || bytes === undefined) return UNKNOWN;
  if (bytes < 1000) return `${bytes}${THIN}B`;
  if (bytes < 999_500) return `${three(bytes / 1e3)}${THIN}kB`;
  return bytes < 999_500_000 ? `${three(bytes / 1e6)}${THIN}MB` : `${three(bytes / 1e9)}${THIN}GB`;
}

/**
 * The server's sentences group digits by commas; the page does it by narrow spaces, and keeps "%" at its number.
 * @param {string} sentence
 */
export function regrouped(sentence) {
  return sentence.replace(/(\d),(?=\d{3}(?!\d))/g, `$1${THIN}`).replace(/ %/g, `${THIN}%`);
}

/**
 * "1 turn", "2 turns".
 * @param {number} count
 * @param {string} one
 * @param {string} [many]
 */
export function counted(count, one, many = `${one}s`) {
  return `${integer(count)} ${count === 1 ? one : many}`;
}

/**
 * A formatted value, or "–" that says why there is none.
 * @param {unknown} value
 * @param {string} text its formatted form
 * @param {string} [why]
 * @returns {Node}
 */
export function orUnknown(value, text, why = "not reported by the upstream") {
  if (value !== null && value !== undefined) return document.createTextNode(text);
  return h("span", { class: "unknown", title: why }, UNKNOWN, h("span", { class: "visually-hidden" }, ` ${why}`));
}

/**
 * A cell of a chart's data table, by the unit of its column.
 * @param {unknown} value
 * @param {string} unit
 * @param {(iso: string) => string} instant
 * @returns {string}
 */
export function byUnit(value, unit, instant) {
  if (value === null || value === undefined) return UNKNOWN;
  if (unit === "flag") return value ? "yes" : "no";
  if (unit === "time") return instant(String(value));
  if (typeof value !== "number") return String(value);
  if (unit === "ratio") return percent(value);
  if (unit === "ms") return milliseconds(value);
  return Number.isInteger(value) ? integer(value) : value.toFixed(2);
}
