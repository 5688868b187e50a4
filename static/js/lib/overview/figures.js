// @ts-check
// The key figures, and the two-by-two of continuation and prompt cache.

import { byId, fill, h } from "../dom.js";
import { GENERATION } from "../drill.js";
import { changed, href } from "../filters.js";
import { compact, counted, dollars, integer, milliseconds, orUnknown, percent } from "../format.js";

/** @typedef {import("../filters.js").View} View */

const NO_USAGE = "no turn in this view has known usage";

/**
 * @param {any} summary what /api/summary answered
 * @param {View} view
 */
export function showFigures(summary, view) {
  const { turns, continuation, tokens } = summary;
  const generation = (/** @type {Record<string, string[]>} */ values) => href("/requests", changed(view, { ...GENERATION, ...values }));
  const beside = turns.total - turns.generation;
  tell("generation", integer(turns.generation), turns.generation,
    [`in ${counted(turns.sessions, "session")}`, beside ? `; ${integer(beside)} other rows beside` : ""].join(""),
    { href: generation({}), title: "Completed or incomplete generations. Warm-ups, compactions and failed turns are rows beside them, outside the rates." });
  tell("incremental", percent(continuation.incremental_rate), continuation.incremental_rate,
    `${integer(continuation.incremental)} of ${counted(continuation.known, "turn")}`,
    { href: generation({ mode: ["ws_incremental", "http_incremental"] }), why: "no turn of known mode in this view" });
  tell("mismatch", percent(continuation.mismatch_rate), continuation.mismatch_rate,
    `${integer(continuation.mismatches)} of ${integer(continuation.eligible)} eligible`,
    { href: generation({ eligible: ["true"], reason: ["prefix_mismatch"] }), why: "no eligible turn in this view" });
  tell("break", percent(continuation.break_rate), continuation.break_rate,
    `${integer(continuation.breaks)} of ${integer(continuation.eligible)} eligible`,
    { href: generation({ eligible: ["true"], mode: ["!ws_incremental", "!http_incremental"] }), why: "no eligible turn in this view" });
  const known = tokens.rows_with_usage > 0;
  tell("cached", percent(tokens.cached_ratio), tokens.cached_ratio,
    known ? `${compact(tokens.cached)} of ${compact(tokens.input)} tokens` : "usage unknown", { why: NO_USAGE, title: exact(tokens.cached) });
  tell("non-cached", compact(known ? tokens.non_cached : null), known ? tokens.non_cached : null,
    tokens.rows_without_usage ? `usage of ${counted(tokens.rows_without_usage, "turn")} unknown` : "usage known for every turn",
    { why: NO_USAGE, title: exact(tokens.non_cached) });
  const { cost } = summary;
  tell("cost", dollars(cost.cost_usd), cost.cost_usd,
    cost.turns_without_price ? `${counted(cost.turns_without_price, "turn")} without a price` : "of all turns",
    { why: "no turn in this view has a price", title: `${counted(cost.turns, "turn")} at the prices of their day (${cost.price_list})` });
  showTtft(summary.ttft);
  showTwoByTwo(summary.cache_by_wire, generation);
}

/** @param {number | null} tokens */
function exact(tokens) {
  return tokens === null ? "" : `${integer(tokens)} tokens`;
}

/**
 * @param {string} name
 * @param {string} text
 * @param {unknown} value
 * @param {string} below
 * @param {{href?: string, why?: string, title?: string}} [more]
 */
function tell(name, text, value, below, more = {}) {
  const shown = orUnknown(value, text, more.why);
  const box = byId(`figure-${name}`);
  box.classList.remove("skeleton");
  fill(box, h("span", { title: more.title }, shown));
  const linked = more.href && value !== null && value !== undefined;
  fill(byId(`figure-${name}-below`), linked ? h("a", { href: more.href }, below) : below);
}

/**
 * One line per mode: median and p95 belong together, and modes are never mixed.
 * @param {{mode: string | null, samples: number, median_ms: number, p95_ms: number}[]} modes
 */
function showTtft(modes) {
  const box = byId("figure-ttft");
  box.classList.remove("skeleton");
  const best = modes.reduce((most, mode) => (!most || mode.samples > most.samples ? mode : most), /** @type {any} */ (null));
  fill(box, orUnknown(best, best ? milliseconds(best.median_ms) : "", "no time to first token in this view"));
  fill(byId("figure-ttft-below"), best
    ? h("span", { title: `Median and 95th percentile of ${counted(best.samples, "turn")}` }, `p95 ${milliseconds(best.p95_ms)} · ${best.mode ?? "unknown mode"}`)
    : "no output in this view");
}

const OUTCOMES = /** @type {const} */ (["hit", "partial", "miss", "unknown"]);

/**
 * @param {{wire: string, hit: number, partial: number, miss: number, unknown: number}[]} wires
 * @param {(values: Record<string, string[]>) => string} link
 */
function showTwoByTwo(wires, link) {
  const modes = /** @type {Record<string, string[]>} */ ({ incremental: ["ws_incremental", "http_incremental"], full: ["ws_full", "http_full"], unknown: ["unknown"] });
  const names = /** @type {Record<string, string>} */ ({ incremental: "Continued", full: "Sent in full", unknown: "Not recorded" });
  const some = wires.find((one) => one.wire === "unknown" && OUTCOMES.some((outcome) => one[outcome]));
  const total = wires.reduce((sum, wire) => sum + OUTCOMES.reduce((part, outcome) => part + wire[outcome], 0), 0);
  fill(byId("two-by-two"), ...["incremental", "full", ...(some ? ["unknown"] : [])].map((name) => {
    const wire = wires.find((one) => one.wire === name);
    return h("tr", {},
      h("th", { scope: "row" }, names[name], h("span", { class: "second" }, name)),
      ...OUTCOMES.map((outcome) => {
        const turns = wire?.[outcome] ?? 0;
        const share = total ? turns / total : 0;
        const cell = h("td", { class: `number outcome-${outcome}` },
          turns ? h("a", { href: link({ mode: modes[name], cache: [outcome] }) }, integer(turns)) : integer(turns),
          h("span", { class: "second" }, total ? percent(share) : ""));
        cell.style.setProperty("--share", String(share));
        return cell;
      }));
  }));
}
