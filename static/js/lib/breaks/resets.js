// @ts-check
// Two tables of sessions: histories that were condensed, and what decides whose cache a turn meets.

import { h, worded } from "../dom.js";
import { changed, href } from "../filters.js";
import { compact, counted, dollars, integer, orUnknown, regrouped } from "../format.js";
import { redraw } from "../keyed.js";
import { moment } from "../time.js";

/** @typedef {import("../filters.js").View} View */

const MOST = 10; // more is for the API

/** @param {string} key @param {string} turn */
function sessionPage(key, turn) {
  return `/sessions/${encodeURIComponent(key)}?turn=${encodeURIComponent(turn)}`;
}

/**
 * A number, with a link to its rows where filters can say which these are.
 * @param {string} shown
 * @param {string} name
 * @param {Record<string, string[]> | null} filters
 * @param {View} view
 */
function rows(shown, name, filters, view) {
  return filters ? h("a", { href: href("/requests", changed(view, filters)), "aria-label": `${name}: show the rows` }, shown) : shown;
}

/**
 * @param {HTMLElement} host
 * @param {any} told what /api/resets answered
 * @param {View} view
 */
export function drawResets(host, told, view) {
  if (!told.resets) return redraw(host, h("p", { class: "card part muted" }, "No history was condensed in this view."));
  const net = Number(told.saved_usd ?? 0) - Number(told.paid_usd ?? 0);
  redraw(host,
    h("ul", { class: "sums" },
      h("li", {}, "Condensed: ", h("strong", {}, rows(integer(told.resets), counted(told.resets, "condensed history", "condensed histories"), told.filters, view)), told.resets_without_price > 0 && ` (${integer(told.resets_without_price)} without a price)`),
      h("li", {}, "Paid for themselves: ", h("strong", {}, integer(told.reached)), `; not yet ${integer(told.not_reached)}; never will ${integer(told.never)}`),
      told.paid_usd !== null && told.saved_usd !== null && h("li", {}, "Paid ", h("strong", {}, dollars(told.paid_usd)), ", saved ", h("strong", {}, dollars(told.saved_usd)),
        ` at list prices (estimate): ${signed(net)}`)),
    told.advice && h("p", { class: "advice-line" }, ...worded(regrouped(told.advice))),
    h("div", { class: "card scroll", tabindex: "0", role: "region", "aria-label": "Table of condensed histories" }, h("table", { class: "plain stacks" },
      h("caption", { class: "visually-hidden" }, "The condensed histories that cost most beyond what they saved"),
      h("thead", {}, h("tr", {}, ...["Session", "Tokens before and after", "Paid", "Saves a turn", "Turns since", "Pays with turn", "So far"].map((title, at) => h("th", { scope: "col", class: at > 0 && "number" }, title)))),
      h("tbody", {}, ...told.listed.slice(0, MOST).map((/** @type {any} */ one) => h("tr", {},
        h("th", { scope: "row" }, h("a", { href: sessionPage(one.session_key, one.turn_id) }, one.session ?? one.session_key), h("span", { class: "second" }, `${one.epoch_reset_reason ?? "reset"}, ${moment(one.started_at)}`)),
        h("td", { class: "number", "data-label": "Tokens before and after" }, orUnknown(one.tokens_before, compact(one.tokens_before)), " → ", orUnknown(one.tokens_after, compact(one.tokens_after))),
        h("td", { class: "number", "data-label": "Paid" }, orUnknown(one.paid_usd, dollars(one.paid_usd), "no list price")),
        h("td", { class: "number", "data-label": "Saves a turn" }, orUnknown(one.saves_usd_per_turn, dollars(one.saves_usd_per_turn), "no list price")),
        h("td", { class: "number", "data-label": "Turns since" }, integer(one.turns)),
        h("td", { class: "number", "data-label": "Pays with turn" }, one.never ? "never" : orUnknown(one.breaks_even, integer(one.breaks_even), "no list price")),
        h("td", { class: "number", "data-label": "So far" }, orUnknown(one.net_usd, signed(Number(one.net_usd)), "no list price"))))))),
    told.listed.length > MOST && h("p", { class: "muted rest" }, `The ${MOST} that cost most beyond what they saved, of ${counted(told.resets, "reset")}. Money is an estimate at list prices.`));
}

/** @param {number} usd */
function signed(usd) {
  return `${usd < 0 ? "−" : "+"}${dollars(String(Math.abs(usd)))}`;
}

const KINDS = /** @type {Record<string, string>} */ ({
  prompt_cache_key: "cache key", service_tier: "service tier", tenant: "account", upstream: "upstream", connection: "connection", model: "model", reasoning_effort: "reasoning effort",
});
const DIGESTS = new Set(["tenant", "connection", "prompt_cache_key"]);

/**
 * @param {HTMLElement} host
 * @param {any} told what /api/drift answered
 * @param {View} view
 */
export function drawDrift(host, told, view) {
  if (!told.findings.length) return redraw(host, h("p", { class: "card part muted" }, "Nothing of it changed inside a session of this view."));
  const kinds = Object.entries(told.kinds).filter(([, sum]) => sum.changes);
  redraw(host,
    h("ul", { class: "sums" }, ...kinds.map(([kind, sum]) => h("li", {}, h("strong", {}, KINDS[kind] ?? kind), ": ", rows(counted(sum.changes, "change"), `${counted(sum.changes, "change")} of the ${KINDS[kind] ?? kind}`, sum.filters, view),
      ` in ${told.further ? "at least " : ""}${counted(sum.sessions, "session")}; these turns missed ${compact(sum.missed_tokens)} tokens`))),
    h("div", { class: "card scroll", tabindex: "0", role: "region", "aria-label": "Table of changes inside sessions" }, h("table", { class: "plain stacks" },
      h("caption", { class: "visually-hidden" }, "Changes inside sessions, most missed tokens first"),
      h("thead", {}, h("tr", {}, ...["Session", "What changed", "From and to", "Missed tokens"].map((title, at) => h("th", { scope: "col", class: at > 2 && "number" }, title)))),
      h("tbody", {}, ...told.findings.slice(0, MOST).map((/** @type {any} */ one) => h("tr", {},
        h("th", { scope: "row" }, h("a", { href: sessionPage(one.session_key, one.example) }, one.session ?? one.session_key)),
        h("td", { class: "wide", "data-label": "What changed" }, regrouped(one.sentence),
          one.filters && h("span", { class: "second" }, rows(counted(one.changes, "turn"), `${counted(one.changes, "turn")} with a change`, one.filters, view))),
        h("td", { class: "wide", "data-label": "From and to" }, short(one.kind, one.before), " → ", short(one.kind, one.now)),
        h("td", { class: "number", "data-label": "Missed tokens" }, integer(one.missed_tokens))))))),
    (told.findings.length > MOST || told.further) && h("p", { class: "muted rest" }, `The ${MOST} findings that missed most.`));
}

/** @param {string} kind @param {string} value */
function short(kind, value) {
  const long = DIGESTS.has(kind) && value.length > 14;
  return h("code", { title: value }, long ? `${value.slice(0, 12)}…` : value);
}
