// @ts-check
// What misses cost, by cause, and what a remedy would have saved. What is benign stands apart.

import { h, worded } from "../dom.js";
import { GENERATION, narrowed } from "../drill.js";
import { href } from "../filters.js";
import { compact, counted, dollars, integer, milliseconds, orUnknown, regrouped } from "../format.js";
import { redraw } from "../keyed.js";
import { costOf } from "./words.js";

/** @typedef {import("../filters.js").View} View */

const GRADES = /** @type {Record<string, string>} */ ({ proven: "proven", likely: "likely", possible: "possible" });

/**
 * One sentence of the whole.
 * @param {any} told what /api/causes answered
 * @param {View} view
 */
export function costLine({ total, price_list: list }, view) {
  if (!total.turns) return ["No turn of this view lost tokens that could have been read from the cache."];
  const usd = total.cost_usd === null ? "no list price is known" : `${dollars(total.cost_usd)} at list prices (estimate, ${list})`;
  const without = total.turns_without_price ? `, ${counted(total.turns_without_price, "turn")} without a price` : "";
  const delay = total.delay_ms === null ? "" : `; about ${milliseconds(total.delay_ms)} of waiting (${milliseconds(total.delay_low_ms)} to ${milliseconds(total.delay_high_ms)})`;
  const turns = counted(total.turns, "turn");
  return [h("a", { href: href("/requests", narrowed(view, total.filters)), "aria-label": `${turns} that lost tokens: show the rows` }, turns), ` lost ${compact(total.missed_tokens)} tokens: ${usd}${without}${delay}.`];
}

/**
 * @param {HTMLElement} host
 * @param {any} told
 * @param {View} view
 */
export function drawCosts(host, told, view) {
  const rows = (/** @type {Record<string, string[]>} */ values) => href("/requests", narrowed(view, values));
  redraw(host,
    h("div", { class: "pair" },
      h("section", { class: "card part", "aria-label": "Remedies" }, h("h3", {}, "What would have saved it"), remedies(told, rows)),
      h("section", { class: "card part", "aria-label": "Causes of misses" }, h("h3", {}, "What the misses are put down to"), causes(told, rows), benign(told, rows))));
}

/** @param {any} told @param {(values: Record<string, string[]>) => string} rows */
function remedies({ remedies: list, breaks_beyond: beyond }, rows) {
  if (!list.length) return h("p", { class: "muted" }, "No break of this view has a remedy that could be counted.");
  return h("ul", { class: "remedies" },
    ...list.map((/** @type {any} */ one) => h("li", {},
      h("p", {}, ...worded(regrouped(one.sentence))),
      h("p", { class: "second" }, saved(one.kept), one.left > 0 && `; ${integer(one.left)} would have broken all the same`,
        one.possible.turns > one.kept.turns && `. At most: ${saved(one.possible)}`),
      one.filters && h("a", { class: "second", href: rows(one.filters), "aria-label": `${counted(one.breaks, "break")}: show the rows` }, counted(one.breaks, "break")))),
    beyond > 0 && h("li", { class: "muted" }, `${counted(beyond, "break")} beyond: something that no remedy takes away, or that was meant.`));
}

/** @param {any} waste */
function saved({ missed_tokens: tokens, cost_usd: usd, delay_ms: delay }) {
  return [`${compact(tokens)} tokens`, usd === null ? "no list price known" : `${dollars(usd)} at list prices (estimate)`, delay !== null && `about ${milliseconds(delay)} of waiting`].filter(Boolean).join(", ");
}

/** @param {any} told @param {(values: Record<string, string[]>) => string} rows */
function causes({ causes: list }, rows) {
  if (!list.length) return h("p", { class: "muted" }, "No turn of this view lost tokens.");
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of causes" }, h("table", { class: "plain stacks" },
    h("caption", { class: "visually-hidden" }, "Misses by cause"),
    h("thead", {}, h("tr", {}, ...["Cause", "Turns", "Tokens lost", "List-price estimate"].map((title, at) => h("th", { scope: "col", class: at > 0 && "number" }, title)))),
    h("tbody", {}, ...list.map((/** @type {any} */ one) => h("tr", {},
      h("th", { scope: "row" }, h("span", { class: "first" }, ...worded(one.sentence)), h("span", { class: "second" }, `${one.title}, ${GRADES[one.grade] ?? "how sure is not known"}`), one.remedy && h("span", { class: "second" }, "What helps: ", ...worded(one.remedy))),
      h("td", { class: "number", "data-label": "Turns" }, !one.filters ? integer(one.turns) : h("a", { href: rows(one.filters), "aria-label": `${counted(one.turns, "turn")}: show the rows` }, integer(one.turns)),
        !one.filters && h("a", { class: "second", href: rows({ ...GENERATION, verdict: [one.verdict] }), "aria-label": `All rows with the verdict ${one.title}` }, "all of the verdict")),
      h("td", { class: "number", "data-label": "Tokens lost", title: counted(one.missed_tokens, "token") }, compact(one.missed_tokens)),
      h("td", { class: "number", "data-label": "List-price estimate" }, ...costOf(one)))))));
}

/** @param {any} told @param {(values: Record<string, string[]>) => string} rows */
function benign({ benign: list, turns_not_judged: unjudged }, rows) {
  return h("div", { class: "benign" }, h("h4", {}, "Benign, in no sum above"),
    h("ul", {}, ...list.map((/** @type {any} */ one) => h("li", {}, `${one.title}: `, h("a", { href: rows(one.filters), "aria-label": `${one.title}, ${counted(one.turns, "turn")}: show the rows` }, integer(one.turns)))),
      unjudged > 0 && h("li", {}, "Not judged: ", h("a", { href: rows({ kind: GENERATION.kind, verdict: ["unjudged"] }), "aria-label": `Not judged, ${counted(unjudged, "turn")}: show the rows` }, integer(unjudged)))));
}
