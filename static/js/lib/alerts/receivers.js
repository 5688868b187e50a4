// @ts-check
// The receivers: where messages go. Of an address only scheme, host and port are ever known here.

import { h, icon } from "../dom.js";
import { integer } from "../format.js";
import { redraw } from "../keyed.js";
import { when } from "../server-time.js";
import { deliveryTag } from "./words.js";

export const KINDS = /** @type {const} */ ([["webhook", "Webhook (signed JSON)"], ["slack", "Slack"], ["alertmanager", "Alertmanager"]]);
const KIND_WORDS = /** @type {Record<string, string>} */ (Object.fromEntries(KINDS));

/**
 * @param {HTMLElement} host
 * @param {any[]} receivers
 * @param {{edit: (receiver: any) => void, rotate: (receiver: any) => void, test: (receiver: any) => void, enable: (receiver: any) => void, remove: (receiver: any) => void}} act
 */
export function drawReceivers(host, receivers, act) {
  if (!receivers.length) return redraw(host, h("p", { class: "card nothing-yet muted" }, "No receiver yet. A rule without one is shown here, but tells nobody."));
  redraw(host, h("ul", { class: "card lines" }, ...receivers.map((receiver) => h("li", {}, line(receiver, act)))));
}

/**
 * @param {any} receiver
 * @param {Parameters<typeof drawReceivers>[2]} act
 */
function line(receiver, act) {
  const { id, name } = receiver;
  /** @type {(key: string, words: string, does: () => void) => HTMLElement} */
  const button = (key, words, does) => h("button", { type: "button", class: "button small", "data-key": `receiver-${id}-${key}`, "aria-label": `${words} ${name}`, click: does }, words);
  const own = receiver.origin === "page";
  const last = receiver.last_delivery;
  return h("article", { class: "line", "aria-labelledby": `receiver-${id}-name` },
    h("div", { class: "rule-head" },
      h("h3", { id: `receiver-${id}-name` }, name),
      h("span", { class: "tag-plain" }, KIND_WORDS[receiver.kind] ?? receiver.kind),
      !own && h("span", { class: "tag-plain", title: "Read-only here" }, icon("file"), "settings file"),
      receiver.disabled && h("span", { class: "tag bad" }, icon("refused"), "Disabled")),
    h("p", { class: "muted" }, h("code", {}, receiver.shown), ` · ${signed(receiver)}`),
    receiver.disabled && h("p", { class: "field-error" }, `Nothing is sent: ${receiver.disabled}`),
    last && h("p", { class: "muted" }, "Last message ", when(last.created_at ?? last.settled_at), " ", deliveryTag(last.state)),
    h("div", { class: "actions" },
      button("test", "Test", () => act.test(receiver)),
      own && button("edit", "Edit", () => act.edit(receiver)),
      own && receiver.kind !== "slack" && button("rotate", "Secrets", () => act.rotate(receiver)),
      receiver.disabled && button("enable", "Enable", () => act.enable(receiver)),
      own && button("remove", "Delete", () => act.remove(receiver))));
}

/** @param {any} receiver */
function signed(receiver) {
  if (!receiver.signed) return "not signed";
  return receiver.secrets > 1 ? `signed with ${integer(receiver.secrets)} secrets, while they are exchanged` : "signed";
}
