// @ts-check
// One row in full: every column, grouped, with ids to copy and values to filter by.

import { add, fill, h, icon, worded } from "../dom.js";
import { changed, cleared, href, literal } from "../filters.js";
import { regrouped, UNKNOWN } from "../format.js";
import { copyButton } from "../snippet.js";
import { modeTag, statusTag } from "../table.js";
import { moment } from "../time.js";
import { valueOf } from "./column-value.js";
import { GROUPS, wordsOf } from "./column-words.js";
import { curl } from "./curl.js";

/** @typedef {import("../filters.js").View} View */

/** Columns one may filter by, and the filter's name. */
const FILTERS = /** @type {Record<string, string>} */ ({
  session: "session", root_session: "root", tenant: "tenant", client: "client", upstream: "upstream", model: "model",
  mode: "mode", reason: "reason", status: "status", kind: "kind", source: "source", chain: "chain", fingerprint: "fingerprint",
  cache_verdict: "verdict", eligible: "eligible", fallback_reason: "fallback_reason",
});

/** Never part of the columns. */
const BESIDE = new Set(["why", "why_kind", "why_cause", "why_remedy", "cache_why", "cache_remedy"]);

/**
 * @param {HTMLElement} title
 * @param {HTMLElement} body
 * @param {any} row
 * @param {View} view
 */
export function showDetail(title, body, row, view) {
  fill(title, h("time", { datetime: row.started_at, title: row.started_at }, moment(row.started_at)), h("span", {}, row.session ?? "no session"));
  const link = location.origin + href("/requests", { ...view, turn: row.turn_id, from: view.from, to: view.to });
  fill(body,
    h("div", { class: `why ${row.why_kind}` }, h("p", {}, regrouped(row.why)), advice(row), ofTheCache(row), h("div", { class: "tags" }, modeTag(row.mode), statusTag(row.status))),
    h("div", { class: "actions" }, copyButton("Copy link to this row", () => link), toSession(row, view),
      copyButton("Copy as curl", () => curl(`/api/requests/${encodeURIComponent(row.turn_id)}`))));
  const told = new Set(BESIDE);
  for (const [name, words] of GROUPS) {
    const columns = Object.keys(words);
    columns.forEach((column) => told.add(column));
    add(body, group(name, columns.filter((column) => column in row), row, view));
  }
  // a column that is newer than this list is shown all the same
  add(body, group("More", Object.keys(row).filter((column) => !told.has(column)), row, view));
}

/**
 * What usually lies behind such a turn, and what usually helps.
 * @param {any} row
 */
function advice(row) {
  if (!row.why_cause) return null;
  return h("dl", { class: "advice" },
    h("div", {}, h("dt", {}, "Usual cause"), h("dd", {}, ...worded(row.why_cause))),
    h("div", {}, h("dt", {}, "What helps"), h("dd", {}, ...worded(row.why_remedy))));
}

/**
 * What became of the prompt cache, which is another matter.
 * @param {any} row
 */
function ofTheCache(row) {
  if (!row.cache_why) return null;
  const remedy = row.cache_remedy && h("div", {}, h("dt", {}, "What helps the cache"), h("dd", {}, ...worded(row.cache_remedy)));
  return h("dl", { class: "of-cache" }, h("div", {}, h("dt", {}, "Prompt cache"), h("dd", {}, regrouped(row.cache_why))), remedy || null);
}

/**
 * The page of the row's session, with the row open and all its turns in the range; none on that page itself.
 * @param {any} row
 * @param {View} view
 */
function toSession(row, view) {
  const path = `/sessions/${encodeURIComponent(row.session_key)}`;
  if (location.pathname === path) return null;
  return h("a", { class: "button small", href: href(path, { ...cleared(view), turn: row.turn_id }) }, icon("arrow-right"), "Open its session");
}

/**
 * Known values first; the unknown ones are named in one line, so that nothing is left out and nothing drowns.
 * @param {string} name
 * @param {string[]} columns
 * @param {any} row
 * @param {View} view
 */
function group(name, columns, row, view) {
  if (!columns.length) return null;
  const known = columns.filter((column) => row[column] !== null);
  const unknown = columns.filter((column) => row[column] === null);
  const list = h("dl", { class: "columns" });
  for (const column of known) add(list, h("div", {}, h("dt", { title: wordsOf(column) }, column), h("dd", {}, valueOf(column, row[column]), narrow(column, row, view))));
  if (unknown.length) add(list, h("div", {}, h("dt", {}, `${UNKNOWN} not known`), h("dd", { class: "muted" }, unknown.join(", "))));
  return h("section", {}, h("h3", {}, name), list);
}

/**
 * @param {string} column
 * @param {any} row
 * @param {View} view
 */
function narrow(column, row, view) {
  const name = FILTERS[column];
  if (!name) return null;
  const wanted = column === "session" ? row.session_key : String(row[column]);
  const others = (view.values.get(name) ?? []).filter((value) => value.startsWith("!") && value !== `!${wanted}`);
  const to = (/** @type {string[]} */ chosen) => href("/requests", changed(view, { [name]: chosen }));
  return h("span", { class: "narrow" },
    h("a", { href: to([literal(wanted)]), title: "Only these rows", "aria-label": `Only rows with ${column} ${row[column]}` }, "only"),
    h("a", { href: to([...others, `!${wanted}`]), title: "Without these rows", "aria-label": `No rows with ${column} ${row[column]}` }, "not"));
}
