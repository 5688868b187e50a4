// @ts-check
// Tables made of data: the one behind a chart, and the marks of a mode and a status.

import { add, fill, h, icon } from "./dom.js";
import { byUnit } from "./format.js";
import { MODES } from "./modes.js";
import { moment } from "./time.js";

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
