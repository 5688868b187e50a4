// @ts-check
// The continuation funnel: how far turns come, and where the others are lost.

import { byId, fill, h } from "../dom.js";
import { changed, href } from "../filters.js";
import { counted, integer, percent } from "../format.js";

/** @typedef {import("../filters.js").View} View */
/** @typedef {{turns: number, filters: Record<string, string[]>}} Part */
/** @typedef {Part & {step: string, lost: (Part & {what: string})[]}} Step */

/** Step: its name, and what it asks for. */
const STEPS = /** @type {Record<string, [string, string]>} */ ({
  rows: ["All requests", "Every row of this view."],
  generation: ["Generation turns", "Generations that came to their end."],
  decided: ["Could be continued", "Continuation was on, there was a wire for it, and Warmline decided."],
  baseline: ["Baseline present", "There was an earlier answer to go on from."],
  fields: ["Same fields", "All fields but the input were as before."],
  prefix: ["Strict prefix", "The input began with all of the earlier history, and went on."],
  continued: ["Continued", "Only the new items were sent."],
  reused: ["Cache reused", "The provider read input from its prompt cache."],
});
/** What stands in the way, in a few words; the rows have the sentence. */
const LOST = /** @type {Record<string, string>} */ ({
  warmup: "warm-ups", compaction: "compactions",
  failed: "failed", error: "ended in an error", rate_limited: "rate limited", client_closed: "client left", refused: "refused",
  unknown: "not known", continuation_off: "continuation off", client_anchored: "client continues by itself",
  payload_too_large: "too large for one message", ws_rejected: "no WebSocket there", ws_unavailable: "WebSocket unavailable",
  store_unsupported: "responses not stored", no_baseline: "with no earlier answer", epoch_reset: "after a planned reset",
  non_input_fields_changed: "other fields changed", prefix_mismatch: "history changed", empty_delta: "nothing new",
  missing_response_id: "answer without id", missing_output_items: "answer incomplete", output_conflict: "answer in conflict",
  chain_busy: "chain busy", connection_lost: "connection lost", previous_response_not_found: "dropped by the provider",
  internal_error: "fault of Warmline", ok: "sent in full all the same", miss: "cache miss",
});

/**
 * @param {Step[]} steps
 * @param {View} view
 */
export function showFunnel(steps, view) {
  const whole = steps.find((step) => step.step === "generation")?.turns ?? 0;
  const widest = Math.max(1, ...steps.map((step) => step.turns));
  fill(byId("funnel"), ...steps.map((step) => {
    const [name, asks] = STEPS[step.step] ?? [step.step, ""];
    const bar = h("span", { class: "funnel-bar", "aria-hidden": "true" });
    bar.style.setProperty("--share", String(step.turns / widest));
    const share = whole && step.step !== "rows" && step.step !== "generation" ? percent(step.turns / whole) : "";
    return h("li", { "data-step": step.step },
      h("span", { class: "funnel-name", title: asks }, name), bar,
      h("span", { class: "funnel-count" }, link(step, view, integer(step.turns), name), h("span", { class: "second" }, share)),
      step.lost.length > 0 && h("span", { class: "funnel-lost" }, ...lost(step, view)));
  }));
  fill(byId("funnel-words"), words(steps, whole));
}

/** @param {Step} step @param {View} view */
function lost(step, view) {
  return step.lost.map((drop, at) => h("span", { "data-lost": drop.what }, at ? ", " : "− ",
    link(drop, view, `${integer(drop.turns)} ${LOST[drop.what] ?? drop.what.replaceAll("_", " ")}`)));
}

/**
 * @param {Part} part
 * @param {View} view
 * @param {string} text
 * @param {string} [name]
 */
function link(part, view, text, name) {
  if (!part.turns) return h("span", {}, text);
  return h("a", { href: href("/requests", changed(view, part.filters)) }, text, name && h("span", { class: "visually-hidden" }, ` ${name}`));
}

/** @param {Step[]} steps @param {number} whole */
function words(steps, whole) {
  const reached = (/** @type {string} */ name) => steps.find((step) => step.step === name)?.turns ?? 0;
  if (!whole) return "No generation turn in this view.";
  return `Of ${counted(whole, "generation turn")}, ${integer(reached("continued"))} were continued and ${integer(reached("reused"))} of these read their cache. Each turn is lost at one step exactly.`;
}
