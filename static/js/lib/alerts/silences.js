// @ts-check
// Silences: a time in which some alerts tell nobody. The list of them, and the form of a new one.

import { send } from "../api.js";
import { closePanel, leavePanel, openPanel } from "../dialog.js";
import { announce, h, icon } from "../dom.js";
import { redraw } from "../keyed.js";
import { present, when } from "../server-time.js";
import { fromField, zone } from "../time.js";
import { Fields, formFoot, onSubmit } from "./fields.js";
import { groupWords } from "./words.js";

const TIMES = /** @type {const} */ ([["30m", "30 minutes"], ["1h", "1 hour"], ["2h", "2 hours"], ["8h", "8 hours"], ["1d", "1 day"], ["7d", "7 days"], ["", "until a time …"]]);
/** What groups are made of. */
export const GROUPINGS = /** @type {const} */ (["model", "client", "upstream", "tenant"]);

/**
 * @param {HTMLElement} host
 * @param {any[]} silences
 * @param {Map<string, string>} names of rules by id
 * @param {(silence: any) => void} end
 */
export function drawSilences(host, silences, names, end) {
  if (!silences.length) return redraw(host, h("p", { class: "card nothing-yet muted" }, "Nothing is silenced."));
  redraw(host, h("ul", { class: "card lines" }, ...silences.map((silence) => {
    const over = Date.parse(silence.ends_at) <= present();
    const what = words(silence, names);
    return h("li", { class: over ? "line past" : "line" },
      h("p", {}, !over && h("span", { class: "tag unknown" }, icon("silence"), "Silent"), " ", h("strong", {}, what), over ? ": ended " : ": ends ", when(silence.ends_at)),
      (silence.comment || silence.author) && h("p", { class: "muted" }, [silence.comment, silence.author].filter(Boolean).join(" – ")),
      !over && h("div", { class: "actions" }, h("button", { type: "button", class: "button small", "data-key": `silence-${silence.id}`, "aria-label": `End now: ${what}`, click: () => end(silence) }, "End now")));
  })));
}

/**
 * @param {any} silence
 * @param {Map<string, string>} names
 */
function words(silence, names) {
  const rule = silence.rule_id === null ? "All rules" : (names.get(silence.rule_id) ?? "A deleted rule");
  const labels = groupWords(silence.matchers);
  return labels ? `${rule}, ${labels}` : rule;
}

/**
 * @param {any[]} rules
 * @param {{rule: string, labels: Record<string, string>}} given what to begin with; the rule "" is all rules
 * @param {() => void} saved
 */
export function openSilenceForm(rules, given, saved) {
  const fields = new Fields("silence");
  const choices = /** @type {[string, string][]} */ ([["", "All rules"], ...rules.map((rule) => [rule.id, rule.definition.name])]);
  const end = h("div", {}, fields.text("ends_at", `Until, in ${zone()}`, { attributes: { type: "datetime-local" } }));
  const boxes = new Map(GROUPINGS.map((name) => [name, fields.text(name, name, { value: given.labels[name], attributes: { spellcheck: "false" } })]));
  const groups = h("fieldset", { class: "form-part" }, h("legend", {}, "Only groups with (empty: all groups)"), h("div", { class: "two" }, ...boxes.values()));
  const form = h("form", { class: "form", "aria-label": "Silence" },
    h("p", { class: "muted" }, "Alerts are still evaluated and shown here. When the silence ends, what still fires is told once."),
    fields.select("rule_id", "Rule", choices, { value: given.rule }),
    groups,
    fields.select("for", "For", TIMES, { value: "2h" }), end,
    fields.text("comment", "Why", { help: "For whoever looks next." }),
    fields.text("author", "Your name"),
    fields.fault, formFoot("Silence", leavePanel));
  const follow = () => {
    end.hidden = fields.value("for") !== "";
    const asked = groupsOf(rules, fields.value("rule_id"));
    for (const [name, box] of boxes) box.hidden = !asked.includes(name);
    groups.hidden = !asked.length;
  };
  form.addEventListener("change", follow);
  follow();
  onSubmit(form, fields, async () => {
    const matchers = Object.fromEntries(groupsOf(rules, fields.value("rule_id")).map((name) => [name, fields.value(name)]).filter(([, value]) => value));
    if (!fields.value("for") && !fields.value("ends_at")) throw Object.assign(new Error("Say until when."), { field: "ends_at" });
    const time = fields.value("for") ? { for: fields.value("for") } : { ends_at: fromField(fields.value("ends_at"))?.toISOString() ?? "" };
    await send("POST", "/api/alerts/silences", {
      rule_id: fields.value("rule_id") || null, matchers, comment: fields.value("comment"), author: fields.value("author"), ...time,
    });
    closePanel();
    announce("Silenced.");
    saved();
  });
  openPanel("New silence", [form]);
}

/**
 * What the groups of a rule can be told apart by; for all rules everything.
 * @param {any[]} rules
 * @param {string} id
 * @returns {readonly string[]}
 */
function groupsOf(rules, id) {
  return id ? (rules.find((rule) => rule.id === id)?.definition.group_by ?? []) : GROUPINGS;
}
