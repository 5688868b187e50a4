// @ts-check
// Who a session is, and its figures in the range.

import { copyable, fill, h } from "../dom.js";
import { compact, counted, dollars, integer, milliseconds, orUnknown, percent } from "../format.js";
import { moment } from "../time.js";

/**
 * @param {any} session
 * @param {(key: string) => string} link to another session
 */
export function showWho(session, link) {
  const { root } = session;
  const title = /** @type {HTMLElement} */ (document.getElementById("session-title"));
  fill(title, h("span", { class: "kind" }, "Session "), session.session ?? session.session_key);
  const facts = [[session.client, session.client_version].filter(Boolean).join(" "), session.model, session.upstream].filter(Boolean).join(" · ");
  fill(/** @type {HTMLElement} */ (document.getElementById("session-lede")), `${facts} `, copyable(session.session_key, "session key", `${session.session_key.slice(0, 12)}${session.session_key.length > 12 ? "…" : ""}`),
    root && h("span", {}, " sub-agent of ", root.session_key ? h("a", { href: link(root.session_key) }, root.session) : root.session));
}

/**
 * @param {HTMLElement} host
 * @param {any} told
 */
export function showFigures(host, told) {
  const { residency: at, figures } = told;
  const none = "no turn of known mode in this range";
  const parts = [
    figure("Residency", at.turns.share, percent, `${integer(at.turns.incremental)} of ${counted(at.turns.of, "turn")}`, none),
    figure("of input tokens", at.input_tokens.share, percent, `${compact(at.input_tokens.incremental)} of ${compact(at.input_tokens.of)}`, none),
    figure("of time", at.time_ms.share, percent, `${milliseconds(at.time_ms.incremental)} of ${milliseconds(at.time_ms.of)}`, none),
    figure("Mean run", at.mean_run, (value) => value.toFixed(1), at.longest_run === null ? "" : `turns; longest ${integer(at.longest_run)}`, "nothing was continued"),
    figure("First break after", at.first_break_ms, milliseconds, counted(at.breaks, "break"), "nothing broke"),
    figure("Return after", at.mean_return_ms, milliseconds, at.breaks ? `on average, ${integer(at.returned)} of ${integer(at.breaks)}` : "", at.breaks ? "no break was followed by a continued turn" : "nothing broke"),
    figure("Missed tokens", figures.missed_tokens, compact, figures.tokens.cached_ratio === null ? "" : `${percent(figures.tokens.cached_ratio)} of input cached`, "nothing is known to have been missed"),
    figure("Cost", figures.cost_usd, dollars, figures.turns_with_price < figures.turns ? `${integer(figures.turns - figures.turns_with_price)} without price` : "list-price estimate", "no turn has a price"),
  ];
  fill(host, ...parts);
}

/**
 * @param {string} name
 * @param {any} value
 * @param {(value: any) => string} format
 * @param {string} below
 * @param {string} why
 */
function figure(name, value, format, below, why) {
  const shown = value === null ? orUnknown(null, "", why) : format(value);
  return h("div", { class: "figure" }, h("dt", {}, name), h("dd", { class: "figure-value" }, shown), h("dd", { class: "figure-below" }, below));
}

/** @param {any} told */
export function figuresLine(told) {
  const { residency, figures } = told;
  const parts = [`Residency is the share of the turns of known mode that were incremental, of their input and of the time from receipt to end.`];
  if (residency.cut) parts.push(`Residency, runs and breaks are told from the last ${integer(residency.told_from)} of ${counted(figures.turns, "turn")}.`);
  return parts.join(" ");
}

/**
 * @param {any} session
 */
export function lifeWords(session) {
  return `It has turns from ${moment(session.first_seen)} to ${moment(session.last_seen)}.`;
}

/**
 * @param {HTMLElement} host
 * @param {any} session
 * @param {(key: string) => string} link
 */
export function showRelated(host, session, link) {
  fill(host, ...session.sub_agents.map((/** @type {any} */ one) =>
    h("li", {}, h("a", { href: link(one.session_key) }, one.session ?? one.session_key), h("span", { class: "muted" }, `${one.model ?? "–"} · last seen ${moment(one.last_seen)}`))),
  session.further_sub_agents && h("li", { class: "muted" }, "and more"));
}
