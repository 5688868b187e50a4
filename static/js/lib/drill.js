// @ts-check
// From a point of a chart, or a row of its table, to the rows that it stands for.

import { changed, href } from "./filters.js";
import { MODE_BY_NAME, MODES } from "./modes.js";

/** @typedef {import("./filters.js").View} View */
/** @typedef {import("./charts.js").Payload} Payload */

/** Rates and charts count generation turns only; the rows behind a bar are these and no others. */
export const GENERATION = Object.freeze({ kind: ["generation"], status: ["completed", "incomplete"] });

/**
 * The view with these values; those that it leaves out already stay out.
 * @param {View} view
 * @param {Record<string, readonly string[]>} values
 * @param {{from?: string, to?: string}} [range]
 */
export function narrowed(view, values, range) {
  /** @type {Record<string, string[]>} */
  const own = {};
  for (const [name, list] of Object.entries(values)) {
    const held = view.values.get(name) ?? [];
    const wanted = held.filter((value) => !value.startsWith("!"));
    const both = list.filter((value) => (!wanted.length || wanted.includes(value)) && !held.includes(`!${value}`));
    own[name] = both.length ? both : [...list];
  }
  return changed(view, own, range);
}

/**
 * The row of the table whose bucket holds an instant.
 * @param {Payload} payload
 * @param {Date} at
 */
function bucketAt(payload, at) {
  const [from, to] = ["from", "to"].map((key) => payload.table.columns.findIndex((column) => column.key === key));
  if (from < 0 || to < 0) return null;
  const time = at.getTime();
  return payload.table.rows.find((row) => Date.parse(row[from]) <= time && time < Date.parse(row[to])) ?? null;
}

/**
 * The row of the table that a point stands for.
 * @param {Payload} payload
 * @param {import("./charts.js").Point} point
 * @param {Date} at what it stands at, on an axis of time
 */
export function pickedRow(payload, point, at) {
  if (payload.figure.layout.xaxis?.type === "date") return bucketAt(payload, at);
  const [cache, mode] = ["cache", "mode"].map((key) => payload.table.columns.findIndex((column) => column.key === key));
  if (cache < 0) return payload.table.rows[point.index];
  return payload.table.rows.find((row) => row[cache] === point.x && (MODE_BY_NAME[row[mode]] ?? "unknown") === point.role) ?? null;
}

/**
 * Where a row of a chart's table leads; null where no filter says what it stands for.
 * @param {View} view
 * @param {Payload} payload
 * @param {any[]} row
 * @param {string} [role] of the trace that was picked
 * @returns {string | null}
 */
export function rowsBehind(view, payload, row, role = "") {
  const at = (/** @type {string} */ key) => {
    const index = payload.table.columns.findIndex((column) => column.key === key);
    return index < 0 ? null : row[index];
  };
  const named = at("mode") === "unknown" ? "unknown" : MODE_BY_NAME[at("mode") ?? ""];
  const mode = MODES.has(role) || role === "unknown" ? role : named;
  const bucket = at("from") && at("to") ? { from: at("from"), to: at("to") } : {};
  if (!mode && !bucket.from) return null;
  /** @type {Record<string, string[]>} */
  const values = { ...GENERATION };
  if (mode) values.mode = [mode];
  if (at("cache")) values.cache = [at("cache").split(" ")[0]];
  if (payload.slug === "mismatch-rate") {
    values.eligible = ["true"];
    if (role) values.reason = ["prefix_mismatch"];
  }
  return href("/requests", narrowed(view, values, bucket));
}
