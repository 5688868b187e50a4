// @ts-check
// What of a session changed whose cache a turn meets, where its history was condensed, and its breaks.

import { newestWords } from "../breaks/words.js";
import { byId, fill, h } from "../dom.js";
import { compact, counted, dollars, integer, regrouped } from "../format.js";
import { moment } from "../time.js";

const MOST = 20; // more is on the page Breaks

/**
 * @param {any} drift what /api/drift answered
 * @param {any} resets what /api/resets answered
 * @param {any} figures of the session
 * @param {{turn: (turn: string) => string, breaks: string}} links
 */
export function showCauses(drift, resets, figures, links) {
  const { breaks, mismatches } = figures.continuation;
  const items = [
    breaks > 0 && h("li", {}, h("a", { href: links.breaks }, `${counted(breaks, "break")} by cause`), h("span", { class: "muted" }, mismatches ? `${counted(mismatches, "mismatch", "mismatches")} among them` : "none is a mismatch")),
    ...drift.findings.slice(0, MOST).map((/** @type {any} */ one) => h("li", {},
      h("a", { href: links.turn(one.example), "data-turn": one.example }, regrouped(one.sentence)),
      h("span", { class: "muted" }, `${one.before} → ${one.now}`))),
    ...resets.listed.slice(0, MOST).map((/** @type {any} */ one) => h("li", {},
      h("a", { href: links.turn(one.turn_id), "data-turn": one.turn_id }, `The history was condensed (${one.epoch_reset_reason ?? "reset"}): ${resetWords(one)}.`),
      h("span", { class: "muted" }, moment(one.started_at)))),
    ...[...new Set([drift, resets].map(newestWords))].filter(Boolean).map((words) => h("li", { class: "muted" }, words)),
  ].filter(Boolean);
  byId("causes").hidden = !items.length;
  fill(byId("causes-list"), ...items);
}

/** @param {any} one */
function resetWords(one) {
  const size = one.tokens_before === null || one.tokens_after === null ? "" : `from ${compact(one.tokens_before)} to ${compact(one.tokens_after)} tokens`;
  const price = one.paid_usd === null ? "" : `it cost ${dollars(one.paid_usd)} at list prices`;
  const pays = one.never ? "and never pays for itself" : one.breaks_even === null ? "" : `and pays for itself with turn ${integer(one.breaks_even)}${one.reached ? ", which came" : `, of ${integer(one.turns)} so far`}`;
  return [size, [price, pays].filter(Boolean).join(" ")].filter(Boolean).join("; ") || "its size is not known";
}
