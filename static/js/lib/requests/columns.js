// @ts-check
// The columns of the ledger's table: which are shown, in which order, how wide, and how a row draws itself in them.

import { h } from "../dom.js";
import { compact, integer, milliseconds, orUnknown, percent, regrouped } from "../format.js";
import { modeTag, statusTag } from "../table.js";
import { clock, day, sameDay } from "../time.js";
import { valueOf } from "./column-value.js";
import { wordsOf } from "./column-words.js";

/**
 * @typedef {object} Column
 * @property {string} name as in the ledger
 * @property {string} title heads the column, and names the value where rows are cards
 * @property {string} kind the class of its cells
 * @property {number} width in rem
 * @property {string} [hint]
 * @property {(row: any) => import("../dom.js").Child[]} draw
 */

/** Those that tell more than their own value. The start leads each row and cannot go. @type {Record<string, Column>} */
const OWN = {
  session: { name: "session", title: "Session", kind: "cell-session", width: 11, draw: (row) => [h("span", { class: "first clip", title: row.session }, row.session), second(row.client)] },
  model: { name: "model", title: "Model", kind: "cell-model", width: 7.5, draw: (row) => [orUnknown(row.model, row.model, "the request named no model"), second(row.kind === "generation" ? row.reasoning_effort : row.kind)] },
  mode: { name: "mode", title: "Mode", kind: "cell-mode", width: 10.2, draw: (row) => [modeTag(row.mode)] },
  reason: { name: "reason", title: "Why", kind: "cell-why", width: 22, draw: (row) => [h("span", { class: "first" }, regrouped(row.why)), second(row.reason)] },
  items_sent: { name: "items_sent", title: "Items sent", kind: "cell-items number", width: 6.4, hint: "Items sent upstream, of the items of the full input", draw: (row) => [items(row)] },
  input_tokens: { name: "input_tokens", title: "Input", kind: "cell-input number", width: 5.8, hint: "Tokens of the input, and of the output below", draw: (row) => [orUnknown(row.input_tokens, compact(row.input_tokens)), h("span", { class: "second" }, outputOf(row))] },
  cached_tokens: { name: "cached_tokens", title: "Cached", kind: "cell-cached number", width: 6.6, hint: "Tokens read from the cache, and their share of the input", draw: cached },
  non_cached_tokens: { name: "non_cached_tokens", title: "Non-cached", kind: "cell-fresh number", width: 7.2, hint: "Tokens of the input that were not read from the cache", draw: (row) => [orUnknown(row.non_cached_tokens, compact(row.non_cached_tokens))] },
  ttft_ms: { name: "ttft_ms", title: "TTFT", kind: "cell-ttft number", width: 5, hint: "Time to first token", draw: (row) => [orUnknown(row.ttft_ms, milliseconds(row.ttft_ms), "no output arrived, so there is no first token")] },
  duration_ms: { name: "duration_ms", title: "Duration", kind: "cell-duration number", width: 5.9, draw: (row) => [orUnknown(row.duration_ms, milliseconds(row.duration_ms), "not known")] },
  status: { name: "status", title: "Status", kind: "cell-status", width: 8.8, draw: (row) => [statusTag(row.status), row.error_code && h("span", { class: "second clip", title: row.error_code }, row.error_code)] },
};
const TIME = 5.7;

export const DEFAULT = Object.keys(OWN);

/**
 * @param {string} name
 * @returns {Column}
 */
export function columnOf(name) {
  return OWN[name] ?? {
    name,
    title: wordsOf(name).replace(" (ms)", ""),
    kind: `cell-more${isNumber(name) ? " number" : ""}`,
    width: name === "evidence" ? 22 : name.endsWith("_at") ? 14 : isNumber(name) ? 8 : 12,
    draw: (row) => [row[name] === null || row[name] === undefined ? orUnknown(null, "", "not known") : valueOf(name, row[name])],
  };
}

/** @param {string} name */
function isNumber(name) {
  return /_tokens$|_ms$|^bytes_|^items_|_items$|^epoch(_turn)?$|^attempts$|^diverged_at$|^http_status$|^cost_usd$/.test(name);
}

/**
 * The head of the table.
 * @param {Column[]} columns
 */
export function headOf(columns) {
  const time = h("th", { scope: "col", "aria-sort": "descending", class: "cell-time" }, "Time");
  time.style.setProperty("--width", `${TIME}rem`);
  return h("tr", { "aria-rowindex": 1 }, time, ...columns.map((column) => {
    const cell = h("th", { scope: "col", class: column.kind, title: column.hint }, column.title);
    cell.style.setProperty("--width", `${column.width}rem`);
    return cell;
  }));
}

/** How wide the table has to be for all of them, in rem. @param {Column[]} columns */
export function widthOf(columns) {
  return columns.reduce((sum, column) => sum + column.width, TIME);
}

/**
 * One row of the ledger.
 * @param {any} row
 * @param {string} href the deep link
 * @param {Column[]} columns
 */
export function ledgerRow(row, href, columns) {
  const started = new Date(row.started_at);
  return h("tr", { "data-turn": row.turn_id },
    h("th", { scope: "row", class: "cell-time" },
      h("a", { href, class: "row-link" }, h("time", { datetime: row.started_at, title: row.started_at }, clock(started))),
      h("span", { class: "second" }, sameDay(started, new Date()) ? "today" : day(started))),
    ...columns.map((column) => h("td", { class: column.name === "reason" ? `cell-why ${row.why_kind}` : column.kind, "data-label": column.title },
      h("div", { class: "value" }, ...column.draw(row)))));
}

/** @param {string | null} text */
function second(text) {
  return text ? h("span", { class: "second clip", title: text }, text) : null;
}

/** @param {any} row */
function items(row) {
  if (row.items_sent === null || row.items_total === null) return orUnknown(null, "", "not known for this turn");
  return h("span", { title: `${integer(row.items_sent)} of ${integer(row.items_total)} items were sent upstream` },
    integer(row.items_sent), h("span", { class: "of" }, ` / ${integer(row.items_total)}`));
}

/** @param {any} row */
function outputOf(row) {
  return row.output_tokens === null ? "" : `${compact(row.output_tokens)} out`;
}

/** @param {any} row */
function cached(row) {
  const share = row.input_tokens && row.cached_tokens !== null ? row.cached_tokens / row.input_tokens : null;
  const value = orUnknown(row.cached_tokens, compact(row.cached_tokens));
  if (share === null) return [value];
  const meter = h("span", { class: "meter", "aria-hidden": "true" });
  meter.style.setProperty("--share", String(Math.min(1, share)));
  return [value, h("span", { class: "second" }, percent(share)), meter];
}
