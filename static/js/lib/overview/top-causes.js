// @ts-check
// The first causes of breaks on the overview: sentence, turns, missed tokens and what they cost.

import { get } from "../api.js";
import { breakPage, breakRows, costOf } from "../breaks/words.js";
import { byId, fill, h, worded } from "../dom.js";
import { apiQuery, href } from "../filters.js";
import { compact, counted, orUnknown, regrouped } from "../format.js";

/** @typedef {import("../filters.js").View} View */

const MOST = "5";

/**
 * Returns what it was told.
 * @param {View} view
 * @param {AbortSignal} signal
 */
export async function showCauses(view, signal) {
  const query = apiQuery(view);
  query.set("limit", MOST);
  const told = await get("/api/breaks", query, signal);
  fill(byId("causes-words"), words(told));
  fill(byId("causes"), ...told.groups.map((/** @type {any} */ group) => cause(group, view)));
  const all = byId("causes-all");
  all.hidden = told.count <= told.groups.length;
  if (!all.hidden) fill(all, h("a", { href: href("/breaks", { ...view, turn: null }) }, `All ${told.count} causes`));
  return told;
}

/**
 * @param {any} group
 * @param {View} view
 */
function cause(group, view) {
  const [cost, unpriced] = costOf(group);
  return h("li", { "data-group": group.id },
    h("a", { class: "cause", href: breakPage(group.id, view) }, ...worded(regrouped(group.sentence))),
    h("span", { class: "cause-facts muted" },
      h("a", { href: breakRows(group, view) }, counted(group.turns, "turn")),
      h("span", {}, orUnknown(group.missed_tokens, compact(group.missed_tokens), "missed tokens are not known"), " tokens missed"),
      h("span", {}, cost, " at list price"), unpriced));
}

/** @param {unknown} fault */
export function causesFailed(fault) {
  byId("causes-words").textContent = `The causes could not be fetched: ${/** @type {Error} */ (fault).message}`;
}

/** @param {{count: number, turns: number}} told */
function words({ count, turns }) {
  if (!count) return "No turn of this view was broken.";
  return `${counted(turns, "break")} of ${counted(count, "cause")}, by missed tokens.`;
}
