// @ts-check
// The rows of the view as a file or by a command: exactly those that the page counts.

import { url } from "../api.js";
import { byId, fill } from "../dom.js";
import { apiQuery, count } from "../filters.js";
import { counted } from "../format.js";
import { copyButton } from "../snippet.js";
import { curl } from "./curl.js";

/** @typedef {import("../filters.js").View} View */

/**
 * @param {import("./ledger.js").Ledger} ledger
 * @param {View} view
 */
export function showExports(ledger, view) {
  const { range, asOf } = ledger;
  // the export ends where this page's knowledge ends, so that it holds exactly these rows
  const until = view.to === "now" && (!range || asOf > range.to) ? asOf : range?.to;
  const query = apiQuery({ ...view, from: range?.from ?? view.from, to: until ?? view.to });
  query.delete("tz");
  const rows = counted(ledger.count, "row");
  const filtered = count(view) ? ", filters applied" : "";
  byId("export-words").textContent = `Export ${rows}${filtered} (CSV)`;
  for (const [id, form] of [["export", "csv"], ["export-lines", "jsonl"]]) {
    byId(id).setAttribute("href", url(`/api/requests.${form}`, query));
    byId(id).title = `All ${rows} of this view${filtered}, every column, times in UTC`;
  }
}

/** @param {() => View} view */
export function wireExports(view) {
  fill(byId("as-curl"), copyButton("Copy as curl", () => {
    const query = apiQuery(view());
    query.set("limit", "100");
    return curl("/api/requests", query);
  }));
}
