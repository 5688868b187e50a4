// @ts-check
// A turn against the one that it goes on from, in words, above all that is known of the turn.

import { fill, h, icon } from "./dom.js";
import { regrouped } from "./format.js";
import { showDetail } from "./requests/detail.js";
import { moment } from "./time.js";

/**
 * @param {HTMLElement} title
 * @param {HTMLElement} body
 * @param {any} told what the API says of the turn
 * @param {import("./filters.js").View} view
 * @param {(turn: string) => void} open
 */
export function showTurn(title, body, told, view, open) {
  showDetail(title, body, told.row, view);
  const host = h("section", { class: "difference" }, h("h3", {}, "Against the turn before it"));
  body.insertBefore(host, body.children[1] ?? null);
  showAgainst(host, told, open);
}

/**
 * The turn that it goes on from, and what differs.
 * @param {HTMLElement} host what it is put into
 * @param {any} told what the API says of the turn
 * @param {(turn: string) => void} open
 */
export function showAgainst(host, told, open) {
  if (!told.before) return host.append(h("p", { class: "muted" }, "Nothing is known that it goes on from: it begins a conversation."));
  const { before } = told;
  const go = h("button", { type: "button", class: "button small", "data-turn": before.turn_id, click: () => open(before.turn_id) }, icon("arrow-right"), "Open the turn before");
  host.append(
    h("p", {}, told.named ? "It names the response of the turn of " : "It goes on from the turn of ", h("time", { datetime: before.started_at, title: before.started_at }, moment(before.started_at)), ", ", before.mode ?? "mode not known", "."),
    list(told.differences), go);
}

/** @param {{about: string, sentence: string, notable: boolean}[]} differences */
function list(differences) {
  const rows = h("ul", {});
  fill(rows, ...differences.map((one) =>
    h("li", { class: one.notable && "notable" }, one.notable && h("span", { class: "visually-hidden" }, "Notable: "), regrouped(one.sentence))));
  return rows;
}
