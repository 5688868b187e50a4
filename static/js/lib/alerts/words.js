// @ts-check
// What the states, signals and times of alerts are called, and how their values are written.

import { h, icon } from "../dom.js";
import { integer, milliseconds, percent, UNKNOWN } from "../format.js";

/** @typedef {{name: string, title: string, unit: string, rises: boolean, part: string, whole: string, weights: string[], confidences: string[]}} Signal */

/** State: words, icon, tone, what it means. */
const STATES = /** @type {Record<string, [string, string, string, string]>} */ ({
  inactive: ["OK", "completed", "ok", "The threshold is not crossed."],
  pending: ["Pending", "rate_limited", "warn", "The threshold is crossed, but not yet for as long as the rule asks."],
  firing: ["Firing", "bell", "bad", "The threshold is crossed."],
  recovering: ["Recovering", "recovering", "warn", "The value is back, but not yet for as long as the rule asks."],
  no_data: ["No data", "unknown", "unknown", "The window cannot be judged."],
  error: ["Error", "error", "bad", "The evaluation failed."],
  paused: ["Paused", "pause", "unknown", "The rule is not evaluated."],
});

const DELIVERIES = /** @type {Record<string, [string, string, string]>} */ ({
  queued: ["Queued", "rate_limited", "warn"],
  sending: ["Sending", "sending", "warn"],
  delivered: ["Delivered", "completed", "ok"],
  dead: ["Dead", "failed", "bad"],
});

/** What an answer means that ends a delivery. */
const ANSWERS = [
  [/^HTTP 3\d\d$/, "redirects are not followed"], [/^HTTP 410$/, "it wants no more messages and is disabled"],
  [/^HTTP 40[13]$/, "it does not let the message in"], [/^HTTP 404$/, "there is nothing at this address"],
  [/^HTTP 429$/, "it wants fewer messages"], [/^HTTP 5\d\d$/, "it failed"],
];

/** What became of an attempt, in words. @param {string} outcome */
export function outcomeWords(outcome) {
  const found = ANSWERS.find(([pattern]) => /** @type {RegExp} */ (pattern).test(outcome));
  return found ? `${outcome}: ${found[1]}` : outcome;
}

const CAUSES = /** @type {Record<string, string>} */ ({
  crossed: "the threshold was crossed",
  held: "it stayed crossed for as long as the rule asks",
  fell_back: "it was no longer crossed, before the alert fired",
  cleared: "the value came back",
  stayed_clear: "the value stayed back for as long as the rule asks",
  relapsed: "the value went bad again",
  lacking: "the window cannot be judged",
  absent: "there were no rows",
  gone: "no rows for three evaluations",
  judged: "the window can be judged again",
  failed: "the evaluation failed",
  works_again: "the evaluation works again",
  edited: "the rule was edited",
  paused: "the rule was paused",
  resumed: "the rule was resumed",
  deleted: "the rule was deleted",
});

/** From what needs somebody to what needs nobody. */
const URGENCY = ["firing", "recovering", "pending", "error", "no_data", "inactive", "paused"];

/** The most urgent group first. @param {any} one @param {any} other */
export function byUrgency(one, other) {
  return URGENCY.indexOf(one.state) - URGENCY.indexOf(other.state);
}

/** @param {string} state */
export function stateWord(state) {
  return STATES[state]?.[0] ?? state;
}

/** How an alert ends of which nobody knows whether all is well. */
const ENDS = new Set(["gone", "edited", "paused", "deleted"]);

/** The state after a change, which may be the end of an alert. @param {{before: string, after: string, cause: string}} change */
export function afterTag({ before, after, cause }) {
  return stateTag(after, (before === "firing" || before === "recovering") && after === "inactive" && ENDS.has(cause));
}

/** @param {string} state @param {boolean} [ended] without a proof that all is well */
export function stateTag(state, ended = false) {
  const [word, sign, tone, meaning] = ended ? ["Ended", "unknown", "unknown", "Whether it recovered is not known."] : (STATES[state] ?? [state, "unknown", "unknown", ""]);
  return h("span", { class: `tag ${tone}`, title: `${state}: ${meaning}`, "data-state": state }, icon(sign), word);
}

/** @param {string} state */
export function deliveryTag(state) {
  const [word, sign, tone] = DELIVERIES[state] ?? [state, "unknown", "unknown"];
  return h("span", { class: `tag ${tone}` }, icon(sign), word);
}

/** @param {string} cause */
export function causeWords(cause) {
  return CAUSES[cause] ?? cause;
}

/**
 * A value of a signal with its unit.
 * @param {number | null | undefined} value
 * @param {string} unit
 */
export function amount(value, unit) {
  if (value === null || value === undefined) return UNKNOWN;
  if (unit === "ratio") return percent(value).replace(".0\u202f%", "\u202f%"); // as in messages: 40 %, not 40.0 %
  if (unit === "ms") return milliseconds(value);
  return `${integer(value)} ${unit}`;
}

const UNITS = /** @type {Record<string, string>} */ ({ s: "s", m: "min", h: "h", d: "d", w: "weeks" });

/** A threshold: as it was set, so 20 % and not 20.0 %. @param {number} value @param {string} unit */
export function level(value, unit) {
  return unit === "ratio" ? `${Number((value * 100).toPrecision(6))}\u202f%` : amount(value, unit);
}

/** "15m" → "15 min". @param {string} text */
export function span(text) {
  const match = /^(\d+)([smhdw])$/.exec(text);
  return match ? `${match[1]}\u202f${UNITS[match[2]]}` : text;
}

/** What stands after a value: beyond what it fires. @param {any} rule its definition @param {Signal | undefined} signal */
export function threshold(rule, signal) {
  return `fires ${signal?.rises === false ? "below" : "above"} ${level(rule.threshold, signal?.unit ?? "")} over ${span(rule.window)}`;
}

/** What a rule makes of a window without rows; null where there were some. @param {any} rule its definition @param {any} reading */
export function absenceWords(rule, reading) {
  if (reading?.lack !== "no_rows") return null;
  return { alerting: "No turns: this rule takes that for bad.", ok: "No turns: this rule takes that for good." }[/** @type {string} */ (rule.no_data)] ?? null;
}

/** A threshold beyond which a rule fires, in words. @param {any} rule its definition @param {Signal | undefined} signal */
export function condition(rule, signal) {
  const side = signal?.rises === false ? "below" : "above";
  const name = signal?.title ?? rule.signal;
  const weighed = rule.weight === "tokens" && signal && signal.weights.length > 1 ? " of tokens" : "";
  return `${name}${weighed} ${side} ${level(rule.threshold, signal?.unit ?? "")} over ${span(rule.window)}`;
}

/** "model gpt-5.6, client codex"; empty for a rule without groups. @param {Record<string, string>} labels */
export function groupWords(labels) {
  return Object.entries(labels).map(([name, value]) => `${name} ${value}`).join(", ");
}

/** What a link to rows is called: those that have no group of their own are found with those of all groups only. @param {string} word @param {Record<string, string>} labels */
export function rowsOf(word, labels) {
  const values = Object.values(labels);
  return values.length && values.every((value) => value === "other") ? `${word} of all groups` : word;
}

/** A link that leads to the web and nowhere else. @param {string} link */
export function webLink(link) {
  return /^https?:\/\//i.test(link) ? link : null;
}

/** A link of the server, on the host that this page came from. @param {string | null | undefined} link */
export function local(link) {
  if (!link) return null;
  const target = new URL(link, location.origin);
  return target.pathname + target.search;
}
