// @ts-check
// What happened, in words; and in the demo, what the built-in receiver got.

import { h, icon } from "../dom.js";
import { regrouped } from "../format.js";
import { redraw } from "../keyed.js";
import { when } from "../server-time.js";
import { afterTag, causeWords, groupWords, stateTag } from "./words.js";

/**
 * @param {HTMLElement} host
 * @param {any[]} events newest first
 */
export function drawHistory(host, events) {
  if (!events.length) return redraw(host, h("p", { class: "card nothing-yet muted" }, "Nothing happened yet."));
  redraw(host, h("ol", { class: "card lines" }, ...events.map((event) => {
    const labels = groupWords(event.group ?? {});
    return h("li", { class: "line" },
      h("p", {}, when(event.at), " ", h("strong", {}, event.rule), labels && ` (${labels})`, ": ", stateTag(event.before), " → ", afterTag(event)),
      h("p", { class: "muted" }, `${capital(causeWords(event.cause))}. `, regrouped(event.sentence ?? "")));
  })));
}

/** @param {string} text */
function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/**
 * @param {HTMLElement} host
 * @param {any[]} received newest first
 */
export function drawReceived(host, received) {
  if (!received.length) return redraw(host, h("p", { class: "card nothing-yet muted" }, "Nothing arrived yet."));
  redraw(host, h("ul", { class: "card lines" }, ...received.map((one, at) => h("li", { class: "line" },
    h("p", {}, when(one.at), " ", h("strong", {}, one.title), " ", h("code", {}, one.type), " ",
      one.verified ? h("span", { class: "tag ok" }, icon("completed"), "Signature verified") : h("span", { class: "tag bad" }, icon("failed"), "Signature wrong")),
    h("details", { "data-key": `received-${one.webhook_id}-${one.at}` }, h("summary", {}, "Body", h("span", { class: "visually-hidden" }, ` of ${one.title}`)),
      h("pre", { class: "body", tabindex: 0, role: "region", "aria-label": `Body ${at + 1}` }, body(one.body)))))));
}

/** @param {unknown} given JSON, as text or read already */
function body(given) {
  try {
    return JSON.stringify(typeof given === "string" ? JSON.parse(given) : given, null, 2);
  } catch {
    return String(given);
  }
}
