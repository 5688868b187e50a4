// @ts-check
// Each upstream: where it is, whose endpoint it is taken for, how its turns fared, and its policy.

import { h } from "../dom.js";
import { integer } from "../format.js";
import { redraw } from "../keyed.js";
import { settingsTable, source } from "./list.js";

/** @type {readonly (readonly [string, string, string])[]} */
const FIGURES = [
  ["requests", "Requests", "generation turns that were sent upstream"],
  ["continuations", "Continued", "turns that Warmline continued"],
  ["delta_items", "Items sent", "items that continued turns sent"],
  ["full_items", "Items in full", "items that the same turns would have sent in full"],
  ["fallbacks", "Sent again", "turns whose continuation or storage was rejected, and that went once more"],
  ["errors", "Errors", "turns that failed or were refused by the upstream"],
  ["unsupported_bases", "Keep nothing", "tenants for whom the upstream is taken not to keep responses"],
  ["chains", "Chains", "answers that a turn could hang on now"],
];

/**
 * @param {HTMLElement} host
 * @param {any[]} upstreams
 */
export function drawUpstreams(host, upstreams) {
  redraw(host, h("ul", { class: "upstreams" }, ...upstreams.map((one) => h("li", {}, card(one)))));
}

/** @param {any} one */
function card(one) {
  const id = `upstream-${one.name}`;
  const preset = `preset ${one.preset}`;
  const set = one.policy.filter((/** @type {any} */ entry) => entry.source !== "default");
  return h("article", { class: "card upstream", "aria-labelledby": id },
    h("div", { class: "upstream-head" },
      h("h3", { id }, one.name),
      h("code", { class: "address" }, one.base_url),
      h("span", { class: "tag-plain", title: one.preset_for }, preset),
      one.preset_source !== "default" && h("span", { class: "set-in muted" }, "set in ", source(one.preset_source))),
    h("dl", { class: "facts counts" }, ...FIGURES.map(([name, title, meaning]) =>
      h("div", {}, h("dt", {}, title), h("dd", { title: meaning }, integer(one.figures[name]))))),
    h("p", { class: "muted since" }, "Counted since the start; chains and what keeps nothing are of now."),
    set.length
      ? settingsTable(`What is set for ${one.name}`, set, preset)
      : h("p", { class: "muted" }, "Every key of the policy has its default."),
    h("details", { "data-key": id },
      h("summary", {}, `All ${integer(one.policy.length)} keys of the policy`, h("span", { class: "visually-hidden" }, ` of ${one.name}`)),
      settingsTable(`Policy of ${one.name}`, one.policy, preset)));
}
