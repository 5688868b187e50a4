// @ts-check
// What the states of breaks are called, where their numbers lead, and what may be decided about them.

import { ApiError, send } from "../api.js";
import { announce, h, icon } from "../dom.js";
import { changed, href } from "../filters.js";
import { counted, dollars, orUnknown } from "../format.js";
import * as shell from "../shell.js";
import { moment } from "../time.js";

/** @typedef {import("../filters.js").View} View */

/** State: word, icon, tone, what it means. */
const STATES = /** @type {Record<string, [string, string, string, string]>} */ ({
  new: ["New", "plus", "warn", "First seen in the last 24 hours."],
  ongoing: ["Ongoing", "recovering", "", "Seen before, and not much more often than is usual for it."],
  escalating: ["Escalating", "spike", "bad", "Far more often in the last 24 hours than in the week before."],
  regressed: ["Regressed", "refresh", "bad", "It was resolved, and was seen again."],
  resolved: ["Resolved", "completed", "ok", "Somebody said so, and it was not seen since."],
  muted: ["Muted", "silence", "unknown", "Somebody said so; it goes on being counted."],
});
export const OPEN = /** @type {const} */ (["new", "ongoing", "escalating", "regressed"]);

/** @param {string} state */
export function breakTag(state) {
  const [word, sign, tone, meaning] = STATES[state] ?? [state, "unknown", "unknown", ""];
  return h("span", { class: `tag ${tone}`, title: meaning, "data-state": state }, icon(sign), word);
}

/** @param {string} state */
export function breakWord(state) {
  return (STATES[state]?.[0] ?? state).toLowerCase();
}

/** Until when, and since when, an operator's word holds. @param {any} group */
export function decidedWords({ state, decided }) {
  if (!decided || decided.state === "open") return "";
  if (decided.state === "muted" && state !== "muted") return `muted until ${moment(decided.ends_at)}`;
  const until = decided.state === "muted" ? (decided.ends_at ? `, until ${moment(decided.ends_at)}` : ", for ever") : "";
  return `${decided.state} ${moment(decided.at)}${until}`;
}

/**
 * The address of a group's own page, with the view.
 * @param {string} group
 * @param {View} view
 */
export function breakPage(group, view) {
  return href(`/breaks/${inPath(group)}`, { ...view, turn: null });
}

/** Where the API tells of a group. @param {string} group */
export function breakApi(group) {
  return `/api/breaks/${inPath(group)}`;
}

/** @param {string} group */
function inPath(group) {
  return group.split("/").map(encodeURIComponent).join("/");
}

/**
 * The rows of a group, as filters.
 * @param {any} group
 * @param {View} view
 * @param {{from?: string, to?: string}} [range]
 */
export function breakRows(group, view, range = {}) {
  return href("/requests", changed(view, { break: [group.id] }, range));
}

/**
 * Of a part of the view alone, where it has too many rows to read them all: since when.
 * @param {{newest: number | null, range: {from: string}}} told
 */
export function newestWords({ newest, range }) {
  return newest === null ? "" : `Of the newest ${counted(newest, "turn")} of this range: since ${moment(range.from)}.`;
}

/**
 * What breaks cost, or why that is not known.
 * @param {{cost_usd: string | null, turns_without_price: number}} waste
 */
export function costOf({ cost_usd: usd, turns_without_price: without }) {
  const value = orUnknown(usd, dollars(usd), "none of these turns has a list price, or its missed tokens are not known");
  return [value, usd !== null && without > 0 && h("span", { class: "second" }, `${counted(without, "turn")} without a price`)];
}

/**
 * What may be done about a group.
 * @param {any} group
 * @param {() => void} done
 * @param {boolean} [small]
 */
export function acts(group, done, small = false) {
  const closed = group.state === "resolved" || group.state === "muted";
  const button = (/** @type {string} */ word, /** @type {string} */ sign, /** @type {Record<string, string>} */ body, /** @type {string} */ title) =>
    h("button", {
      type: "button", class: `button ${small ? "small" : ""}`, title, "aria-label": `${word}: ${group.sentence}`, "data-key": `${group.id}/${word}`,
      click: () => void decide(group, body, done),
    }, icon(sign), word);
  return h("div", { class: "actions" },
    closed ? button("Reopen", "recovering", { state: "open" }, "Take back what was said")
      : button("Resolve", "check", { state: "resolved" }, "It is mended: say so when it comes back"),
    !closed && button("Mute 7 d", "silence", { state: "muted", for: "7d" }, "Out of the open ones for seven days"),
    !closed && !small && button("Mute", "silence", { state: "muted" }, "Out of the open ones until it is reopened"));
}

/**
 * Say what is to become of a group, unless somebody else has meanwhile.
 * @param {any} group as it is shown
 * @param {Record<string, string>} body
 * @param {() => void} done
 */
async function decide(group, body, done) {
  try {
    const told = await send("PATCH", breakApi(group.id), { ...body, seen: group.decided?.at ?? null });
    shell.showRefusal(null);
    announce(`Now ${breakWord(told.state)}: ${group.sentence}`);
  } catch (fault) {
    shell.showRefusal(fault);
    if (!(fault instanceof ApiError && fault.status === 409)) return;
  }
  done();
}
