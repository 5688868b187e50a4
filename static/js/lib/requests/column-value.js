// @ts-check
// The value of a column of the ledger, written for people.

import { copyable, h } from "../dom.js";
import { bytes, dollars, integer, milliseconds } from "../format.js";
import { modeTag, statusTag } from "../table.js";
import { moment } from "../time.js";

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

/** Columns that copy themselves. */
const IDS = new Set(["turn_id", "session", "session_key", "root_session", "turn_group", "tenant", "chain", "connection", "response_id", "previous_response_id", "prompt_cache_key", "fingerprint", "tools_digest", "instructions_digest", "prefix_digest", "baseline_digest", "import_id"]);
const NAMED = new Set(["session", "root_session", "prompt_cache_key"]);

/**
 * @param {string} column
 * @param {any} given not null
 * @returns {Node | string}
 */
export function valueOf(column, given) {
  if (column === "mode") return modeTag(given);
  if (column === "status") return statusTag(given);
  if (column === "cost_usd") return h("span", { title: `$${given}` }, dollars(given));
  if (column === "price_note") return h("span", { title: given }, PRICES[given.split("@")[0]] ?? given);
  if (IDS.has(column)) return copyable(String(given), column, NAMED.has(column) ? String(given) : short(String(given)));
  if (column.endsWith("_at") && typeof given === "string") return h("time", { datetime: given, title: moment(given) }, given);
  if (column.endsWith("_ms")) return h("span", { title: `${given} ms` }, milliseconds(given));
  if (column.startsWith("bytes_")) return h("span", { title: `${integer(given)} bytes` }, bytes(given));
  if (Array.isArray(given)) return given.length ? given.join(", ") : "none";
  if (typeof given === "object") return h("pre", {}, JSON.stringify(given, null, 2));
  if (typeof given === "boolean") return given ? "yes" : "no";
  return typeof given === "number" ? integer(given) : String(given);
}

/** Both ends of a long id, which tell it from its neighbours; all of it shows on hover. @param {string} id */
function short(id) {
  return id.length > 24 ? `${id.slice(0, 12)}…${id.slice(-6)}` : id;
}
