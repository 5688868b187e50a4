// @ts-check
// Tables made of data: the one behind a chart, and the cells of the ledger.

import { add, fill, h, icon } from "./dom.js";
import { byUnit, compact, integer, milliseconds, orUnknown, percent, regrouped } from "./format.js";
import { MODES } from "./modes.js";
import { clock, day, moment, sameDay } from "./time.js";

const NUMERIC = new Set(["count", "ratio", "tokens", "ms"]);

/**
 * The table behind a chart.
 * @param {HTMLElement} host
 * @param {import("./charts.js").Payload} payload
 * @param {(row: any[]) => string | null} link where a row leads, if anywhere
 */
export function dataTable(host, payload, link) {
  const { columns, rows } = payload.table;
  const head = h("tr", {}, ...columns.map((column) => h("th", { scope: "col", class: NUMERIC.has(column.unit) && "number" }, column.title)));
  const body = h("tbody");
  for (const row of rows) {
    const to = link(row);
    const line = h("tr");
    columns.forEach((column, at) => {
      const text = byUnit(row[at], column.unit, moment);
      const first = at === 0;
      const content = first && to ? h("a", { href: to }, text) : text;
      add(line, first ? h("th", { scope: "row" }, content) : h("td", { class: NUMERIC.has(column.unit) && "number" }, content));
    });
    body.append(line);
  }
  fill(host, h("table", { class: "data" }, h("caption", { class: "visually-hidden" }, payload.title), h("thead", {}, head), body));
}

/** @param {string | null} mode */
export function modeTag(mode) {
  if (!mode) return h("span", { class: "tag unknown", title: "no attempt was answered, so no wire is known" }, icon("unknown"), "unknown");
  return h("span", { class: "tag mode", "data-mode": mode }, icon(MODES.has(mode) ? mode : "unknown"), mode);
}

const TONES = /** @type {Record<string, string>} */ ({
  completed: "ok", incomplete: "warn", failed: "bad", error: "bad", rate_limited: "warn", client_closed: "unknown", refused: "bad",
});

/** @param {string} status */
export function statusTag(status) {
  const tone = TONES[status] ?? "unknown";
  return h("span", { class: `tag ${tone}` }, icon(status in TONES ? status : "unknown"), status);
}

/**
 * One row of the ledger.
 * @param {any} row
 * @param {string} href the deep link
 */
export function ledgerRow(row, href) {
  const started = new Date(row.started_at);
  const cells = [
    h("th", { scope: "row", class: "cell-time" },
      h("a", { href, class: "row-link" }, h("time", { datetime: row.started_at, title: row.started_at }, clock(started))),
      h("span", { class: "second" }, sameDay(started, new Date()) ? "today" : day(started))),
    cell("Session", "cell-session", h("span", { class: "first clip", title: row.session }, row.session), second(row.client)),
    cell("Model", "cell-model", orUnknown(row.model, row.model, "the request named no model"), second(row.kind === "generation" ? row.reasoning_effort : row.kind)),
    cell("Mode", "cell-mode", modeTag(row.mode)),
    cell("Why", `cell-why ${row.why_kind}`, h("span", { class: "first" }, regrouped(row.why)), second(row.reason)),
    cell("Items sent", "cell-items number", items(row)),
    cell("Input tokens", "cell-input number", orUnknown(row.input_tokens, compact(row.input_tokens)), h("span", { class: "second" }, outputOf(row))),
    cell("Cached", "cell-cached number", ...cached(row)),
    cell("Non-cached", "cell-fresh number", orUnknown(row.non_cached_tokens, compact(row.non_cached_tokens))),
    cell("TTFT", "cell-ttft number", orUnknown(row.ttft_ms, milliseconds(row.ttft_ms), "no output arrived, so there is no first token")),
    cell("Duration", "cell-duration number", orUnknown(row.duration_ms, milliseconds(row.duration_ms), "not known")),
    cell("Status", "cell-status", statusTag(row.status), row.error_code && h("span", { class: "second clip", title: row.error_code }, row.error_code)),
  ];
  return h("tr", { "data-turn": row.turn_id }, ...cells);
}

/**
 * @param {string} label shown beside the value where rows are cards
 * @param {string} kind
 * @param {...import("./dom.js").Child} content
 */
function cell(label, kind, ...content) {
  return h("td", { class: kind, "data-label": label }, h("div", { class: "value" }, ...content));
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
