// @ts-check
// A table of settings: what each is called, its value, and where the value comes from.

import { h, icon } from "../dom.js";
import { redraw } from "../keyed.js";

/**
 * @typedef {{name: string, value: unknown, source: string, secret: boolean, help: string, because?: string | null}} Entry
 */

/**
 * @param {HTMLElement} host
 * @param {string} caption
 * @param {Entry[]} entries
 */
export function drawSettings(host, caption, entries) {
  redraw(host, h("div", { class: "card" }, settingsTable(caption, entries)));
}

/**
 * @param {string} caption
 * @param {Entry[]} entries
 * @param {string} [preset] what the source "preset" is called
 */
export function settingsTable(caption, entries, preset = "preset") {
  return h("table", { class: "values" },
    h("caption", { class: "visually-hidden" }, caption),
    h("thead", {}, h("tr", {}, ...["Setting", "Value", "From"].map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, ...entries.map((entry) => h("tr", {},
      h("th", { scope: "row" }, h("span", { class: "name" }, entry.name), h("span", { class: "help" }, ...withCode(entry.help))),
      h("td", { class: "value" }, value(entry), entry.source === "preset" && entry.because && h("span", { class: "help" }, entry.because)),
      h("td", { class: "from" }, source(entry.source, preset))))));
}

/** @param {Entry} entry */
function value(entry) {
  const { value: given } = entry;
  if (given === null || given === undefined) return h("span", { class: "muted" }, "not set");
  if (Array.isArray(given)) return given.length ? h("span", { class: "list" }, ...given.map((one) => h("code", {}, one))) : h("span", { class: "muted" }, "none");
  const text = h("code", {}, String(given));
  return entry.secret && given === "••••" ? h("span", {}, text, h("span", { class: "visually-hidden" }, " (set, and never shown)")) : text;
}

/**
 * Where a value comes from, in a word or two.
 * @param {string} from
 * @param {string} [preset]
 */
export function source(from, preset = "preset") {
  if (from === "default") return h("span", { class: "muted" }, "default");
  if (from === "preset") return h("span", { class: "tag-plain" }, preset);
  if (["the environment", "the command line"].includes(from)) return h("span", { class: "tag-plain" }, from);
  return h("span", { class: "tag-plain", title: from }, icon("file"), h("span", { class: "clip" }, from.split(/[/\\]/).pop() ?? from));
}

/** The words of a help, with what stands in backticks as code. @param {string} text */
function withCode(text) {
  return text.split("`").map((part, at) => (at % 2 ? h("code", {}, part) : part));
}
