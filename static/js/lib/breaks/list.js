// @ts-check
// The groups of breaks, one row each; cards where the page is narrow.

import { bars, spark } from "../bars.js";
import { h, icon, worded } from "../dom.js";
import { compact, counted, integer, orUnknown, regrouped } from "../format.js";
import { redraw } from "../keyed.js";
import { when } from "../server-time.js";
import { rangeWords } from "../time.js";
import { acts, breakPage, breakRows, breakTag, breakWord, costOf, decidedWords, OPEN } from "./words.js";

/** @typedef {import("../filters.js").View} View */

const COLUMNS = /** @type {const} */ ([
  ["What broke", ""], ["State", ""], ["Over time", ""], ["Breaks", "number"], ["Sessions", "number"],
  ["Tokens lost", "number"], ["List-price estimate", "number"], ["Last seen", ""],
]);

/**
 * @param {HTMLElement} host
 * @param {any} told what /api/breaks answered
 * @param {View} view
 * @param {() => void} done something was decided
 */
export function drawList(host, told, view, done) {
  if (!told.groups.length) return redraw(host, none(told, view));
  redraw(host, h("div", { class: "card issues" }, h("table", {},
    h("caption", { class: "visually-hidden" }, "Breaks of this view by cause"),
    h("thead", {}, h("tr", {}, ...COLUMNS.map(([title, kind]) => h("th", { scope: "col", class: kind }, title)))),
    h("tbody", {}, ...told.groups.map((/** @type {any} */ group) => line(group, told, view, done))))));
}

/** @param {any} told @param {View} view */
function none(told, view) {
  const range = rangeWords(view.from, view.to);
  if (!told.turns) {
    return h("div", { class: "card calm ok" }, icon("completed"),
      h("p", {}, h("strong", {}, `No breaks in ${range}.`), " Of no turn of this view is it known that something broke it."));
  }
  const others = Object.entries(told.states).filter(([, number]) => number).map(([state, number]) => `${integer(/** @type {number} */ (number))} ${breakWord(state)}`).join(", ");
  const shown = view.own?.state;
  const good = !shown && OPEN.every((state) => !told.states[state]);
  return h("div", { class: `card calm ${good ? "ok" : ""}` }, icon(good ? "completed" : "filter"),
    h("p", {}, h("strong", {}, good ? "Nothing is open." : `No cause is ${shown}.`), ` In ${range} there are ${others}.`));
}

/**
 * @param {any} group
 * @param {any} told
 * @param {View} view
 * @param {() => void} done
 */
function line(group, told, view, done) {
  const rows = breakRows(group, view);
  const link = (/** @type {import("../dom.js").Child} */ content, /** @type {string} */ name) => h("a", { href: rows, "aria-label": `${name}: show the rows` }, content);
  const clients = group.clients.map((/** @type {any} */ one) => [one.client ?? "unknown client", one.version].filter(Boolean).join(" "));
  return h("tr", { "data-group": group.id },
    h("th", { scope: "row", class: "cell-what" },
      h("a", { href: breakPage(group.id, view), class: "row-link", "data-key": group.id }, regrouped(group.sentence)),
      group.cause && h("span", { class: "second" }, "Usual cause: ", ...worded(group.cause)),
      group.remedy && h("span", { class: "second" }, "What helps: ", ...worded(group.remedy)),
      h("span", { class: "second meta" }, h("code", {}, group.reason ?? group.id), h("span", {}, clients.slice(0, 3).join(", "), clients.length > 3 && ` and ${clients.length - 3} more`),
        h("a", { href: `/requests?turn=${encodeURIComponent(group.example)}`, "aria-label": `Example of: ${group.sentence}` }, "Example"))),
    cell("State", "cell-state", breakTag(group.state), h("span", { class: "second" }, decidedWords(group)), acts(group, done, true)),
    cell("Over time", "cell-spark", spark(bars(told.buckets, group.counts, told.range.to))),
    cell("Breaks", "number", link(integer(group.turns), counted(group.turns, "break")),
      group.turns_ever !== group.turns && h("span", { class: "second" }, `${integer(group.turns_ever)} ever`)),
    cell("Sessions", "number", link(integer(group.sessions), counted(group.sessions, "session"))),
    cell("Tokens lost", "number", group.missed_tokens === null ? orUnknown(null, "", "the missed tokens of these turns are not known")
      : link(h("span", { title: counted(group.missed_tokens, "token") }, compact(group.missed_tokens)), `${integer(group.missed_tokens)} tokens lost`)),
    cell("List-price estimate", "number", ...costOf(group)),
    cell("Last seen", "cell-seen", when(group.last_seen), h("span", { class: "second" }, "first ", when(group.first_seen))));
}

/**
 * @param {string} label
 * @param {string} kind
 * @param {...import("../dom.js").Child} content
 */
function cell(label, kind, ...content) {
  return h("td", { class: kind, "data-label": label }, h("div", { class: "value" }, ...content));
}
