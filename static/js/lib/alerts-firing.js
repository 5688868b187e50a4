// @ts-check
// What fires now: the first thing that somebody on call looks for.

import { h, icon } from "./dom.js";
import { amount, threshold, groupWords, local, stateTag, webLink, when } from "./alert-words.js";
import { counted, regrouped } from "./format.js";
import { redraw } from "./keyed.js";

/** @typedef {import("./alert-words.js").Signal} Signal */

/** Rules with the groups of them that fire. @param {any[]} rules */
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
  redraw(host, h("ul", { class: "fires" }, ...found.map(({ rule, group }) => alert(rule, group, signals, act.silence))));
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
  const words = !evaluated.length ? "No rule is evaluated: all are paused."
    : `${counted(evaluated.length, "rule")} watched.${unknown.length ? ` ${counted(unknown.length, "rule")} cannot be judged at present; why stands with the rule.` : ""}`;
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
  const name = labels ? `${rule.definition.name}, ${labels}` : rule.definition.name;
  const id = `fires-${rule.id}-${group.key}`;
  return h("li", {}, h("article", { class: "card fire", "aria-label": `Firing: ${name}` },
    h("div", { class: "fire-head" },
      stateTag(group.state),
      h("h3", {}, h("a", { href: `#rule-${rule.id}` }, rule.definition.name)),
      labels && h("span", { class: "group" }, labels),
      h("span", { class: "tag-plain" }, rule.definition.severity),
      group.silenced && h("span", { class: "tag unknown" }, icon("silence"), "Silenced")),
    h("p", { class: "fire-value" },
      h("strong", {}, group.reading ? amount(group.reading.value, unit) : "–"),
      ` now, ${threshold(rule.definition, signal)}`, group.peak !== null && `, worst ${amount(group.peak, unit)}`),
    group.reading?.sentence && h("p", { class: "muted" }, regrouped(group.reading.sentence)),
    h("p", { class: "muted" }, "Firing since ", when(group.started_at),
      group.told ? "; receivers were told." : rule.definition.receivers.length ? "; receivers were not told." : "; the rule has no receivers."),
    h("div", { class: "actions" },
      rows && h("a", { class: "button small", href: rows, "data-key": `${id}-rows` }, icon("arrow-right"), "Rows"),
      csv && h("a", { class: "button small", href: csv, download: true, "data-key": `${id}-csv` }, icon("download"), "CSV"),
      runbook && h("a", { class: "button small", href: runbook, rel: "noopener noreferrer" }, icon("file"), "Runbook"),
      !group.silenced && h("button", { type: "button", class: "button small", "data-key": `${id}-silence`, "aria-label": `Silence ${name}`, click: () => silence(rule, group.labels) }, icon("silence"), "Silence"))));
}
