// @ts-check
// A message on purpose: marked as a test, with the real address and signature.

import { send } from "../api.js";
import { closePanel, leavePanel, openPanel } from "../dialog.js";
import { announce, h } from "../dom.js";
import { Fields, formFoot, onSubmit } from "./fields.js";

const STATES = /** @type {const} */ ([["firing", "Firing"], ["resolved", "Resolved"], ["no_data", "No data"]]);

/**
 * @param {any} rule
 * @param {string[]} receivers names of all
 * @param {() => void} sent
 */
export function openTestForm(rule, receivers, sent) {
  const fields = new Fields("test");
  const form = h("form", { class: "form", "aria-label": "Test" },
    h("p", { class: "muted" }, "Sends a message that is marked [TEST]. The state of the rule stays as it is."),
    fields.select("state", "State", STATES, { value: "firing" }),
    fields.boxes("receivers", "Receivers", receivers.map((name) => [name, name]), { ticked: rule.definition.receivers, none: "There is no receiver yet." }),
    fields.fault, formFoot("Send test", leavePanel));
  onSubmit(form, fields, async () => {
    await send("POST", `/api/alerts/rules/${encodeURIComponent(rule.id)}/test`, { state: fields.value("state"), receivers: fields.ticked("receivers") });
    closePanel();
    announce("The test is on its way; its delivery is in the list.");
    sent();
  });
  openPanel(`Test ${rule.definition.name}`, [form]);
}
