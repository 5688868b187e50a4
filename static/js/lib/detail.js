// @ts-check
// One row in full: every column, grouped, with ids to copy and values to filter by.

import { add, announce, copyable, copyText, fill, h, icon } from "./dom.js";
import { changed, cleared, href } from "./filters.js";
import { bytes, dollars, integer, milliseconds, regrouped, UNKNOWN } from "./format.js";
import { modeTag, statusTag } from "./table.js";
import { moment } from "./time.js";

/** @typedef {import("./filters.js").View} View */

const GROUPS = /** @type {const} */ ([
  ["How it was sent", ["mode", "reason", "epoch_reset_reason", "eligible", "changed_fields", "fallback_reason", "attempts", "connection", "items_sent", "items_total", "baseline_items", "bytes_sent", "bytes_total", "frozen_items"]],
  ["Where it parted from what was held", ["diverged_at", "diverged_kind", "diverged_path", "diverged_class", "fingerprint", "evidence"]],
  ["Tokens", ["input_tokens", "cached_tokens", "non_cached_tokens", "cache_write_tokens", "cache_write_long_tokens", "output_tokens", "reasoning_tokens", "total_tokens", "usage_state"]],
  ["Time", ["started_at", "ended_at", "recorded_at", "ttft_ms", "first_event_ms", "queue_ms", "connect_ms", "duration_ms"]],
  ["Whose it is", ["session", "session_key", "root_session", "turn_group", "tenant", "client", "client_version", "client_transport", "upstream", "source"]],
  ["What was asked for", ["kind", "model", "reasoning_effort", "service_tier", "store", "prompt_cache_key"]],
  ["Chain", ["chain", "epoch", "epoch_turn", "previous_response_id", "response_id", "tools_digest", "instructions_digest", "prefix_digest", "baseline_digest"]],
  ["Outcome", ["status", "http_status", "error_code", "cache_verdict", "cache_grade", "missed_tokens", "provider_miss_reason", "shadow_mode", "shadow_reason", "cost_usd", "price_note"]],
  ["Record", ["turn_id", "gateway_version", "import_id"]],
]);

/** Columns one may filter by, and the filter's name. */
const FILTERS = /** @type {Record<string, string>} */ ({
  session: "session", root_session: "root", tenant: "tenant", client: "client", upstream: "upstream", model: "model",
  mode: "mode", reason: "reason", status: "status", kind: "kind", source: "source", chain: "chain", fingerprint: "fingerprint",
  cache_verdict: "verdict",
});

/** What price_note says before the "@" and the version of the list. */
const PRICES = /** @type {Record<string, string>} */ ({
  "list_price": "list-price estimate",
  "list_price:writes_unknown": "list-price estimate; at least this, since nobody said what was written to the cache",
  "no_price:model": "no price: the list does not know the model",
  "no_price:upstream": "no price: the upstream runs its models itself",
  "no_price:tier": "no price: the list does not have this service tier",
  "no_price:write_long": "no price: the list has none for writes with the longer lifetime",
  "no_usage": "no price: input or output are not known",
  "no_usage:cached": "no price: how much was read from the cache is not known",
  "no_usage:inconsistent": "no price: the reported tokens contradict each other",
});

const COPIES = new Set(["turn_id", "session", "session_key", "root_session", "turn_group", "tenant", "chain", "connection", "response_id", "previous_response_id", "prompt_cache_key", "fingerprint", "tools_digest", "instructions_digest", "prefix_digest", "baseline_digest", "import_id"]);

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
    h("div", { class: "actions" }, copyLink(link), toSession(row, view)));
  const told = new Set(BESIDE);
  for (const [name, columns] of GROUPS) {
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
 * Words between backticks are settings, headers and fields.
 * @param {string} text
 */
function worded(text) {
  return text.split("`").map((part, index) => (index % 2 ? h("code", {}, part) : part));
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

/** @param {string} link */
function copyLink(link) {
  const words = h("span", {}, "Copy link to this row");
  const button = h("button", { type: "button", class: "button small" }, icon("copy"), words);
  button.addEventListener("click", async () => {
    words.textContent = (await copyText(link)) ? "Link copied" : "Copying was refused";
    announce(words.textContent);
    setTimeout(() => (words.textContent = "Copy link to this row"), 1500);
  });
  return button;
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
  for (const column of known) add(list, h("div", {}, h("dt", {}, column), h("dd", {}, value(column, row[column]), narrow(column, row, view))));
  if (unknown.length) add(list, h("div", {}, h("dt", {}, `${UNKNOWN} not known`), h("dd", { class: "muted" }, unknown.join(", "))));
  return h("section", {}, h("h3", {}, name), list);
}

/**
 * @param {string} column
 * @param {any} given
 * @returns {Node | string}
 */
function value(column, given) {
  if (column === "mode") return modeTag(given);
  if (column === "status") return statusTag(given);
  if (column === "cost_usd") return h("span", { title: `$${given}` }, dollars(given));
  if (column === "price_note") return h("span", { title: given }, PRICES[given.split("@")[0]] ?? given);
  if (COPIES.has(column)) return copyable(String(given), column);
  if (column.endsWith("_at") && typeof given === "string") return h("time", { datetime: given, title: moment(given) }, given);
  if (column.endsWith("_ms")) return h("span", { title: `${given} ms` }, milliseconds(given));
  if (column.startsWith("bytes_")) return h("span", { title: `${integer(given)} bytes` }, bytes(given));
  if (Array.isArray(given)) return given.length ? given.join(", ") : "none";
  if (typeof given === "object") return h("pre", {}, JSON.stringify(given, null, 2));
  if (typeof given === "boolean") return given ? "yes" : "no";
  return typeof given === "number" ? integer(given) : String(given);
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
  const to = (/** @type {string} */ chosen) => href("/requests", changed(view, { [name]: [chosen] }));
  return h("span", { class: "narrow" },
    h("a", { href: to(wanted), "aria-label": `Only rows with ${column} ${row[column]}` }, "only"),
    h("a", { href: to(`!${wanted}`), "aria-label": `No rows with ${column} ${row[column]}` }, "not"));
}
