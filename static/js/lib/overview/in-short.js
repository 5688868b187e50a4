// @ts-check
// The overview in a few sentences: how much was read anew and why that grew, what breaks took of it, and what broke most.

import { get } from "../api.js";
import { breakApi, breakPage } from "../breaks/words.js";
import { byId, fill, h, worded } from "../dom.js";
import { apiQuery, href } from "../filters.js";
import { compact, counted, dollars, percent, regrouped } from "../format.js";
import { moment } from "../time.js";

/** @typedef {import("../filters.js").View} View */
/** @typedef {import("../dom.js").Child} Child */
/** @typedef {{non_cached: number, turns: number, input_per_turn: number, non_cached_share: number}} Growth */

const LEVEL = 0.05; // what differs by less is about the same, as in the trends
const TIMES = "\u202f×";
const READ = 5000; // breaks whose onset is looked for here; that of more takes longer than this page may, and their own page has it
/** @type {{of: string, onset: any}} */
let known = { of: "", onset: null }; // live updates that bring no break need not look for it again

/** What the summary alone tells. @param {any} summary */
export function beginInShort({ tokens, previous }) {
  show([readAnew(tokens, previous.growth)]);
}

/**
 * @param {any} summary of /api/summary
 * @param {any} breaks of /api/breaks, those that missed most first
 * @param {View} view
 * @param {AbortSignal} signal
 */
export async function showInShort({ tokens, previous }, breaks, view, signal) {
  const [worst] = breaks.groups;
  const sentences = [readAnew(tokens, previous.growth), ofBreaks(tokens, breaks, view)];
  if (worst?.missed_tokens) {
    const onset = worst.turns > READ ? null : await onsetOf(worst, view, signal);
    sentences.push(mainCause(worst, breaks, onset, view));
  }
  show(sentences);
}

/** @param {any} group @param {View} view @param {AbortSignal} signal */
async function onsetOf({ id, turns }, view, signal) {
  const query = apiQuery(view);
  query.set("limit", "1");
  const of = `${id} ${turns} ${query}`;
  if (known.of !== of) known = { of, onset: (await get(breakApi(id), query, signal)).onset };
  return known.onset;
}

/** @param {Child[][]} sentences */
function show(sentences) {
  fill(byId("in-short"), ...sentences.map((words) => h("li", {}, ...words)));
}

/** @param {any} tokens @param {Growth | null} growth @returns {Child[]} */
function readAnew({ non_cached: tokens }, growth) {
  if (tokens === null) return ["No turn of this view reports its usage: nothing tells what was read anew."];
  const what = `${compact(tokens)} input tokens were read anew, not from the cache`;
  if (!growth) return [`${what}.`];
  if (Math.abs(growth.non_cached - 1) < LEVEL) return [`${what}: about as many as in the period before.`];
  const { non_cached: whole, ...factors } = growth;
  const most = Math[whole > 1 ? "max" : "min"](...Object.values(factors));
  const part = (/** @type {number} */ factor, /** @type {string} */ words) => h(factor === most ? "strong" : "span", {}, `${times(factor)} ${words}`);
  return [
    `${what}: ${times(whole)} as many as in the period before, with `, part(factors.turns, "the turns"), ", ",
    part(factors.input_per_turn, "the input of a turn"), " and ", part(factors.non_cached_share, "the share that was not cached"), ".",
  ];
}

/** @param {number} factor */
function times(factor) {
  return `${factor.toFixed(factor < 9.95 ? 1 : 0)}${TIMES}`;
}

/** @param {any} tokens @param {any} breaks @param {View} view @returns {Child[]} */
function ofBreaks({ non_cached: tokens }, { count, turns, missed_tokens: missed, cost_usd: usd }, view) {
  if (!count) return ["No turn that could be continued was sent in full."];
  const link = h("a", { href: href("/breaks", { ...view, turn: null }) }, counted(turns, "break"));
  if (missed === null) return [link, ": what they missed is not known."];
  if (!missed) return [link, " missed nothing that the cache had held."];
  const share = tokens ? `, ${percent(Math.min(1, missed / tokens))} of these` : "";
  return [link, ` missed ${compact(missed)} tokens that the cache had held${share}${usd === null ? "" : `, for ${dollars(usd)} at list prices`}.`];
}

/** @param {any} worst @param {any} breaks @param {any} onset @param {View} view @returns {Child[]} */
function mainCause(worst, { missed_tokens: missed }, onset, view) {
  return [
    `${percent(worst.missed_tokens / missed)} of that is one cause: `,
    h("a", { href: breakPage(worst.id, view) }, ...worded(regrouped(worst.sentence))),
    onset && ` It came up ${moment(onset.from)}${onset.to ? ` and ended ${moment(onset.to)}` : ""}, in ${counted(onset.sessions, "session")}.`,
    onset?.suspects.length > 0 && ` ${regrouped(onset.suspects[0].sentence)}`,
    ...(worst.cause ? [" Usual cause: ", ...worded(worst.cause)] : []),
    ...(worst.remedy ? [" What helps: ", ...worded(worst.remedy)] : []),
  ];
}
