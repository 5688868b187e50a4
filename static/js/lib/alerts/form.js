// @ts-check
// The form of a rule. What can be asked for follows the chosen signal; the preview follows the form.

import { send } from "../api.js";
import { closePanel, leavePanel, openPanel } from "../dialog.js";
import { announce, h } from "../dom.js";
import { zone } from "../time.js";
import { Fields, formFoot, onSubmit, plainly } from "./fields.js";
import { Preview } from "./preview.js";

/** @typedef {import("./words.js").Signal} Signal */

const GROUPINGS = /** @type {const} */ ([["model", "Model"], ["client", "Client"], ["upstream", "Upstream"], ["tenant", "Tenant"]]);
const SEVERITIES = /** @type {const} */ ([["info", "Info"], ["warning", "Warning"], ["error", "Error"], ["critical", "Critical"]]);
const NO_DATA = /** @type {const} */ ([
  ["no_data", "is shown; an alert ends after three of them"], ["ok", "counts as good"],
  ["alerting", "counts as bad: the rule fires"], ["keep_last", "changes nothing"],
]);
const WEIGHTS = /** @type {Record<string, string>} */ ({ turns: "Turns", tokens: "Input tokens" });
const CONFIDENCES = /** @type {Record<string, string>} */ ({ wilson: "What the turns prove (Wilson)", raw: "The value itself" });
const UNITS = /** @type {Record<string, string>} */ ({ ratio: "%", ms: "ms", tokens: "tokens" });
const PROOF = "3 of 10 turns prove only 10.8 %, 30 of 100 prove 21.9 %.";
const DURATION = "Such as 90s, 15m or 6h.";

/** What a new rule begins with. */
export const PRESET = Object.freeze({
  name: "", description: "", owner: "", enabled: true, severity: "warning", signal: "mismatch_rate", weight: "turns", filter: "",
  group_by: [], window: "15m", every: "1m", delay: "10s", threshold: 0.2, recover: 0.2, confidence: "wilson", min_turns: 20,
  pending_for: "0s", keep_firing_for: "0s", no_data: "no_data", renotify_every: "0s", renotify_max: 10, receivers: [], labels: {}, runbook_url: "",
});

/**
 * @param {any} rule null for a new one
 * @param {any} given the definition to begin with
 * @param {Map<string, Signal>} signals
 * @param {string[]} receivers names
 * @param {(saved: any) => void} saved
 */
export function openRuleForm(rule, given, signals, receivers, saved) {
  const fields = new Fields("rule", (fault) => (fault.code === "name_taken" ? "name" : null));
  const known = () => signals.get(fields.value("signal"));
  const names = [...new Set([...receivers, ...given.receivers])];
  const parts = h("div", { class: "form" },
    h("fieldset", { class: "form-part" }, h("legend", {}, "What is watched"),
      fields.text("name", "Name", { value: given.name, help: "Stands in every message.", attributes: { maxlength: 100, required: true } }),
      fields.select("signal", "Signal", [...signals.values()].map((one) => [one.name, one.title]), { value: given.signal, help: " " }),
      fields.select("weight", "Counts", weights(signals.get(given.signal)), { value: given.weight }),
      fields.text("filter", "Only rows that match", { value: given.filter, help: "A filter as in the address of Requests, such as model=gpt-5.6&client=codex_exec. Empty: all turns.", attributes: { spellcheck: "false" } }),
      fields.boxes("group_by", "One alert for each", GROUPINGS, { ticked: given.group_by, help: "Nothing ticked: one alert for all together. At most 50 groups." })),
    h("fieldset", { class: "form-part two" }, h("legend", {}, "When it fires"),
      fields.text("threshold", "Fires above", { unit: "%", value: shown(given.threshold, signals.get(given.signal)), attributes: { inputmode: "decimal" }, help: " " }),
      fields.text("recover", "Is over at or below", { unit: "%", value: given.recover === given.threshold ? "" : shown(given.recover, signals.get(given.signal)), attributes: { inputmode: "decimal" }, help: "Empty: as the threshold." }),
      fields.text("window", "Over the last", { value: given.window, help: "A multiple of the step below." }),
      fields.text("min_turns", "At least so many turns", { value: given.min_turns, attributes: { inputmode: "numeric" }, help: "With fewer nothing is judged." }),
      fields.select("confidence", "Compared is", confidences(signals.get(given.signal), given.weight), { value: given.confidence, help: PROOF }),
      fields.text("pending_for", "Must stay so for", { value: given.pending_for, help: "0s: it fires at once." }),
      fields.text("keep_firing_for", "Must stay good for", { value: given.keep_firing_for, help: "Before the alert is over." }),
      fields.select("no_data", "A window without rows", NO_DATA, { value: given.no_data })),
    h("fieldset", { class: "form-part two" }, h("legend", {}, "Who is told"),
      fields.boxes("receivers", "Receivers", names.map((name) => [name, name]), { ticked: given.receivers, none: "There is no receiver yet: add one below the rules. The rule works without, but tells nobody." }),
      fields.select("severity", "Severity", SEVERITIES, { value: given.severity })),
    h("details", { class: "form-part" }, h("summary", {}, "More settings"), h("div", { class: "two" },
      fields.text("every", "Step: evaluated every", { value: given.every, help: DURATION }),
      fields.text("delay", "Delay", { value: given.delay, help: "The window ends so long before, so that its rows are written." }),
      fields.text("renotify_every", "Remind every", { value: given.renotify_every, help: "0s: never." }),
      fields.text("renotify_max", "Reminders at most", { value: given.renotify_max, attributes: { inputmode: "numeric" } }),
      fields.text("runbook_url", "Runbook link", { value: given.runbook_url, attributes: { inputmode: "url" } }),
      fields.text("owner", "Owner", { value: given.owner }),
      fields.area("labels", "Labels", { value: Object.entries(given.labels).map((pair) => pair.join("=")).join("\n"), help: "One name=text per line; in every message." }),
      fields.area("description", "Description", { value: given.description }))));
  const definition = () => ({ ...read(fields, known()), enabled: given.enabled });
  const preview = new Preview(() => ({ rule: named(checked(definition(), known())), unit: known()?.unit ?? "" }), zone, (fault, asked) => asked && fields.blame(fault));
  // beside the form, so it names the field
  preview.plainly = (fault) => {
    const said = plainly(fault);
    const label = fields.label(fault.field ?? "");
    return label ? `${label}: ${said}` : said;
  };
  const follow = () => {
    reword(fields, known());
    preview.soon();
  };
  const form = h("form", { class: "form", "aria-label": "Rule" },
    h("div", { class: "beside" }, parts, preview.element), fields.fault, formFoot(rule ? "Save rule" : "Create rule", leavePanel));
  fields.control("signal").addEventListener("change", () => suggest(fields, known()));
  form.addEventListener("input", (event) => {
    if (!preview.element.contains(/** @type {Node} */ (event.target))) follow();
  });
  onSubmit(form, fields, async () => {
    const path = rule ? `/api/alerts/rules/${encodeURIComponent(rule.id)}` : "/api/alerts/rules";
    const given = checked(definition(), known());
    const answer = await send(rule ? "PUT" : "POST", path, rule ? { ...given, version: rule.version } : given);
    closePanel();
    announce(`Saved the rule ${answer.rule.definition.name}.`);
    saved(answer.rule);
  });
  reword(fields, known());
  openPanel(rule ? `Edit ${given.name}` : "New rule", [form], { kind: "widest", closed: () => preview.stop() });
  void preview.run(false);
}

/**
 * The form asks in percent, the server answers in fractions: what is wrong with a share is said here.
 * @param {any} definition
 * @param {Signal | undefined} signal
 */
function checked(definition, signal) {
  const { threshold, recover } = definition;
  const share = signal?.unit === "ratio";
  /** @type {(field: string, message: string) => never} */
  const refuse = (field, message) => {
    throw Object.assign(new Error(message), { field });
  };
  if (!share || typeof threshold !== "number") return definition;
  if (threshold < 0 || threshold > 1) refuse("threshold", "A share lies between 0 and 100 %.");
  if (threshold === (signal.rises ? 1 : 0)) refuse("threshold", `No share lies ${signal.rises ? "above 100" : "below 0"} %: the rule would never fire.`);
  if (typeof recover !== "number") return definition;
  if (recover < 0 || recover > 1) refuse("recover", "A share lies between 0 and 100 %.");
  if (signal.rises ? recover > threshold : recover < threshold) refuse("recover", `Must be at ${signal.rises ? "most" : "least"} the threshold of ${shown(threshold, signal)} %.`);
  return definition;
}

/** A rule that is not named yet can be tried all the same. @param {any} definition */
function named(definition) {
  return { ...definition, name: definition.name || "preview" };
}

/** @param {Signal | undefined} signal @returns {[string, string][]} */
function weights(signal) {
  return (signal?.weights ?? []).map((weight) => [weight, WEIGHTS[weight] ?? weight]);
}

/** @param {Signal | undefined} signal @param {string} weight @returns {[string, string][]} */
function confidences(signal, weight) {
  const possible = weight === "tokens" ? ["raw"] : (signal?.confidences ?? []);
  return possible.map((name) => [name, CONFIDENCES[name] ?? name]);
}

/**
 * A value as the form shows it: a share in percent.
 * @param {number} value
 * @param {Signal | undefined} signal
 */
function shown(value, signal) {
  return String(signal?.unit === "ratio" ? Number((value * 100).toPrecision(12)) : value);
}

/** Words, units and choices that follow from the signal. @param {Fields} fields @param {Signal | undefined} signal */
function reword(fields, signal) {
  if (!signal) return;
  const unit = UNITS[signal.unit] ?? signal.unit;
  const weight = fields.value("weight");
  fields.choices("weight", weights(signal));
  fields.choices("confidence", confidences(signal, fields.value("weight") || weight));
  const provable = confidences(signal, fields.value("weight")).length > 1;
  fields.reword("confidence", { help: provable ? PROOF : "Only a rate of turns can be proven." });
  fields.reword("signal", { help: signal.unit === "ratio" ? `${signal.part} ÷ ${signal.whole}. ${signal.rises ? "High" : "Low"} is bad.` : `${signal.part}, of ${signal.whole}. ${signal.rises ? "High" : "Low"} is bad.` });
  fields.reword("threshold", { label: signal.rises ? "Fires above" : "Fires below", unit, help: `In ${unit === "%" ? "percent" : unit}.` });
  fields.reword("recover", { label: signal.rises ? "Is over at or below" : "Is over at or above", unit });
}

const SENSIBLE = /** @type {Record<string, [string, string]>} */ ({
  mismatch_rate: ["20", ""], break_rate: ["20", ""], incremental_rate: ["70", ""], cached_ratio: ["50", ""],
  error_rate: ["5", ""], ttft_p95: ["10000", ""], missed_tokens: ["1000000", ""],
});

/** Another signal has another scale: a threshold of the former one would mean nothing. @param {Fields} fields @param {Signal | undefined} signal */
function suggest(fields, signal) {
  const [threshold, recover] = SENSIBLE[signal?.name ?? ""] ?? ["", ""];
  fields.control("threshold").value = threshold;
  fields.control("recover").value = recover;
  reword(fields, signal);
}

/**
 * The definition that the form holds. What cannot be read is left as it was typed: the server says what is wrong.
 * @param {Fields} fields
 * @param {Signal | undefined} signal
 */
function read(fields, signal) {
  const number = (/** @type {string} */ name) => {
    const text = fields.value(name).replace(",", ".");
    return text === "" || Number.isNaN(Number(text)) ? text : Number(text);
  };
  const level = (/** @type {string} */ name) => {
    const value = number(name);
    return typeof value === "number" && signal?.unit === "ratio" ? Number((value / 100).toPrecision(12)) : value;
  };
  /** @type {Record<string, unknown>} */
  const definition = {};
  for (const name of ["name", "description", "owner", "severity", "signal", "weight", "filter", "confidence", "no_data", "runbook_url", "window", "every", "delay", "pending_for", "keep_firing_for", "renotify_every"]) {
    definition[name] = fields.value(name);
  }
  for (const name of ["min_turns", "renotify_max"]) definition[name] = number(name);
  definition.threshold = level("threshold");
  if (fields.value("recover") !== "") definition.recover = level("recover");
  definition.group_by = fields.ticked("group_by");
  definition.receivers = fields.ticked("receivers");
  definition.labels = labels(fields.value("labels"));
  return definition;
}

/** @param {string} text */
export function labels(text) {
  return Object.fromEntries(text.split("\n").map((line) => line.trim()).filter(Boolean).map((line) => {
    const at = line.indexOf("=");
    return at < 0 ? [line, ""] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
  }));
}

/**
 * The preview of a rule as it is.
 * @param {any} rule
 * @param {Signal | undefined} signal
 */
export function openRulePreview(rule, signal) {
  const preview = new Preview(() => ({ id: rule.id, unit: signal?.unit ?? "" }), zone, () => undefined);
  openPanel(`Preview of ${rule.definition.name}`, [preview.element], { kind: "wide", closed: () => preview.stop() });
  void preview.run(false);
}
