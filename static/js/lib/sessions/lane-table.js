// @ts-check
// A turn of the lanes in words, and all of them as a table.

import { add, fill, h } from "../dom.js";
import { counted, integer, milliseconds, orUnknown } from "../format.js";
import { clock, day, moment } from "../time.js";
import { wordsOf } from "./strip.js";

/** @typedef {import("./lanes.js").Turn} Turn */

const PAGE = 200;
const LIFE = ["", "longer than a cache is sure to live", "longer than a cache lives"];

/**
 * "Turn 12 of 340 · 14:03:22 · WebSocket, full, a break · prefix_mismatch · 40 min after the one before".
 * @param {Turn} turn
 * @param {number} place
 * @param {number} whole
 */
export function turnWords(turn, place, whole) {
  const at = new Date(turn.at);
  return [
    `Turn ${integer(place + 1)} of ${integer(whole)}`, `${day(at)}, ${clock(at)}`, wordsOf(turn.letter),
    turn.reason === "ok" ? "" : turn.reason, turn.reset ? `reset by ${turn.reset}` : "", turn.moved ? "another connection" : "", turn.fallback ?? "",
    turn.gap === null ? "" : `${milliseconds(turn.gap)} after the turn before${turn.life ? `, ${LIFE[turn.life]}` : ""}`,
    turn.missed ? `${counted(turn.missed, "token")} missed` : "",
  ].filter(Boolean).join(" · ");
}

/**
 * The last turns first.
 * @param {HTMLElement} host
 * @param {Turn[]} turns
 * @param {(id: string) => string} link
 * @param {number} [most]
 */
export function laneTable(host, turns, link, most = PAGE) {
  const head = h("tr", {}, ...["Turn", "Time", "Mode", "Reason", "Chain", "Epoch", "Pause", "Input", "Cached", "Missed"].map((title, at) =>
    h("th", { scope: "col", class: at > 5 && "number" }, title)));
  const body = h("tbody");
  for (let place = turns.length - 1; place >= Math.max(0, turns.length - most); place -= 1) add(body, line(turns[place], place, link));
  const table = h("table", { class: "data" }, h("caption", { class: "visually-hidden" }, "Turns of this session, the last first"), h("thead", {}, head), body);
  const rest = turns.length - most;
  const more = rest > 0 && h("button", { type: "button", class: "button", click: () => laneTable(host, turns, link, most + PAGE) }, `Show ${integer(Math.min(PAGE, rest))} more`);
  fill(host, h("div", { class: "data-table", tabindex: 0, role: "region", "aria-label": "Turns as a table" }, table), more);
}

/** @param {Turn} turn @param {number} place @param {(id: string) => string} link */
function line(turn, place, link) {
  const number = (/** @type {number | null} */ value) => h("td", { class: "number" }, orUnknown(value, integer(value)));
  const at = new Date(turn.at);
  return h("tr", {},
    h("th", { scope: "row" }, h("a", { href: link(turn.id), "data-turn": turn.id }, integer(place + 1))),
    h("td", {}, h("time", { datetime: at.toISOString(), title: moment(at) }, `${day(at)}, ${clock(at)}`)),
    h("td", {}, wordsOf(turn.letter)),
    h("td", {}, [turn.reason ?? "–", turn.reset ?? turn.fallback].filter(Boolean).join(": ")),
    h("td", {}, turn.chain ?? "–", turn.moved && " (another connection)"),
    h("td", {}, turn.epoch === null ? "–" : integer(turn.epoch)),
    h("td", { class: "number", title: turn.life ? LIFE[turn.life] : "" }, turn.gap === null ? "–" : `${milliseconds(turn.gap)}${turn.life ? ` (${LIFE[turn.life]})` : ""}`),
    number(turn.input), number(turn.cached), number(turn.missed));
}
