// @ts-check
// The rules: what each watches, how it stands, and what can be done with it.

import { add, h, icon } from "../dom.js";
import { counted, integer, regrouped } from "../format.js";
import { redraw } from "../keyed.js";
import { when } from "../server-time.js";
import { absenceWords, amount, condition, groupWords, level, local, rowsOf, span, stateTag, webLink } from "./words.js";

/** @typedef {import("./words.js").Signal} Signal */
/** @typedef {{edit: (rule: any) => void, preview: (rule: any) => void, test: (rule: any) => void, pause: (rule: any) => void, remove: (rule: any) => void, silence: (rule: any, labels: Record<string, string>) => void}} Actions */

/**
 * @param {HTMLElement} host
 * @param {any[]} rules
 * @param {Map<string, Signal>} signals
 * @param {Actions} act
 */
export function drawRules(host, rules, signals, act) {
  if (!rules.length) return redraw(host, h("p", { class: "card nothing-yet muted" }, "No rule yet."));
  redraw(host, h("ul", { class: "rules" }, ...rules.map((rule) => h("li", {}, card(rule, signals.get(rule.definition.signal), act)))));
}

/**
 * @param {any} rule
 * @param {Signal | undefined} signal
 * @param {Actions} act
 */
function card(rule, signal, act) {
  const { definition } = rule;
  const one = rule.groups.length === 1 && !definition.group_by.length ? rule.groups[0] : null;
  return h("article", { class: "card rule", id: `rule-${rule.id}`, tabindex: -1, "data-key": `rule-${rule.id}`, "data-state": rule.state, "aria-labelledby": `rule-${rule.id}-name` },
    h("div", { class: "rule-head" },
      h("span", { class: "state" }, stateTag(rule.state)),
      h("h3", { id: `rule-${rule.id}-name` }, definition.name),
      h("span", { class: "tag-plain" }, h("span", { class: "visually-hidden" }, "severity "), definition.severity),
      rule.origin === "file" && h("span", { class: "tag-plain", title: "Read-only here" }, icon("file"), "settings file")),
    h("p", {}, condition(definition, signal), extra(definition)),
    standing(rule, one, signal),
    rule.failure && h("p", { class: "field-error" }, `The last evaluation failed: ${rule.failure}`),
    h("p", { class: "muted" }, definition.receivers.length ? `Tells ${definition.receivers.join(", ")}` : "Tells nobody: it has no receivers",
      definition.filter && h("span", {}, " · only ", h("code", {}, definition.filter)),
      rule.origin === "file" && " · from the settings file: to change it, edit the file and restart"),
    buttons(rule, act),
    details(rule, signal, act));
}

/** @param {any} definition */
function extra(definition) {
  const words = [`at least ${counted(definition.min_turns, "turn")}`];
  if (definition.confidence === "wilson") words.push("proven");
  if (definition.pending_for !== "0s") words.push(`for ${span(definition.pending_for)}`);
  if (definition.group_by.length) words.push(`each ${definition.group_by.join(" and ")}`);
  return h("span", { class: "muted" }, `, ${words.join(", ")}`);
}

/**
 * What holds now, in one line.
 * @param {any} rule
 * @param {any} one the only group of a rule without groups
 * @param {Signal | undefined} signal
 */
function standing(rule, one, signal) {
  if (rule.state === "paused") return h("p", { class: "muted" }, "Paused: it is not evaluated and tells nobody.");
  if (one) {
    const { reading } = one;
    if (!reading) return h("p", { class: "muted" }, "Not evaluated yet.");
    const value = reading.lack ? (absenceWords(rule.definition, reading) ?? "Not judged.") : h("strong", {}, amount(reading.value, signal?.unit ?? ""));
    return h("p", { class: "standing" }, value, " ", h("span", { class: "muted" }, regrouped(reading.sentence ?? "")), one.silenced && " ", one.silenced && silenced());
  }
  if (!rule.groups.length) return h("p", { class: "muted" }, rule.evaluated_until ? "No row in the window, so there is no group yet." : "Not evaluated yet.");
  const counts = new Map();
  for (const group of rule.groups) counts.set(group.state, (counts.get(group.state) ?? 0) + 1);
  return h("p", { class: "standing" }, `${counted(rule.groups.length, "group")}: `,
    ...[...counts].map(([state, count]) => h("span", { class: "count" }, `${integer(count)} `, stateTag(state))),
    rule.groups.some((/** @type {any} */ group) => group.silenced) && silenced());
}

function silenced() {
  return h("span", { class: "tag unknown" }, icon("silence"), "Silenced");
}

/**
 * @param {any} rule
 * @param {Actions} act
 */
function buttons(rule, act) {
  const { name, enabled } = rule.definition;
  /** @type {(key: string, words: string, does: () => void) => HTMLElement} */
  const button = (key, words, does) => h("button", { type: "button", class: "button small", "data-key": `rule-${rule.id}-${key}`, "aria-label": `${words.replace("…", "")} ${name}`, click: does }, words);
  const own = rule.origin === "page";
  const row = h("div", { class: "actions" });
  add(row,
    own && button("edit", "Edit", () => act.edit(rule)),
    button("preview", "Preview", () => act.preview(rule)),
    button("test", "Test…", () => act.test(rule)),
    button("silence", "Silence", () => act.silence(rule, {})),
    own && button("pause", enabled ? "Pause" : "Resume", () => act.pause(rule)),
    own && button("remove", "Delete", () => act.remove(rule)));
  return row;
}

/**
 * @param {any} rule
 * @param {Signal | undefined} signal
 * @param {Actions} act
 */
function details(rule, signal, act) {
  return h("details", { "data-key": `rule-${rule.id}-details` },
    h("summary", { "data-key": `rule-${rule.id}-summary` }, rule.definition.group_by.length ? "Groups and settings" : "Numbers and settings",
      h("span", { class: "visually-hidden" }, ` of ${rule.definition.name}`)),
    rule.groups.length > 0 && h("div", { class: "groups" }, ...rule.groups.map((/** @type {any} */ group) => groupBox(rule, group, signal, act))),
    settings(rule, signal));
}

/**
 * @param {any} rule
 * @param {any} group
 * @param {Signal | undefined} signal
 * @param {Actions} act
 */
function groupBox(rule, group, signal, act) {
  const { reading } = group;
  const unit = signal?.unit ?? "";
  const labels = groupWords(group.labels);
  const [rows, csv] = [local(group.links?.rows), local(group.links?.csv)];
  const key = `rule-${rule.id}-${group.key}`;
  /** @type {[string, import("../dom.js").Child][]} */
  const facts = [["in this state since", group.since ? when(group.since) : "from the start"]];
  if (reading) {
    facts.push(["value", amount(reading.value, unit)]);
    if (rule.definition.confidence === "wilson") facts.push([signal?.rises === false ? "at most, proven" : "at least, proven", amount(reading.bound, unit)]);
    if (unit === "ratio") facts.push([`${signal?.part ?? "part"} / ${signal?.whole ?? "whole"}`, `${integer(reading.part)} / ${integer(reading.whole)}`]);
    facts.push(["turns it rests on", integer(reading.turns)], ["turns not known", integer(reading.unknown)], ["rows", integer(reading.rows)], ["evaluated", when(reading.at)]);
  }
  if (group.started_at) facts.push([group.ended_at ? "last fired" : "fires since", when(group.started_at)], ["worst", amount(group.peak, unit)]);
  if (group.ended_at) facts.push(["ended", when(group.ended_at)]);
  return h("section", { class: "group-box", "aria-label": labels || "All turns" },
    h("div", { class: "rule-head" }, stateTag(group.state), h("h4", {}, labels || "All turns"), group.silenced && silenced()),
    reading?.sentence && h("p", { class: "muted" }, regrouped(reading.sentence)),
    h("dl", { class: "facts" }, ...facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
    h("div", { class: "actions" },
      rows && h("a", { class: "button small", href: rows, "data-key": `${key}-rows` }, icon("arrow-right"), rowsOf("Rows", group.labels)),
      csv && h("a", { class: "button small", href: csv, download: true, "data-key": `${key}-csv` }, icon("download"), rowsOf("CSV", group.labels)),
      labels && h("button", { type: "button", class: "button small", "data-key": `${key}-silence`, "aria-label": `Silence ${rule.definition.name}, ${labels}`, click: () => act.silence(rule, group.labels) }, icon("silence"), "Silence")));
}

const NO_DATA = /** @type {Record<string, string>} */ ({ no_data: "shown", ok: "good", alerting: "bad: it fires", keep_last: "no change" });

/**
 * @param {any} rule
 * @param {Signal | undefined} signal
 */
function settings(rule, signal) {
  const { definition } = rule;
  const unit = signal?.unit ?? "";
  /** @type {[string, import("../dom.js").Child][]} */
  const facts = [
    ["over again at", level(definition.recover, unit)], ["evaluated every", span(definition.every)], ["delay", span(definition.delay)],
    ["pending for", span(definition.pending_for)], ["keeps firing for", span(definition.keep_firing_for)], ["a window without rows is", NO_DATA[definition.no_data] ?? definition.no_data],
    ["reminds every", definition.renotify_every === "0s" ? "never" : `${span(definition.renotify_every)}, at most ${integer(definition.renotify_max)} times`],
    ["evaluated until", when(rule.evaluated_until, "never yet")],
  ];
  if (definition.owner) facts.push(["owner", definition.owner]);
  for (const [name, value] of Object.entries(definition.labels)) facts.push([`label ${name}`, String(value)]);
  if (webLink(definition.runbook_url)) facts.push(["runbook", h("a", { href: definition.runbook_url, rel: "noopener noreferrer" }, definition.runbook_url)]);
  return h("div", { class: "settings" }, definition.description && h("p", {}, definition.description),
    h("dl", { class: "facts" }, ...facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))));
}
