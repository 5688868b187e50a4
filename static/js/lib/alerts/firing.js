// @ts-check
// What fires now: the first thing that somebody on call looks for.

import { h, icon } from "../dom.js";
import { counted, integer, regrouped } from "../format.js";
import { redraw } from "../keyed.js";
import { when } from "../server-time.js";
import { absenceWords, amount, rowsOf, threshold, groupWords, local, stateTag, stateWord, webLink } from "./words.js";

/** @typedef {import("./words.js").Signal} Signal */
/** @typedef {{rule: any, group: any}} Fire */

const MOST = 12; // more hide the rules: they are folded
const SEVERITIES = ["critical", "error", "warning", "info"];

/** Rules with the groups of them that fire. @param {any[]} rules @returns {Fire[]} */
export function firing(rules) {
  return rules.flatMap((rule) => rule.groups
    .filter((/** @type {any} */ group) => group.state === "firing" || group.state === "recovering")
    .map((/** @type {any} */ group) => ({ rule, group })));
}

/**
 * @param {HTMLElement} host
 * @param {any[]} rules
 * @param {Map<string, Signal>} signals
 * @param {{silence: (rule: any, labels: Record<string, string>) => void, start: () => void}} act
 */
export function drawFiring(host, rules, signals, act) {
  const found = firing(rules);
  if (!rules.length) return redraw(host, ...noRule(act.start));
  if (!found.length) return redraw(host, calm(rules));
  const cards = found.toSorted(byNeed).map(({ rule, group }) => alert(rule, group, signals, act.silence));
  const rest = cards.slice(MOST);
  redraw(host, h("ul", { class: "fires" }, ...cards.slice(0, MOST)),
    rest.length > 0 && h("details", { class: "more", "data-key": "fires-more" }, h("summary", { "data-key": "fires-summary" }, `${integer(rest.length)} more, of ${counted(found.length, "alert")}`),
      h("ul", { class: "fires" }, ...rest)));
}

/** Who knows. Whether a message has arrived stands with the message. @param {any} rule @param {any} group */
function toldWords(rule, group) {
  if (!rule.definition.receivers.length) return "; the rule has no receivers.";
  return group.told ? "; messages to its receivers stand under Deliveries." : "; receivers were not told.";
}

/** The severest first, and of equal ones the newest. @param {Fire} one @param {Fire} other */
function byNeed(one, other) {
  const rank = (/** @type {Fire} */ fire) => SEVERITIES.indexOf(fire.rule.definition.severity);
  return rank(one) - rank(other) || String(other.group.started_at).localeCompare(String(one.group.started_at));
}

/** @param {() => void} start */
function noRule(start) {
  return [h("div", { class: "card empty" },
    icon("bell"),
    h("h3", {}, "Nobody is told yet"),
    h("p", {}, "A rule watches one number of the ledger, such as the mismatch rate, and tells a webhook once when it is proven to be bad and once when it is good again. Before a rule is saved, you see when it would have fired."),
    h("div", { class: "actions" }, h("button", { type: "button", class: "button primary", "data-key": "first-rule", click: start }, icon("plus"), "New rule for the mismatch rate")))];
}

/** @param {any[]} rules */
function calm(rules) {
  const evaluated = rules.filter((rule) => rule.state !== "paused");
  const unknown = evaluated.filter((rule) => rule.state === "no_data" || rule.state === "error");
  const good = unknown.length === 0 && evaluated.length > 0;
  const partly = unknown.some((rule) => rule.groups.some((/** @type {any} */ group) => group.state === "inactive"));
  const words = !evaluated.length ? "No rule is evaluated: all are paused."
    : `${counted(evaluated.length, "rule")} watched.${unknown.length ? ` ${counted(unknown.length, "rule")} cannot be judged at present${partly ? ", or not in all groups" : ""}; why stands with the rule.` : ""}`;
  return h("div", { class: `card calm ${good ? "ok" : "unsure"}` }, icon(good ? "completed" : "unknown"),
    h("p", {}, h("strong", {}, "Nothing fires."), " ", words));
}

/**
 * @param {any} rule
 * @param {any} group
 * @param {Map<string, Signal>} signals
 * @param {(rule: any, labels: Record<string, string>) => void} silence
 */
function alert(rule, group, signals, silence) {
  const signal = signals.get(rule.definition.signal);
  const unit = signal?.unit ?? "";
  const labels = groupWords(group.labels);
  const runbook = webLink(rule.definition.runbook_url);
  const [rows, csv] = [local(group.links?.rows), local(group.links?.csv)];
  const absent = rule.definition.no_data === "alerting" && absenceWords(rule.definition, group.reading) !== null;
  const name = labels ? `${rule.definition.name}, ${labels}` : rule.definition.name;
  const id = `fires-${rule.id}-${group.key}`;
  return h("li", {}, h("article", { class: "card fire", "aria-label": `${stateWord(group.state)}: ${name}` },
    h("div", { class: "fire-head" },
      stateTag(group.state),
      h("h3", {}, h("a", { href: `#rule-${rule.id}` }, rule.definition.name)),
      labels && h("span", { class: "group" }, labels),
      h("span", { class: "tag-plain" }, h("span", { class: "visually-hidden" }, "severity "), rule.definition.severity),
      group.silenced && h("span", { class: "tag unknown" }, icon("silence"), "Silenced")),
    h("p", { class: "fire-value" },
      h("strong", {}, absent ? "No turns" : amount(group.reading?.value, unit)),
      absent ? " now, which this rule takes for bad" : ` now, ${threshold(rule.definition, signal)}`, group.peak !== null && `, worst ${amount(group.peak, unit)}`),
    group.reading?.sentence && h("p", { class: "muted" }, regrouped(group.reading.sentence)),
    h("p", { class: "muted" }, "Firing since ", when(group.started_at),
      toldWords(rule, group)),
    h("div", { class: "actions" },
      rows && h("a", { class: "button small", href: rows, "data-key": `${id}-rows` }, icon("arrow-right"), rowsOf("Rows", group.labels)),
      csv && h("a", { class: "button small", href: csv, download: true, "data-key": `${id}-csv` }, icon("download"), rowsOf("CSV", group.labels)),
      runbook && h("a", { class: "button small", href: runbook, rel: "noopener noreferrer" }, icon("file"), "Runbook"),
      !group.silenced && h("button", { type: "button", class: "button small", "data-key": `${id}-silence`, "aria-label": `Silence ${name}`, click: () => silence(rule, group.labels) }, icon("silence"), "Silence"))));
}
